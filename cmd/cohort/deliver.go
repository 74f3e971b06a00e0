package main

import (
	"bufio"
	"context"
	"encoding/binary"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"unicode/utf8"

	library "github.com/cohort-engine/cohort"
	"github.com/cohort-engine/cohort/engine"
	"github.com/cohort-engine/cohort/engine/dataset"
	"github.com/cohort-engine/cohort/engine/dataset/parquet"
	"github.com/cohort-engine/cohort/internal/fault"
)

// delivery is where a result goes. What can be refused is refused before the
// first release, and a result that was paid for is never lost: what cannot be
// written to where it should go is printed, and what cannot be printed is saved.
type delivery struct {
	o      *options
	in     *input
	out    io.Writer
	folder *folder
	said   []string // what was written where
	// ownNumber says that the number of records is the data's own; in a study it is public.
	ownNumber bool
}

// prepareDelivery probes all that the result will be written to.
func prepareDelivery(o *options, in *input, out io.Writer) (*delivery, error) {
	d := &delivery{o: o, in: in, out: out, ownNumber: o.ownNumber()}
	if o.ledger != "" && o.out == "" && o.report == "" && nowhere(out) {
		return nil, fault.Failed("output", "is closed or thrown away, and the result would be paid for", "give --out", nil)
	}
	if o.labelsOut != "" {
		for _, path := range in.labelPaths(o.labelsOut) {
			if err := labelsWritable(path, o.readFiles()...); err != nil {
				return nil, err
			}
		}
	}
	if o.report != "" {
		if err := writable("--report", o.report, o.readFiles()...); err != nil {
			return nil, err
		}
	}
	if o.out == "" {
		return d, nil
	}
	var err error
	if d.folder, err = openFolder(o.out, 3*25*int64(in.k)*int64(in.table.D)+1<<18); err != nil {
		return nil, err
	}
	d.folder.parquet = o.outFormat == "parquet"
	return d, nil
}

// close removes what a run that failed has left.
func (d *delivery) close() {
	if d != nil && d.folder != nil {
		d.folder.discard()
	}
}

// deliver writes and prints the result.
func (d *delivery) deliver(ctx context.Context, eng *engine.Engine, r *engine.Result) error {
	model := library.NewModel(r, d.in.norm.Bounds, d.in.table.Columns, d.in.norm.FractionBits)
	err := d.label(ctx, eng, r, model)
	if !d.o.keepsTrace() {
		r.Synopsis = nil
	}
	if d.o.report != "" {
		if e := writeWhole("--report", d.o.report, d.page(r).WriteHTML); e != nil {
			err = errors.Join(err, e)
		} else {
			d.said = append(d.said, "the report is "+d.o.report)
		}
	}
	if d.folder != nil {
		if e := d.folder.write(r, model); e != nil {
			if d.o.format == "text" {
				e = errors.Join(e, d.print(func(w io.Writer) error { return json.NewEncoder(w).Encode(r) }, r))
				return errors.Join(err, e)
			}
			err = errors.Join(err, e)
		} else {
			d.said = append(d.said, strings.Join(d.folder.files(), ", ")+" are in "+d.o.out)
		}
	}
	return errors.Join(err, d.print(func(w io.Writer) error {
		return show(w, d.o.format, r, func() error { return printResult(w, r, d) })
	}, r))
}

// print writes to standard output; a result that no longer can be printed is saved in a file, but for one that was not
// paid for and nobody wants to read.
func (d *delivery) print(write func(io.Writer) error, r *engine.Result) error {
	err := write(d.out)
	if err == nil {
		return nil
	}
	if errors.Is(err, syscall.EPIPE) && (r.Epsilon == nil || r.Seed != nil) { // as of | head
		return err
	}
	f, e := os.CreateTemp("", "cohort-result-*.json")
	if e == nil {
		e = errors.Join(json.NewEncoder(f).Encode(r), f.Close())
	}
	if e != nil {
		return fault.Failed("output", fmt.Sprintf("the result can be neither printed (%v) nor saved (%v)", err, e), "", err)
	}
	return fault.Failed("output", fmt.Sprintf("the result cannot be printed (%v)", err), "it is in "+f.Name(), err)
}

// label writes each record's cluster and, of a run without noise, sets the clusters' sizes.
func (d *delivery) label(ctx context.Context, eng *engine.Engine, r *engine.Result, model *library.Model) error {
	if d.o.labelsOut == "" {
		if r.Epsilon != nil {
			return nil
		}
		err := model.CountRecords(ctx, eng.Pool(), d.in.norm)
		r.Sizes = model.Sizes
		return err
	}
	labels, distances, err := model.Assign(ctx, eng.Pool(), d.in.norm)
	if err != nil {
		return err
	}
	if r.Epsilon == nil {
		if err := model.Count(labels); err != nil {
			return err
		}
		r.Sizes = model.Sizes
	}
	r.Ledger.Note("the labels that were written are computed by who holds the records, from them and the released " +
		"centroids; they are no release: whoever is shown them sees more")
	paths, from := d.in.labelPaths(d.o.labelsOut), 0
	for i, path := range paths {
		to := len(labels)
		if len(paths) > 1 {
			to = from + d.in.table.Files[i]
		}
		if err := writeLabels("--labels-out", path, labels[from:to], distances[from:to],
			rowNames{d.in.table, from}); err != nil {
			return err
		}
		from = to
	}
	d.said = append(d.said, "labels are in "+strings.Join(paths, ", "))
	return nil
}

// labelPaths are the files for the labels: one for each file of data, so that every party gets those of
// its own rows.
func (in *input) labelPaths(path string) []string {
	if len(in.table.Files) < 2 {
		return []string{path}
	}
	paths := make([]string, len(in.table.Files))
	for i := range paths {
		ext := filepath.Ext(path)
		paths[i] = fmt.Sprintf("%s-party%d%s", strings.TrimSuffix(path, ext), i+1, ext)
	}
	return paths
}

// rowNames names the rows from first on for a person: by their ids, or by their numbers from 1 in their
// file, those that were left out counted.
type rowNames struct {
	table *dataset.Table
	first int
}

func (r rowNames) head() string {
	if r.table.IDs != nil {
		return "id"
	}
	return "row"
}

func (r rowNames) of(i int) string {
	if r.table.IDs != nil {
		return r.table.IDs[r.first+i]
	}
	return strconv.Itoa(r.number(i))
}

func (r rowNames) number(i int) int { return r.table.RowNumber(r.first + i) }

// labelsWritable probes a file of --labels-out, and refuses names of forms that it would not have.
func labelsWritable(path string, read ...string) error {
	if err := refuseForms("--labels-out", path, ".csv", ".npy", ".parquet"); err != nil {
		return err
	}
	return writable("--labels-out", path, read...)
}

// refuseForms refuses a name of a form that a flag's file does not have: readers of it would go by that.
func refuseForms(flag, path string, has ...string) error {
	ext := filepath.Ext(path)
	forms := []string{".arrow", ".feather", ".gz", ".json", ".jsonl", ".npy", ".npz", ".parquet", ".tsv", ".xlsx", ".zip"}
	if !slices.Contains(forms, ext) || slices.Contains(has, ext) {
		return nil
	}
	return fault.Request(flag, fmt.Sprintf("%s would not hold what %s says", path, ext),
		"name it "+strings.Join(has[:len(has)-1], ", ")+" or "+has[len(has)-1])
}

// writeLabels writes rows, clusters, both counted from 1, and distances as CSV, Parquet, or an npy file of records.
func writeLabels(flag, path string, labels []int32, distances []float64, names rowNames) error {
	return writeWhole(flag, path, func(w io.Writer) error {
		switch filepath.Ext(path) {
		case ".npy":
			return writeNPYLabels(w, labels, distances, names)
		case ".parquet":
			return parquet.Write(w, len(labels), []parquet.Column{{Name: names.head(), Texts: names.of},
				{Name: "cluster", Integers: func(i int) int32 { return labels[i] + 1 }},
				{Name: "distance", Floats: func(i int) float64 { return distances[i] }}})
		}
		return writeLabelRows(w, labels, distances, names)
	})
}

func writeLabelRows(w io.Writer, labels []int32, distances []float64, names rowNames) error {
	c := csv.NewWriter(w)
	if err := c.Write([]string{names.head(), "cluster", "distance"}); err != nil {
		return err
	}
	for i, l := range labels {
		if err := c.Write([]string{names.of(i), strconv.Itoa(int(l) + 1),
			strconv.FormatFloat(distances[i], 'g', 6, 64)}); err != nil {
			return err
		}
	}
	c.Flush()
	return c.Error()
}

// writeNPYLabels writes an array of records in numpy's format 1.0: the row as a 64-bit integer, or the id as text of
// so many characters as the longest has, then cluster and distance.
func writeNPYLabels(w io.Writer, labels []int32, distances []float64, names rowNames) error {
	longest, kind := 1, "<i8"
	if names.table.IDs != nil {
		for i := range labels {
			longest = max(longest, utf8.RuneCountInString(names.of(i)))
		}
		kind = fmt.Sprintf("<U%d", longest)
	}
	header := fmt.Sprintf("{'descr': [('%s', '%s'), ('cluster', '<i4'), ('distance', '<f8')], 'fortran_order': False, "+
		"'shape': (%d,), }",
		names.head(), kind, len(labels))
	header += strings.Repeat(" ", 63-(10+len(header))%64) + "\n"
	out := bufio.NewWriter(w)
	out.WriteString("\x93NUMPY\x01\x00" + string([]byte{byte(len(header)), byte(len(header) >> 8)}) + header)
	var b []byte
	for i, l := range labels {
		b = b[:0]
		if names.table.IDs == nil {
			b = binary.LittleEndian.AppendUint64(b, uint64(names.number(i)))
		} else {
			for _, r := range names.of(i) {
				b = binary.LittleEndian.AppendUint32(b, uint32(r))
			}
			b = append(b, make([]byte, 4*longest-len(b))...)
		}
		b = binary.LittleEndian.AppendUint32(b, uint32(l+1))
		b = binary.LittleEndian.AppendUint64(b, math.Float64bits(distances[i]))
		out.Write(b)
	}
	return out.Flush()
}

// folder is where --out goes. Its files are made beside their place, with the space that they will need, before a run,
// and take it when the run has ended: nothing is ever half written. A folder that is there stays: it may be a mount, a
// link's, somebody's working folder, or in one that nobody may write to. It is taken only if it holds nothing but an
// earlier result.
type folder struct {
	dir     string
	draft   *draft
	parquet bool // centroids are written as Parquet
}

// reserve is the name of the file that keeps the space.
const reserve = "reserve"

func openFolder(dir string, bytes int64) (*folder, error) {
	f := &folder{dir: filepath.Clean(dir)}
	if err := checkOut(dir); err != nil {
		return nil, err
	}
	beside := f.dir
	if _, err := os.Lstat(f.dir); err != nil {
		beside = filepath.Dir(f.dir)
	}
	if err := os.MkdirAll(beside, 0o755); err != nil {
		return nil, unwritable("--out", dir, err)
	}
	var err error
	if f.draft, err = newDraft(beside); err != nil {
		return nil, unwritable("--out", dir, err)
	}
	var space *os.File
	if err = os.Mkdir(f.draft.path, 0o700); err == nil {
		space, err = os.Create(filepath.Join(f.draft.path, reserve))
	}
	if err == nil {
		zeros := make([]byte, 1<<16)
		for ; bytes > 0 && err == nil; bytes -= int64(len(zeros)) {
			_, err = space.Write(zeros)
		}
		err = errors.Join(err, space.Sync(), space.Close())
	}
	if err != nil {
		f.discard()
		return nil, unwritable("--out", dir, err)
	}
	return f, nil
}

// studyFolder is how many bytes are kept for the result of a study.
const studyFolder = 1 << 20

// folderWritable refuses a folder that a study's result could not be written to, before anything is done.
func folderWritable(dir string) error {
	if dir == "" {
		return nil
	}
	f, err := openFolder(dir, studyFolder)
	if err != nil {
		return err
	}
	f.discard()
	return nil
}

func (f *folder) discard() { f.draft.close() }

// write fills the folder.
func (f *folder) write(r *engine.Result, model *library.Model) error {
	err := os.Remove(filepath.Join(f.draft.path, reserve))
	if err == nil {
		err = writeFiles(f.draft.path, r, model, f.parquet)
	}
	if err == nil {
		err = os.Chmod(f.draft.path, 0o755)
	}
	if err != nil {
		return unwritable("--out", f.dir, err)
	}
	if err := checkOut(f.dir); err != nil { // what came there during the run stays
		return err
	}
	if err := f.place(); err != nil {
		return unwritable("--out", f.dir, err)
	}
	return nil
}

// place brings the files to their place. In a folder that is there result.json goes first and comes last: where it is,
// the others are of the same run.
func (f *folder) place() error {
	if _, err := os.Lstat(f.dir); err != nil {
		if err = os.Rename(f.draft.path, f.dir); !errors.Is(err, fs.ErrExist) { // else another run was first
			return err
		}
	}
	hold, err := holdPlace(f.dir)
	if err != nil {
		return err
	}
	defer hold.close()
	for _, name := range slices.Backward(append([]string{centroidsParquet, reportFile}, resultFiles...)) {
		if err := os.Remove(filepath.Join(f.dir, name)); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	for _, name := range f.files() {
		if err := os.Rename(filepath.Join(f.draft.path, name), filepath.Join(f.dir, name)); err != nil {
			return err
		}
	}
	return os.Remove(f.draft.path)
}

// resultFiles are the files of an --out folder.
var resultFiles = []string{"centroids.csv", "ledger.txt", "model.json", "result.json"}

// reportFile is what cohort report makes of them, in the same folder.
const reportFile = "report.html"

// centroidsParquet takes the place of the first of them with --out-format parquet.
const centroidsParquet = "centroids.parquet"

// files are those that the folder gets.
func (f *folder) files() []string {
	if f.parquet {
		return append([]string{centroidsParquet}, resultFiles[1:]...)
	}
	return resultFiles
}

// checkOut refuses an output folder that is a file, or holds anything but an earlier result.
func checkOut(dir string) error {
	switch dir {
	case "":
		return nil
	case "-":
		return fault.Request("--out", `"-" names no folder`, "name a folder, or ./-")
	}
	entries, err := os.ReadDir(dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if info, e := os.Stat(dir); e == nil && !info.IsDir() {
		return fault.Request("--out", dir+" is a file", "name a folder")
	}
	if errors.Is(err, syscall.ENOTDIR) {
		return fault.Request("--out", dir+" is below a file", "name a folder")
	}
	if err != nil {
		return fault.Failed("--out", err.Error(), "name another folder", err)
	}
	for _, e := range entries {
		if !slices.Contains(resultFiles, e.Name()) && e.Name() != centroidsParquet && e.Name() != reportFile &&
			!strings.HasPrefix(e.Name(), unfinished) {
			return fault.Failed("--out", fmt.Sprintf("%s holds %s, which is not a result of cohort", dir, e.Name()),
				"name a new or empty folder", nil)
		}
	}
	return nil
}

func writeFiles(dir string, r *engine.Result, model *library.Model, asParquet bool) error {
	b, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	var ledger, centroids, saved strings.Builder
	if err := r.Ledger.Text(&ledger); err != nil {
		return err
	}
	if err := model.Save(&saved); err != nil {
		return err
	}
	name := resultFiles[0]
	if asParquet {
		name = centroidsParquet
		columns := make([]parquet.Column, r.D)
		for h := range columns {
			columns[h] = parquet.Column{Name: columnName(model.Columns, h),
				Floats: func(j int) float64 { return r.Centroids[j][h] }}
		}
		if err := parquet.Write(&centroids, len(r.Centroids), columns); err != nil {
			return err
		}
	} else if err := writeCentroids(&centroids, r, model.Columns); err != nil {
		return err
	}
	for name, text := range map[string]string{"result.json": string(b) + "\n", "ledger.txt": ledger.String(),
		"model.json": saved.String(), name: centroids.String()} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// writeCentroids writes them as CSV with the names of the columns.
func writeCentroids(out io.Writer, r *engine.Result, columns []string) error {
	w := csv.NewWriter(out)
	rows := [][]string{make([]string, r.D)}
	for h := range rows[0] {
		rows[0][h] = columnName(columns, h)
	}
	for _, c := range r.Centroids {
		row := make([]string, len(c))
		for h, x := range c {
			row[h] = strconv.FormatFloat(x, 'g', -1, 64)
		}
		rows = append(rows, row)
	}
	return w.WriteAll(rows)
}
