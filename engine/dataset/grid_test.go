package dataset

import (
	"bytes"
	"context"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/cohort-engine/cohort/internal/fault"
)

func TestTruncateGoesTowardZero(t *testing.T) {
	for _, c := range []struct {
		x    float64
		f    int
		want float32
	}{{0.999, 1, 0.5}, {-0.999, 1, -0.5}, {1, 16, 1}, {-1, 22, -1}, {0x1p-17, 16, 0}, {-0x1p-17, 16, 0},
		{0x1.8p-16, 16, 0x1p-16}, {-0x1.8p-16, 16, -0x1p-16}} {
		if got := Truncate(c.x, c.f); got != c.want || math.Signbit(float64(got)) != math.Signbit(float64(c.want)) {
			t.Errorf("Truncate(%v, %d) = %v, want %v", c.x, c.f, got, c.want)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		x, f := rapid.Float64Range(-1, 1).Draw(t, "x"), rapid.IntRange(1, MaxFractionBits).Draw(t, "f")
		got := float64(Truncate(x, f))
		units := math.Ldexp(got, f)
		if units != math.Trunc(units) || math.Abs(got) > math.Abs(x) || math.Abs(x-got) >= math.Ldexp(1, -f) {
			t.Fatalf("Truncate(%v, %d) = %v", x, f, got)
		}
	})
}

func table(d int, rows ...float64) *Table {
	return &Table{Name: "t", N: len(rows) / d, D: d, Rows: rows}
}

func TestNormaliseMapsClampsAndCounts(t *testing.T) {
	b, err := ParseBounds("0:10,-1:1", 2)
	if err != nil {
		t.Fatal(err)
	}
	n, err := Normalise(table(2, 0, -1, 10, 1, 5, 0, 11, -3, 7.5, 0.25), b, 16)
	if err != nil {
		t.Fatal(err)
	}
	want := [][]float32{{-1, -1}, {1, 1}, {0, 0}, {1, -1}, {0.5, 0.25}}
	for i, w := range want {
		if got := n.Points.Point(i, nil); !slices.Equal(got, w) {
			t.Errorf("point %d is %v, want %v", i, got, w)
		}
	}
	if n.Clamped != 2 {
		t.Errorf("clamped %d coordinates, want 2", n.Clamped)
	}
	if got := b.Denormalise(nil, []float64{0.5, -1}); !slices.Equal(got, []float64{7.5, -1}) {
		t.Errorf("Denormalise gives %v", got)
	}
}

// TestNormaliseEveryRecord compares sizes around the blocks with the map of one
// value.
func TestNormaliseEveryRecord(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, s := range [][2]int{{1, 3}, {17, 1}, {3000, 7}, {1168, 7}, {1169, 7}, {40, 500}, {3, 9000}} {
		n, d := s[0], s[1]
		rows := make([]float64, n*d)
		b := Bounds{Lo: make([]float64, d), Hi: make([]float64, d)}
		for j := range d {
			b.Lo[j] = rng.NormFloat64()
			b.Hi[j] = b.Lo[j] + rng.ExpFloat64() + 0.1
		}
		clamped := 0
		want := make([]float32, n*d)
		for i := range rows {
			lo, hi := b.Lo[i%d], b.Hi[i%d]
			v := lo + (hi-lo)*(1.2*rng.Float64()-0.1)
			rows[i] = v
			u := ((v - lo) - (hi - v)) / (hi - lo)
			if v < lo || v > hi {
				clamped++
				u = max(-1, min(1, u))
			}
			want[i] = Truncate(u, 13)
		}
		got, err := Normalise(table(d, rows...), b, 13)
		if err != nil {
			t.Fatal(err)
		}
		if got.Clamped != clamped {
			t.Errorf("%d x %d: clamped %d coordinates, want %d", n, d, got.Clamped, clamped)
		}
		for i := range n {
			if p := got.Points.Point(i, nil); !slices.Equal(p, want[i*d:(i+1)*d]) {
				t.Fatalf("%d x %d: point %d is %v, want %v", n, d, i, p, want[i*d:(i+1)*d])
			}
		}
	}
}

func TestBounds(t *testing.T) {
	if b, err := ParseBounds("-2:3", 3); err != nil || !slices.Equal(b.Lo, []float64{-2, -2, -2}) ||
		!slices.Equal(b.Hi, []float64{3, 3, 3}) {
		t.Errorf("got %v, %v", b, err)
	}
	for s, want := range map[string]string{"3:1": "is not below", "1:1": "is not below", "1": "no colon",
		"a:b": "not a number", "1:nan": "NaN", "0:1,0:1": "2 pairs for 3 columns", "-1e308:1e308": "no finite width"} {
		if _, err := ParseBounds(s, 3); !fault.IsRequest(err) || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error is %v, want a wrong request: %q", s, err, want)
		}
	}
	path := filepath.Join(t.TempDir(), "b.csv")
	for _, c := range []struct {
		text, want string
		request    bool
	}{{"0,1\n", "1 row for 2 columns", false}, {"0,1,2\n3,4,5\n", "3 cells in a row", false},
		{"0,x\n1,2\n", "row 1, column 2", false},
		{"name,lo,hi\nage,0,1\n", `row 2, column 1: "age" is not a number: write one lo,hi row per column`, false},
		{"0:1\n", "no records: write one lo,hi row per column", false}, {"0,1\n3,2\n", "is not below", true}} {
		if err := os.WriteFile(path, []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := OpenBounds(context.Background(), path, 2); err == nil || !strings.Contains(err.Error(), c.want) ||
			fault.IsRequest(err) != c.request {
			t.Errorf("%q: error is %v", c.text, err)
		}
	}
	if err := os.WriteFile(path, []byte("0,1\n-3,2\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if b, err := OpenBounds(context.Background(), path, 2); err != nil ||
		!slices.Equal(b.Lo, []float64{0, -3}) || b.FromData {
		t.Errorf("got %+v, %v", b, err)
	}
	b, err := BoundsFromData(table(2, 1, 5, -2, 7))
	if err != nil || !slices.Equal(b.Lo, []float64{-2, 5}) || !slices.Equal(b.Hi, []float64{1, 7}) || !b.FromData {
		t.Errorf("got %+v, %v", b, err)
	}
	if _, err := BoundsFromData(table(2, 1, 5, 2, 5)); err == nil || fault.IsRequest(err) ||
		!strings.Contains(err.Error(), "column 2 is constant (5)") {
		t.Errorf("constant column: error is %v", err)
	}
	if _, err := BoundsFromData(table(1, -1e308, 1e308)); err == nil || fault.IsRequest(err) ||
		!strings.Contains(err.Error(), "column 1 has values too far apart") {
		t.Errorf("column without a finite width: error is %v", err)
	}
	bytes := table(2, 1, 5, 2, 5)
	bytes.Bytes = true
	if b, err := BoundsFromData(bytes); err != nil || b.FromData || b.Lo[1] != 0 || b.Hi[1] != 255 {
		t.Errorf("bounds of bytes are %v, %v, want the public 0 to 255", b, err)
	}
	// With declared bounds a constant column is fine.
	if _, err := Normalise(table(2, 1, 5, 2, 5), Bounds{Lo: []float64{0, 0}, Hi: []float64{9, 9}}, 16); err != nil {
		t.Error(err)
	}
	for _, f := range []int{0, 23} {
		if _, err := Normalise(table(1, 1), Bounds{Lo: []float64{0}, Hi: []float64{9}}, f); !fault.IsRequest(err) {
			t.Errorf("%d fraction bits: error is %v", f, err)
		}
	}
}

func TestSplitDealsEveryRecordOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 200).Draw(t, "n")
		m := rapid.IntRange(1, n).Draw(t, "m")
		d := rapid.IntRange(1, 5).Draw(t, "d")
		rows := make([]float64, n*d)
		for i := range rows {
			rows[i] = float64(i)
		}
		norm, err := Normalise(table(d, rows...),
			Bounds{Lo: make([]float64, d), Hi: slices.Repeat([]float64{float64(n*d) + 1}, d)}, 22)
		if err != nil {
			t.Fatal(err)
		}
		seed := rapid.Uint64().Draw(t, "seed")
		parts, err := norm.Split(m, nil, seed)
		if err != nil {
			t.Fatal(err)
		}
		again, _ := norm.Split(m, nil, seed)
		seen := make([]bool, n)
		for p, part := range parts {
			if s := part.Points.N; s < n/m || s > n/m+1 || (part.Rows != nil && len(part.Rows) != s) {
				t.Fatalf("client %d of %d holds %d of %d records", p, m, s, n)
			}
			if !slices.Equal(part.Rows, again[p].Rows) {
				t.Fatal("the same seed splits differently")
			}
			for i := range part.Points.N {
				r := part.Row(i)
				if seen[r] {
					t.Fatalf("record %d was dealt twice", r)
				}
				seen[r] = true
				if !slices.Equal(part.Points.Point(i, nil), norm.Points.Point(r, nil)) {
					t.Fatalf("point %d of client %d is not record %d", i, p, r)
				}
			}
		}
		if slices.Contains(seen, false) {
			t.Fatal("a record was dealt to nobody")
		}
	})
}

func TestSplitByProportionsAndFiles(t *testing.T) {
	rows := make([]float64, 100)
	norm, err := Normalise(table(1, rows...), Bounds{Lo: []float64{-1}, Hi: []float64{1}}, 16)
	if err != nil {
		t.Fatal(err)
	}
	sizes := func(parts []Part) (s []int) {
		for _, p := range parts {
			s = append(s, p.Points.N)
		}
		return s
	}
	parts, err := norm.Split(3, []float64{3, 2, 1}, 1)
	if err != nil || !slices.Equal(sizes(parts), []int{50, 33, 17}) {
		t.Errorf("3:2:1 of 100 gives %v, %v", sizes(parts), err)
	}
	other, err := norm.Split(3, []float64{3, 2, 1}, 2)
	if err != nil || slices.Equal(other[0].Rows, parts[0].Rows) {
		t.Errorf("two seeds split alike, error %v", err)
	}
	shape, err := Shape(100, norm.Bounds, norm.FractionBits).Split(3, []float64{3, 2, 1}, 1)
	if err != nil || !slices.Equal(sizes(shape), sizes(parts)) || shape[0].Points.D != norm.Points.D ||
		shape[0].Points.Data != nil {
		t.Errorf("a shape gives %v, %v", sizes(shape), err)
	}
	parts, err = norm.SplitFiles([]int{99, 1})
	if err != nil || !slices.Equal(sizes(parts), []int{99, 1}) || parts[1].Rows[0] != 99 {
		t.Errorf("files give %v, %v", sizes(parts), err)
	}
	if parts, err = norm.Split(1, nil, 5); err != nil || parts[0].Points != norm.Points || parts[0].Row(7) != 7 {
		t.Errorf("one client does not hold the records as they are: %v", err)
	}
	if parts, err = norm.Split(2, []float64{1, 1e-9}, 1); err != nil || !slices.Equal(sizes(parts), []int{100, 0}) {
		t.Errorf("a share of nothing gives %v, %v", sizes(parts), err)
	}
	if parts, err = norm.Split(101, nil, 1); err != nil || len(parts) != 101 || parts[99].Points.N != 1 ||
		parts[100].Points.N != 0 || parts[100].Points.D != 1 {
		t.Errorf("more clients than records: %v", err)
	}
	for _, bad := range []func() error{
		func() error { _, err := norm.Split(0, nil, 1); return err },
		func() error { _, err := norm.Split(mostClients+1, nil, 1); return err },
		func() error { _, err := norm.Split(2, []float64{1}, 1); return err },
		func() error { _, err := norm.Split(2, []float64{1, math.NaN()}, 1); return err },
		func() error { _, err := norm.SplitFiles([]int{1}); return err },
	} {
		if err := bad(); !fault.IsRequest(err) {
			t.Errorf("error is %v, want a wrong request", err)
		}
	}
}

func TestColumnSplits(t *testing.T) {
	if got, err := ContiguousColumns(5, 2); err != nil ||
		!slices.EqualFunc(got, [][]int{{0, 1, 2}, {3, 4}}, slices.Equal) {
		t.Errorf("got %v, %v", got, err)
	}
	got, err := ParseColumnSplit("1,3,a;2,4-5", 6, []string{"x", "y", "z", "v", "w", "a"})
	if err != nil || !slices.EqualFunc(got, [][]int{{0, 2, 5}, {1, 3, 4}}, slices.Equal) {
		t.Errorf("got %v, %v", got, err)
	}
	for s, want := range map[string]string{"1,2;2,3": "column 2 belongs to parties 1 and 2",
		"1;3": "column 2 belongs to no party", "1,2,3;": "party 2 has no columns", "1;4": "no column 4"} {
		if _, err := ParseColumnSplit(s, 3, nil); !fault.IsRequest(err) || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error is %v", s, err)
		}
	}
	for _, parties := range []int{0, 4} {
		if _, err := ContiguousColumns(3, parties); !fault.IsRequest(err) {
			t.Errorf("%d parties: error is %v", parties, err)
		}
	}
	rows := make([]float64, 17*3)
	for i := range rows {
		rows[i] = float64(i%50) / 50
	}
	n, err := Normalise(table(3, rows...), Bounds{Lo: []float64{-1, -1, -1}, Hi: []float64{1, 1, 1}}, 16)
	if err != nil {
		t.Fatal(err)
	}
	p := n.Table()[0].Columns([]int{2, 0})
	for i := range 17 {
		whole := n.Points.Point(i, nil)
		if got := p.Point(i, nil); !slices.Equal(got, []float32{whole[2], whole[0]}) {
			t.Fatalf("point %d is %v of %v", i, got, whole)
		}
	}
}

// fingerprint is FNV-1a of the text and labels of a set.
func fingerprint(t *testing.T, tab *Table) uint64 {
	t.Helper()
	var b bytes.Buffer
	if err := Write(&b, tab); err != nil {
		t.Fatal(err)
	}
	if err := WriteLabels(&b, tab.Labels); err != nil {
		t.Fatal(err)
	}
	h := uint64(14695981039346656037)
	for _, c := range b.Bytes() {
		h = (h ^ uint64(c)) * 1099511628211
	}
	return h
}

// TestGeneratorsGiveTheSameBytes pins the bytes of every built-in set: they are
// the same on every architecture.
func TestGeneratorsGiveTheSameBytes(t *testing.T) {
	want := map[string]uint64{"birch2": 0x78d214895298332b, "blobs": 0x2f59ffc2e67eca06, "box-blobs": 0x98ef943bbb220da9,
		"s1-like": 0x7095eb27dc165f3b, "synth": 0x477104fc32041ec7, "timesynth": 0x5b145e71bc83dcb2}
	for _, b := range Builtins() {
		g := Generator{Seed: 7, N: 500}
		tab, err := Generate(context.Background(), b.Name, g)
		if err != nil {
			t.Fatal(err)
		}
		if got := fingerprint(t, tab); got != want[b.Name] {
			t.Errorf("%s: hash %#x, want %#x", b.Name, got, want[b.Name])
		}
		g.Seed = 8
		if other, err := Generate(context.Background(), b.Name, g); err != nil || fingerprint(t, other) == want[b.Name] {
			t.Errorf("%s: two seeds give the same set (error %v)", b.Name, err)
		}
	}
}

// TestGeneratorsHaveTheirShape compares sample moments with those of the
// definition. The seeds are fixed, so the test has no chance of failing at
// random; the tolerances are five standard errors of the sample.
func TestGeneratorsHaveTheirShape(t *testing.T) {
	ctx := context.Background()
	b, err := Generate(ctx, "birch2", Generator{Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	counts := make([]int, 100)
	means := make([][2]float64, 100)
	for i := range b.N {
		c := b.Labels[i]
		counts[c]++
		means[c][0] += b.Row(i)[0] / 1000
		means[c][1] += b.Row(i)[1] / 1000
	}
	tol := 5 / math.Sqrt(1000)
	for c, m := range means {
		y := 25 * math.Sin(2*math.Pi*float64(c)/25)
		if counts[c] != 1000 || math.Abs(m[0]-2*math.Pi*float64(c)) > tol || math.Abs(m[1]-y) > tol {
			t.Errorf("cluster %d has %d points around %v", c, counts[c], m)
		}
	}
	blobs, err := Generate(ctx, "blobs", Generator{N: 20000, D: 3, K: 4, Separation: 6, Seed: 3})
	if err != nil {
		t.Fatal(err)
	}
	centre := make([]float64, 4*3)
	for i := range blobs.N {
		for j, v := range blobs.Row(i) {
			centre[int(blobs.Labels[i])*3+j] += v / 5000
		}
	}
	spread := 0.0
	for i := range blobs.N {
		for j, v := range blobs.Row(i) {
			diff := v - centre[int(blobs.Labels[i])*3+j]
			spread += diff * diff / float64(blobs.N*3)
		}
	}
	closest := math.Inf(1)
	for a := range 4 {
		for c := range a {
			sum := 0.0
			for j := range 3 {
				diff := centre[a*3+j] - centre[c*3+j]
				sum += diff * diff
			}
			closest = min(closest, math.Sqrt(sum))
		}
	}
	if ratio := closest / math.Sqrt(spread); math.Abs(ratio-6) > 0.15 {
		t.Errorf("the closest centres are %v standard deviations apart, want 6", ratio)
	}
	ts, err := Generate(ctx, "timesynth", Generator{N: 1000, D: 5, K: 5, Seed: 2})
	if err != nil {
		t.Fatal(err)
	}
	for c := range 5 {
		if n := len(slices.DeleteFunc(slices.Clone(ts.Labels), func(l int32) bool { return int(l) != c })); n != 200 {
			t.Errorf("cluster %d has %d points, want 200", c, n)
		}
	}
}

// TestNormalMoments checks the first four moments over 10^6 draws of a fixed
// seed against five standard errors.
func TestNormalMoments(t *testing.T) {
	r := newSource(1, "test")
	const n = 1000000
	var m [4]float64
	for range n {
		x := r.normal()
		m[0] += x / n
		m[1] += x * x / n
		m[2] += x * x * x / n
		m[3] += x * x * x * x / n
	}
	for i, want := range []float64{0, 1, 0, 3} {
		se := math.Sqrt([]float64{1, 2, 15, 96}[i] / n)
		if math.Abs(m[i]-want) > 5*se {
			t.Errorf("moment %d is %v, want %v within %v", i+1, m[i], want, 5*se)
		}
	}
}

func TestGenerateRefuses(t *testing.T) {
	ctx := context.Background()
	for name, g := range map[string]Generator{
		"nothing": {}, "birch2": {D: 3}, "s1-like": {Separation: 2}, "blobs": {N: -1}, "timesynth": {Separation: 1},
	} {
		if _, err := Generate(ctx, name, g); !fault.IsRequest(err) {
			t.Errorf("%s %+v: error is %v", name, g, err)
		}
	}
	if _, err := Generate(ctx, "blobs", Generator{N: 1 << 31, D: 1 << 10}); !fault.IsRequest(err) {
		t.Errorf("a huge set: error is %v", err)
	}
	stopped, cancel := context.WithCancel(ctx)
	cancel()
	if _, err := Generate(stopped, "birch2", Generator{}); err != context.Canceled {
		t.Errorf("cancelled: error is %v", err)
	}
}

func TestWriteReadsBack(t *testing.T) {
	tab, err := Open(context.Background(), "builtin:blobs",
		ReadOptions{Columns: "2,1", Generator: Generator{N: 50, D: 3, K: 2}})
	if err != nil || tab.D != 2 {
		t.Fatalf("%+v, %v", tab, err)
	}
	tab.Columns = []string{"a, b", "c"}
	var b bytes.Buffer
	if err := Write(&b, tab); err != nil {
		t.Fatal(err)
	}
	got, err := Read(context.Background(), "f", &b, ReadOptions{})
	if err != nil || !slices.Equal(got.Rows, tab.Rows) || !slices.Equal(got.Columns, tab.Columns) {
		t.Errorf("read back %v %v, %v", got.Columns, got.Rows[:4], err)
	}
}

func FuzzParseBoundsAndSplits(f *testing.F) {
	f.Add("0:1", 2)
	f.Add("0:1,2:3", 2)
	f.Add("1,3;2", 3)
	f.Add("0-2;3", 4)
	f.Fuzz(func(t *testing.T, s string, d int) {
		if d < 1 || d > 1000 {
			return
		}
		if b, err := ParseBounds(s, d); err == nil {
			for j := range d {
				if !(b.Lo[j] < b.Hi[j]) {
					t.Fatalf("bounds %v", b)
				}
			}
		}
		if split, err := ParseColumnSplit(s, d, nil); err == nil {
			total := 0
			for _, c := range split {
				total += len(c)
			}
			if total != d {
				t.Fatalf("split %v of %d columns", split, d)
			}
		}
	})
}
