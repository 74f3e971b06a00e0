package dataset

import (
	"bytes"
	"fmt"
	"slices"

	"github.com/cohort-engine/cohort/internal/fault"
)

// textChunk is some lines of text.
type textChunk struct {
	source   *textSource
	buf      []byte      // what text is a part of, with textPad bytes of room after it
	text     []byte      // whole lines
	line     int         // lines before text
	emptyRow int         // row of an empty line since the last record, or 0
	free     chan []byte // takes buf when it is done with
}

// Decode parses the lines.
func (c *textChunk) Decode(b *Block) error {
	s := c.source
	// Every record takes at least a byte per cell, so a header alone asks for no memory.
	lines := min(bytes.Count(c.text, []byte("\n")), len(c.text)/s.width+1)
	if need := lines * s.schema.D; cap(b.Rows)-len(b.Rows) < need {
		b.Rows = append(make([]float64, 0, len(b.Rows)+need), b.Rows...)
	}
	if c.line == s.line {
		b.Comments += s.comments
	}
	p := lineParser{s: s, b: b, text: c.buf[:len(c.text)+textPad], end: len(c.text), row: c.line, emptyRow: c.emptyRow}
	if s.plain {
		words := (p.end + 63) / 64
		b.marks = slices.Grow(b.marks[:0], words)[:words]
		p.marks, p.tries = b.marks, notPlain
		markOthers(p.marks, p.text, p.end)
	}
	err := p.run()
	select {
	case c.free <- c.buf[:0]:
	default:
	}
	return err
}

// lineParser parses the lines of a chunk.
type lineParser struct {
	s        *textSource
	b        *Block
	text     []byte // with textPad bytes after the last line
	end      int    // of the last line
	row      int    // of the line at hand, from 1
	emptyRow int
	cells    [][]byte
	marks    []uint64 // of what is no digit (markOthers)
	tries    int      // lines that may still turn out not to be plain numbers
}

// notPlain is how many lines of a chunk may not be what the fastest way takes before the others are not tried.
const notPlain = 20

// run takes the fast way for each line, and the general one where that fails.
func (p *lineParser) run() error {
	d, format := p.s.schema.D, &p.s.opts.Text
	for at := 0; at < p.end; {
		p.row++
		// A comment may pass for a record only where its first cell is not looked at.
		if p.emptyRow == 0 && !p.s.quoted && (p.s.to[0] >= 0 || !format.isComment(p.text[at:p.end])) {
			row := p.b.room(d)
			if next := p.quickLine(at, row, format.point()); next > 0 {
				at = next
				p.b.N++
				continue
			}
			p.b.Rows = p.b.Rows[:len(p.b.Rows)-d]
		}
		end := at + bytes.IndexByte(p.text[at:p.end], '\n')
		if err := p.line(p.text[at:end]); err != nil {
			return err
		}
		at = end + 1
	}
	return nil
}

// quickLine is fastLine, by way of the marks where there are some.
func (p *lineParser) quickLine(at int, row []float64, point byte) int {
	if p.tries > 0 {
		if next := p.numbersLine(at, row, point, byte(p.s.sep)); next > 0 {
			return next
		}
		p.tries--
	}
	return p.fastLine(at, row, point)
}

// room appends d values to the rows and returns them.
func (b *Block) room(d int) []float64 {
	at := len(b.Rows)
	if cap(b.Rows) < at+d {
		b.Rows = append(make([]float64, 0, 2*at+d), b.Rows...)
	}
	b.Rows = b.Rows[:at+d]
	return b.Rows[at:]
}

// fastLine parses the line that begins at text[at] into row if its cells are plain
// numbers, and texts without quotes. It returns where the next line begins, or 0,
// with nothing taken, where the line is any other.
func (p *lineParser) fastLine(at int, row []float64, point byte) int {
	text, sep := p.text, byte(p.s.sep)
	to := p.s.to
	texts := len(p.b.Texts)
	for c, j := range to {
		for text[at] == ' ' || (text[at] == '\t' && sep == ' ') {
			at++
		}
		if j >= 0 {
			v, end, ok := scanNumber(text, at, point)
			if !ok {
				p.b.dropText(texts)
				return 0
			}
			row[j] = v
			at = end
		} else {
			start := at
			if at = p.endOfCell(at, sep); text[at] == '"' {
				p.b.dropText(texts)
				return 0
			}
			if j == textCell {
				cell := trimBlank(text[start:at])
				if len(cell) == 0 {
					return 0
				}
				p.b.AddText(cell)
			}
		}
		want := sep
		if c == len(to)-1 {
			for sep == ' ' && isBlank(text[at]) {
				at++
			}
			if text[at] == '\r' {
				at++
			}
			want = '\n'
		}
		if text[at] != want && !(want == ' ' && text[at] == '\t') {
			p.b.dropText(texts)
			return 0
		}
		at++
	}
	return at
}

// endOfCell returns where the cell around text[at] ends, or the first quote in it.
func (p *lineParser) endOfCell(at int, sep byte) int {
	for {
		switch c := p.text[at]; {
		case c == sep, c == '\n', c == '\r', c == '"', c == '\t' && sep == ' ':
			return at
		}
		at++
	}
}

// dropText takes the text of a line back that was begun when there were that many
// bytes.
func (b *Block) dropText(bytes int) {
	if len(b.Texts) > bytes {
		b.Texts, b.Ends = b.Texts[:bytes], b.Ends[:len(b.Ends)-1]
	}
}

// line parses any line.
func (p *lineParser) line(line []byte) error {
	s := p.s
	line = bytes.TrimSuffix(line, []byte("\r"))
	if len(trimBlank(line)) == 0 {
		if p.emptyRow == 0 {
			p.emptyRow = p.row
		}
		return nil
	}
	if s.opts.Text.isComment(line) {
		p.b.Comments++
		return nil
	}
	name := s.file.name
	if p.emptyRow > 0 {
		return emptyRowFault(name, p.emptyRow)
	}
	p.cells = splitCells(p.cells[:0], line, s.sep)
	if len(p.cells) != s.width {
		why := fmt.Sprintf("%s where the rows above have %d", fault.Count(len(p.cells), "cell"), s.width)
		do := "give every row the same number of cells"
		if isOpen(line, p.cells) {
			why, do = openCell, closeCell
		} else if at := bytes.IndexFunc(line, isControl); at >= 0 {
			why, do = fmt.Sprintf("a control character (%#02x)", line[at]), "remove it"
		}
		return fault.Failed(place(name, p.row, 0), why, do, nil)
	}
	row := p.b.room(s.schema.D)
	for c, j := range s.to {
		cell := p.cells[c]
		switch {
		case j == textCell && len(cell) == 0:
			return cellFault(name, p.row, c+1, nil, nil)
		case j == textCell:
			p.b.AddText(cell)
		case j >= 0:
			v, err := parseDecimal(cell, s.opts.Text.point())
			if err != nil && p.b.Missing != RefuseMissing && isMissing(cell) {
				v, err = missingValue, nil
			}
			if err != nil {
				return cellFault(name, p.row, c+1, cell, err)
			}
			row[j] = v
		}
	}
	p.b.N++
	return nil
}

func emptyRowFault(name string, row int) error {
	return fault.Failed(place(name, row, 0), "an empty row between records", "remove it, or fill in its cells", nil)
}
