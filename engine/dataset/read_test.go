package dataset

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/cohort-engine/cohort/internal/fault"
)

func gz(t testing.TB, b []byte) []byte {
	t.Helper()
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	if _, err := w.Write(b); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func npy(descr string, fortran bool, shape string, values any) []byte {
	order := "False"
	if fortran {
		order = "True"
	}
	header := "{'descr': '" + descr + "', 'fortran_order': " + order + ", 'shape': " + shape + ", }"
	header += strings.Repeat(" ", 63-(10+len(header))%64) + "\n"
	var b bytes.Buffer
	b.WriteString(npyMagic + "\x01\x00")
	var bo binary.ByteOrder = binary.LittleEndian
	binary.Write(&b, bo, uint16(len(header)))
	b.WriteString(header)
	if descr[0] == '>' {
		bo = binary.BigEndian
	}
	binary.Write(&b, bo, values)
	return b.Bytes()
}

func idx(kind byte, dims []uint32, values any) []byte {
	var b bytes.Buffer
	b.Write([]byte{0, 0, kind, byte(len(dims))})
	binary.Write(&b, binary.BigEndian, dims)
	binary.Write(&b, binary.BigEndian, values)
	return b.Bytes()
}

func TestRead(t *testing.T) {
	for _, c := range []struct {
		name, columns string
		in            []byte
		d             int
		rows          []float64
		names         []string
	}{
		{name: "csv", in: []byte("1,2\n3,-4.5e1\n"), d: 2, rows: []float64{1, 2, 3, -45}},
		{name: "no last newline", in: []byte("1,2\n3,4"), d: 2, rows: []float64{1, 2, 3, 4}},
		{name: "CRLF, byte order mark, empty rows at the end", in: []byte("\xef\xbb\xbf1,2\r\n3,4\r\n\r\n\n"), d: 2,
			rows: []float64{1, 2, 3, 4}},
		{name: "tsv", in: []byte("1\t2\n3\t4\n"), d: 2, rows: []float64{1, 2, 3, 4}},
		{name: "semicolons", in: []byte("1;2\n3; 4\n"), d: 2, rows: []float64{1, 2, 3, 4}},
		{name: "blanks", in: []byte("  1   2\n3 \t 4  \n"), d: 2, rows: []float64{1, 2, 3, 4}},
		{name: "one column", in: []byte("1\n2\n"), d: 1, rows: []float64{1, 2}},
		{name: "quotes", in: []byte("\"a,b\",\"c\"\n\"1\", \"2\"\n"), d: 2, rows: []float64{1, 2},
			names: []string{"a,b", "c"}},
		{name: "doubled quotes", in: []byte("\"a \"\"x, y\"\"\",\"\"\"c\"\"\"\n1,2\n"), d: 2, rows: []float64{1, 2},
			names: []string{`a "x, y"`, `"c"`}},
		{name: "header", in: []byte("x,y\n1,2\n"), d: 2, rows: []float64{1, 2}, names: []string{"x", "y"}},
		{name: "names in Latin-1", columns: "größe", in: []byte("gr\xf6\xdfe,b\n1,2\n"), d: 1, rows: []float64{1},
			names: []string{"größe"}},
		{name: "brackets and inches", in: []byte("[a],h 5\"\n1,2\n"), d: 2, rows: []float64{1, 2},
			names: []string{"[a]", `h 5"`}},
		{name: "columns by name", columns: "z,x", in: []byte("x,y,z\n1,no,3\n4,5,6\n"), d: 2, rows: []float64{3, 1, 6, 4},
			names: []string{"z", "x"}},
		{name: "columns by names with commas", columns: `d,"b, c",a`, in: []byte("a,\"b, c\",d\n1,2,3\n"), d: 3,
			rows: []float64{3, 2, 1}, names: []string{"d", "b, c", "a"}},
		{name: "names with commas as they stand", columns: "e, f,b, c", in: []byte("a,\"b, c\",\"e, f\"\n1,2,3\n"), d: 2,
			rows: []float64{3, 2}, names: []string{"e, f", "b, c"}},
		{name: "a name with a comma left out", columns: `-"b, c"`, in: []byte("a,\"b, c\",d\n1,2,3\n"), d: 2,
			rows: []float64{1, 3}, names: []string{"a", "d"}},
		{name: "names to a name with a comma", columns: `a:"b, c"`, in: []byte("a,\"b, c\",d\n1,2,3\n"), d: 2,
			rows: []float64{1, 2}, names: []string{"a", "b, c"}},
		{name: "one column, whose name has blanks", in: []byte("Age (years)\n1\n 2 \n"), d: 1, rows: []float64{1, 2},
			names: []string{"Age (years)"}},
		{name: "tabs, and a comma in a name", in: []byte("a\tb, c\n# a comment\n1\t2\n3\t4\n"), d: 2,
			rows: []float64{1, 2, 3, 4}, names: []string{"a", "b, c"}},
		{name: "semicolons, and a comma in a quoted name", in: []byte("a;\"b, c\"\n1;2\n"), d: 2, rows: []float64{1, 2},
			names: []string{"a", "b, c"}},
		{name: "commas, and a semicolon in a name", in: []byte("a,b; c\n1,2\n"), d: 2, rows: []float64{1, 2},
			names: []string{"a", "b; c"}},
		{name: "columns by index", columns: "3,1-2", in: []byte("1,2,3\n4,5,6\n"), d: 3, rows: []float64{3, 1, 2, 6, 4, 5}},
		{name: "gz", in: gz(t, []byte("1,2\n3,4\n")), d: 2, rows: []float64{1, 2, 3, 4}},
		{name: "npy", in: npy("<f8", false, "(2, 2)", []float64{1, 2, 3, 4}), d: 2, rows: []float64{1, 2, 3, 4}},
		{name: "npy fortran big-endian", in: npy(">i2", true, "(2, 3)", []int16{1, 4, 2, 5, 3, -6}), d: 3,
			rows: []float64{1, 2, 3, 4, 5, -6}},
		{name: "npy vector gz", in: gz(t, npy("<f4", false, "(3,)", []float32{1, 2, 0.5})), d: 1, rows: []float64{1, 2, 0.5}},
		{name: "npy columns", columns: "2", in: npy("|u1", false, "(2, 2)", []uint8{1, 2, 3, 255}), d: 1,
			rows: []float64{2, 255}},
		{name: "idx images", in: idx(8, []uint32{2, 1, 2}, []uint8{1, 2, 3, 255}), d: 2, rows: []float64{1, 2, 3, 255}},
		{name: "idx floats", in: idx(0x0d, []uint32{1, 2}, []float32{-1, 2}), d: 2, rows: []float64{-1, 2}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := Read(context.Background(), "f", bytes.NewReader(c.in), ReadOptions{Columns: c.columns})
			if err != nil {
				t.Fatal(err)
			}
			if got.D != c.d || got.N != len(c.rows)/c.d || !slices.Equal(got.Rows, c.rows) ||
				!slices.Equal(got.Columns, c.names) {
				t.Errorf("got %d x %d %v %q", got.N, got.D, got.Rows, got.Columns)
			}
		})
	}
}

func TestReadFaults(t *testing.T) {
	whole := gz(t, []byte(strings.Repeat("1,2\n", 1000)))
	for _, c := range []struct {
		name, columns string
		in            []byte
		want          string
		request       bool
	}{
		{name: "empty", want: "f: the file is empty"},
		{name: "empty gz", in: gz(t, nil), want: "f: the file is empty"},
		{name: "only empty rows", in: []byte("\n\n"), want: "f: the file has no records"},
		{name: "only a header", in: []byte("a,b\n"), want: "f: the file has a header and no records"},
		{name: "ragged", in: []byte("1,2\n3\n"), want: "f, row 2: 1 cell where the rows above have 2"},
		{name: "an end as of DOS", in: []byte("1,2\n3,4\n\x1a"), want: "f, row 3: a control character (0x1a): remove it"},
		{name: "a zero at the end", in: []byte("1,2\r\n3,4\r\n\x00"), want: "f, row 3: a control character (0x00)"},
		{name: "text in the first row", in: []byte("1,b\n3,4\n"), want: `f, row 1, column 2: "b" is not a number`},
		{name: "text under a header", in: []byte("a,b\n3,x4\n"), want: `f, row 2, column 2: "x4" is not a number`},
		{name: "empty cell", in: []byte("1,2\n3,\n"), want: "f, row 2, column 2: the cell is empty"},
		{name: "NaN", in: []byte("1,2\nNaN,4\n"), want: `f, row 2, column 1: "NaN": NaN and Inf are not allowed`},
		{name: "NaN row is no header", in: []byte("nan,inf\n1,2\n"), want: `f, row 1, column 1: "nan"`},
		{name: "Inf", in: []byte("1,-inf\n"), want: `f, row 1, column 2: "-inf": NaN and Inf`},
		{name: "overflow", in: []byte("1,1e999\n"), want: `f, row 1, column 2: "1e999" is outside the range`},
		{name: "hexadecimal", in: []byte("0x10\n1\n2x\n"), want: `f, row 3, column 1: "2x" is not a number`},
		{name: "empty row inside", in: []byte("1,2\n\n3,4\n"), want: "f, row 2: an empty row between records"},
		{name: "binary", in: []byte("\x00\x01\x02\x03,\x00\n"), want: "f, row 1: binary data"},
		{name: "compressed", in: []byte("BZh91AY&SY\x1b\xa4\n"), want: "f, row 1: binary data"},
		{name: "carriage returns", in: []byte("a,b\r1,2\r3,4\r"), want: "f, row 1: lines end in a carriage return alone"},
		{name: "JSON", in: []byte("[{\"a\": 1},\n {\"a\": 2}]\n"), want: "f, row 1: JSON: write the records as CSV"},
		{name: "a name of two lines", in: []byte("\"a\nb\",c\n1,2\n"), want: "f, row 1: a cell in quotes goes on"},
		{name: "a cell of two lines", in: []byte("a,b,c\n1,2,3\n1,\"2\n\",3\n"), want: "f, row 3: a cell in quotes goes on"},
		{name: "a quote without an end", in: []byte("a,b\n1,2\n\"3,4\n5,6\n"),
			want: `f, row 3, column 1: "\"3" is not a number: close the quote, or take it away`},
		{name: "zeros without an end", in: make([]byte, 2*maxLine), want: "f, row 1: binary data"},
		{name: "text without an end", in: bytes.Repeat([]byte("1,"), maxLine),
			want: "f, row 1: a line has more than 128 MiB"},
		{name: "a record without an end", in: append([]byte("1,2\n"), bytes.Repeat([]byte("1"), 2*maxLine+10)...),
			want: "f, row 2: a line has more than 128 MiB: write each record on one line"},
		{name: "truncated gz", in: whole[:len(whole)/2], want: "the file ends too early (truncated)"},
		{name: "gz magic alone", in: whole[:5], want: "the file ends too early (truncated)"},
		{name: "damaged gz", in: append(slices.Clone(whole[:len(whole)-6]), 1, 2, 3, 4, 5, 6), want: "checksum"},
		{name: "truncated npy", in: npy("<f8", false, "(2, 2)", []float64{1, 2, 3}),
			want: "f: the file ends too early (truncated)"},
		{name: "long npy", in: npy("<f8", false, "(1, 2)", []float64{1, 2, 3}), want: "f: more data than the 1 x 2 values"},
		{name: "npy NaN", in: npy("<f8", true, "(2, 2)", []float64{1, 2, math.NaN(), 3}),
			want: "f, row 1, column 2: NaN and Inf"},
		{name: "npy objects", in: npy("|O", false, "(2, 2)", []float64{1}),
			want: `f: .npy header: descr "|O" is not a numeric type: save an array of float32 or float64`},
		{name: "npy three dimensions", in: npy("<f8", false, "(1, 1, 1)", []float64{1}), want: "has 3 dimensions"},
		{name: "npy huge shape", in: npy("<f8", false, "(2147483647, 2147483647)", []float64{1}),
			want: "f: the file ends too early"},
		{name: "truncated idx", in: idx(8, []uint32{2, 2}, []uint8{1}), want: "f: the file ends too early (truncated)"},
		{name: "empty idx", in: idx(8, []uint32{0, 2}, []uint8{}), want: "f: the file has no records"},
		{name: "no such column", columns: "3", in: []byte("1,2\n"), want: `columns "3": there is no column 3 among 2`,
			request: true},
		{name: "no such name", columns: "c", in: []byte("a,b\n1,2\n"), want: `columns "c": "c" is neither`, request: true},
		{name: "a line for spreadsheets", in: []byte("sep=;\na;b\n1;2\n"), want: "f, row 1: a line that tells a spreadsheet"},
		{name: "a workbook", in: []byte("PK\x03\x04\x14\x00\n"), want: "f, row 1: a ZIP archive"},
		{name: "an Arrow file", in: []byte("ARROW1\x00\x00\xff"), want: "f, row 1: an Arrow file"},
		{name: "semicolons, and commas of numbers", in: []byte("a;b, c;d\n1,5;2,5;3,5\n"), want: "--decimal-comma"},
		{name: "column twice", columns: "a,1", in: []byte("a,b\n1,2\n"), want: `column 1 is named twice`, request: true},
		{name: "name of two columns", columns: "a", in: []byte("a,b,a\n1,2,3\n"),
			want: `"a" is the name of several columns`, request: true},
		{name: "name of two columns left out", columns: "-a", in: []byte("a,b,a\n1,2,3\n"),
			want: `"a" is the name of several columns`, request: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := Read(context.Background(), "f", bytes.NewReader(c.in), ReadOptions{Columns: c.columns})
			if err == nil {
				t.Fatalf("no error, table %d x %d", got.N, got.D)
			}
			if !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %q, want %q", err, c.want)
			}
			if fault.IsRequest(err) != c.request {
				t.Errorf("IsRequest is %t", !c.request)
			}
		})
	}
}

func TestReadStopsWhenCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := Read(ctx, "f", strings.NewReader(strings.Repeat("1,2\n", 10000)),
		ReadOptions{}); err != context.Canceled {
		t.Errorf("error is %v", err)
	}
}

func TestOpenSeveralFilesAndLabels(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	a, b, wide := write("a.csv", "1,2\n3,4\n"), write("b.tsv", "5\t6\n"), write("w.csv", "1,2,3\n")
	ctx := context.Background()
	got, err := Open(ctx, a+","+b, ReadOptions{Labels: write("l.csv", "label\n7\n8\n-1\n")})
	if err != nil {
		t.Fatal(err)
	}
	if got.N != 3 || !slices.Equal(got.Rows, []float64{1, 2, 3, 4, 5, 6}) || !slices.Equal(got.Files, []int{2, 1}) ||
		!slices.Equal(got.Labels, []int32{7, 8, -1}) {
		t.Errorf("got %+v", got)
	}
	got, err = Open(ctx, a+","+b, ReadOptions{Labels: write("la.csv", "1\n2\n") + "," + write("lb.csv", "3\n")})
	if err != nil || !slices.Equal(got.Labels, []int32{1, 2, 3}) {
		t.Errorf("labels of two files: %v, %v", got, err)
	}
	for _, c := range []struct{ spec, labels, want string }{
		{a + "," + wide, "", "3 columns where"},
		{a, write("short.csv", "1\n"), "1 label for 2 records"},
		{a, write("half.csv", "1\n1.5\n"), "half.csv, row 2, column 1: 1.5 is not an integer label"},
		{a, wide, "3 columns where labels have one"},
		{filepath.Join(dir, "none.csv"), "", "none.csv: no such file or directory"},
		{dir, "", "a folder without train-images-idx3-ubyte(.gz)"},
	} {
		if _, err := Open(ctx, c.spec, ReadOptions{Labels: c.labels}); err == nil ||
			!strings.Contains(err.Error(), c.want) || fault.IsRequest(err) {
			t.Errorf("%s, labels %s: error is %v, want %q", c.spec, c.labels, err, c.want)
		}
	}
}

// Columns of several files that have names are of the same names in one order, or chosen.
func TestOpenSeveralFilesWithNames(t *testing.T) {
	dir, ctx := t.TempDir(), context.Background()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	a, b := write("a.csv", "u,v\n1,2\n"), write("b.csv", "v,u\n2,1\n")
	other, bare := write("c.csv", "u,w\n1,2\n"), write("d.csv", "1,2\n")
	for _, c := range []struct {
		second, columns, want string
	}{
		{a, "", ""}, {bare, "", ""}, {b, "u,v", ""}, {other, "1,2", ""},
		{b, "", `b.csv: has column "v" where ` + a + ` has "u"`},
		{other, "", `c.csv: has column "w" where ` + a + ` has "v"`},
	} {
		got, err := Open(ctx, a+","+c.second, ReadOptions{Columns: c.columns})
		switch {
		case c.want == "" && (err != nil || !slices.Equal(got.Rows, []float64{1, 2, 1, 2})):
			t.Errorf("%s, columns %q: %+v, %v", c.second, c.columns, got, err)
		case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
			t.Errorf("%s, columns %q: error is %v, want %q", c.second, c.columns, err, c.want)
		}
	}
}

func TestOpenMNISTFolder(t *testing.T) {
	dir := t.TempDir()
	for name, b := range map[string][]byte{
		"train-images-idx3-ubyte.gz": gz(t, idx(8, []uint32{2, 1, 2}, []uint8{1, 2, 3, 4})),
		"train-labels-idx1-ubyte.gz": gz(t, idx(8, []uint32{2}, []uint8{5, 6})),
		"t10k-images-idx3-ubyte":     idx(8, []uint32{1, 1, 2}, []uint8{7, 8}),
		"t10k-labels-idx1-ubyte":     idx(8, []uint32{1}, []uint8{9}),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	got, err := Open(context.Background(), dir, ReadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if got.N != 3 || got.D != 2 || !slices.Equal(got.Rows, []float64{1, 2, 3, 4, 7, 8}) ||
		!slices.Equal(got.Labels, []int32{5, 6, 9}) {
		t.Errorf("got %+v", got)
	}
}

func TestReferenceSets(t *testing.T) {
	for _, c := range []struct {
		file string
		n, d int
	}{
		{"s1.csv", 5000, 2}, {"birch2_100k.csv.gz", 100000, 2}, {"mnist", 70000, 784},
	} {
		path := filepath.Join("..", "..", "..", "shared", "data", c.file)
		if _, err := os.Stat(path); err != nil {
			t.Skipf("reference sets are not here: %v", err)
		}
		if c.n*c.d > 1e6 && testing.Short() {
			continue
		}
		got, err := Open(context.Background(), path, ReadOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if got.N != c.n || got.D != c.d {
			t.Errorf("%s: %d x %d", c.file, got.N, got.D)
		}
	}
}

func TestParseFloatMatchesStrconv(t *testing.T) {
	for _, s := range []string{"0", "-0", "+1", "1.", ".5", "1e5", "1E-5", "9007199254740993",
		"123456789012345678901234567890",
		"0.000000000000000000000000000000123", "1e22", "1e23", "4.9e-324", "1e-400", "1.7976931348623157e308", "0.1",
		"179769.31348623157e-3",
		"00000000000000000000001.5", "9007199254740991e22", "3.0000000000000000000001"} {
		want, err := strconv.ParseFloat(s, 64)
		if err != nil {
			t.Fatal(err)
		}
		got, err := parseFloat([]byte(s))
		if err != nil || math.Float64bits(got) != math.Float64bits(want) {
			t.Errorf("%s: got %v, %v, want %v", s, got, err, want)
		}
	}
	for _, s := range []string{"", "-", ".", "e5", "1e", "1e+", "1_000", "0x1p-2", "1 2", "--1", "abc", "1,5", "nan",
		"+Inf", "infinity", "-NAN", "1e400"} {
		if got, err := parseFloat([]byte(s)); err == nil {
			t.Errorf("%q: got %v, want an error", s, got)
		}
	}
}

func FuzzParseFloat(f *testing.F) {
	for _, s := range []string{"1", "-1.5e-3", "nan", "1e400", "9007199254740993", ".e"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		got, err := parseFloat([]byte(s))
		want, werr := strconv.ParseFloat(s, 64)
		refused := werr != nil || math.IsNaN(want) || math.IsInf(want, 0) || strings.ContainsAny(s, "xX_")
		if refused != (err != nil) {
			t.Fatalf("%q: error %v, strconv %v %v", s, err, want, werr)
		}
		if err == nil && math.Float64bits(got) != math.Float64bits(want) {
			t.Fatalf("%q: got %v, want %v", s, got, want)
		}
	})
}

// FuzzRead checks that no input makes a reader panic, ask for memory that its
// input does not pay for, or return a table that is not what it says.
func FuzzRead(f *testing.F) {
	f.Add([]byte("a,b\n1,2\n"), "")
	f.Add([]byte("1 2\n3 4\n"), "1")
	f.Add([]byte(",b\n1,2\n"), "c")
	f.Add([]byte("\"1\";\"2\n"), "1-2")
	f.Add(npy("<f8", true, "(2, 2)", []float64{1, 2, 3, 4}), "")
	f.Add(npy("<f4", false, "(2147483647, 2)", []float32{1}), "")
	f.Add(idx(8, []uint32{2, 1, 2}, []uint8{1, 2, 3, 4}), "")
	f.Add(idx(0x0e, []uint32{0xffffffff, 0xffffffff}, []uint8{1}), "")
	f.Add(gz(f, []byte("1,2\n3,4\n")), "")
	f.Fuzz(func(t *testing.T, in []byte, columns string) {
		got, err := Read(context.Background(), "f", bytes.NewReader(in), ReadOptions{Columns: columns})
		if err != nil {
			return
		}
		if got.N < 1 || got.D < 1 || len(got.Rows) != got.N*got.D || (got.Columns != nil && len(got.Columns) != got.D) {
			t.Fatalf("table %d x %d with %d values and %d names", got.N, got.D, len(got.Rows), len(got.Columns))
		}
		for _, v := range got.Rows {
			if math.IsNaN(v) || math.IsInf(v, 0) {
				t.Fatalf("value %v", v)
			}
		}
	})
}

// FuzzReadText checks that a text is the same table whatever pieces and workers it is read in, with every choice that
// the command line gives, and refused with the same words.
func FuzzReadText(f *testing.F) {
	f.Add("a,b\n1,2\n", "", "", "", byte(0))
	f.Add("\ufeffa;b\r\n1,5;2\r\n\r\n2;3,25\r\n", ";", "", "", byte(1))
	f.Add("x,who\n1,\"u,\n7\"\n3,u8\n", ",", "who", "", byte(2))
	f.Add("\"a\",\"a\"\n\"1,5\",\"\"\"2\"\n", "", "", "", byte(1))
	f.Add("1 2  3\n4\t5 NA\n# 7\n", "blank", "", "2", byte(4))
	f.Add("a|b\n|2\n1|\n", "|", "", "b", byte(8))
	f.Fuzz(func(t *testing.T, text, separator, id, label string, bits byte) {
		opts := ReadOptions{Text: TextFormat{Separator: separator, DecimalComma: bits&1 != 0},
			LabelColumn: label, id: id, Missing: Missing(bits >> 2 % 3), MayLack: bits&2 != 0}
		read := func(workers, chunk int) (*Table, error) {
			o := opts
			o.Workers, o.chunkBytes = workers, chunk
			return Read(context.Background(), "f", strings.NewReader(text), o)
		}
		want, err := read(1, 0)
		if err == nil && (want.D < 1 || len(want.Rows) != want.N*want.D || want.IDs != nil && len(want.IDs) != want.N ||
			want.Labels != nil && len(want.Labels) != want.N) {
			t.Fatalf("table %d x %d with %d values, %d ids, %d labels", want.N, want.D, len(want.Rows), len(want.IDs),
				len(want.Labels))
		}
		for workers, chunk := range map[int]int{1: 3, 2: 16} {
			got, e := read(workers, chunk)
			if (err == nil) != (e == nil) || err != nil && err.Error() != e.Error() {
				t.Fatalf("%v at once, %v in pieces of %d", err, e, chunk)
			}
			if err == nil && (got.N != want.N || got.D != want.D || !slices.Equal(got.Columns, want.Columns) ||
				!slices.Equal(got.IDs, want.IDs) || !slices.Equal(got.Labels, want.Labels) ||
				fmt.Sprint(got.Rows) != fmt.Sprint(want.Rows)) {
				t.Fatalf("%+v at once, %+v in pieces of %d", want, got, chunk)
			}
		}
	})
}

func FuzzReadLabels(f *testing.F) {
	f.Add([]byte("label\n1\n-2\n"))
	f.Add(idx(8, []uint32{3}, []uint8{1, 2, 3}))
	f.Fuzz(func(t *testing.T, in []byte) {
		table, err := Read(context.Background(), "f", bytes.NewReader(in), ReadOptions{})
		if err != nil {
			return
		}
		if l, err := table.integers(); err == nil && len(l) == 0 {
			t.Fatal("no labels and no error")
		}
	})
}

func TestOpenIDs(t *testing.T) {
	path := filepath.Join(t.TempDir(), "party.csv")
	if err := os.WriteFile(path, []byte("x,who,y\n1,u 7,2\n3,\"u,8\",4\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{"who", "2"} {
		tab, err := OpenIDs(context.Background(), path, id, ReadOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(tab.IDs, []string{"u 7", "u,8"}) || !slices.Equal(tab.Columns, []string{"x", "y"}) ||
			!slices.Equal(tab.Rows, []float64{1, 2, 3, 4}) {
			t.Errorf("id %q: %+v", id, tab)
		}
	}
	for id, text := range map[string]string{"nobody": "x,who\n1,a\n", "1-2": "x,who\n1,a\n", "who": "x,who\n1,\n",
		"1": "a\nb\n"} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if tab, err := OpenIDs(context.Background(), path, id, ReadOptions{}); err == nil {
			t.Errorf("id %q of %q: read %+v, want an error", id, text, tab)
		}
	}
}
