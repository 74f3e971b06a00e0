package dataset

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/encoding/unicode"

	"github.com/cohort-engine/cohort/internal/fault"
)

// TextFormat says how a text file is written. The zero value finds it out.
type TextFormat struct {
	// Header is "auto" (or empty: the first row is a header if none of its cells is
	// a number, and not all are missing values, as a record's may be), "yes" or "no".
	Header string
	// Separator is one character between cells, "blank" for runs of spaces and tabs,
	// or empty: a comma, else a tab, a semicolon, a bar, blanks, as the first row has; where it has
	// several of them, the first that makes as many cells of the second row.
	Separator string
	// DecimalComma says that 1,5 is one and a half. A comma then separates no cells, unless those of the
	// first two rows stand in quotes on one side of it, as spreadsheets write them: "1,5","2,75".
	DecimalComma bool
	// Comment begins the lines that are left out; empty stands for "#", "none" for
	// no such lines.
	Comment string
}

// separator is how the cells of a text file are told apart; blank means runs of
// spaces and tabs.
type separator byte

const blank separator = ' '

// check refuses formats that cannot be.
func (f TextFormat) check() error {
	switch f.Header {
	case "", "auto", "yes", "no":
	default:
		return fault.Range("header", strconv.Quote(f.Header), "yes, no or auto")
	}
	switch sep := f.separatorByte(); {
	case f.Separator != "" && f.Separator != "blank" &&
		(len(f.Separator) != 1 || strings.ContainsAny(f.Separator, "\"\r\n+-.0123456789eE")):
		return fault.Range("separator", strconv.Quote(f.Separator), `one character such as "," or "|", or blank`)
	case f.DecimalComma && sep == ',':
		return fault.Request("separator", "the comma is the decimal sign as well",
			`give another one, such as --separator ";", or none if such numbers are in quotes`)
	}
	return nil
}

// separatorByte is the separator that was asked for, or 0.
func (f TextFormat) separatorByte() separator {
	switch f.Separator {
	case "":
		return 0
	case "blank", " ":
		return blank
	}
	return separator(f.Separator[0])
}

func (f TextFormat) point() byte {
	if f.DecimalComma {
		return ','
	}
	return '.'
}

// isComment reports whether a line is left out.
func (f TextFormat) isComment(line []byte) bool {
	if f.Comment == "" {
		for len(line) > 0 && isBlank(line[0]) {
			line = line[1:]
		}
		return len(line) > 0 && line[0] == '#'
	}
	return f.Comment != "none" && bytes.HasPrefix(line, []byte(f.Comment))
}

// sniff picks the separator from the first row and, where names of columns may have one in them, the second.
func (f TextFormat) sniff(line []byte, second func() []byte) separator {
	if sep := f.separatorByte(); sep != 0 {
		return sep
	}
	var found []separator
	for _, c := range []byte{',', '\t', ';', '|'} {
		if bytes.IndexByte(line, c) >= 0 && c != f.point() {
			found = append(found, separator(c))
		}
	}
	if f.DecimalComma && len(found) == 0 && bytes.IndexByte(line, ',') >= 0 &&
		(commaAtQuote(line) || commaAtQuote(second())) {
		return ','
	}
	if len(found) > 1 {
		next := second()
		for _, sep := range found {
			if n := len(splitCells(nil, line, sep)); n > 1 && n == len(splitCells(nil, next, sep)) {
				return sep
			}
		}
	}
	if cells := splitCells(nil, line, blank); len(found) == 0 && len(cells) > 1 && f.isHeader(cells) {
		if next := second(); len(trimBlank(next)) > 0 && len(splitCells(nil, next, blank)) == 1 {
			return '\t' // a name with blanks over a single column
		}
	}
	return append(found, blank)[0]
}

// commaAtQuote tells whether a comma of a row is next to a quote, and so between cells.
func commaAtQuote(line []byte) bool {
	for at := bytes.IndexByte(line, ','); at >= 0; {
		before, after := trimBlank(line[:at]), trimBlank(line[at+1:])
		if bytes.HasSuffix(before, []byte(`"`)) || bytes.HasPrefix(after, []byte(`"`)) {
			return true
		}
		next := bytes.IndexByte(line[at+1:], ',')
		if next < 0 {
			return false
		}
		at += 1 + next
	}
	return false
}

// isHeader reports whether a first row names the columns.
func (f TextFormat) isHeader(cells [][]byte) bool {
	switch f.Header {
	case "yes":
		return true
	case "no":
		return false
	}
	named := false
	for _, c := range cells {
		if !isMissing(c) { // else a record's values would name the columns
			named = true
		}
		// NaN and Inf count as numbers.
		if _, err := parseDecimal(c, f.point()); !errors.Is(err, errNotNumber) {
			return false
		}
	}
	return named
}

// splitCells appends the cells of line to dst. Blanks and one pair of double
// quotes around a cell are not part of it; a separator inside quotes is, and a doubled quote is one (RFC 4180).
func splitCells(dst [][]byte, line []byte, sep separator) [][]byte {
	if sep == blank {
		i := 0
		for {
			for i < len(line) && isBlank(line[i]) {
				i++
			}
			if i == len(line) {
				return dst
			}
			start := i
			for i < len(line) && !isBlank(line[i]) {
				i++
			}
			dst = append(dst, unquote(line[start:i]))
		}
	}
	for {
		i := 0
		for i < len(line) && isBlank(line[i]) && separator(line[i]) != sep {
			i++
		}
		for i < len(line) && line[i] == '"' { // a doubled quote goes on
			j := bytes.IndexByte(line[i+1:], '"')
			if j < 0 {
				break
			}
			i += j + 2
		}
		for i < len(line) && separator(line[i]) != sep {
			i++
		}
		dst = append(dst, unquote(trimBlank(line[:i])))
		if i == len(line) {
			return dst
		}
		line = line[i+1:]
	}
}

func isBlank(c byte) bool { return c == ' ' || c == '\t' }

func trimBlank(b []byte) []byte {
	for len(b) > 0 && isBlank(b[0]) {
		b = b[1:]
	}
	for len(b) > 0 && isBlank(b[len(b)-1]) {
		b = b[:len(b)-1]
	}
	return b
}

func unquote(b []byte) []byte {
	if n := len(b); n >= 2 && b[0] == '"' && b[n-1] == '"' {
		if b = b[1 : n-1]; bytes.Contains(b, []byte(`""`)) {
			b = []byte(strings.ReplaceAll(string(b), `""`, `"`))
		}
		return trimBlank(b)
	}
	return b
}

// textHead is how much of a text file is looked at for its form.
const textHead = 64 << 10

// textSource reads text.
type textSource struct {
	file   *file
	opts   *ReadOptions
	schema Schema

	sep      separator
	width    int   // cells of a row
	to       []int // by cell: the coordinate it is, or one of the marks below
	quoted   bool  // a comma is between cells and in numbers, which then are in quotes
	plain    bool  // each cell is a coordinate, in their order, with one character between them
	skip     int   // bytes before the first record
	line     int   // lines before the first record
	comments int   // comment lines among those
}

// Marks of cells that are no coordinate.
const (
	skipCell = -1
	textCell = -2
)

// newTextSource finds the form of a text file from its beginning.
func newTextSource(f *file, opts *ReadOptions) (Source, error) {
	if err := opts.Text.check(); err != nil {
		return nil, err
	}
	s := &textSource{file: f, opts: opts}
	bad := func(row int, why, do string) error { return fault.Failed(place(f.name, row, 0), why, do, nil) }
	r, err := f.reader()
	if err != nil {
		return nil, err
	}
	defer f.keep(r)
	l := headLines{r: r}
	first, err := s.firstLine(&l)
	if err == io.EOF && l.row == 0 {
		return nil, bad(0, "the file is empty", "give a file with one record per row")
	}
	if err == io.EOF {
		return nil, bad(0, "the file has no records", "give a file with one record per row")
	}
	if why, do := foreign(first, nil); err == errLongLine && why != "" {
		return nil, bad(l.row+1, why, do)
	}
	if err != nil {
		return nil, readFault(f.name, l.row+1, err)
	}
	s.sep = opts.Text.sniff(first, func() []byte { return s.lineAfter(l) })
	cells := splitCells(nil, first, s.sep)
	if why, do := foreign(first, cells); why != "" {
		return nil, bad(l.row, why, do)
	}
	for emptyRow := l.row; len(trimBlank(first)) == 0; {
		if first, err = s.firstLine(&l); err == io.EOF {
			return nil, s.noRecords()
		} else if err != nil {
			return nil, readFault(f.name, l.row+1, err)
		}
		if len(trimBlank(first)) > 0 {
			return nil, emptyRowFault(f.name, emptyRow)
		}
	}
	s.width = len(cells)
	var names []string
	counts, begin, length := false, 0, int64(len(first))
	if opts.Text.isHeader(cells) {
		for _, c := range cells {
			names = append(names, nameOf(c))
		}
		begin = l.at
		s.line = l.row
		comments := s.comments
		record, err := s.firstLine(&l)
		if err == io.EOF && !opts.MayLack {
			return nil, bad(0, "the file has a header and no records", "give a file with one record per row")
		}
		if err != nil && err != io.EOF {
			return nil, readFault(f.name, l.row+1, err)
		}
		length = int64(len(record))
		s.comments = comments // those after the header are met again
	} else {
		if opts.Text.Header != "no" && countUp(cells) {
			next := s.lineAfter(l)
			counts = next != nil && !countUp(splitCells(nil, next, s.sep))
		}
		s.line, s.comments = 0, 0
	}
	s.skip = begin
	err = s.choose(names, length)
	s.schema.Counts = counts
	return s, err
}

// countUp tells whether the cells that are numbers, two at least, count upwards by ones, as names of columns may.
func countUp(cells [][]byte) bool {
	numbers, last := 0, 0
	for _, c := range cells {
		x, err := strconv.Atoi(string(c))
		if err != nil {
			continue
		}
		if numbers++; numbers > 1 && x != last+1 {
			return false
		}
		last = x
	}
	return numbers > 1
}

// foreign tells of a first row that is not one of text in cells, and what to do.
func foreign(row []byte, cells [][]byte) (why, do string) {
	json := bytes.ReplaceAll(row, []byte(" "), nil)
	switch {
	case bytes.HasPrefix(row, []byte("PK\x03\x04")):
		return "a ZIP archive, as .xlsx is", "save the sheet as CSV, or unpack the archive"
	case bytes.HasPrefix(row, []byte("ARROW1")):
		return "an Arrow file", "write the records as Parquet or CSV"
	case len(row) == len("sep=;") && bytes.HasPrefix(bytes.ToLower(row), []byte("sep=")):
		return "a line that tells a spreadsheet the separator", "remove it: the row after it tells as well"
	case bytes.ContainsFunc(row, isControl):
		return "binary data", "give CSV, TSV, space-separated text, .npy, IDX or Parquet, text also .gz"
	case bytes.IndexByte(row, '\r') >= 0:
		return "lines end in a carriage return alone", "write the file with line feeds at the ends of lines"
	case len(json) == 1 && (json[0] == '[' || json[0] == '{'), bytes.HasPrefix(json, []byte("[{")),
		bytes.HasPrefix(json, []byte("[[")), bytes.HasPrefix(json, []byte(`{"`)):
		return "JSON", "write the records as CSV, one in each row"
	case isOpen(row, cells):
		return openCell, closeCell
	}
	return "", ""
}

// isControl tells what no text has in a row.
func isControl(r rune) bool { return r < ' ' && r != '\t' && r != '\r' }

// What is said of a cell in quotes that has more than one line.
const (
	openCell  = "a cell in quotes goes on beyond the end of the line"
	closeCell = "write each record, its quoted cells and the names of columns on one line"
)

// isOpen tells whether a quoted cell of a row has no end there.
func isOpen(row []byte, cells [][]byte) bool {
	return bytes.Count(row, []byte(`"`))%2 == 1 &&
		slices.ContainsFunc(cells, func(c []byte) bool { return bytes.HasPrefix(c, []byte(`"`)) })
}

// nameOf is the name of a column as text: what is not UTF-8 is taken for Latin-1, in which spreadsheets write.
func nameOf(cell []byte) string {
	if utf8.Valid(cell) {
		return string(cell)
	}
	name := make([]rune, len(cell))
	for i, c := range cell {
		name[i] = rune(c)
	}
	return string(name)
}

// firstLine returns the next line that is no comment; an empty one counts as a
// record here. A line that is too long it returns as far as it was read, with errLongLine.
func (s *textSource) firstLine(l *headLines) ([]byte, error) {
	for {
		line, err := l.next()
		if err != nil {
			return line, err
		}
		if s.opts.Text.isComment(line) {
			s.comments++
			continue
		}
		return line, nil
	}
}

// lineAfter is the record after the lines that were read, or nil.
func (s *textSource) lineAfter(l headLines) []byte {
	comments := s.comments
	line, err := s.firstLine(&l)
	s.comments = comments // they are met again
	if err != nil {
		return nil
	}
	return line
}

// choose settles which cells are coordinates.
func (s *textSource) choose(names []string, rowBytes int64) error {
	o := s.opts
	s.schema = Schema{Name: s.file.name, N: -1, Header: names != nil, Once: s.file.once, Size: s.file.size,
		RowBytes: rowBytes + 1}
	chosen, err := o.Choose(names, s.width)
	if err != nil {
		return err
	}
	s.to = slices.Repeat([]int{skipCell}, s.width)
	text, flag := o.TextColumn()
	if text != "" {
		c, err := oneColumn(flag, text, names, s.width)
		if err != nil {
			return err
		}
		s.to[c] = textCell
		chosen = slices.DeleteFunc(chosen, func(other int) bool { return other == c })
	}
	if len(chosen) == 0 {
		return o.NoNumbers(s.file.name)
	}
	for j, c := range chosen {
		s.to[c] = j
		s.schema.Numbers = append(s.schema.Numbers, c+1)
		if names != nil {
			s.schema.Columns = append(s.schema.Columns, names[c])
		}
	}
	s.schema.D = len(chosen)
	s.quoted = byte(s.sep) == o.Text.point()
	s.plain = s.sep != blank && !s.quoted && len(chosen) == s.width && slices.IsSorted(chosen)
	if s.file.identity != "" {
		s.schema.Identity = fmt.Sprintf("%s %v %+v", s.file.identity, s.to, o.Text)
	}
	return nil
}

func (s *textSource) Schema() Schema { return s.schema }

// maxLine is the most bytes of a line: what has no line ends, such as a device or an image of a disk, must not fill the
// memory.
const maxLine = 128 << 20

var errLongLine = fmt.Errorf("a line has more than %d MiB", maxLine>>20)

// headLines yields the first lines of a text without their ends.
type headLines struct {
	r         *reader
	row       int
	start, at int // of the line, and after it
}

func (l *headLines) next() ([]byte, error) {
	for want := l.at + textHead; ; want *= 2 {
		head, err := l.r.peek(want)
		rest := head[l.at:]
		end := bytes.IndexByte(rest, '\n')
		switch {
		case end < 0 && err == nil && len(rest) >= maxLine:
			return rest, errLongLine
		case end < 0 && err == nil:
			continue
		case end < 0 && err != io.EOF:
			return nil, err
		case end < 0 && len(rest) == 0:
			return nil, io.EOF
		case end < 0:
			l.start, l.at = l.at, len(head)
		default:
			rest = rest[:end]
			l.start, l.at = l.at, l.at+end+1
		}
		l.row++
		return bytes.TrimSuffix(rest, []byte("\r")), nil
	}
}

// The size of the pieces of text that workers parse. Small pieces cost more calls,
// large ones memory: three of them are under way per worker.
const (
	textChunkBytes = 256 << 10
	textPad        = numberPad + 8
)

// Chunks cuts the text after newlines.
func (s *textSource) Chunks(ctx context.Context, yield func(Chunk) error) error {
	r, err := s.file.reader()
	if err != nil {
		return err
	}
	defer r.Close()
	if err := r.discard(s.skip); err != nil {
		return readFault(s.file.name, s.line+1, err)
	}
	size := textChunkBytes
	if s.opts.chunkBytes > 0 {
		size = s.opts.chunkBytes
	}
	free := make(chan []byte, 64)
	line, emptyRow, records := s.line, 0, false
	var carry []byte
	for end := false; !end; {
		var buf []byte
		select {
		case buf = <-free:
		default:
			buf = make([]byte, 0, size+textPad)
		}
		var failure error
		buf, end, failure = fillBuffer(r, buf, carry, size)
		cut := bytes.LastIndexByte(buf, '\n') + 1
		carry = append(carry[:0], buf[cut:]...)
		c := &textChunk{source: s, buf: buf, text: trimEmptyLines(buf[:cut]), line: line, emptyRow: emptyRow, free: free}
		lines := bytes.Count(c.text, []byte("\n"))
		switch {
		case len(c.text) == 0 && emptyRow == 0 && cut > 0, len(c.text) > 0 && len(c.text) < cut:
			emptyRow = line + lines + 1
		case len(c.text) > 0:
			emptyRow = 0
		}
		line += lines + bytes.Count(buf[len(c.text):cut], []byte("\n"))
		if len(c.text) > 0 {
			records = true
			if err := yield(c); err != nil {
				return err
			}
		}
		if failure != nil {
			return readFault(s.file.name, line+1, failure)
		}
	}
	if !records && !s.opts.MayLack {
		return s.noRecords()
	}
	return nil
}

// noRecords is the fault of a file whose rows are all empty.
func (s *textSource) noRecords() error {
	return fault.Failed(s.file.name, "the file has no records", "give a file with one record per row", nil)
}

// fillBuffer puts carry and what r has next into buf, size bytes or as many as one
// line takes; a last line without an end gets one. end reports that there is no more,
// for the reason err unless that is a clean end: errLongLine where a line has no end within maxLine. Where a piece ends
// depends on the text and size alone.
func fillBuffer(r io.Reader, buf, carry []byte, size int) (filled []byte, end bool, err error) {
	limit := max(size, 2*len(carry))
	buf = append(slices.Grow(buf[:0], limit+textPad), carry...)
	for {
		if len(buf) >= limit {
			if bytes.IndexByte(buf, '\n') >= 0 {
				return buf, false, nil
			}
			if limit > maxLine {
				return buf, true, errLongLine
			}
			limit *= 2
			buf = append(make([]byte, 0, limit+textPad), buf...)
		}
		n, err := r.Read(buf[len(buf):limit])
		buf = buf[:len(buf)+n]
		if err == io.EOF {
			if len(buf) > 0 && buf[len(buf)-1] != '\n' {
				buf = append(buf, '\n')
			}
			return buf, true, nil
		}
		if err != nil {
			return buf, true, err
		}
	}
}

// trimEmptyLines takes empty lines from the end of whole lines of text.
func trimEmptyLines(text []byte) []byte {
	rest := bytes.TrimRight(text, " \t\r\n")
	if end := bytes.IndexByte(text[len(rest):], '\n'); len(rest) > 0 && end >= 0 {
		return text[:len(rest)+end+1]
	}
	return nil
}

// readFault describes an error of the reader below, most often a damaged gzip
// stream.
func readFault(path string, row int, err error) error {
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	if own := (*fault.Error)(nil); errors.As(err, &own) { // of the file as a whole
		return own
	}
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return fault.Failed(place(path, row, 0), "the file ends too early (truncated)", "fetch or write the file again", err)
	}
	if errors.Is(err, errLongLine) {
		return fault.Failed(place(path, row, 0), err.Error(), "write each record on one line", err)
	}
	return fault.Failed(place(path, row, 0), err.Error(), "check the file", err)
}

// utf16Text decodes UTF-16, with a byte order mark or beginning with two letters of ASCII, and takes the mark
// of UTF-8 away. It returns nil if the stream that begins with head, four bytes, has neither.
func utf16Text(r io.Reader, head []byte) io.Reader {
	zero := func(i int) bool { return len(head) == 4 && head[i] == 0 && head[i+2] == 0 }
	letter := func(i int) bool { return len(head) == 4 && isText(head[i]) && isText(head[i+2]) }
	switch {
	case letter(0) && zero(1):
		return unicode.UTF16(unicode.LittleEndian, unicode.IgnoreBOM).NewDecoder().Reader(r)
	case zero(0) && letter(1):
		return unicode.UTF16(unicode.BigEndian, unicode.IgnoreBOM).NewDecoder().Reader(r)
	case bytes.HasPrefix(head, []byte("\xff\xfe")), bytes.HasPrefix(head, []byte("\xfe\xff")):
		return unicode.UTF16(unicode.LittleEndian, unicode.ExpectBOM).NewDecoder().Reader(r)
	case bytes.HasPrefix(head, []byte("\xef\xbb\xbf")):
		return unicode.UTF8BOM.NewDecoder().Reader(r)
	}
	return nil
}

// isText tells whether c is a character of ASCII text.
func isText(c byte) bool { return c >= ' ' && c < 0x7f || c == '\t' || c == '\n' || c == '\r' }

func cellFault(path string, row, column int, cell []byte, err error) error {
	shown := string(cell)
	if len(shown) > 40 {
		shown = fault.Cut(shown, 40) + "..."
	}
	why := fmt.Sprintf("%q is %v", shown, err)
	switch {
	case len(cell) == 0:
		why = "the cell is empty"
	case errors.Is(err, errNotFinite):
		why = fmt.Sprintf("%q: %v", shown, err)
	}
	do := "correct the cell, or leave the column out with --columns"
	switch _, comma := parseDecimal(cell, ','); {
	case bytes.Contains(cell, []byte(`","`)):
		do = "leave --separator out: commas are between the cells"
	case bytes.IndexByte(cell, ';') >= 0:
		do = `give --separator ";", and --decimal-comma if numbers are written 1,5`
	case bytes.IndexByte(cell, ',') >= 0 && comma == nil:
		do = "give --decimal-comma if numbers are written 1,5, or correct the cell"
	}
	if bytes.HasPrefix(cell, []byte(`"`)) && bytes.Count(cell, []byte(`"`))%2 == 1 {
		do = "close the quote, or take it away"
	}
	if isMissing(cell) {
		do += ", or choose what to do with --missing"
	}
	return fault.Failed(place(path, row, column), why, do, err)
}
