package privacy

import (
	"fmt"
	"io"
	"strconv"
	"strings"
)

// Text writes the ledger for people, in lines of at most 80 columns: every release with its cost,
// the totals of each viewer, what is not covered, the conditions. Releases in a row that differ in their number alone
// stand together, and those whose noise has the same hands and the same audience name them once.
func (l *Ledger) Text(w io.Writer) error {
	var b strings.Builder
	l.releases(&b)
	for _, t := range l.Totals() {
		paragraph(&b, "  ", "total for "+t.Viewers[0]+": "+t.price())
	}
	seen := map[string]bool{}
	line := func(s string) {
		if s != "" && !seen[s] {
			seen[s] = true
			paragraph(&b, "  ", s)
		}
	}
	for _, e := range l.Entries() {
		if e.Kind == Note {
			line("not covered: " + e.What)
		}
	}
	for _, e := range l.Entries() {
		for _, c := range e.Conditions {
			line("condition: " + c)
		}
		if e.Kind != Note {
			line(e.Remark)
		}
	}
	if _, err := io.WriteString(w, b.String()); err != nil {
		return fmt.Errorf("ledger: write: %w", err)
	}
	return nil
}

// releases writes what and its price, then how it was made and who sees it.
func (l *Ledger) releases(b *strings.Builder) {
	var entries []Entry
	for _, e := range l.Entries() {
		if e.Kind == Release {
			entries = append(entries, e)
		}
	}
	names := make([]string, len(entries))
	for i, e := range entries {
		names[i] = e.What
	}
	above := ""
	for _, r := range Stretches(names, func(i, j int) bool { return entries[i].readsLike(entries[j]) }) {
		e := entries[r.First]
		head := r.Name + ": " + e.price()
		if r.Count > 1 {
			head += " each"
		}
		if e.Theorem != "" {
			head += " [" + e.Theorem + "]"
		}
		paragraph(b, "  ", head)
		source := e.source()
		if e.Noise != nil && source == above {
			paragraph(b, "      ", e.how()+"; drawn and seen as above")
		} else {
			paragraph(b, "      ", e.how()+source)
		}
		above = source
	}
}

// readsLike tells whether two releases read the same but for their names.
func (e Entry) readsLike(o Entry) bool {
	return e.price() == o.price() && e.Theorem == o.Theorem && e.how() == o.how() && e.source() == o.source()
}

// Stretch is a number of things in a row, from First on, that one name stands for.
type Stretch struct {
	Name         string
	First, Count int
}

// Stretches puts together what is alike and has names that differ in their numbers alone, which follow each other:
// "round 2: sums" and "round 3: sums" are "round 2 to 3: sums".
func Stretches(names []string, alike func(i, j int) bool) []Stretch {
	var all []Stretch
	for i := 0; i < len(names); {
		r := Stretch{Name: names[i], First: i, Count: 1}
		label, number, rest := numbered(names[i])
		for i++; rest != "" && i < len(names) && alike(r.First, i); i++ {
			if names[i] != fmt.Sprintf("%s%d%s", label, number+r.Count, rest) {
				break
			}
			r.Name = fmt.Sprintf("%s%d to %d%s", label, number, number+r.Count, rest)
			r.Count++
		}
		all = append(all, r)
	}
	return all
}

// numbered takes "round 2: sums" apart; rest is empty where there is no such number.
func numbered(what string) (label string, number int, rest string) {
	label, rest, found := strings.Cut(what, ":")
	i := len(strings.TrimRight(label, "0123456789"))
	number, err := strconv.Atoi(label[i:])
	if !found || err != nil {
		return what, 0, ""
	}
	return label[:i], number, ":" + rest
}

// how says how a release was made.
func (e Entry) how() string {
	how := e.Mechanism
	if e.Norm != "" {
		how += fmt.Sprintf(", %s sensitivity %.4g", e.Norm, e.Sensitivity)
	}
	if e.Scale != 0 {
		how += strings.TrimRight(fmt.Sprintf(", scale %.4g %s", e.Scale, e.Unit), " ")
	}
	return how
}

// source says who drew the noise and who sees the release.
func (e Entry) source() (s string) {
	if e.Noise != nil {
		s = ", " + e.Noise.String()
	}
	s += "; seen by " + strings.Join(e.Viewers, ", ")
	if len(e.Derived) > 0 {
		s += "; nothing new to the " + strings.Join(e.Derived, ", ")
	}
	return s
}

// paragraph writes s in lines of at most 80 columns, the first with the indent and the others with
// two columns more.
func paragraph(b *strings.Builder, indent, s string) {
	line := indent
	empty := true
	for _, word := range strings.Fields(s) {
		if !empty && len([]rune(line))+1+len([]rune(word)) > 80 {
			b.WriteString(line + "\n")
			line, empty = indent+"  ", true
		}
		if !empty {
			line += " "
		}
		line += word
		empty = false
	}
	b.WriteString(line + "\n")
}

// price is the cost of an entry in words.
func (e Entry) price() string {
	if e.Cost.Family == "" && e.Kind == Release && e.Epsilon == nil && !e.Unbounded {
		return "no cost"
	}
	s := "epsilon unbounded"
	if e.Epsilon != nil {
		s = fmt.Sprintf("epsilon %.4g", *e.Epsilon)
		if e.Delta != nil && *e.Delta > 0 {
			s += fmt.Sprintf(" at delta %.3g", *e.Delta)
		}
		if e.Accountant != "" {
			s += " by " + e.Accountant
		}
	}
	switch {
	case e.TrueEpsilon != nil:
		s += fmt.Sprintf(" (true: %.4g)", *e.TrueEpsilon)
	case e.Unbounded && e.Epsilon != nil:
		s += " (true: unbounded)"
	}
	return s
}
