package bench

import (
	"slices"
	"strings"
	"unicode/utf8"
)

// tableIndent and tableGap are the blanks before a table and between its columns.
const tableIndent, tableGap = 2, 2

// laid is a column of a table as it is printed.
type laid struct {
	head  []string
	cells [][]string // lines of each row's cell
	width int
}

// lay folds the heading into as many lines as the cells' width asks for, and the
// cells too if they are wider than most.
func (g *grid) lay(column, most int) laid {
	l := laid{}
	for _, row := range g.rows {
		lines := []string{row[column]}
		if most > 0 && utf8.RuneCountInString(row[column]) > most {
			lines = fold(row[column], most)
		}
		l.cells = append(l.cells, lines)
		l.width = max(l.width, widest(lines))
	}
	l.width = max(l.width, widest(strings.Fields(g.columns[column])))
	l.head = fold(g.columns[column], l.width)
	return l
}

func widest(lines []string) int {
	w := 0
	for _, line := range lines {
		w = max(w, utf8.RuneCountInString(line))
	}
	return w
}

// text prints the table in lines of at most width characters: where the columns
// do not fit side by side they continue below, each part with the columns that
// name the rows. A width of 0 sets no limit, and a row is one line.
func (g *grid) text(width int) []string {
	names := slices.Index(g.numeric, true)
	if names < 0 {
		names = len(g.columns)
	}
	columns := make([]laid, len(g.columns))
	total := tableIndent
	for i := range columns {
		columns[i] = g.lay(i, 0)
		if width == 0 {
			columns[i].head = []string{g.columns[i]}
			columns[i].width = max(columns[i].width, utf8.RuneCountInString(g.columns[i]))
		}
		total += columns[i].width + tableGap
	}
	if total-tableGap <= width || width == 0 {
		return printColumns(columns)
	}
	// The names of the rows are folded until the widest of the other columns fits
	// beside them.
	beside := 0
	for i, c := range columns {
		if g.numeric[i] {
			beside = max(beside, min(c.width, width/2))
		}
	}
	left := tableIndent
	for most := width; ; most-- {
		left = tableIndent
		for i := range names {
			columns[i] = g.lay(i, most)
			left += columns[i].width + tableGap
		}
		if left+beside <= width || most <= 8 {
			break
		}
	}
	var out []string
	for from := names; from < len(columns); {
		part := slices.Clone(columns[:names])
		used := left
		to := from
		for to < len(columns) && (to == from || used+g.reach(columns, to) <= width) {
			c := columns[to]
			if used+c.width > width {
				c = g.lay(to, max(width-used, 16))
			}
			if to == from && g.of[to] != "" { // apart from the value that it belongs to
				c.width = max(c.width, utf8.RuneCountInString(g.of[to])+1)
				c.head = append(fold(g.of[to]+":", c.width), c.head...)
			}
			part = append(part, c)
			used += c.width + tableGap
			to++
		}
		if from > names {
			out = append(out, "")
		}
		out = append(out, printColumns(part)...)
		from = to
	}
	return out
}

// reach is the width of a value's column with those of its references, or of any
// other column alone: what is kept on one line where it can be.
func (g *grid) reach(columns []laid, at int) int {
	w := columns[at].width
	if g.of[at] != "" {
		return w
	}
	for i := at + 1; i < len(columns) && g.of[i] == g.columns[at]; i++ {
		w += tableGap + columns[i].width
	}
	return w
}

func printColumns(columns []laid) []string {
	var out []string
	line := func(cell func(laid) string) {
		var b strings.Builder
		b.WriteString(strings.Repeat(" ", tableIndent))
		for _, c := range columns {
			text := cell(c)
			b.WriteString(text)
			b.WriteString(strings.Repeat(" ", c.width-utf8.RuneCountInString(text)+tableGap))
		}
		out = append(out, strings.TrimRight(b.String(), " "))
	}
	at := func(lines []string, i int) string {
		if i >= 0 && i < len(lines) {
			return lines[i]
		}
		return ""
	}
	height := 0
	for _, c := range columns {
		height = max(height, len(c.head))
	}
	for i := range height { // headings end on one line
		line(func(c laid) string { return at(c.head, i-height+len(c.head)) })
	}
	for r := range columns[0].cells {
		height := 1
		for _, c := range columns {
			height = max(height, len(c.cells[r]))
		}
		for i := range height {
			line(func(c laid) string { return at(c.cells[r], i) })
		}
	}
	return out
}
