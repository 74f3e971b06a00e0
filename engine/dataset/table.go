package dataset

import (
	"bufio"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/cohort-engine/cohort/engine/fault"
)

// Table is a set of records in the data's own units.
type Table struct {
	Name    string    // where it came from, as given
	N, D    int       // records, coordinates
	Columns []string  // names of the D columns; nil when the file has no header
	Rows    []float64 // row-major, N*D finite values
	Labels  []int32   // N class labels, or nil
	Files   []int     // records of each file, in order; nil for one file
	// Bytes says that the values are unsigned bytes by the format of their file
	// (IDX images): 0 and 255 are public bounds.
	Bytes bool
	IDs   []string // the N ids of a table read with an id column, else nil
}

// Row returns record i, a view of D values.
func (t *Table) Row(i int) []float64 { return t.Rows[i*t.D : (i+1)*t.D : (i+1)*t.D] }

// ReadOptions says what Open takes from its source.
type ReadOptions struct {
	Columns   string    // names, indices from 0 or ranges lo-hi; empty: all
	Labels    string    // label file, or one per data file; empty: those that come with the data
	Generator Generator // parameters of a builtin: source

	spare int // room to leave after the values of an IDX file
}

// builtinPrefix marks a source that is made, not read.
const builtinPrefix = "builtin:"

// Open reads spec: a file, several files separated by commas (their records are
// appended in that order and counted in Files), a folder with the MNIST IDX
// files (train, then t10k, with its labels), or builtin:NAME.
func Open(ctx context.Context, spec string, opts ReadOptions) (*Table, error) {
	if name, ok := strings.CutPrefix(spec, builtinPrefix); ok {
		t, err := Generate(ctx, name, opts.Generator)
		if err != nil {
			return nil, err
		}
		if opts.Columns != "" {
			if err := t.keep(opts.Columns); err != nil {
				return nil, err
			}
		}
		return t.withLabels(ctx, opts.Labels)
	}
	paths := splitPaths(spec)
	var t *Table
	for _, path := range paths {
		part, err := openPath(ctx, path, opts)
		if err != nil {
			return nil, err
		}
		if t == nil {
			t = part
			if len(paths) > 1 {
				t.Name, t.Files = spec, []int{part.N}
			}
			continue
		}
		if part.D != t.D {
			return nil, fault.Failed(path, fmt.Sprintf("%d columns where %s has %d", part.D, paths[0], t.D), "give files with the same columns", nil)
		}
		if (t.Labels == nil) != (part.Labels == nil) {
			return nil, fault.Failed(path, "labels come with some of the files only", "give labels for all files or for none", nil)
		}
		t.Rows = append(t.Rows, part.Rows...)
		t.Labels = append(t.Labels, part.Labels...)
		t.N += part.N
		t.Bytes = t.Bytes && part.Bytes
		t.Files = append(t.Files, part.N)
	}
	return t.withLabels(ctx, opts.Labels)
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

// OpenIDs reads one text file with an id column, named by the header or by its
// index from 0: the ids, in any form, go to Table.IDs, the other columns are the
// coordinates.
func OpenIDs(ctx context.Context, path, id string) (*Table, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, pathFault(path, err)
	}
	defer f.Close()
	br, err := decompress(path, f)
	if err != nil {
		return nil, err
	}
	return readText(ctx, path, br, "", id)
}

func openPath(ctx context.Context, path string, opts ReadOptions) (*Table, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, pathFault(path, err)
	}
	if info.IsDir() {
		t, err := openMNIST(ctx, path)
		if err != nil {
			return nil, err
		}
		if opts.Columns != "" {
			err = t.keep(opts.Columns)
		}
		return t, err
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, pathFault(path, err)
	}
	defer f.Close()
	return read(ctx, path, f, opts.Columns, opts.spare)
}

// Read reads one table from r: text, .npy or IDX, each also gzip-compressed,
// told apart by their first bytes. The name stands in errors and in the table.
func Read(ctx context.Context, name string, r io.Reader, columns string) (*Table, error) {
	return read(ctx, name, r, columns, 0)
}

// read is Read with room for spare more values after those of an IDX file.
func read(ctx context.Context, name string, r io.Reader, columns string, spare int) (*Table, error) {
	br, err := decompress(name, r)
	if err != nil {
		return nil, err
	}
	head, err := br.Peek(6)
	if err != nil && err != io.EOF {
		return nil, readFault(name, 0, err)
	}
	var t *Table
	switch {
	case isNPY(head):
		t, err = readNPY(ctx, name, br)
	case isIDX(head):
		t, err = readIDX(ctx, name, br, spare)
	default:
		return readText(ctx, name, br, columns, "")
	}
	if err == nil && columns != "" {
		err = t.keep(columns)
	}
	if err != nil {
		return nil, err
	}
	return t, nil
}

// decompress looks through a gzip stream when there is one.
func decompress(name string, r io.Reader) (*bufio.Reader, error) {
	br := bufio.NewReaderSize(r, 1<<18)
	head, err := br.Peek(2)
	if err != nil && err != io.EOF {
		return nil, readFault(name, 0, err)
	}
	if len(head) == 2 && head[0] == 0x1f && head[1] == 0x8b {
		z, err := gzip.NewReader(br)
		if err != nil {
			return nil, readFault(name, 0, err)
		}
		return bufio.NewReaderSize(z, 1<<18), nil
	}
	return br, nil
}

// pathFault describes a path that cannot be opened without repeating it.
func pathFault(path string, err error) error {
	why := err.Error()
	var p *fs.PathError
	if errors.As(err, &p) {
		why = p.Err.Error()
	}
	return fault.Failed(path, why, "check the path", err)
}

// keep reduces the table to the chosen columns.
func (t *Table) keep(columns string) error {
	chosen, err := chooseColumns(columns, t.Columns, t.D)
	if err != nil {
		return err
	}
	rows := make([]float64, 0, t.N*len(chosen))
	for i := range t.N {
		row := t.Row(i)
		for _, c := range chosen {
			rows = append(rows, row[c])
		}
	}
	var names []string
	if t.Columns != nil {
		for _, c := range chosen {
			names = append(names, t.Columns[c])
		}
	}
	t.Rows, t.D, t.Columns = rows, len(chosen), names
	return nil
}

// withLabels attaches the labels of a file, or of one file per data file.
func (t *Table) withLabels(ctx context.Context, spec string) (*Table, error) {
	if spec == "" {
		return t, nil
	}
	t.Labels = make([]int32, 0, t.N)
	for _, path := range splitPaths(spec) {
		l, err := OpenLabels(ctx, path)
		if err != nil {
			return nil, err
		}
		t.Labels = append(t.Labels, l...)
	}
	if len(t.Labels) != t.N {
		return nil, fault.Failed(spec, fmt.Sprintf("%d labels for %d records", len(t.Labels), t.N), "give one label per record", nil)
	}
	return t, nil
}

// mnistSets are the two halves of an MNIST folder, in reading order.
var mnistSets = [...]string{"train", "t10k"}

// openMNIST reads the IDX files of a folder, images and labels.
func openMNIST(ctx context.Context, dir string) (*Table, error) {
	for _, set := range mnistSets {
		if _, err := findIDX(dir, set+"-images-idx3-ubyte"); err != nil {
			return nil, err
		}
	}
	// The last half is read first, so that the first can leave room for it.
	var out *Table
	for i := len(mnistSets) - 1; i >= 0; i-- {
		path, err := findIDX(dir, mnistSets[i]+"-images-idx3-ubyte")
		if err != nil {
			return nil, err
		}
		spare := 0
		if out != nil {
			spare = len(out.Rows)
		}
		t, err := openPath(ctx, path, ReadOptions{spare: spare})
		if err != nil {
			return nil, err
		}
		if path, err = findIDX(dir, mnistSets[i]+"-labels-idx1-ubyte"); err != nil {
			return nil, err
		}
		if t.Labels, err = OpenLabels(ctx, path); err != nil {
			return nil, err
		}
		if len(t.Labels) != t.N {
			return nil, fault.Failed(path, fmt.Sprintf("%d labels for %d images", len(t.Labels), t.N), "give the files of one set", nil)
		}
		if out != nil {
			if t.D != out.D {
				return nil, fault.Failed(path, fmt.Sprintf("%d pixels where the other images have %d", t.D, out.D), "give the files of one set", nil)
			}
			t.N += out.N
			t.Rows = append(t.Rows, out.Rows...)
			t.Labels = append(t.Labels, out.Labels...)
			t.Bytes = t.Bytes && out.Bytes
		}
		out = t
	}
	out.Name = dir
	return out, nil
}

// findIDX returns the path of an IDX file of a folder, plain or compressed.
func findIDX(dir, name string) (string, error) {
	for _, suffix := range []string{"", ".gz"} {
		path := filepath.Join(dir, name+suffix)
		if _, err := os.Stat(path); err == nil {
			return path, nil
		}
	}
	return "", fault.Failed(dir, "a folder without "+name+"(.gz)", "give a file, or a folder with the four MNIST IDX files", nil)
}
