package sketch

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/cohort-engine/cohort/engine"
	"github.com/cohort-engine/cohort/engine/enginetest"
	"github.com/cohort-engine/cohort/engine/privacy"
	"github.com/cohort-engine/cohort/engine/protocol"
)

// drawnByOne plans draws for some parties of three clusters each, whose sketches a trial puts
// with and without one record more.
func drawnByOne(t *testing.T, parties int) *WorstCase {
	w, err := NewWorstCase(WorstCase{Calibration: privacy.Proven, Budget: privacy.Budget{Epsilon: 8, Delta: 1e-3},
		Parties: parties, Clusters: 3, Sketches: 2048, Gamma: DefaultGamma})
	if err != nil {
		t.Fatal(err)
	}
	p, j := w.run.plan, *w.run.job
	j.Budget = w.Budget
	p.returned, p.localMu = &returned{pairs: parties * (parties - 1) / 2, sets: 1}, 0.01
	if err := p.noiseOfDraws(&j, p.sketches, p.phantoms, 0); err != nil {
		t.Fatal(err)
	}
	return w
}

// putBoth has the sketches of four records, and of five.
func putBoth(t *testing.T, rt *engine.Runtime, w *WorstCase, trial uint64) (without, with *View) {
	put := func(labels [][]uint16) *View {
		st := privacy.NewStreams(&trial).Stream(0, 0, "drawn cells")
		all, err := w.Put(context.Background(), rt, st, labels)
		if err != nil {
			t.Fatal(err)
		}
		return all[0]
	}
	labels := [][]uint16{{0, 1, 2, 1}, {1, 1, 2, 0}, {2, 1, 0, 0}}[:w.Parties]
	more := slices.Clone(labels)
	for l := range more {
		more[l] = append(slices.Clone(more[l]), uint16(l%w.Clusters))
	}
	return put(labels), put(more)
}

// moves tells whether a key draws other cells in one view than in another; of no pair of parties
// does it move more than one into a cell and one out of one.
func moves(t *testing.T, a, b *View, key, parties int) bool {
	changed := false
	drawn := func(v *View, l1, l2 int) []int64 {
		one, counts := *v, make([]int64, v.clusters()*v.clusters())
		one.Sketches = nil
		for _, s := range v.Sketches {
			one.Sketches = append(one.Sketches, &Sketches{Keys: 1, Clusters: v.clusters(), Heights: s.Row(key)})
		}
		one.draw(l1, l2, counts)
		return counts
	}
	for l1 := range parties {
		for l2 := l1 + 1; l2 < parties; l2++ {
			before, after := drawn(a, l1, l2), drawn(b, l1, l2)
			in, out := 0, 0
			for g, n := range before {
				in += max(0, int(after[g]-n))
				out += max(0, int(n-after[g]))
			}
			if in > 1 || out > 1 {
				t.Fatalf("a key's draw moves %d into cells and %d out of them", in, out)
			}
			changed = changed || in+out > 0
		}
	}
	return changed
}

// One record changes the drawn cells of about as many keys as are planned, of each key one cell to another, and
// the number over sets of keys has the mean and the mean square of the binomial distribution that the plan counts with,
// or less: within six deviations.
func TestOneRecordDrawsFewKeys(t *testing.T) {
	const trials = 200
	pool := engine.NewPool(1)
	defer pool.Close()
	rt := engine.NewRuntime(pool)
	for _, parties := range []int{2, 3} {
		w := drawnByOne(t, parties)
		p := w.run.plan
		sum, squares := 0.0, 0.0
		for trial := range uint64(trials) {
			without, with := putBoth(t, rt, w, trial)
			keys := 0
			for key := range p.sketches {
				if moves(t, without, with, key, parties) {
					keys++
				}
			}
			sum += float64(keys)
			squares += float64(keys * keys)
		}
		phantoms := p.phantoms * math.Pow(float64(w.Clusters), float64(parties))
		// a record among 5 and the phantoms, of which one and a cell's phantoms are in the same cell
		mean := float64(p.sketches) / (phantoms + 5) * (1 - (p.phantoms+1)/(phantoms+4))
		off := 6 * math.Sqrt(mean/trials)
		if math.Abs(sum/trials-mean) > off {
			t.Errorf("%d parties: a record changes the draws of %.2f keys of %d, beside %.0f phantoms, want %.2f +- %.2f",
				parties, sum/trials, p.sketches, phantoms, mean, off)
		}
		planned := float64(p.sketches) * p.returned.chance
		most := planned*planned + planned // of a mean square; its deviation is below 2 planned^1.5 + 3 planned
		if sum/trials > planned+off || planned > 1.5*mean || squares/trials > most+6*(2*math.Pow(planned, 1.5)+
			3*planned)/math.Sqrt(trials) {
			t.Errorf("%d parties: %.2f keys and %.2f in the square, planned are %.2f and %.2f", parties, sum/trials,
				squares/trials, planned, most)
		}
	}
}

// noisedJob is a run whose result the parties see.
func noisedJob(t *testing.T, n, parties int, budget privacy.Budget) *Job {
	data := mixture(t, n, 6)
	return &Job{Method: Sketch, Return: Noised, Problem: protocol.Problem{Clients: data.Table(), Bounds: data.Bounds,
		Columns: EqualSplit(6, parties), K: 3, Budget: budget, Seed: seed(11)}}
}

// What is returned costs those who hold the keys the budget, as sketches and local centres cost the server; the grid is
// found, and the clusters.
func TestNoisedReturn(t *testing.T) {
	for parties, most := range map[int]float64{2: 0.2, 3: 0.5, 6: 0.6} {
		j := noisedJob(t, 10_000, parties, privacy.Budget{Epsilon: 2, Delta: -1})
		j.Sketches = 1 << 13
		one, three := runJob(t, 1, j), runJob(t, 3, j)
		if a, b := enginetest.JSON(t, one), enginetest.JSON(t, three); a != b {
			t.Errorf("results of 1 and 3 workers differ:\n%s\n%s", a, b)
		}
		for _, viewer := range []string{privacy.Server, privacy.Clients, privacy.Outsider} {
			total := one.Ledger.TotalFor(viewer)
			if total.Unbounded || !(*total.Epsilon <= 2*(1+1e-9)) || *total.Epsilon < 1.8 {
				t.Errorf("%d parties: the %s sees what costs %v of 2", parties, viewer, total.Epsilon)
			}
		}
		wrong := one.Details["relative_intersection_error"].(float64)
		if !(wrong < most) || one.NICV == nil || !(*one.NICV < 0.06) {
			t.Errorf("%d parties: intersection error %v, NICV %v; the clusters' variance is 0.0384", parties, wrong,
				*one.NICV)
		}
	}
	j := noisedJob(t, 1000, 2, privacy.Budget{Epsilon: 2, Delta: -1})
	j.Return, j.Sketches = ToServer, 64
	for _, e := range runJob(t, 1, j).Ledger.Entries() {
		if e.SeenBy(privacy.Clients) || e.SeenBy(privacy.Outsider) {
			t.Errorf("%s is seen by %v, and stays with the server", e.What, e.Viewers)
		}
	}
}

// What leaves the server for the parties are whole counts of keys, with all the noise that it drew, of the scale
// that the ledger has; centroids follow from that. The mean square of so many values is within six deviations.
func TestDrawnCellsHaveTheirNoise(t *testing.T) {
	pool := engine.NewPool(2)
	defer pool.Close()
	for _, parties := range []int{2, 3, 6} {
		j := noisedJob(t, 4000, parties, privacy.Budget{Epsilon: 1, Delta: -1})
		j.LocalK, j.Sketches, j.NoQuality = LocalK{N: 6}, 1<<12, true
		r, err := j.prepare()
		if err != nil {
			t.Fatal(err)
		}
		var views protocol.Views
		var draws protocol.Draws
		if _, err := r.Connect(context.Background(), engine.NewRuntime(pool), protocol.Options{Views: &views,
			Draws: &draws}); err != nil {
			t.Fatal(err)
		}
		var noise, released []int64
		for _, d := range draws.Seen {
			if d.Role == protocol.Server {
				noise = append(noise, d.Values...)
			}
		}
		given := 0
		for _, v := range views.Seen {
			switch {
			case v.What != r.returned.Name:
			case v.Message != nil && !v.Viewer.Serves():
				given++
			case v.Viewer.Serves():
				released = append(released, v.Values...)
			}
		}
		pairs := parties * (parties - 1) / 2
		if len(released) != 36*pairs || len(noise) != len(released) || given != parties {
			t.Fatalf("%d parties: %d values with %d numbers of noise, given to %d", parties, len(released), len(noise), given)
		}
		keys, square, scale := int64(0), 0.0, r.returned.scale*(1<<releaseBits)
		for i, y := range released {
			count := y - noise[i]
			if count < 0 || count%(1<<releaseBits) != 0 {
				t.Fatalf("%d parties: %d less its noise %d is no number of keys", parties, y, noise[i])
			}
			keys += count >> releaseBits
			square += float64(noise[i]) / scale * float64(noise[i]) / scale
		}
		if all := int64(pairs * r.plan.sketches); keys > all || keys < all*9/10 {
			t.Errorf("%d parties: %d keys draw a cell, of %d", parties, keys, all)
		}
		n := float64(len(noise))
		if math.Abs(square/n-1) > 6*math.Sqrt(2/n) {
			t.Errorf("%d parties: the noise has %v of the variance in the ledger", parties, square/n)
		}
		p, e := r.plan.returned, r.returned.Entries[0]
		ids := r.plan.phantoms * math.Pow(6, float64(r.plan.sharing()))
		if want := math.Sqrt(float64(2 * p.pairs)); e.Sensitivity != want || e.Scale != p.scale ||
			e.Cost.Scale != p.scale/want || e.Cost.Trials != r.plan.sketches || e.Cost.P < 1/(ids+1) ||
			p.pairs*e.Cost.Times() != pairs {
			t.Errorf("%d parties: %.0f phantoms under a key, and the ledger has %+v", parties, ids, e.Cost)
		}
	}
}

// What is returned is as likely on either side as its likelihood ratio says: given how far apart the sides are, the
// log of the ratio is normal. The mean square of 800 such numbers is within six deviations of .05.
func TestWorstCaseOfWhatIsReturned(t *testing.T) {
	const trials = 400
	pool := engine.NewPool(1)
	defer pool.Close()
	rt := engine.NewRuntime(pool)
	for _, pairs := range []bool{false, true} {
		w, err := NewWorstCase(WorstCase{Calibration: privacy.Proven, Budget: privacy.Budget{Epsilon: 2, Delta: 1e-3},
			Parties: 3, Clusters: 2, Sketches: 64, Gamma: DefaultGamma, PairKeys: pairs, Returned: true})
		if err != nil {
			t.Fatal(err)
		}
		st := privacy.NewStreams(seed(5)).Stream(0, 0, "returned")
		mean, numbers := 0.0, 0.0
		for i := range 2 * trials {
			ratio, square, err := w.DrawReturned(context.Background(), rt, st, i%2 == 1)
			if err != nil {
				t.Fatal(err)
			}
			if square == 0 {
				continue // no key
			}
			z := (ratio + square/2) / math.Sqrt(square)
			if i%2 == 1 {
				z -= math.Sqrt(square)
			}
			mean += z * z
			numbers++
		}
		if numbers < trials || math.Abs(mean/numbers-1) > 6*math.Sqrt(2/numbers) {
			t.Errorf("keys of pairs %v: the mean square of %v normal scores is %v", pairs, numbers, mean/numbers)
		}
	}
}

// A record that is left out moves few of the drawn cells where the others keep their ids; where ids are the numbers of
// rows and those behind it move up, who holds the keys sees other records everywhere: the ledger says which is covered.
func TestDrawnCellsAndTheIDsOfRecords(t *testing.T) {
	pool := engine.NewPool(1)
	defer pool.Close()
	rt := engine.NewRuntime(pool)
	w := drawnByOne(t, 2)
	w.run.plan.phantoms = 1
	const n = 200
	labels, ids := make([][]uint16, 2), make([]string, n)
	for i := range n {
		ids[i] = fmt.Sprint("id ", i)
		labels[0], labels[1] = append(labels[0], uint16(i%3)), append(labels[1], uint16(i/3%3))
	}
	counts := func(from int, ids []string) []int64 {
		trial := uint64(1)
		w.run.job.IDs = ids
		all, err := w.Put(t.Context(), rt, privacy.NewStreams(&trial).Stream(0, 0, "ids"),
			[][]uint16{labels[0][from:], labels[1][from:]})
		if err != nil {
			t.Fatal(err)
		}
		drawn := make([]int64, 9)
		all[0].draw(0, 1, drawn)
		return drawn
	}
	moved := func(a, b []int64) (sum int64) {
		for i, x := range a {
			sum += max(x-b[i], b[i]-x)
		}
		return sum
	}
	few, many := moved(counts(0, ids), counts(1, ids[1:])), moved(counts(0, nil), counts(1, nil))
	if most := int64(4 * w.Sketches / n); few > most || many <= most {
		t.Errorf("one record of %d moves %d of %d drawn cells, and %d where rows move up", n, few, w.Sketches, many)
	}
	for _, known := range []bool{true, false} {
		if w.run.job.IDs = nil; known {
			w.run.job.IDs = ids
		}
		w.run.Releases = nil
		w.run.planReturned()
		said := strings.Contains(fmt.Sprint(w.run.Releases[0].Entries[0].Conditions), "numbers of their rows")
		if said == known {
			t.Errorf("with ids %v the ledger says %v of row numbers", known, said)
		}
	}
}
