package bench

import (
	"fmt"
	"io"
	"iter"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/cohort-engine/cohort/bench/chart"
	"github.com/cohort-engine/cohort/bench/table"
)

// agreement is how a value stands to a published figure.
type agreement struct {
	// inside says that the two intervals meet: ours, and the paper's own or what its
	// rounding leaves open.
	inside bool
	// by is how far outside, as a share of the published figure, with its sign.
	by float64
	// apart is why the two cannot be compared; empty if they can.
	apart string
}

// agree compares a value with a published figure.
func agree(v *Value, r *Reference) agreement {
	ours, theirs := v.shown(), float64(r.Value)
	switch {
	case r.Apart != "":
		return agreement{apart: r.Apart}
	case v.Unit == unitNanoseconds || v.Unit == "s":
		return agreement{apart: "another machine"}
	case math.IsNaN(ours) || theirs == 0:
		return agreement{apart: "no number"}
	}
	open := math.Hypot(float64(v.Half), float64(r.Half)) + float64(r.Rounding)
	switch difference := ours - theirs; {
	case math.Abs(difference) <= open:
		return agreement{inside: true}
	case difference > 0:
		return agreement{by: (difference - open) / math.Abs(theirs)}
	default:
		return agreement{by: (difference + open) / math.Abs(theirs)}
	}
}

// outside tells whether the two can be compared and do not meet.
func (a agreement) outside() bool { return a.apart == "" && !a.inside }

// text says it for a reader.
func (a agreement) text() string {
	switch {
	case a.apart != "":
		return "not comparable: " + a.apart
	case a.inside:
		return "inside"
	case a.by > 0:
		return chart.Percent(a.by) + " above"
	}
	return chart.Percent(-a.by) + " below"
}

// published yields each value with each figure published for it by the same method.
func (r *Row) published() iter.Seq2[*Value, *Reference] {
	return func(yield func(*Value, *Reference) bool) {
		for i := range r.Values {
			v := &r.Values[i]
			for j := range v.References {
				if ref := &v.References[j]; ref.Kind == kindPublished && !ref.Other && !yield(v, ref) {
					return
				}
			}
		}
	}
}

// agreement says in one cell how a row's values stand to the published ones; empty
// if there are none.
func (r *Row) agreement() string {
	var parts, apart []string
	inside, comparable := 0, 0
	for v, ref := range r.published() {
		switch a := agree(v, ref); {
		case a.apart != "":
			if !strings.Contains(strings.Join(apart, " "), a.apart) {
				apart = append(apart, a.text())
			}
		case a.inside:
			inside++
			comparable++
		default:
			comparable++
			parts = append(parts, v.Name+" "+a.text())
		}
	}
	switch {
	case comparable == 0:
		return strings.Join(apart, "; ")
	case comparable == 1 && inside == 1:
		return "inside"
	case inside == comparable:
		return fmt.Sprintf("all %d inside", inside)
	case comparable == 1:
		return parts[0]
	}
	return fmt.Sprintf("%d of %d inside; %s", inside, comparable, strings.Join(parts, ", "))
}

// agreementText says how a value stands to a reference, and why where it is outside; empty
// for one that is not a published figure for the same method.
func (r *Row) agreementText(v *Value, ref *Reference) string {
	if ref.Kind != kindPublished || ref.Other {
		return ""
	}
	a := agree(v, ref)
	if why := r.why(v, ref); a.outside() && why != "" {
		return a.text() + ": " + why
	}
	return a.text()
}

// why says why a value of the row differs from a figure that the papers print for it, ""
// if nothing is known.
func (r *Row) why(v *Value, ref *Reference) string {
	tables, err := printedFiles()
	if err != nil { // Run and Stored have reported a file that cannot be read
		return ""
	}
	if t := tables[r.file()]; t != nil {
		return t.reason(r.Labels, v, ref)
	}
	for _, t := range tables { // a row beside what is printed for another suite's
		if t.source == ref.Source && t.why[v.Name] != "" {
			return t.why[v.Name]
		}
	}
	return ""
}

// notes are the row's note and why its values differ from published ones, each once.
func (r *Row) notes() string {
	var out []string
	if r.Note != "" {
		out = append(out, r.Note)
	}
	for v, ref := range r.published() {
		if why := r.why(v, ref); agree(v, ref).outside() && why != "" && !slices.Contains(out, why) {
			out = append(out, why)
		}
	}
	return strings.Join(out, "; ")
}

// tally counts how the values of a suite stand to the published ones.
type tally struct {
	suite                  string
	rows                   int
	inside, outside, apart int
	// open is the number of those outside for which no reason is known.
	open int
	// worst is the value that is furthest outside, and by how much.
	worst   string
	worstBy float64
}

// tallies are those of all sections that have published figures, and of all together.
func (r *Report) tallies() []tally {
	var out []tally
	all := tally{suite: "all"}
	for i := range r.Sections {
		s := &r.Sections[i]
		t := tally{suite: s.Suite.Name, rows: len(s.Rows)}
		for j := range s.Rows {
			t.count(&s.Rows[j])
		}
		if t.inside+t.outside+t.apart == 0 {
			continue
		}
		all.rows, all.inside, all.outside, all.open, all.apart = all.rows+t.rows, all.inside+t.inside,
			all.outside+t.outside, all.open+t.open, all.apart+t.apart
		out = append(out, t)
	}
	return append(out, all)
}

// notFound begins what stands where a reason was looked for and not found.
const notFound = "not found"

func (t *tally) count(row *Row) {
	for v, ref := range row.published() {
		switch a := agree(v, ref); {
		case a.apart != "":
			t.apart++
		case a.inside:
			t.inside++
		default:
			t.outside++
			if why := row.why(v, ref); why == "" || strings.HasPrefix(why, notFound) {
				t.open++
			}
			if math.Abs(a.by) > math.Abs(t.worstBy) {
				t.worst, t.worstBy = v.Name+" of "+describe("", row.Table, row.Labels)+": "+a.text(), a.by
			}
		}
	}
}

// WriteSummary writes one line per suite that has published figures: how many of them
// lie inside our interval, how many outside, how many cannot be compared.
func (r *Report) WriteSummary(w io.Writer, width int) error {
	g := table.Table{Columns: []string{"suite", "rows", "inside", "outside", "open", "apart",
		"furthest outside"},
		Of:      make([]string, 7),
		Numeric: []bool{false, true, true, true, true, true, false}}
	for _, t := range r.tallies() {
		g.Rows = append(g.Rows, []string{t.suite, strconv.Itoa(t.rows), strconv.Itoa(t.inside), strconv.Itoa(t.outside),
			strconv.Itoa(t.open), strconv.Itoa(t.apart), t.worst})
	}
	out := strings.Join(g.Lines(width), "\n") + "\n\n"
	texts := []string{
		"inside: our 95% interval meets the printed figure, its own interval and rounding included",
		"open: outside, and no reason was found; of the others each row says it",
		"apart: not comparable, mostly times on another machine; each row says why",
	}
	if len(r.Unstored) > 0 {
		texts = append(texts, "no stored results: "+strings.Join(r.Unstored, ", "))
	}
	for _, text := range texts {
		out += table.Paragraph(text, 0, 0, width)
	}
	_, err := io.WriteString(w, out)
	return err
}
