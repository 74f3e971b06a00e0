package privacy

import (
	"fmt"
	"io"
	"strings"
)

// Text writes the ledger for people, in lines of at most 80 columns: every release with its cost,
// the totals of each viewer, what is not covered, the conditions.
func (l *Ledger) Text(w io.Writer) error {
	var b strings.Builder
	for _, e := range l.Entries {
		if e.Kind == Release {
			e.text(&b)
		}
	}
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
	for _, e := range l.Entries {
		if e.Kind == Note {
			line("not covered: " + e.What)
		}
	}
	for _, e := range l.Entries {
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

// text writes a release: what and its price, then how it was made and who sees it.
func (e Entry) text(b *strings.Builder) {
	head := e.What + ": " + e.price()
	if e.Theorem != "" {
		head += " [" + e.Theorem + "]"
	}
	paragraph(b, "  ", head)
	how := e.Mechanism
	if e.Norm != "" {
		how += fmt.Sprintf(", %s sensitivity %.4g", e.Norm, e.Sensitivity)
	}
	if e.Scale != 0 {
		how += strings.TrimRight(fmt.Sprintf(", scale %.4g %s", e.Scale, e.Unit), " ")
	}
	if e.Noise != nil {
		how += ", " + e.Noise.String()
	}
	how += "; seen by " + strings.Join(e.Viewers, ", ")
	if len(e.Derived) > 0 {
		how += "; nothing new to the " + strings.Join(e.Derived, ", ")
	}
	paragraph(b, "      ", how)
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
