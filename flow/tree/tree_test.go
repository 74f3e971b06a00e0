package tree

import (
	"context"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/cohort-engine/cohort/internal/parallel"
	"github.com/cohort-engine/cohort/kernels"
)

// some are rows with many ties.
func some(rnd *rand.Rand, n, d int) []float32 {
	rows := make([]float32, n*d)
	for i := range rows {
		rows[i] = float32(rnd.IntN(9)-4) / 4
	}
	return rows
}

// TestOrderHalves orders rows, and holds the cuts of each run to the row that sorting along its longest side would put
// there.
func TestOrderHalves(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	var o Halves
	for range 200 {
		n, d, leaf := 1+rnd.IntN(300), 1+rnd.IntN(4), 1+rnd.IntN(20)
		rows := some(rnd, n, d)
		before := slices.Clone(rows)
		ids, err := o.Order(context.Background(), parallel.Serial{}, rows, d, leaf)
		if err != nil {
			t.Fatal(err)
		}
		for q, i := range ids {
			if !slices.Equal(rows[q*d:q*d+d], before[int(i)*d:int(i)*d+d]) {
				t.Fatalf("row %d is not row %d", q, i)
			}
		}
		for i, id := range slices.Sorted(slices.Values(ids)) {
			if int(id) != i {
				t.Fatalf("%d rows have ids %d", n, ids)
			}
		}
		checkCut(t, rows, d, leaf)
	}
}

func checkCut(t *testing.T, rows []float32, d, leaf int) {
	t.Helper()
	n := len(rows) / d
	leaves := (n + leaf - 1) / leaf
	if leaves < 2 {
		return
	}
	middle, axis, widest := leaves/2*leaf, 0, float32(-1)
	side := func(c, first, last int) (x []float32) {
		for i := first; i < last; i++ {
			x = append(x, rows[i*d+c])
		}
		return x
	}
	for c := range d {
		if x := side(c, 0, n); slices.Max(x)-slices.Min(x) > widest {
			axis, widest = c, slices.Max(x)-slices.Min(x)
		}
	}
	if slices.Max(side(axis, 0, middle)) > slices.Min(side(axis, middle, n)) {
		t.Fatalf("%d rows in leaves of %d are not cut at %d along %d", n, leaf, middle, axis)
	}
	checkCut(t, rows[:middle*d], d, leaf)
	checkCut(t, rows[middle*d:], d, leaf)
}

// TestOrderEnds: a context that has ended is the error.
func TestOrderEnds(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	var o Halves
	if _, err := o.Order(ctx, parallel.Serial{}, make([]float32, 100), 1, 1); err != context.Canceled {
		t.Errorf("error %v, want %v", err, context.Canceled)
	}
}

// TestCover holds boxes to their points, the distances from them to those of the points, and notes to the values.
func TestCover(t *testing.T) {
	rnd := rand.New(rand.NewPCG(3, 4))
	var b Cover
	for range 100 {
		n, d, leaf := 1+rnd.IntN(2000), 1+rnd.IntN(4), 1+rnd.IntN(20)
		rows := some(rnd, n, d)
		points := kernels.NewPanels(n, d)
		kernels.Pack(points, rows)
		values := make([]int64, n)
		for i := range values {
			values[i] = rnd.Int64N(1000)
		}
		b.Set(*points, leaf)
		b.Note(values, leaf)
		place := some(rnd, 1, d)
		for level, leaves := range Runs {
			for first := 0; first < n; first += leaves * leaf {
				last, index := min(n, first+leaves*leaf), first/(leaves*leaf)
				if most := slices.Max(values[first:last]); b.Most[level][index] != most {
					t.Fatalf("level %d notes %d, want %d", level, b.Most[level][index], most)
				}
				checkBox(t, b.Boxes[level][index*2*d:(index+1)*2*d], rows[first*d:last*d], place)
			}
		}
	}
}

func checkBox(t *testing.T, box, rows, place []float32) {
	t.Helper()
	d := len(place)
	near, far := Extent(box, place)
	for c := range d {
		var x []float32
		for i := c; i < len(rows); i += d {
			x = append(x, rows[i])
		}
		if box[c] != slices.Min(x) || box[d+c] != slices.Max(x) {
			t.Fatalf("side %d of a box is %v to %v, want %v to %v", c, box[c], box[d+c], slices.Min(x), slices.Max(x))
		}
	}
	for ; len(rows) > 0; rows = rows[d:] {
		var square float64
		for c, x := range rows[:d] {
			square += float64((x - place[c]) * (x - place[c]))
		}
		if square < near || square > far {
			t.Fatalf("a point is %v from %v, which has its box between %v and %v", square, place, near, far)
		}
	}
}

// TestNthSorts compares with sorting, of numbers with either sign.
func TestNthSorts(t *testing.T) {
	rnd := rand.New(rand.NewPCG(5, 6))
	for range 300 {
		x := make([]int64, 1+rnd.IntN(100))
		for i := range x {
			x[i] = Rank(float32(rnd.NormFloat64())*float32(rnd.IntN(3)), i)
		}
		n := rnd.IntN(len(x))
		want := slices.Sorted(slices.Values(x))[n]
		if got := Nth(x, make([]int64, len(x)), n); got != want {
			t.Fatalf("number %d of %d is %d, want %d", n, len(x), got, want)
		}
	}
	ranks := []int64{Rank(-2, 0), Rank(-1, 5), Rank(-1, 6), Rank(0, 1), Rank(0.5, 0), Rank(3, 0)}
	if !slices.IsSorted(ranks) {
		t.Errorf("ranks %d", ranks)
	}
}
