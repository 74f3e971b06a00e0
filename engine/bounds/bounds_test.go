package bounds

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/cohort-engine/cohort/engine"
	"github.com/cohort-engine/cohort/engine/dataset"
	"github.com/cohort-engine/cohort/engine/enginetest"
	"github.com/cohort-engine/cohort/engine/privacy"
	"github.com/cohort-engine/cohort/engine/protocol"
	"github.com/cohort-engine/cohort/internal/fault"
)

func source(t *testing.T, rows []float64, d int) dataset.Source {
	t.Helper()
	s, err := dataset.FromMatrix("rows", dataset.Matrix[float64]{Data: rows, N: len(rows) / d, D: d})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// found is what a run gives.
type found struct {
	Bounds dataset.Bounds
	*engine.Result
}

func find(t *testing.T, j Job, d int, parties ...[]float64) (found, error) {
	t.Helper()
	for _, rows := range parties {
		j.Parties = append(j.Parties, source(t, rows, d))
	}
	eng := enginetest.New(t, engine.WithWorkers(1))
	r, err := eng.Run(context.Background(), &j)
	if err != nil {
		return found{}, err
	}
	return found{Of(r), r}, nil
}

// Every value lies within the limits of its cell, and cells follow each other.
func TestCellsHoldTheirValues(t *testing.T) {
	for c := range cells {
		lo, hi := limits(c)
		if c != zero && (lo >= hi || c != 0 && c != cells-1 && cell(lo) == cell(hi)) {
			t.Fatalf("cell %d is from %v to %v", c, lo, hi)
		}
		if next, _ := limits(min(c+1, cells-1)); c != cells-1 && c != zero && c != zero-1 && next != hi {
			t.Fatalf("cell %d ends at %v, the next begins at %v", c, hi, next)
		}
	}
	values := []float64{
		0,
		math.SmallestNonzeroFloat64,
		1,
		-1,
		2,
		math.Sqrt2,
		math.Nextafter(math.Sqrt2, 0),
		1e6,
		-3e-9,
		0x1p63,
	}
	r := rand.New(rand.NewPCG(1, 2))
	for range 10000 {
		values = append(values, r.NormFloat64()*math.Exp(20*r.NormFloat64()))
	}
	for _, x := range values {
		c := cell(x)
		lo, hi := limits(c)
		inside := lo <= x && x < hi || hi <= 0 && lo < x && x <= hi || c == zero && math.Abs(x) < 0x1p-64
		if !inside && math.Abs(x) < 0x1p64 {
			t.Errorf("%v is in cell %d from %v to %v", x, c, lo, hi)
		}
	}
	if cell(math.Inf(1)) != cells-1 || cell(math.Inf(-1)) != 0 || cell(1e300) != cells-1 {
		t.Error("what is too large is not in the outermost cell")
	}
}

// Adding a record changes the counts by one in each column at most: d in L1.
func TestOneRecordChangesOneCellOfEachColumn(t *testing.T) {
	const d = 3
	for _, record := range [][]float64{{1, -2, 0}, {math.NaN(), 5, 1e300}, {7, 7, 7}} {
		with, without := make([]int64, cells*d), make([]int64, cells*d)
		rows := []float64{7, 7, 7, 0, 1, 2}
		count(without, rows, d, all(d))
		count(with, append(rows, record...), d, all(d))
		l1 := int64(0)
		for i := range with {
			l1 += max(with[i]-without[i], without[i]-with[i])
		}
		if l1 > d {
			t.Errorf("record %v changes the counts by %d in L1", record, l1)
		}
	}
}

// The noise of every cell is discrete Laplace noise of scale d/epsilon, or twice that where records are replaced:
// its mean magnitude is that of the distribution within six standard errors, which fails by chance once in 10^8.
func TestNoiseOfMagnitudes(t *testing.T) {
	for _, n := range []privacy.Neighbours{privacy.AddRemove, privacy.ReplaceOne} {
		const d, epsilon = 5, 0.5
		want := d / epsilon
		if n == privacy.ReplaceOne {
			want *= 2
		}
		seed := uint64(3)
		pl, err := (&Job{Parties: []dataset.Source{source(t, make([]float64, d), d)},
			Epsilon: epsilon, Neighbours: n, Seed: &seed}).plan()
		if err != nil {
			t.Fatal(err)
		}
		if math.Abs(pl.scale-want) > 1e-12 {
			t.Errorf("%s: the scale is %v, want %v", n, pl.scale, want)
		}
		pool := engine.NewPool(1)
		draws := new(protocol.Draws)
		s := protocol.Start(
			engine.NewRuntime(pool),
			pl.Plan,
			[]protocol.Program{func(ctx context.Context, p *protocol.Party) (*protocol.Outcome, error) {
				_, err := p.Sum(ctx, pl.ways[0].Release, 0, pl.ways[0].layout, protocol.NewPrivate(cells*d))
				return &protocol.Outcome{}, err
			}},
			nil,
			protocol.Options{Draws: draws},
		)
		if err := s.Run(context.Background()); err != nil {
			t.Fatalf("the noise is not drawn: %v", err)
		}
		pool.Close()
		sum, drawn := 0.0, 0
		for _, x := range draws.Seen {
			for _, v := range x.Values {
				sum += math.Abs(float64(v))
				drawn++
			}
		}
		// E|Z| = 2q/(1-q^2) with q = e^(-1/b), about b, and E Z^2 about 2 b^2.
		q := math.Exp(-1 / want)
		mean := 2 * q / (1 - q*q)
		if off := sum/float64(drawn) - mean; drawn != cells*d ||
			math.Abs(off) > 6*want*math.Sqrt2/math.Sqrt(float64(drawn)) {
			t.Errorf("%s: the noise of %d values has mean magnitude %v, want %v", n, drawn, sum/float64(drawn), mean)
		}
	}
}

// The probability of T12 (ii), by the exact tail.
func TestThresholdIsRarelyExceeded(t *testing.T) {
	for _, b := range []float64{1, 20, 1000} {
		for _, d := range []int{1, 4, 784} {
			above := threshold(b, 1, d)
			tail := math.Exp(-float64(above+1)/b) / (1 + math.Exp(-1/b))
			if p := tail * float64(cells*d); p > failure || p < failure/4*math.Exp(-2/b) {
				t.Errorf("scale %v, %d columns: some empty cell exceeds %d with probability %v", b, d, above, p)
			}
		}
	}
}

// releases is how many a ledger has before its last entry, the note that the run is a simulation.
func releases(f found) int {
	entries := f.Ledger.Entries()
	last := len(entries) - 1
	if last < 0 || entries[last].Kind != privacy.Note || !strings.Contains(entries[last].What, "simulation") {
		return -1
	}
	return last
}

// Bounds hold all records up to the factor of a cell, for one party and for several, and
// what is nearly zero on one side begins at zero.
func TestFoundBounds(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	var rows []float64
	for range 6000 {
		rows = append(rows, 1000*r.Float64(), 1950+70*r.Float64(), -3*r.Float64(), r.NormFloat64(), 0)
	}
	seed := uint64(9)
	for _, parties := range [][][]float64{{rows}, {rows[:5000], rows[5000:]}} {
		found, err := find(t, Job{Epsilon: 2, Seed: &seed}, 5, parties...)
		if err != nil {
			t.Fatal(err)
		}
		b := found.Bounds
		if b.FromData || b.Validate("bounds") != nil {
			t.Errorf("bounds %+v", b)
		}
		for h, want := range [][2]float64{{0, 1024}, {1024 * math.Sqrt2, 2048}, {-2 * math.Sqrt2 * math.Sqrt2, 0},
			{-4, 4}, {0, 1}} {
			if lo, hi := b.Lo[h], b.Hi[h]; lo < want[0]*1.0001-1e-9 && lo < want[0] || hi > want[1] || hi < want[1]/2 {
				t.Errorf("column %d: %v to %v, want about %v", h+1, lo, hi, want)
			}
		}
		total := found.Ledger.TotalFor(privacy.Outsider)
		if total.Epsilon == nil || math.Abs(*total.Epsilon-2) > 1e-9 || releases(found) != 1 {
			t.Errorf("the ledger has %+v", found.Ledger.Entries())
		}
		of := found.Ledger.Entries()[0].Noise
		if (of != nil) != (len(parties) > 1) || of != nil && (of.Shares != 2 || of.Needed != 1) {
			t.Errorf("%d parties: the noise is %+v", len(parties), of)
		}
	}
}

// Parties that hold columns release theirs alone: the same bounds as of one table, each for its columns' share of
// epsilon, and a party's noise follows from its own root.
func TestBoundsOfPartiesWithColumns(t *testing.T) {
	const n, d = 20000, 3
	r := rand.New(rand.NewPCG(3, 4))
	var rows []float64
	for range n {
		rows = append(rows, 1000*r.Float64(), -3*r.Float64(), r.NormFloat64())
	}
	seed := uint64(9)
	whole, err := find(t, Job{Epsilon: 2, Seed: &seed}, d, rows)
	if err != nil {
		t.Fatal(err)
	}
	apart, err := find(t, Job{Epsilon: 2, Seed: &seed, Split: [][]int{{1}, {2, 0}}}, d, rows)
	if err != nil {
		t.Fatal(err)
	}
	b := apart.Bounds
	if !slices.Equal(b.Lo, whole.Bounds.Lo) || !slices.Equal(b.Hi, whole.Bounds.Hi) || apart.Parties != 2 {
		t.Errorf("%d parties find %+v, one %+v", apart.Parties, b, whole.Bounds)
	}
	entries := apart.Ledger.Entries()
	if releases(apart) != 2 || math.Abs(*entries[0].Epsilon-2./3) > 1e-9 || math.Abs(*entries[1].Epsilon-4./3) > 1e-9 ||
		entries[0].Scale != entries[1].Scale || entries[0].Scale != 1.5 {
		t.Errorf("the ledger has %+v", entries)
	}
	if total := apart.Ledger.TotalFor(privacy.Outsider); math.Abs(*total.Epsilon-2) > 1e-9 {
		t.Errorf("the total is %v", *total.Epsilon)
	}
	pl, err := (&Job{Parties: []dataset.Source{source(t, rows[:30], d)}, Epsilon: 2, Seed: &seed,
		Split: [][]int{{1}, {2, 0}}}).plan()
	if err != nil {
		t.Fatal(err)
	}
	pool := engine.NewPool(1)
	defer pool.Close()
	draws := new(protocol.Draws)
	_, err = pl.Connect(context.Background(), engine.NewRuntime(pool), protocol.Options{Draws: draws})
	if err != nil {
		t.Fatal(err)
	}
	sum, drawn := 0.0, 0
	for _, x := range draws.Seen {
		for _, v := range x.Values {
			sum += math.Abs(float64(v))
			drawn++
		}
	}
	// Six standard errors, as in TestNoiseOfMagnitudes.
	q := math.Exp(-1 / 1.5)
	mean := 2 * q / (1 - q*q)
	if off := sum/float64(drawn) - mean; drawn == 0 || math.Abs(off) > 6*1.5*math.Sqrt2/math.Sqrt(float64(drawn)) {
		t.Errorf("the noise of %d values has mean magnitude %v, want %v", drawn, sum/float64(drawn), mean)
	}
}

func TestFindRefuses(t *testing.T) {
	rows := []float64{1, 2, 3, 4}
	for _, epsilon := range []float64{0, -1, math.Inf(1), math.NaN()} {
		if _, err := find(t, Job{Epsilon: epsilon}, 2, rows); !fault.IsRequest(err) {
			t.Errorf("epsilon %v: %v", epsilon, err)
		}
	}
}

// A guess goes from zero to the magnitude of the largest count, and counts that are all alike say nothing: it is the
// same as of a column of zeros.
func TestGuessIsTheLikeliest(t *testing.T) {
	pl := &plan{Plan: &protocol.Plan{D: 3}, scale: 4, excess: 1}
	noisy := make([]int64, 3*cells)
	noisy[zero+9], noisy[cells+zero-7] = 3, 2
	noisy[zero+12], noisy[cells+zero+3] = 2, 1
	b, guessed := pl.choose(noisy)
	if !slices.Equal(guessed, []int{0, 1, 2}) {
		t.Errorf("columns %v are guessed", guessed)
	}
	_, up := limits(zero + 9)
	down, _ := limits(zero - 7)
	if want := []float64{0, down, 0}; !slices.Equal(b.Lo, want) {
		t.Errorf("lower bounds %v, want %v", b.Lo, want)
	}
	if want := []float64{up, 0, 1}; !slices.Equal(b.Hi, want) {
		t.Errorf("upper bounds %v, want %v", b.Hi, want)
	}
}

// What may go unseen follows from the plan, is the same by rows and by columns, and is enough: a group of one record
// more is within the bounds, while one of a third of it is left out (THEOREMS.md T12 iii).
func TestWhatBoundsMayNotSee(t *testing.T) {
	seed := uint64(7)
	group := func(n int64) []float64 {
		var rows []float64
		for range 20000 {
			rows = append(rows, 1, 1)
		}
		for range n {
			rows = append(rows, 1000, -7)
		}
		return rows
	}
	job := func(split [][]int) Job { return Job{Epsilon: 0.5, Seed: &seed, Split: split} }
	first, err := find(t, job(nil), 2, group(0))
	if err != nil {
		t.Fatal(err)
	}
	unseen := Unseen(first.Result)
	if want := 2 * threshold(2/0.5, 1, 2); unseen != want {
		t.Errorf("%d may go unseen, want %d", unseen, want)
	}
	for _, split := range [][][]int{nil, {{0}, {1}}} {
		for n, seen := range map[int64]bool{unseen + 1: true, unseen / 3: false} {
			r, err := find(t, job(split), 2, group(n))
			if err != nil {
				t.Fatal(err)
			}
			b := Of(r.Result)
			if got := b.Hi[0] >= 1000 && b.Lo[1] <= -7; got != seen || Unseen(r.Result) != unseen {
				t.Errorf("a group of %d beside %d of %d: bounds %v", n, Unseen(r.Result), unseen, b)
			}
		}
	}
}

// Where no magnitude stands out of the noise, which is paid for, the bounds are a guess that holds the likeliest one,
// and the result says of which columns. By rows and by columns it is the same.
func TestBoundsThatAreGuessed(t *testing.T) {
	seed, columns := uint64(5), [][]int{{2, 0}, {1}}
	var rows []float64
	for range 60 {
		rows = append(rows, 3, -5, 0)
	}
	guessed := 0
	for _, epsilon := range []float64{0.05, 1, 9} {
		res, err := find(t, Job{Epsilon: epsilon, Seed: &seed}, 3, rows)
		if err != nil {
			t.Fatal(err)
		}
		apart, err := find(t, Job{Epsilon: epsilon, Seed: &seed, Split: columns}, 3, rows)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range []*engine.Result{res.Result, apart.Result} {
			b := Of(r)
			if err := b.Validate("bounds"); err != nil {
				t.Error(err)
			}
			for h := range 3 {
				if slices.Contains(Guessed(r), h) {
					if guessed++; b.Lo[h] > 0 || b.Hi[h] < 0 {
						t.Errorf("epsilon %v: column %d is guessed from %v to %v, without zero", epsilon, h, b.Lo[h], b.Hi[h])
					}
				} else if x := []float64{3, -5, 0}[h]; b.Lo[h] > x || b.Hi[h] < x {
					t.Errorf("epsilon %v: column %d is from %v to %v", epsilon, h, b.Lo[h], b.Hi[h])
				}
			}
			if n := len(Guessed(r)); epsilon == 9 && n != 0 || epsilon == 0.05 && n != 3 {
				t.Errorf("epsilon %v: columns %v are guessed", epsilon, Guessed(r))
			}
		}
	}
	if guessed < 6 {
		t.Errorf("%d bounds are guessed", guessed)
	}
}

// With noise of several parties the threshold holds as well: the tail of two draws, by exact convolution, and it is
// no further out than it must be by a quarter.
func TestThresholdOfSeveralDraws(t *testing.T) {
	const b, d, reach = 3.0, 4, 400
	q := math.Exp(-1 / b)
	one := func(z int) float64 { return (1 - q) / (1 + q) * math.Pow(q, math.Abs(float64(z))) }
	tail := make([]float64, reach+1) // of the sum of two draws
	for z := reach - 1; z >= 0; z-- {
		p := 0.0
		for a := -reach; a <= reach; a++ {
			p += one(a) * one(z-a)
		}
		tail[z] = tail[z+1] + p
	}
	above := threshold(b, 2, d)
	if p := tail[above+1] * cells * d; p > failure {
		t.Errorf("some empty cell exceeds %d with probability %v", above, p)
	}
	if p := tail[above*4/5] * cells * d; p < failure {
		t.Errorf("%d would do in place of %d", above*4/5, above)
	}
}
