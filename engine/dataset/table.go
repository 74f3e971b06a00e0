package dataset

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"strings"

	"github.com/cohort-engine/cohort/internal/fault"
)

// Table is a set of records in the data's own units.
type Table struct {
	Name    string    // where it came from, as given
	N, D    int       // records, coordinates
	Columns []string  // names of the D columns; nil when the file has no header
	Rows    []float64 // row-major, N*D finite values; NaN is a missing one under MeanOfBounds
	Labels  []int32   // N class labels, or nil
	Files   []int     // records of each file, in order; nil for one file
	// Bytes says that the values are unsigned bytes by the format of their file
	// (IDX images): 0 and 255 are public bounds.
	Bytes   bool
	IDs     []string // the N ids of a table read with an id column, else nil
	Missing Missing  // the rule for NaN in Rows
	Report  Report

	numbers []int // of the columns in their file; see Schema.Numbers
	header  bool  // see Schema.Header
	starts  []int // of the files, among all records with those left out; nil for one file
}

// Report is what reading a source has to say. All of it but the numbers of
// comments depends on the records, so no epsilon covers it.
type Report struct {
	Comments int      // comment lines that were left out
	Filled   int      // missing values replaced by the middle of their bounds
	Dropped  []int    // records left out, by their place among all, from 0
	IDLike   []string // columns of increasing integers, by number and name
	Counts   bool     // the first record counts upwards, as names of columns may
}

// Notes returns the report in sentences.
func (r Report) Notes() []string {
	var notes []string
	if len(r.Dropped) > 0 {
		notes = append(notes, fault.Count(len(r.Dropped), "row")+" with missing values left out")
	}
	if r.Filled > 0 {
		notes = append(notes, fault.Count(r.Filled, "missing value")+" replaced by the middle of the column's bounds")
	}
	if r.Comments > 0 {
		notes = append(notes, fault.Count(r.Comments, "comment line")+" left out")
	}
	return notes
}

// RowNumber is the number, from 1, of record i among those of its file, records that
// were left out included.
func (t *Table) RowNumber(i int) int {
	dropped := t.Report.Dropped
	place := i + sort.Search(len(dropped), func(k int) bool { return dropped[k]-k > i })
	start := 0
	for _, s := range t.starts {
		if s <= place {
			start = s
		}
	}
	return place - start + 1
}

// Row returns record i, a view of D values.
func (t *Table) Row(i int) []float64 { return t.Rows[i*t.D : (i+1)*t.D : (i+1)*t.D] }

// ReadOptions says what Open takes from its source. Zero fields mean the default.
type ReadOptions struct {
	Columns     string   // as ChooseColumns has it; empty: all
	Named       []string // where Columns is empty: the columns of these names, if the file has names and all of these
	Labels      string   // label file, or one per data file; empty: those that come with the data
	LabelColumn string   // column of class labels, by name or number from 1: numbers or text
	Missing     Missing  // what is done about missing values
	Text        TextFormat
	Generator   Generator // parameters of a builtin: source
	Workers     int       // that parse; 0: one per CPU
	Formats     []Format  // binary formats beside those of this package
	Stdin       io.Reader // what the source "-" reads
	// MayLack says that no records are records, too: of a file with columns alone, or where all were dropped. Whoever
	// may not tell how many there are may not refuse that there are none.
	MayLack bool
	// Progress, if set, is told after each piece how many records of total, 0 if unknown, were read.
	Progress func(read, total int)

	id         string   // column of ids, which are text
	chunkBytes int      // of text, for tests
	spare      []*Block // of the passes so far, for the next
}

// Format is a binary file format that another package reads.
type Format struct {
	Magic string // first bytes of its files
	Open  func(ctx context.Context, path string, opts ReadOptions) (Source, error)
}

// TextColumn is the column of labels or ids that a source has to put into
// Block.Texts, and the flag that names it, or "".
func (o *ReadOptions) TextColumn() (choice, flag string) {
	if o.id != "" {
		return o.id, "id"
	}
	return o.LabelColumn, "label-column"
}

// NoNumbers is the error of a file, or of a choice of its columns, that leaves no column
// of numbers beside the column of texts.
func (o *ReadOptions) NoNumbers(file string) error {
	_, flag := o.TextColumn()
	if o.Columns != "" {
		return fault.Request("--columns", "names no column but the "+flag, "name at least one column of numbers")
	}
	return fault.Failed(file, "the file has no column but the "+flag, "give at least one column of numbers", nil)
}

// builtinPrefix marks a source that is made, not read.
const builtinPrefix = "builtin:"

// progress tells how many records of a source were read.
func (o *ReadOptions) progress(read int, s *Schema) {
	if o.Progress == nil {
		return
	}
	total := max(s.N, 0)
	if total == 0 && s.RowBytes > 0 {
		total = max(int(s.Size/s.RowBytes), read)
	}
	o.Progress(read, total)
}

// Open reads spec into a table: a file, "-" for opts.Stdin, several files separated
// by commas (their records are appended in that order and counted in Files), a
// folder with the MNIST IDX files (train, then t10k, with its labels), or
// builtin:NAME.
func Open(ctx context.Context, spec string, opts ReadOptions) (*Table, error) {
	s, err := OpenSource(ctx, spec, opts)
	if err != nil {
		return nil, err
	}
	return readTable(ctx, s, opts)
}

// OpenSource opens what Open reads.
func OpenSource(ctx context.Context, spec string, opts ReadOptions) (Source, error) {
	if name, ok := strings.CutPrefix(spec, builtinPrefix); ok {
		return newGenerated(ctx, name, opts)
	}
	return OpenFiles(ctx, spec, opts)
}

// OpenFiles is OpenSource without the built-in sets, which programs that only call it are not linked with.
func OpenFiles(ctx context.Context, spec string, opts ReadOptions) (Source, error) {
	paths := splitPaths(spec)
	if slices.Contains(paths, "") {
		return nil, fault.Request("data", fmt.Sprintf("%q lists a file without a name", spec),
			"give files separated by single commas")
	}
	if len(paths) == 1 {
		return openPath(ctx, paths[0], opts)
	}
	all := &files{schema: Schema{Name: spec, Bytes: true, Files: len(paths)}}
	for _, path := range paths {
		s, err := openPath(ctx, path, opts)
		if err != nil {
			return nil, err
		}
		if err := all.add(s); err != nil {
			return nil, err
		}
		if opts.Columns != "" {
			continue // whoever chose them by numbers takes them for the same
		}
		if err := sameNames(all.parts[0].Schema(), s.Schema()); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// sameNames refuses a file whose columns have other names than the first one's, or the same in another order.
func sameNames(first, s Schema) error {
	for i := range min(len(first.Columns), len(s.Columns)) {
		if s.Columns[i] != first.Columns[i] {
			return fault.Failed(s.Name, fmt.Sprintf("has column %q where %s has %q", s.Columns[i], first.Name,
				first.Columns[i]), "give files with the same columns in one order, or choose them with --columns", nil)
		}
	}
	return nil
}

// splitPaths separates a comma list of paths; a path that exists as it stands is
// not separated.
func splitPaths(spec string) []string {
	if !strings.Contains(spec, ",") {
		return []string{spec}
	}
	if _, err := os.Stat(spec); err == nil {
		return []string{spec}
	}
	paths := strings.Split(spec, ",")
	for i := range paths {
		paths[i] = strings.TrimSpace(paths[i])
	}
	return paths
}

// OpenIDs reads one file with an id column, named by the header or by its number
// from 1: the ids, in any form, go to Table.IDs, the other columns are the
// coordinates.
func OpenIDs(ctx context.Context, path, id string, opts ReadOptions) (*Table, error) {
	opts.id = id
	return Open(ctx, path, opts)
}

func openPath(ctx context.Context, path string, opts ReadOptions) (Source, error) {
	if path == "-" && opts.Stdin != nil {
		f := stream("standard input", opts.Stdin)
		f.open = until(ctx, f.open)
		return openFormat(ctx, f, opts)
	}
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		return openMNIST(ctx, path, opts)
	}
	f, err := openFile(path)
	if err != nil {
		return nil, err
	}
	if f.once {
		f.open = until(ctx, f.open)
	}
	return openFormat(ctx, f, opts)
}

// Read reads one table from r: text, .npy or IDX, each also gzip-compressed,
// told apart by their first bytes. The name stands in errors and in the table.
func Read(ctx context.Context, name string, r io.Reader, opts ReadOptions) (*Table, error) {
	if r == nil {
		return nil, fault.Request(name, "has no reader", "give a file or another reader")
	}
	s, err := openFormat(ctx, stream(name, r), opts)
	if err != nil {
		return nil, err
	}
	return readTable(ctx, s, opts)
}

// openFormat tells the format of a file from its beginning.
func openFormat(ctx context.Context, f *file, opts ReadOptions) (Source, error) {
	r, err := f.reader()
	if err != nil {
		return nil, err
	}
	head, err := r.peek(8)
	f.keep(r)
	if err != nil && err != io.EOF {
		return nil, readFault(f.name, 1, err)
	}
	for _, format := range opts.Formats {
		if f.path != "" && bytes.HasPrefix(head, []byte(format.Magic)) {
			return format.Open(ctx, f.path, opts)
		}
	}
	switch {
	case isNPY(head):
		return newNPY(f, &opts)
	case isIDX(head):
		return newIDX(f, &opts)
	}
	return newTextSource(f, &opts)
}

// readTable reads all records of a source. Of opts it uses Labels, Missing and
// Workers; what concerns the form of a file was settled when the source was opened.
func readTable(ctx context.Context, s Source, opts ReadOptions) (*Table, error) {
	c := newCollector(s, &opts)
	t := &Table{}
	if c.schema.N > 0 {
		t.Rows = make([]float64, 0, c.schema.N*c.schema.D)
	}
	work := func(b *Block) error {
		err := b.settle()
		b.look(false)
		return err
	}
	err := inOrder(ctx, s, &c.schema, &opts, work, func(b *Block) error {
		t.Rows = append(t.Rows, b.Rows...)
		return c.put(b)
	})
	if err != nil {
		return nil, err
	}
	return t, c.finish(ctx, t)
}

// mnistSets are the two halves of an MNIST folder, in reading order.
var mnistSets = [...]string{"train", "t10k"}

// openMNIST opens the IDX files of a folder, images and labels.
func openMNIST(ctx context.Context, dir string, opts ReadOptions) (Source, error) {
	all := &files{schema: Schema{Name: dir, Bytes: true}}
	for _, set := range mnistSets {
		path, err := findIDX(dir, set+"-images-idx3-ubyte")
		if err != nil {
			return nil, err
		}
		opts.Labels = ""
		s, err := openPath(ctx, path, opts)
		if err != nil {
			return nil, err
		}
		if path, err = findIDX(dir, set+"-labels-idx1-ubyte"); err != nil {
			return nil, err
		}
		labels, err := openLabels(ctx, path)
		if err != nil {
			return nil, err
		}
		if n := s.Schema().N; n >= 0 && n != len(labels) {
			return nil, fault.Failed(path, fmt.Sprintf("%s for %d images", fault.Count(len(labels), "label"), n),
				"give the files of one set", nil)
		}
		if err := all.add(s); err != nil {
			return nil, err
		}
		all.labels = append(all.labels, labels...)
	}
	return all, nil
}

// findIDX returns the path of an IDX file of a folder, plain or compressed.
func findIDX(dir, name string) (string, error) {
	for _, suffix := range []string{"", ".gz"} {
		path := filepath.Join(dir, name+suffix)
		if _, err := os.Stat(path); err == nil {
			return path, nil
		}
	}
	return "", fault.Failed(dir, "a folder without "+name+"(.gz)",
		"give a file, or a folder with the four MNIST IDX files", nil)
}
