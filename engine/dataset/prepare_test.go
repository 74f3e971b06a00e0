package dataset

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"maps"
	"math"
	"math/big"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/text/encoding/unicode"

	"github.com/cohort-engine/cohort/internal/fault"
)

// randomTable is n records of d values around 0, without labels.
func randomTable(n, d int) *Table {
	rng := rand.New(rand.NewPCG(uint64(n), uint64(d)))
	rows := make([]float64, n*d)
	for i := range rows {
		rows[i] = rng.NormFloat64()
	}
	return table(d, rows...)
}

// mustPrepare prepares a source within -1.5 and 1.5, so that some values are clamped.
func mustPrepare(t *testing.T, s Source, opts PrepareOptions) *Prepared {
	t.Helper()
	d := s.Schema().D
	opts.Bounds = &Bounds{Lo: slices.Repeat([]float64{-1.5}, d), Hi: slices.Repeat([]float64{1.5}, d)}
	p, err := Prepare(context.Background(), s, opts)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// samePoints compares prepared records with those of a table put on the grid by the
// map of one value.
func samePoints(t *testing.T, what string, got *Prepared, want *Table) {
	t.Helper()
	if got.Points.N != want.N || got.Points.D != want.D || got.Table.N != want.N {
		t.Fatalf("%s: %d x %d points, want %d x %d", what, got.Points.N, got.Points.D, want.N, want.D)
	}
	clamped := 0
	row := make([]float32, want.D)
	for i := range want.N {
		for j, x := range got.Points.Point(i, row) {
			v := want.Rows[i*want.D+j]
			lo, hi := got.Bounds.Lo[j], got.Bounds.Hi[j]
			u := ((v - lo) - (hi - v)) / (hi - lo)
			if v < lo || v > hi {
				clamped++
				u = max(-1, min(1, u))
			}
			if y := Truncate(u, got.FractionBits); x != y {
				t.Fatalf("%s: coordinate %d of point %d is %v, want %v", what, j, i, x, y)
			}
		}
	}
	if got.Clamped != clamped {
		t.Errorf("%s: clamped %d, want %d", what, got.Clamped, clamped)
	}
	for i := len(got.Points.Data) - 1; got.Points.N%16 != 0 && i >= got.Points.N/16*16*want.D; i-- {
		if lane := i % 16; lane >= got.Points.N%16 && got.Points.Data[i] != 0 {
			t.Fatalf("%s: lane %d past the last point holds %v", what, lane, got.Points.Data[i])
		}
	}
}

// sourceShapes are the shapes of the records that sources of every kind hold.
var sourceShapes = [][2]int{{1, 1}, {16, 3}, {1000, 2}, {4097, 5}, {333, 40}}

// opened is the source that a specification names.
func opened(t *testing.T, spec string, opts ReadOptions) Source {
	t.Helper()
	return made(t)(OpenSource(context.Background(), spec, opts))
}

// made fails the test when a source is not made.
func made(t *testing.T) func(Source, error) Source {
	return func(s Source, err error) Source {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
}

// columnMajor are a table's values, column by column.
func columnMajor(tab *Table) []float64 {
	columns := make([]float64, 0, len(tab.Rows))
	for j := range tab.D {
		for i := range tab.N {
			columns = append(columns, tab.Rows[i*tab.D+j])
		}
	}
	return columns
}

// fileSources are the ways to read a table from files, by name.
func fileSources(t *testing.T, want *Table) map[string]func() Source {
	dir := t.TempDir()
	file := func(name string, b []byte) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	var text bytes.Buffer
	if err := Write(&text, want); err != nil {
		t.Fatal(err)
	}
	csv := file("a.csv", text.Bytes())
	shape, columns := fmt.Sprintf("(%d, %d)", want.N, want.D), columnMajor(want)
	sources := map[string]func() Source{
		"csv in pieces": func() Source { return opened(t, csv, ReadOptions{chunkBytes: 100}) },
		"standard input": func() Source {
			return opened(t, "-", ReadOptions{Stdin: bytes.NewReader(text.Bytes())})
		},
	}
	for name, path := range map[string]string{
		"csv":             csv,
		"csv.gz":          file("a.csv.gz", gz(t, text.Bytes())),
		"npy":             file("a.npy", npy("<f8", false, shape, want.Rows)),
		"npy by columns":  file("f.npy", npy(">f8", true, shape, columns)),
		"npy.gz":          file("a.npy.gz", gz(t, npy("<f8", false, shape, want.Rows))),
		"npy.gz, columns": file("f.npy.gz", gz(t, npy("<f8", true, shape, columns))),
	} {
		sources[name] = func() Source { return opened(t, path, ReadOptions{}) }
	}
	return sources
}

// matrixSources are the ways to read a table that a program holds as a whole, by name.
func matrixSources(t *testing.T, want *Table) map[string]func() Source {
	n, d, must := want.N, want.D, made(t)
	columns := columnMajor(want)
	gaps := make([]float64, n*(d+3)+5)
	for i := range n {
		for j := range d {
			gaps[len(gaps)-1-i*(d+3)-j] = want.Rows[i*d+j]
		}
	}
	return map[string]func() Source{
		"table":        func() Source { return must(want.Source()) },
		"column-major": func() Source { return must(FromMatrix("m", ColumnMajor(columns, n, d))) },
		"negative strides": func() Source {
			return must(FromMatrix("m",
				Matrix[float64]{Data: gaps, N: n, D: d, RowStride: -d - 3, ColumnStride: -1, Offset: len(gaps) - 1}))
		},
		"two matrices": func() Source {
			half := n / 2
			if half == 0 {
				return must(want.Source())
			}
			all := &files{schema: Schema{Name: "two", Files: 2}}
			for _, rows := range [][]float64{want.Rows[:half*d], want.Rows[half*d:]} {
				if err := all.add(must(FromMatrix("part", Matrix[float64]{Data: rows, N: len(rows) / d, D: d}))); err != nil {
					t.Fatal(err)
				}
			}
			return all
		},
	}
}

// streamSources are the ways to read a table that comes in batches, by name.
func streamSources(t *testing.T, want *Table) map[string]func() Source {
	n, d, must := want.N, want.D, made(t)
	batch := func(lo, size int) Matrix[float64] {
		part := want.Rows[lo*d : min(lo+size, n)*d]
		return Matrix[float64]{Data: part, N: len(part) / d, D: d}
	}
	return map[string]func() Source{
		"batches": func() Source {
			return must(FromBatches("b", d, nil, false, func(yield func(Matrix[float64], error) bool) {
				for lo := 0; lo < n; lo += 37 {
					lent := batch(lo, 37)
					lent.Data = slices.Clone(lent.Data)
					more := yield(lent, nil)
					clear(lent.Data) // it was lent for that long
					if !more {
						return
					}
				}
				yield(Matrix[float64]{D: d}, nil)
			}))
		},
		"channel": func() Source {
			c := make(chan Matrix[float64])
			go func() {
				defer close(c)
				for lo := 0; lo < n; lo += 50 {
					c <- batch(lo, 50)
				}
			}()
			return must(FromChannel("c", d, nil, c))
		},
	}
}

// TestPrepareEveryKindOfSource reads the same records in every way that there is.
func TestPrepareEveryKindOfSource(t *testing.T) {
	ctx := context.Background()
	for _, shape := range sourceShapes {
		want := randomTable(shape[0], shape[1])
		sources := fileSources(t, want)
		maps.Copy(sources, matrixSources(t, want))
		maps.Copy(sources, streamSources(t, want))
		for name, open := range sources {
			for _, workers := range []int{1, 3} {
				what := fmt.Sprintf("%s, %d x %d, %d workers", name, want.N, want.D, workers)
				read := ReadOptions{Workers: workers}
				samePoints(t, what, mustPrepare(t, open(), PrepareOptions{Read: read}), want)
				whole, err := readTable(ctx, open(), read)
				if err != nil || !slices.Equal(whole.Rows, want.Rows) {
					t.Fatalf("%s: table differs, %v", what, err)
				}
				if want.N < 2 {
					continue // a column of one value has no width
				}
				p, err := Prepare(ctx, open(), PrepareOptions{Read: read})
				if err != nil {
					t.Fatalf("%s: bounds from data: %v", what, err)
				}
				b, err := BoundsFromData(want)
				if err != nil || !slices.Equal(b.Lo, p.Bounds.Lo) || !slices.Equal(b.Hi, p.Bounds.Hi) || !p.Bounds.FromData {
					t.Fatalf("%s: bounds %v, want %v", what, p.Bounds, b)
				}
				samePoints(t, what, p, want)
			}
		}
	}
}

// A matrix of single precision is prepared as its values are, as often as one likes.
func TestPrepareSinglePrecision(t *testing.T) {
	for _, shape := range sourceShapes {
		tab := randomTable(shape[0], shape[1])
		single := make([]float32, len(tab.Rows))
		for i, v := range tab.Rows {
			single[i] = float32(v)
			tab.Rows[i] = float64(single[i])
		}
		m := made(t)(FromMatrix("m", Matrix[float32]{Data: single, N: tab.N, D: tab.D}))
		samePoints(t, "float32", mustPrepare(t, m, PrepareOptions{}), tab)
		samePoints(t, "again", mustPrepare(t, m, PrepareOptions{}), tab)
	}
}

func TestMatrixShapes(t *testing.T) {
	data := make([]float64, 6)
	for name, m := range map[string]Matrix[float64]{
		"no columns": {Data: data, N: 2}, "no records": {Data: data, D: 2}, "nil": {N: 2, D: 3},
		"short":    {Data: data[:5], N: 2, D: 3},
		"stride":   {Data: data, N: 2, D: 3, RowStride: 4, ColumnStride: 1},
		"before":   {Data: data, N: 2, D: 3, RowStride: -3, ColumnStride: 1},
		"wraps":    {Data: data, N: math.MaxInt, D: math.MaxInt, RowStride: math.MaxInt, ColumnStride: math.MaxInt},
		"negative": {Data: data, N: -1, D: -6},
		"names":    {Data: data, N: 2, D: 3, Columns: []string{"a"}},
	} {
		if _, err := FromMatrix("matrix", m); !fault.IsRequest(err) || !strings.HasPrefix(err.Error(), "matrix: ") {
			t.Errorf("%s: error is %v", name, err)
		}
	}
	for name, tab := range map[string]*Table{"empty": {}, "no rows": {N: 2, D: 3}, "zero d": {N: 2, Rows: data},
		"short": {N: 3, D: 3, Rows: data}} {
		b := Bounds{Lo: make([]float64, tab.D), Hi: slices.Repeat([]float64{1}, tab.D)}
		if _, err := Normalise(tab, b, 16); !fault.IsRequest(err) {
			t.Errorf("table, %s: error is %v", name, err)
		}
		if _, err := BoundsFromData(tab); !fault.IsRequest(err) {
			t.Errorf("bounds of table, %s: error is %v", name, err)
		}
	}
	wrong := errors.New("the sender is gone")
	for name, seq := range map[string]iter.Seq2[Matrix[float64], error]{
		"columns": func(yield func(Matrix[float64], error) bool) { yield(Matrix[float64]{Data: data, N: 3, D: 2}, nil) },
		"error":   func(yield func(Matrix[float64], error) bool) { yield(Matrix[float64]{}, wrong) },
		"none":    func(func(Matrix[float64], error) bool) {},
	} {
		s, err := FromBatches("batches", 3, nil, true, seq)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := readTable(context.Background(), s, ReadOptions{}); err == nil ||
			(name == "error" && !errors.Is(err, wrong)) {
			t.Errorf("batches, %s: error is %v", name, err)
		}
	}
}

// TestNotFiniteIsRefused puts a value that is not finite anywhere into records that
// were made by hand: it never gets to the panels.
func TestNotFiniteIsRefused(t *testing.T) {
	for _, d := range []int{1, 3, 8} {
		for _, bad := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
			tab := randomTable(5000, d)
			i, j := 4321, d-1
			tab.Rows[i*d+j] = bad
			want := fmt.Sprintf("t, row %d, column %d: NaN and Inf are not allowed: ", i+1, j+1)
			b := Bounds{Lo: slices.Repeat([]float64{-2}, d), Hi: slices.Repeat([]float64{2}, d)}
			if _, err := Normalise(tab, b, 16); err == nil || !strings.HasPrefix(err.Error(), want) {
				t.Errorf("d = %d, %v: error is %v", d, bad, err)
			}
			if _, err := BoundsFromData(tab); err == nil || !strings.HasPrefix(err.Error(), want) {
				t.Errorf("bounds, d = %d, %v: error is %v", d, bad, err)
			}
		}
	}
}

func TestMissingValues(t *testing.T) {
	const text = "a,b,class\n1,2,x\n,3,y\n5,NA,x\n7,8,y\nnull,?,z\n-1,0,x\n"
	read := func(m Missing, spec string) (*Table, error) {
		return Read(context.Background(), "f", strings.NewReader(text),
			ReadOptions{Missing: m, LabelColumn: spec, chunkBytes: 20})
	}
	if _, err := read(RefuseMissing, "class"); err == nil ||
		!strings.Contains(err.Error(), "f, row 3, column 1: the cell is empty") {
		t.Errorf("refuse: error is %v", err)
	}
	tab, err := read(DropRow, "3")
	if err != nil || !slices.Equal(tab.Rows, []float64{1, 2, 7, 8, -1, 0}) ||
		!slices.Equal(tab.Report.Dropped, []int{1, 2, 4}) || !slices.Equal(tab.Labels, []int32{0, 1, 0}) {
		t.Errorf("drop-row: %+v, %v", tab, err)
	}
	if tab, err = read(MeanOfBounds, "class"); err != nil {
		t.Fatal(err)
	}
	if tab.N != 6 || tab.Report.Filled != 4 || !slices.Equal(tab.Labels, []int32{0, 1, 0, 1, 2, 0}) {
		t.Errorf("mean-of-bounds: %+v", tab)
	}
	norm, err := Normalise(tab, Bounds{Lo: []float64{-1, 0}, Hi: []float64{7, 10}}, 16)
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range [][]float32{{-0.5, -0.59999084}, {0, -0.3999939}, {0.5, 0}, {1, 0.59999084}, {0, 0}, {-1, -1}} {
		if got := norm.Points.Point(i, nil); !slices.Equal(got, want) {
			t.Errorf("point %d is %v, want %v", i, got, want)
		}
	}
	for _, once := range []bool{true, false} {
		s, err := newTextSource(stream("f", strings.NewReader(text)), &ReadOptions{Columns: "a,b"})
		if err != nil {
			t.Fatal(err)
		}
		s.(*textSource).schema.Once = once
		p, err := Prepare(context.Background(), s, PrepareOptions{Read: ReadOptions{Missing: MeanOfBounds}})
		if err != nil {
			t.Fatal(err)
		}
		if p.Bounds.Lo[0] != -1 || p.Bounds.Hi[0] != 7 || p.Bounds.Hi[1] != 8 || p.Table.Report.Filled != 4 ||
			p.Points.N != 6 || p.Clamped != 0 {
			t.Errorf("bounds %v, report %+v", p.Bounds, p.Table.Report)
		}
	}
	p := mustPrepare(t, mustText(t, text, ReadOptions{Columns: "a,b"}),
		PrepareOptions{Read: ReadOptions{Missing: DropRow}, Weights: []float64{1, 2, 3, 4, 5, 6}})
	if !slices.Equal(p.Weights, []float64{1, 4, 6}) || len(p.Table.Report.Notes()) != 1 {
		t.Errorf("weights %v, notes %q", p.Weights, p.Table.Report.Notes())
	}
	s, err := newTextSource(stream("f", strings.NewReader("a,b\n,1\n2,\n")), &ReadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := readTable(context.Background(), s, ReadOptions{Missing: DropRow}); err == nil ||
		!strings.Contains(err.Error(), "every record has a missing value") {
		t.Errorf("error is %v", err)
	}
	if m, err := ParseMissing("drop-row"); err != nil || m != DropRow {
		t.Error(m, err)
	}
	if _, err := ParseMissing("forget"); !fault.IsRequest(err) {
		t.Error(err)
	}
}

func mustText(t *testing.T, text string, opts ReadOptions) Source {
	t.Helper()
	s, err := newTextSource(stream("f", strings.NewReader(text)), &opts)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestWeightsAreChecked(t *testing.T) {
	for _, c := range []struct {
		weights []float64
		wrong   bool
	}{{[]float64{1}, true}, {[]float64{1, -1}, true}, {[]float64{1, math.NaN()}, true}, {[]float64{1, math.Inf(1)}, true},
		{[]float64{0, 0}, false}, {[]float64{math.MaxFloat64, math.MaxFloat64}, false}} {
		s, err := table(1, 1, 2).Source()
		if err != nil {
			t.Fatal(err)
		}
		_, err = Prepare(context.Background(), s, PrepareOptions{Weights: c.weights})
		if fault.IsRequest(err) != c.wrong {
			t.Errorf("%v: error is %v", c.weights, err)
		}
	}
}

func TestTextForms(t *testing.T) {
	utf16, err := unicode.UTF16(unicode.BigEndian, unicode.UseBOM).NewEncoder().Bytes([]byte("höhe;x\n1;2\n3;4\n"))
	if err != nil {
		t.Fatal(err)
	}
	little, err := unicode.UTF16(unicode.LittleEndian, unicode.UseBOM).NewEncoder().Bytes([]byte("1,2\r\n3,4"))
	if err != nil {
		t.Fatal(err)
	}
	four := []float64{1, 2, 3, 4}
	for _, c := range []struct {
		name, in string
		opts     ReadOptions
		rows     []float64
		names    []string
		labels   []int32
		comments int
	}{
		{name: "bars", in: "a|b\n1|2\n3|4\n", rows: four, names: []string{"a", "b"}},
		{name: "another separator", in: "1:2\n3:4\n", opts: ReadOptions{Text: TextFormat{Separator: ":"}}, rows: four},
		{name: "blanks that are asked for", in: "1, 2\n3, 4\n",
			opts: ReadOptions{Text: TextFormat{Separator: ","}}, rows: four},
		{name: "decimal comma", in: "x;y\n1,5;-2,25e1\n\"3\";4\n", opts: ReadOptions{Text: TextFormat{DecimalComma: true}},
			rows: []float64{1.5, -22.5, 3, 4}, names: []string{"x", "y"}},
		{name: "decimal comma in quotes", in: "a,b\n1,\"-2,25e1\"\n\"3,5\",4\n5,6\n",
			opts: ReadOptions{Text: TextFormat{DecimalComma: true}}, rows: []float64{1, -22.5, 3.5, 4, 5, 6},
			names: []string{"a", "b"}},
		{name: "decimal comma in quotes, blanks at the commas", in: "\"1,5\", \"2\"\n\"3\" ,\"4,5\"\n",
			opts: ReadOptions{Text: TextFormat{DecimalComma: true}}, rows: []float64{1.5, 2, 3, 4.5}},
		{name: "decimal comma in one column", in: "1,5\n2,25\n", opts: ReadOptions{Text: TextFormat{DecimalComma: true}},
			rows: []float64{1.5, 2.25}},
		{name: "a first record without values", in: "NA,null\n1,2\n3,4\n", opts: ReadOptions{Missing: DropRow},
			rows: []float64{1, 2, 3, 4}},
		{name: "a header with one name", in: "NA,b\n1,2\n3,4\n", opts: ReadOptions{Missing: DropRow},
			rows: []float64{1, 2, 3, 4}, names: []string{"NA", "b"}},
		{name: "numeric header", in: "2020,2021\n1,2\n3,4\n", opts: ReadOptions{Text: TextFormat{Header: "yes"}},
			rows: four, names: []string{"2020", "2021"}},
		{name: "numeric header by name", in: "2020,2\n1,2\n3,4\n",
			opts: ReadOptions{Columns: "2", Text: TextFormat{Header: "yes"}}, rows: []float64{2, 4}, names: []string{"2"}},
		{name: "comments", in: "# made by\na,b\n1,2\n  # half\n3,4\n#\n", rows: four, names: []string{"a", "b"}, comments: 3},
		{name: "comments before records", in: "#1\n#2\n1,2\n3,4\n", rows: four, comments: 2},
		{name: "other comments", in: "// a\n1,2\n// b\n3,4\n", opts: ReadOptions{Text: TextFormat{Comment: "//"}},
			rows: four, comments: 2},
		{name: "comments where the first column is left out", in: "k,a,b\n#k,1,2\nz,1,2\nz,3,4\n",
			opts: ReadOptions{Columns: "-k"}, rows: four, names: []string{"a", "b"}, comments: 1},
		{name: "no comments", in: "#a,b\n1,2\n3,4\n", opts: ReadOptions{Text: TextFormat{Comment: "none"}}, rows: four,
			names: []string{"#a", "b"}},
		{name: "UTF-16", in: string(utf16), rows: four, names: []string{"höhe", "x"}},
		{name: "UTF-16, little endian", in: string(little), rows: four},
		{name: "exclusions", in: "id,a,b,label\n1,1,2,x\n2,3,4,y\n", opts: ReadOptions{Columns: "-id,-label"}, rows: four,
			names: []string{"a", "b"}},
		{name: "a range without one", in: "a,b,c\n1,9,2\n3,9,4\n", opts: ReadOptions{Columns: "1:c,-b"}, rows: four,
			names: []string{"a", "c"}},
		{name: "text labels", in: "a,b,c\n1,2,\"no, never\"\n3,4, yes \n", opts: ReadOptions{LabelColumn: "c"}, rows: four,
			names: []string{"a", "b"}, labels: []int32{0, 1}},
		{name: "numbers as labels", in: "1,7,2\n3,-8,4\n", opts: ReadOptions{LabelColumn: "2"}, rows: four,
			labels: []int32{7, -8}},
	} {
		for _, chunk := range []int{0, 1} {
			for _, workers := range []int{1, 2} {
				c.opts.chunkBytes, c.opts.Workers = chunk, workers
				got, err := Read(context.Background(), "f", strings.NewReader(c.in), c.opts)
				if err != nil {
					t.Errorf("%s: %v", c.name, err)
					continue
				}
				if !slices.Equal(got.Rows, c.rows) || !slices.Equal(got.Columns, c.names) ||
					!slices.Equal(got.Labels, c.labels) || got.Report.Comments != c.comments {
					t.Errorf("%s: %v %q %v, %d comments", c.name, got.Rows, got.Columns, got.Labels, got.Report.Comments)
				}
			}
		}
	}
}

func TestTextFormsThatAreRefused(t *testing.T) {
	for _, c := range []struct {
		name, in string
		opts     ReadOptions
		want     string
	}{
		{"header", "1,2\n", ReadOptions{Text: TextFormat{Header: "maybe"}}, "header: is"},
		{"a first record without values", "?,?\n1,2\n", ReadOptions{}, `f, row 1, column 1: "?" is not a number`},
		{"no header", "a,b\n1,2\n", ReadOptions{Text: TextFormat{Header: "no"}}, `f, row 1, column 1: "a" is not a number`},
		{"only a header", "1,2\n", ReadOptions{Text: TextFormat{Header: "yes"}}, "a header and no records"},
		{"separator", "1,2\n", ReadOptions{Text: TextFormat{Separator: "::"}}, "separator: is"},
		{"separator of numbers", "1,2\n", ReadOptions{Text: TextFormat{Separator: "e"}}, "separator: is"},
		{"commas between quoted cells and a separator", "\"1,5\",\"2\"\n\"2,5\",\"3\"\n",
			ReadOptions{Text: TextFormat{DecimalComma: true, Separator: ";"}}, "leave --separator out"},
		{"a decimal comma without quotes", "a,b\n\"1,5\",2\n1,5,2\n", ReadOptions{Text: TextFormat{DecimalComma: true}},
			"f, row 3: 3 cells"},
		{"both commas", "1,2\n", ReadOptions{Text: TextFormat{Separator: ",", DecimalComma: true}}, "decimal sign as well"},
		{"all excluded", "1,2\n", ReadOptions{Columns: "-1,-2"}, "no column is left"},
		{"excluded twice over", "a,b\n1,2\n", ReadOptions{Columns: "-c"}, "neither a name"},
		{"label column alone", "1\n2\n", ReadOptions{LabelColumn: "1"}, "no column but the label-column"},
		{"chosen label column alone", "1,2\n", ReadOptions{LabelColumn: "1", Columns: "1"},
			"--columns: names no column but the label-column"},
		{"label column", "1,2\n", ReadOptions{LabelColumn: "1-2"}, "is not one column"},
		{"empty label", "a,b\n1,\n", ReadOptions{LabelColumn: "b"}, "f, row 2, column 2: the cell is empty"},
		{"labels of an array", string(npy("<f8", false, "(2, 1)", []float64{1, 2})), ReadOptions{LabelColumn: "1"},
			"is an array of numbers"},
		{"point under a decimal comma", "1.5;2\n", ReadOptions{Text: TextFormat{DecimalComma: true, Header: "no"}},
			`"1.5" is not a number`},
	} {
		if _, err := Read(context.Background(), "f", strings.NewReader(c.in), c.opts); err == nil ||
			!strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error is %v, want %q", c.name, err, c.want)
		}
	}
}

// TestFaultsAcrossPieces cuts bad files at every place: the fault never moves.
func TestFaultsAcrossPieces(t *testing.T) {
	for text, want := range map[string]string{
		"1,2\n3,4\n\n5,6\n":         "f, row 3: an empty row between records",
		"1,2\n\n \n\n3,4\n":         "f, row 2: an empty row between records",
		"\n1,2\n":                   "f, row 1: an empty row between records",
		"a,b\n\n1,2\n":              "f, row 2: an empty row between records",
		"1,2\n3,4\n5,6\n7,x\n8\n":   `f, row 4, column 2: "x" is not a number`,
		"1,2\n3,4\n5,6,7\n7,x\n8\n": "f, row 3: 3 cells where the rows above have 2",
		"1,2\n3,4\n5,6\n\n\n":       "",
	} {
		for chunk := 1; chunk < len(text)+2; chunk++ {
			for _, workers := range []int{1, 3} {
				_, err := Read(context.Background(), "f", strings.NewReader(text), ReadOptions{chunkBytes: chunk, Workers: workers})
				if want == "" && err != nil || want != "" && (err == nil || !strings.HasPrefix(err.Error(), want)) {
					t.Errorf("%q in pieces of %d: error is %v, want %q", text, chunk, err, want)
				}
			}
		}
	}
}

func TestIDLikeColumns(t *testing.T) {
	var text strings.Builder
	text.WriteString("key,x,year\n")
	for i := range 400 {
		fmt.Fprintf(&text, "%d,%d,%d\n", 1000+3*i, i*i%17, 2000+i/100)
	}
	for _, chunk := range []int{0, 50} {
		tab, err := Read(context.Background(), "f", strings.NewReader(text.String()),
			ReadOptions{chunkBytes: chunk, Columns: "x,key,year"})
		if err != nil || !slices.Equal(tab.Report.IDLike, []string{"1 (key)"}) {
			t.Errorf("%v, %v", tab.Report.IDLike, err)
		}
	}
	long := Schema{Columns: []string{strings.Repeat("ü", 5000)}}.column(0)
	if want := "1 (" + strings.Repeat("ü", 59) + "…)"; long != want {
		t.Errorf("a long name: %.200s", long)
	}
}

// A first row of numbers that count upwards is a record, and may be names, such as years.
func TestFirstRowsThatCount(t *testing.T) {
	for text, want := range map[string]bool{
		"2019,2020,2021\n1,5,7\n2,5,8\n":        true,
		"\"0\",\"1\"\n1.5,5\n2,5\n":             true,
		"id,2019,2020\nA,1,5\nB,2,5\n":          true,
		"# years\n2019;2020\n# first\n1;5\n2;5": true,
		"1,2\n3,4\n":                            false, // so do others
		"2019,2021\n1,5\n2,5\n":                 false,
		"2019\n1\n2\n":                          false,
		"a,b\n1,2\n5,5\n":                       false,
		"1,2":                                   false,
	} {
		read := func(header string) (*Table, error) {
			o := ReadOptions{Text: TextFormat{Header: header}}
			if strings.HasPrefix(text, "id") {
				o.Columns = "2-3"
			}
			return Read(context.Background(), "f", strings.NewReader(text), o)
		}
		if tab, err := read("auto"); err != nil || tab.Report.Counts != want {
			t.Errorf("%q: %+v, %v", text, tab, err)
		}
		for _, said := range []string{"yes", "no"} {
			if tab, err := read(said); err == nil && tab.Report.Counts {
				t.Errorf("%q with --header %s counts", text, said)
			}
		}
	}
}

func TestSetsThatCannotFit(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.csv")
	if err := os.WriteFile(path, []byte(strings.Repeat("1.25,2.5\n", 10000)), 0o600); err != nil {
		t.Fatal(err)
	}
	for spec, want := range map[string]string{path: "about 1e+04 records of 2 columns take 80.0 kB and 10.0 kB are " +
		"allowed by --max-memory",
		"builtin:s1-like": "5e+03 records of 2 columns take 40.0 kB"} {
		s, err := OpenSource(context.Background(), spec, ReadOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := Prepare(context.Background(), s, PrepareOptions{MaxMemory: 10e3}); err == nil ||
			!strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "--cache DIR") {
			t.Errorf("%s: error is %v", spec, err)
		}
		if _, err := Prepare(context.Background(), s, PrepareOptions{MaxMemory: 90e3}); spec == path &&
			(err == nil || !strings.Contains(err.Error(), "constant")) {
			t.Errorf("%s: error is %v", spec, err)
		}
	}
	if runtimeKnowsMemory := availableMemory() > 1<<20; !runtimeKnowsMemory && fileExists("/proc/meminfo") {
		t.Error("the available memory is not read")
	}
}

func fileExists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// TestDigests: a column has the same digest however it is read, whatever the order of its rows and which columns stand
// beside it; other values, other counts of them and other keys have another.
func TestDigests(t *testing.T) {
	digests := func(text string, chunk int, key byte) []string {
		return mustPrepare(t, mustText(t, text, ReadOptions{chunkBytes: chunk}),
			PrepareOptions{DigestKey: &[16]byte{key}}).Digests
	}
	a := digests("1,2\n3,4\n5,6\n", 0, 1)
	for _, same := range []string{"x,y\n1.0,2\n3,4\n5,6\n", "5,6\n1,2\n3,4\n"} {
		if b := digests(same, 5, 1); !slices.Equal(a, b) || len(a) != 2 || a[0] == a[1] || len(a[0]) != 32 {
			t.Errorf("digests %q and %q", a, b)
		}
	}
	if b := digests("9,2,1\n9,4,3\n8,6,5\n", 0, 1); b[1] != a[1] || b[2] != a[0] || b[0] == a[0] {
		t.Errorf("digests %q of other columns, %q", b, a)
	}
	for _, other := range []string{"1,2\n3,4\n5.5,7\n", "1,2\n3,4\n5,6\n5,6\n", "1,2\n1,2\n3,4\n5,6\n", "1,2\n3,4\n"} {
		for j, x := range digests(other, 0, 1) {
			if x == a[j] {
				t.Errorf("column %d of %q has the same digest", j, other)
			}
		}
	}
	if b := digests("1,2\n3,4\n5,6\n", 0, 2); b[0] == a[0] {
		t.Error("another key has the same digest")
	}
}

// TestPowersOfTen compares the ends and the middle of the table with the digits of the powers.
func TestPowersOfTen(t *testing.T) {
	for e, want := range map[int][2]uint64{
		-64: {0xa87fea27a539e9a5, 0x3f2398d747b36224}, -1: {0xcccccccccccccccc, 0xcccccccccccccccc},
		0: {1 << 63, 0}, 1: {0xa << 60, 0}, 23: {0xa968163f0a57b400, 0}, 64: {0xc2781f49ffcfa6d5, 0x3cbf6b71c76b25fb},
	} {
		if got := powers[e-minPower]; got != want {
			t.Errorf("10^%d is %#x, want %#x", e, got, want)
		}
	}
}

// TestNumbersAreCorrectlyRounded compares with strconv, halfway cases included.
func TestNumbersAreCorrectlyRounded(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	check := func(s string) {
		want, err := strconv.ParseFloat(s, 64)
		if math.IsInf(want, 0) {
			return
		}
		got, gotErr := parseFloat([]byte(s))
		if err != nil || gotErr != nil || math.Float64bits(got) != math.Float64bits(want) {
			t.Fatalf("%s: %v, %v, want %v", s, got, gotErr, want)
		}
	}
	for range 200000 {
		v := math.Float64frombits(rng.Uint64())
		if math.IsNaN(v) || math.IsInf(v, 0) {
			continue
		}
		check(strconv.FormatFloat(v, 'g', rng.IntN(20)-1, 64))
		small := (rng.Float64() - 0.5) * math.Pow(10, float64(rng.IntN(30)-10))
		check(strconv.FormatFloat(small, 'f', rng.IntN(20)-1, 64))
		check(fmt.Sprintf("%d.%de%d", rng.IntN(1000), rng.Uint64()>>rng.IntN(60), rng.IntN(140)-70))
		// Around the middle of two neighbours.
		middle := new(big.Float).SetPrec(80).SetFloat64(small)
		middle.Add(middle, new(big.Float).SetFloat64((math.Nextafter(small, 1e300)-small)/2))
		check(middle.Text('g', 19))
		check(middle.Text('e', 17))
	}
}

// TestRowNumbers: people count the rows of their file, those that were left out
// included.
func TestRowNumbers(t *testing.T) {
	dir := t.TempDir()
	var paths []string
	for name, text := range map[string]string{"a.csv": "1,1\n,2\n3,3\n", "b.csv": "\"\",1\n,2\n6,7\n8,9\n"} {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		paths = append(paths, path)
	}
	slices.Sort(paths)
	tab, err := Open(context.Background(), strings.Join(paths, ","),
		ReadOptions{Missing: DropRow, Text: TextFormat{Header: "no"}})
	if err != nil || !slices.Equal(tab.Files, []int{2, 2}) {
		t.Fatal(tab, err)
	}
	for i, want := range []int{1, 3, 3, 4} {
		if got := tab.RowNumber(i); got != want {
			t.Errorf("record %d is row %d, want %d", i, got, want)
		}
	}
}

// No source, no table and no reader are refused in the usual form.
func TestNothingToRead(t *testing.T) {
	ctx := context.Background()
	var none context.Context // as a caller that passes nil
	var noTable *Table
	some, err := FromMatrix("some", Matrix[float64]{Data: []float64{1, 2}, N: 2, D: 1})
	if err != nil {
		t.Fatal(err)
	}
	for what, try := range map[string]func() error{
		"prepare":                 func() error { _, err := Prepare(ctx, nil, PrepareOptions{}); return err },
		"prepare without context": func() error { _, err := Prepare(none, some, PrepareOptions{}); return err },
		"visit":                   func() error { return Visit(ctx, nil, ReadOptions{}, nil) },
		"again":                   func() error { _, err := Again(ctx, nil, ReadOptions{}); return err },
		"digests":                 func() error { _, _, err := Digests(ctx, nil, ReadOptions{}, [16]byte{}); return err },
		"read":                    func() error { _, err := Read(ctx, "nothing", nil, ReadOptions{}); return err },
		"a table's source":        func() error { _, err := noTable.Source(); return err },
		"a table's bounds":        func() error { _, err := BoundsFromData(noTable); return err },
		"normalise":               func() error { _, err := Normalise(noTable, Bounds{}, 16); return err },
		"write":                   func() error { return Write(io.Discard, noTable) },
		"bounds":                  func() error { _, err := ParseBounds("0:1", -1); return err },
		"a split":                 func() error { _, err := ParseColumnSplit("1;2", -1, nil); return err },
	} {
		func() {
			defer func() {
				if r := recover(); r != nil {
					t.Errorf("%s: panic: %v", what, r)
				}
			}()
			if err := try(); !fault.IsRequest(err) {
				t.Errorf("%s: %v", what, err)
			}
		}()
	}
}
