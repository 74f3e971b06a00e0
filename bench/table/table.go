// Package table lays text out in columns that fit the width of a terminal.
package table

import (
	"fmt"
	"slices"
	"strings"

	"github.com/rivo/uniseg"
)

// indent and gap are the blanks before a table and between its columns.
const indent, gap = 2, 2

// Width is the number of a terminal's columns that text takes: two for a wide character, such as a Chinese one or an
// emoji, none for what is drawn on the character before.
func Width(text string) int { return uniseg.StringWidth(text) }

// Clip is text in at most width columns; the last is an ellipsis where something is left out.
func Clip(text string, width int) string {
	if Width(text) <= width {
		return text
	}
	used, end, state := 0, 0, -1
	for rest := text; ; {
		cluster, after, w, next := uniseg.FirstGraphemeClusterInString(rest, state)
		if cluster == "" || used+w > width-1 {
			return text[:end] + "…"
		}
		used, end, rest, state = used+w, end+len(cluster), after, next
	}
}

// Table is rows of cells under column names.
type Table struct {
	Columns []string
	// Of names the column that a column belongs to, such as a reference to the value
	// beside which it stands; "" or nil for none.
	Of []string
	// Numeric columns follow those that name the row.
	Numeric []bool
	Rows    [][]string
	// Right aligns numeric columns at their right.
	Right bool
}

func (g *Table) of(column int) string {
	if g.Of == nil {
		return ""
	}
	return g.Of[column]
}

// laid is a column of a table as it is printed.
type laid struct {
	head  []string
	cells [][]string // lines of each row's cell
	width int
	right bool
}

// lay folds the heading into as many lines as the cells' width asks for, and the
// cells too if they are wider than most.
func (g *Table) lay(column, most int) laid {
	l := laid{right: g.Right && g.Numeric[column]}
	for _, row := range g.Rows {
		lines := []string{row[column]}
		if most > 0 && Width(row[column]) > most {
			lines = Fold(row[column], most)
		}
		l.cells = append(l.cells, lines)
		l.width = max(l.width, widest(lines))
	}
	l.width = max(l.width, widest(strings.Fields(g.Columns[column])))
	l.head = Fold(g.Columns[column], l.width)
	return l
}

func widest(lines []string) int {
	w := 0
	for _, line := range lines {
		w = max(w, Width(line))
	}
	return w
}

// Lines prints the table in lines of at most width characters: where the columns
// do not fit side by side they continue below, each part with the columns that
// name the rows. A width of 0 sets no limit, and a row is one line.
func (g *Table) Lines(width int) []string {
	names := slices.Index(g.Numeric, true)
	if names < 0 { // the first column names the rows of a table of text alone
		names = min(1, len(g.Columns))
	}
	columns := make([]laid, len(g.Columns))
	total := indent
	for i := range columns {
		columns[i] = g.lay(i, 0)
		if width == 0 {
			columns[i].head = []string{g.Columns[i]}
			columns[i].width = max(columns[i].width, Width(g.Columns[i]))
		}
		total += columns[i].width + gap
	}
	if total-gap <= width || width == 0 {
		return printColumns(columns)
	}
	// The names of the rows are folded until the widest of the other columns fits
	// beside them.
	beside := 0
	for i, c := range columns {
		if g.Numeric[i] {
			beside = max(beside, min(c.width, width/2))
		}
	}
	left := indent
	for most := width; ; most-- {
		left = indent
		for i := range names {
			columns[i] = g.lay(i, most)
			left += columns[i].width + gap
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
			if to == from && g.of(to) != "" { // apart from the value that it belongs to
				c.width = max(c.width, Width(g.of(to))+1)
				c.head = append(Fold(g.of(to)+":", c.width), c.head...)
			}
			part = append(part, c)
			used += c.width + gap
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
func (g *Table) reach(columns []laid, at int) int {
	w := columns[at].width
	if g.of(at) != "" {
		return w
	}
	for i := at + 1; i < len(columns) && g.of(i) == g.Columns[at]; i++ {
		w += gap + columns[i].width
	}
	return w
}

func printColumns(columns []laid) []string {
	var out []string
	line := func(cell func(laid) string) {
		var b strings.Builder
		b.WriteString(strings.Repeat(" ", indent))
		for _, c := range columns {
			text := cell(c)
			blank := strings.Repeat(" ", c.width-Width(text))
			if c.right {
				b.WriteString(blank + text)
			} else {
				b.WriteString(text + blank)
			}
			b.WriteString(strings.Repeat(" ", gap))
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

// Fold breaks text into lines of at most width characters, between words.
func Fold(text string, width int) []string {
	var lines []string
	line := ""
	for _, word := range strings.Fields(text) {
		if line != "" && Width(line)+1+Width(word) > width {
			lines, line = append(lines, line), ""
		}
		if line != "" {
			line += " "
		}
		line += word
	}
	if line != "" {
		lines = append(lines, line)
	}
	return lines
}

// Paragraph is text in lines of at most width characters, or in one line for 0: the first after indent blanks, the
// others after hang more.
func Paragraph(text string, indent, hang, width int) string {
	lines := []string{text}
	if width > 0 {
		lines = Fold(text, max(width-indent-hang, 20))
	}
	var b strings.Builder
	for i, line := range lines {
		if i == 1 {
			indent += hang
		}
		fmt.Fprintf(&b, "%*s%s\n", indent, "", line)
	}
	return b.String()
}
