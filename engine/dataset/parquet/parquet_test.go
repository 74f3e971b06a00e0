package parquet

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/parquet-go/parquet-go"

	"github.com/cohort-engine/cohort/engine/dataset"
)

// row has a column of every kind that is understood, and some that are not.
type row struct {
	Flag    bool       `parquet:"flag"`
	Small   int32      `parquet:"small"`
	Large   int64      `parquet:"large"`
	Count   uint32     `parquet:"count"`
	Single  float32    `parquet:"single"`
	Double  float64    `parquet:"double"`
	Maybe   *float64   `parquet:"maybe,optional"`
	Coded   int64      `parquet:"coded,dict"`
	Perhaps *int32     `parquet:"perhaps,optional,dict"`
	Price   int64      `parquet:"price,decimal(2:18)"`
	Cents   int32      `parquet:"cents,decimal(3:9)"`
	Day     int32      `parquet:"day,date"`
	When    time.Time  `parquet:"when,timestamp(millisecond)"`
	Name    string     `parquet:"name"`
	Class   string     `parquet:"class,dict"`
	List    []float64  `parquet:"list"`
	Inner   innerGroup `parquet:"inner"`
}

type innerGroup struct {
	X float64 `parquet:"x"`
}

// numeric are the names of the columns of numbers without missing values.
const numeric = "flag,small,large,count,single,double,coded,price,cents,day,when,inner.x"

func makeRow(i int) row {
	r := row{Flag: i%3 == 0, Small: int32(-i), Large: int64(i) << 33, Count: math.MaxUint32 - uint32(i),
		Single: float32(i) / 3, Double: float64(i) / 7,
		Coded: int64(i % 5), Price: int64(i)*7 - 12, Cents: int32(-i), Day: int32(19000 + i),
		When: time.UnixMilli(int64(1e12) + int64(i)*1500).UTC(),
		Name: fmt.Sprint("r", i), Class: []string{"a", "b", "c"}[i%3], List: make([]float64, i%3),
		Inner: innerGroup{X: 1 / float64(i+1)}}
	if i%4 != 1 {
		x, y := float64(i), int32(i%7)
		r.Maybe, r.Perhaps = &x, &y
	}
	return r
}

func numbersOf(r row) []float64 {
	flag := 0.0
	if r.Flag {
		flag = 1
	}
	return []float64{flag, float64(r.Small), float64(r.Large), float64(r.Count), float64(r.Single), r.Double,
		float64(r.Coded),
		float64(r.Price) / 100, float64(r.Cents) / 1000, float64(r.Day), float64(r.When.UnixMilli()) / 1000, r.Inner.X}
}

// writeRows writes n rows with some rows a group, with or without the index of pages.
func writeRows(t testing.TB, n, group int, options ...parquet.WriterOption) string {
	t.Helper()
	var b bytes.Buffer
	w := parquet.NewGenericWriter[row](&b, append(options, parquet.PageBufferSize(1000))...)
	for i := range n {
		if _, err := w.Write([]row{makeRow(i)}); err != nil {
			t.Fatal(err)
		}
		if i%group == group-1 {
			if err := w.Flush(); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "rows.parquet")
	if err := os.WriteFile(path, b.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func options(columns string) dataset.ReadOptions {
	return dataset.ReadOptions{Columns: columns, Formats: []dataset.Format{Format}}
}

func TestReadsEveryKind(t *testing.T) {
	ctx := context.Background()
	for _, group := range []int{70, 1000} {
		for _, version := range []int{1, 2} {
			path := writeRows(t, 333, group, parquet.DataPageVersion(version))
			for _, workers := range []int{1, 3} {
				o := options(numeric)
				o.LabelColumn, o.Workers = "class", workers
				got, err := dataset.Open(ctx, path, o)
				if err != nil {
					t.Fatal(err)
				}
				if got.N != 333 || strings.Join(got.Columns, ",") != numeric {
					t.Fatalf("%d x %q", got.N, got.Columns)
				}
				for i := range got.N {
					if want := numbersOf(makeRow(i)); !slices.Equal(got.Row(i), want) || got.Labels[i] != int32(i%3) {
						t.Fatalf("row %d is %v, label %d, want %v", i, got.Row(i), got.Labels[i], want)
					}
				}
			}
			o := options("maybe,perhaps,double")
			o.Missing = dataset.DropRow
			got, err := dataset.Open(ctx, path, o)
			if err != nil {
				t.Fatal(err)
			}
			at := 0
			for i := range 333 {
				if r := makeRow(i); r.Maybe != nil {
					if want := []float64{*r.Maybe, float64(*r.Perhaps), r.Double}; !slices.Equal(got.Row(at), want) {
						t.Fatalf("row %d is %v, want %v", i, got.Row(at), want)
					}
					at++
				}
			}
			if at != got.N || len(got.Report.Dropped) != 333-at {
				t.Errorf("%d records and %d dropped, want %d", got.N, len(got.Report.Dropped), at)
			}
			if ids, err := dataset.OpenIDs(ctx, path, "name", options("double,small")); err != nil ||
				ids.IDs[332] != "r332" || ids.D != 2 {
				t.Errorf("ids: %v", err)
			}
		}
	}
}

func TestFaults(t *testing.T) {
	path := writeRows(t, 20, 7)
	for columns, want := range map[string]string{
		"":       "rows.parquet, column 14 (name): STRING is no number: leave it out, such as with --columns -name",
		"list":   "column 16 (list): it is repeated",
		"maybe":  "rows.parquet, row 2, column 7: ",
		"nobody": `"nobody" is neither a name of the header nor a number`,
		"99":     "there is no column 99 among 17",
	} {
		if _, err := dataset.Open(context.Background(), path, options(columns)); err == nil ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("columns %q: error is %v, want %q", columns, err, want)
		}
	}
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, cut := range []int{4, 10, len(whole) / 2, len(whole) - 1} {
		if err := os.WriteFile(path, whole[:cut], 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := dataset.Open(context.Background(), path, options(numeric)); err == nil ||
			!strings.Contains(err.Error(), "cannot be read") {
			t.Errorf("cut at %d: error is %v", cut, err)
		}
	}
}

// A file that is written on between two passes over it is refused.
func TestFileThatChanges(t *testing.T) {
	path := writeRows(t, 100, 50)
	s, err := open(context.Background(), path, dataset.ReadOptions{Columns: "double"})
	if err != nil {
		t.Fatal(err)
	}
	visit := func() error {
		return dataset.Visit(context.Background(), s, dataset.ReadOptions{}, func([]float64) {})
	}
	if err := visit(); err != nil {
		t.Fatal(err)
	}
	at := time.Now().Add(time.Second)
	if err := os.Chtimes(path, at, at); err != nil {
		t.Fatal(err)
	}
	if err := visit(); err == nil || !strings.Contains(err.Error(), "was changed while it was read") {
		t.Error(err)
	}
}

// TestNoRecords: a file without records is refused, but where there may be none.
func TestNoRecords(t *testing.T) {
	path := writeRows(t, 0, 7)
	opts := options(numeric)
	_, err := dataset.Open(context.Background(), path, opts)
	if err == nil || !strings.Contains(err.Error(), "no records") {
		t.Errorf("error is %v", err)
	}
	opts.MayLack = true
	if table, err := dataset.Open(context.Background(), path, opts); err != nil || table.N != 0 || table.D == 0 {
		t.Errorf("%+v, %v", table, err)
	}
}

func TestWriteReadsBack(t *testing.T) {
	var b bytes.Buffer
	const n = 3000
	err := Write(&b, n, []Column{
		{Name: "z", Floats: func(i int) float64 { return math.Sqrt(float64(i)) }},
		{Name: "label", Integers: func(i int) int32 { return int32(i % 9) }},
		{Name: "a", Floats: func(i int) float64 { return -float64(i) }},
		{Name: "key", Texts: func(i int) string { return fmt.Sprint("k", i) }},
	})
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "a.parquet")
	if err := os.WriteFile(path, b.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	o := options("-key")
	o.LabelColumn = "label"
	if keys, err := dataset.OpenIDs(context.Background(), path, "key", options("")); err != nil ||
		keys.IDs[n-1] != "k2999" {
		t.Errorf("keys: %v", err)
	}
	got, err := dataset.Open(context.Background(), path, o)
	if err != nil {
		t.Fatal(err)
	}
	if got.N != n || !slices.Equal(got.Columns, []string{"z", "a"}) {
		t.Fatalf("%d records of %q", got.N, got.Columns)
	}
	for i := range n {
		if got.Row(i)[0] != math.Sqrt(float64(i)) || got.Row(i)[1] != -float64(i) || got.Labels[i] != int32(i%9) {
			t.Fatalf("row %d is %v, label %d", i, got.Row(i), got.Labels[i])
		}
	}
}

func TestSmallNumbers(t *testing.T) {
	for b, want := range map[[2]byte]float64{{0, 0x3c}: 1, {0, 0xc0}: -2, {0xff, 0x7b}: 65504, {1, 0}: 0x1p-24,
		{0, 0x7c}: math.Inf(1)} {
		if got := half(b[:]); got != want {
			t.Errorf("half of %x is %v, want %v", b, got, want)
		}
	}
	for want, b := range map[float64][]byte{0: {}, -1: {0xff}, 255: {0, 0xff}, -256: {0xff, 0},
		1 << 40: {1, 0, 0, 0, 0, 0}} {
		if got := bigEndian(b); got != want {
			t.Errorf("decimal %x is %v, want %v", b, got, want)
		}
	}
	if got := int96Seconds([3]uint32{2e9, 0, 2440589}); got != 86402 {
		t.Errorf("timestamp is %v", got)
	}
}

// FuzzRead checks that no file makes the reader panic or return what is not there.
func FuzzRead(f *testing.F) {
	for _, path := range []string{writeRows(f, 5, 2), writeRows(f, 40, 40, parquet.DataPageVersion(1))} {
		b, err := os.ReadFile(path)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b, numeric)
		f.Add(b[:len(b)-9], "maybe")
	}
	f.Fuzz(func(t *testing.T, b []byte, columns string) {
		path := filepath.Join(t.TempDir(), "f.parquet")
		if err := os.WriteFile(path, append([]byte("PAR1"), b[min(len(b), 4):]...), 0o600); err != nil {
			t.Fatal(err)
		}
		o := options(columns)
		o.Workers = 1
		got, err := dataset.Open(context.Background(), path, o)
		if err == nil && (got.N < 1 || len(got.Rows) != got.N*got.D) {
			t.Fatalf("%d x %d with %d values", got.N, got.D, len(got.Rows))
		}
	})
}

// Pieces of a file end where pages of all columns do, so that no page is decompressed twice, and are of bounded size;
// what they have is the file's records in their order.
func TestPiecesEndWithPages(t *testing.T) {
	const n = 150000
	path := filepath.Join(t.TempDir(), "a.parquet")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := Write(f, n, []Column{{Name: "x", Floats: func(i int) float64 { return float64(i) }},
		{Name: "y", Floats: func(i int) float64 { return float64(-i) }}}); err != nil {
		t.Fatal(err)
	}
	f.Close()
	opened, err := open(context.Background(), path, options(""))
	if err != nil {
		t.Fatal(err)
	}
	src, pieces := opened.(*source), 0
	for g, group := range src.file.RowGroups() {
		from := 0
		for _, to := range src.cuts[g] {
			if to <= from || to-from > mostBandRows {
				t.Errorf("a piece from %d to %d", from, to)
			}
			from = to
			pieces++
		}
		if from != int(group.NumRows()) {
			t.Errorf("pieces end at %d of %d records", from, group.NumRows())
		}
		for _, column := range group.ColumnChunks() {
			index, err := column.OffsetIndex()
			if err != nil {
				t.Fatal(err)
			}
			starts := map[int]bool{from: true}
			for page := range index.NumPages() {
				starts[int(index.FirstRowIndex(page))] = true
			}
			for _, cut := range src.cuts[g] {
				if !starts[cut] {
					t.Errorf("a piece ends at %d, inside of a page", cut)
				}
			}
		}
	}
	if pieces < 3 {
		t.Errorf("%d pieces", pieces)
	}
	read, err := dataset.Open(context.Background(), path, options(""))
	if err != nil {
		t.Fatal(err)
	}
	for i := range n {
		if read.Rows[2*i] != float64(i) || read.Rows[2*i+1] != float64(-i) {
			t.Fatalf("record %d is %v", i, read.Rows[2*i:2*i+2])
		}
	}
}

// Values of columns that are written together, of some that are not, and of columns whose pages end elsewhere, are all
// in their places.
func TestManyColumnsAreInTheirPlaces(t *testing.T) {
	const n, d = 70000, 19
	var columns []Column
	for j := range d {
		c := Column{Name: fmt.Sprint("c", j), Floats: func(i int) float64 { return float64(i*d+j) / 8 }}
		if j == 10 {
			c.Floats, c.Integers = nil, func(i int) int32 { return int32(i) }
		}
		columns = append(columns, c)
	}
	path := filepath.Join(t.TempDir(), "a.parquet")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := Write(f, n, columns); err != nil {
		t.Fatal(err)
	}
	f.Close()
	for _, names := range []string{"", "c3,c4,c5,c6,c7,c8,c9,c10,c11,c12,c13", "c18,c0,c2,c1,c4,c3,c6,c5"} {
		read, err := dataset.Open(context.Background(), path, options(names))
		if err != nil {
			t.Fatal(err)
		}
		numbers := make([]int, read.D)
		for at, name := range read.Columns {
			if _, err := fmt.Sscanf(name, "c%d", &numbers[at]); err != nil {
				t.Fatal(err)
			}
		}
		for at, x := range read.Rows {
			i, j := at/read.D, numbers[at%read.D]
			want := float64(i*d+j) / 8
			if j == 10 {
				want = float64(i)
			}
			if x != want {
				t.Fatalf("columns %q: record %d of column %d is %v, want %v", names, i, j, x, want)
			}
		}
	}
}
