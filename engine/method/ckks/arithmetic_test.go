package ckks

import (
	"context"
	"math"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"github.com/cohort-engine/cohort/engine"
	"github.com/cohort-engine/cohort/engine/privacy"
	"github.com/cohort-engine/cohort/engine/protocol"
)

// roundedSign is the sign's evaluation in floating point with the given roundings.
func roundedSign(t float64, off *[signStages]float64) float64 {
	next := 0
	round := func(x float64) float64 { next++; return x + off[next-1] }
	seven := func(t float64, p signPlan) (out, u, t4 float64) {
		t2 := round(2*t*t - 1)
		u = round(2*t*t2 + p.r*t)
		t4 = round(2*t2*t2 - 1)
		return round(p.a*t4*u + p.b*t + p.c*u), u, t4
	}
	mid, _, _ := seven(round(t), innerPlan)
	p := outerPlan
	q, u, t4 := seven(mid, p)
	t8 := round(2*t4*t4 - 1)
	v := round(p.d*mid + p.e*u)
	return round(t8*q + t4*v + p.f*mid + p.g*u)
}

// plannedSetting is that of a chain's first case.
func plannedSetting(t *testing.T, n, k, d int) *setting {
	t.Helper()
	chain, err := chooseChain(treeDepth(k - 1))
	if err != nil {
		t.Fatal(err)
	}
	p, err := newParameters(chain)
	if err != nil {
		t.Fatal(err)
	}
	s := &setting{p: p, n: n, k: k, d: d, rounds: 4, encrypted: 1, failure: 1e-7, lowScale: columnScale(p, n, 20)}
	s.unit = s.lowScale * math.Exp2(float64(p.Chain.LogLevel)) / float64(p.N())
	return s
}

// What roundings do to a comparison stays below the bounds of its derivatives, at roundings of any size that the
// bounds are made for: T4 sums them up over records.
func TestSignBoundsHold(t *testing.T) {
	s := plannedSetting(t, 1000, 5, 2)
	s.prepare()
	variances, _ := s.variances()
	inputMost, most := 2*s.log, 2*s.log*s.relin.most
	b := boundSign(variances, inputMost, most)
	r := rand.New(rand.NewPCG(1, 2))
	var steepest, tightest float64
	for range 20000 {
		x := (2*r.Float64() - 1) * (1 - inputSpare)
		if r.IntN(2) == 0 {
			x /= 16
		}
		var off, zero [signStages]float64
		for i, v := range variances {
			off[i] = math.Sqrt(v*most/signStages) * (2*r.Float64() - 1)
		}
		off[0] = math.Sqrt(variances[0]*inputMost/signStages) * (2*r.Float64() - 1)
		h := roundedSign(x, &zero)
		spread := func(p profile) float64 { return p.far + p.near*(0.25-h*h) + 1e-18 }
		if d := math.Abs(roundedSign(x, &off) - h); d > b.error {
			t.Fatalf("at %g roundings move the comparison by %g, the bound is %g", x, d, b.error)
		}
		const step = 1e-5
		var near, exact, bend float64
		for i, v := range variances[1:] {
			at := func(base [signStages]float64, by float64) float64 {
				base[i+1] += by
				return roundedSign(x, &base)
			}
			slope := (at(off, step) - at(off, -step)) / (2 * step)
			near += slope * slope * v
			slope = (at(zero, step) - at(zero, -step)) / (2 * step)
			exact += slope * slope * v
			bend += math.Abs(at(off, step)+at(off, -step)-2*at(off, 0)) / (step * step) * v / 2
		}
		const slack = 1.001 // of differences
		if near > slack*spread(b.steepest) || exact > slack*spread(b.variance) || bend > slack*spread(b.bend)+1e-16 {
			t.Fatalf("at %g: %g, %g and %g, the bounds are %g, %g and %g", x, near, exact, bend, spread(b.steepest),
				spread(b.variance), spread(b.bend))
		}
		steepest, tightest = max(steepest, near), max(tightest, exact/spread(b.variance))
	}
	if steepest < b.steepest.most/2 || tightest < 0.5 {
		t.Errorf("the largest are %g of %g and %.2f of the bound: it is too wide to be of use", steepest, b.steepest.most,
			tightest)
	}
}

// A round's totals are off by less than the root of the variance proxies that the bound is made of, and so by far
// less than the bound. The same round again is off by something else: its roundings are new ones.
func TestProvedBoundCoversRounds(t *testing.T) {
	for _, c := range []struct{ n, k, d int }{{1000, 2, 2}, {900, 4, 3}} {
		j := &Job{Problem: protocol.Problem{Clients: sample(t, "blobs", c.n, c.d, c.k, 5).Table(), Columns: [][]int{{0}, {1}},
			K: c.k, Iterations: 1, Budget: privacy.Budget{Epsilon: 1, Delta: 1e-5}, Seed: seed(2)}}
		for h := 2; h < c.d; h++ {
			j.Columns[1] = append(j.Columns[1], h)
		}
		pl, err := j.plan()
		if err != nil {
			t.Fatal(err)
		}
		a := pl.noise.proved
		if a == nil {
			t.Fatalf("n %d k %d: no bound is proved", c.n, c.k)
		}
		got, r, s, roles := oneRound(t, j)
		want := softTotals(t, s, roles, r, false)
		var err2 float64
		for i := range got {
			err2 += (got[i] - want[i]) * (got[i] - want[i])
		}
		t.Logf("n %d k %d: error %.4g, root of the proxies %.4g, bound %.4g", c.n, c.k, math.Sqrt(err2),
			math.Sqrt(a.fresh+a.once), a.most())
		if err2 > a.fresh+a.once {
			t.Errorf("n %d k %d: error %g, the proxies have %g", c.n, c.k, math.Sqrt(err2), math.Sqrt(a.fresh+a.once))
		}
	}
}

// Roundings are random: comparisons of the same ciphertexts differ, and so do encodings of the same column. With
// roundings to the nearest their errors would be functions of the records, and T4 would bound nothing.
func TestRoundingsAreRandom(t *testing.T) {
	pool := engine.NewPool(1)
	defer pool.Close()
	j := &Job{Problem: protocol.Problem{Clients: sample(t, "blobs", 200, 2, 2, 3).Table(),
		Columns: [][]int{{0}, {1}}, K: 2, Iterations: 1, Seed: seed(5),
		Budget: privacy.Budget{Epsilon: 1, Delta: 1e-5}}, chain: &smallChain}
	s, roles := setUp(t, j, pool)
	var seen [2][]uint32
	for i := range seen {
		m, _, err := roles.alice.compareAll(context.Background(), 0, s.start)
		if err != nil {
			t.Fatal(err)
		}
		seen[i] = m[0][0].c[1][0]
	}
	if reflect.DeepEqual(seen[0], seen[1]) {
		t.Error("roundings of a comparison are the same twice: the bound of their error (T4) is void")
	}
	e := newEmbedder(s.params)
	values := make([]float64, s.params.N())
	values[3] = 0.7
	var whole [2][]uint64
	for i := range whole {
		e.dither = roles.alice.peer.rnd.rounding("test", i)
		p, err := e.encodeWide(s.params, values, 0, 1<<20)
		if err != nil {
			t.Fatal(err)
		}
		whole[i] = p.Coeffs[0]
	}
	if reflect.DeepEqual(whole[0], whole[1]) {
		t.Error("roundings of an encoding are the same twice: the bound of their error (T4) is void")
	}
}

// The bound of roundings is in the noise, and its failure in delta: the formulas of T4 are restated here.
func TestProvedBoundIsPaidFor(t *testing.T) {
	const n, k, d, rounds = 2000, 4, 2, 5
	b := privacy.Budget{Epsilon: 1, Delta: 1e-5}
	a := arithmetic{fresh: 0.002, once: 0.0005, rest: 0.05, column: 1.001, failure: roundingFailure * b.Delta,
		rounds: rounds}
	for _, nb := range []privacy.Neighbours{privacy.AddRemove, privacy.ReplaceOne} {
		p, err := planNoise(privacy.Proven, nb, b, rounds, n, k, d,
			func(float64, float64) (arithmetic, bool) { return a, true })
		if err != nil || p.proved == nil {
			t.Fatalf("%s: no bound is taken (error %v)", nb, err)
		}
		c2, s2 := 1/(p.count*p.count), 1/(p.sum*p.sum)
		moved := c2 + d*s2
		if nb == privacy.ReplaceOne {
			moved = math.Max(2*c2+2*d*s2, 4*d*s2)
		}
		moved *= overlap(k) * overlap(k) * 1.001 * 1.001
		least := math.Min(p.count, p.sum)
		v := 2 * a.fresh / (least * least)
		squares := math.Inf(1)
		for x := 1e-6; x < 1; x *= 1.01 {
			at := x / (8 * v)
			squares = math.Min(squares, rounds*(moved*(1+4*at*v/(1-8*at*v))-math.Log(1-8*at*v)/(4*at))+
				math.Log(8/a.failure)/at)
		}
		log := math.Log(8*rounds/a.failure)*10/9 + 1
		tail := math.Sqrt(1 + 2*math.Sqrt(log) + 2*log)
		mu := math.Sqrt(squares) + math.Sqrt(rounds)*(2*a.rest+tail*math.Sqrt(2*a.once))/least
		if delta := privacy.DeltaOfMu(mu, b.Epsilon) + a.failure; delta > b.Delta || delta < 0.98*b.Delta {
			t.Errorf("%s: a run with the bound of roundings has delta %g, want %g", nb, delta, b.Delta)
		}
		if got := p.bound.L2() * math.Sqrt(rounds); math.Abs(got/mu-1) > 1e-3 {
			t.Errorf("%s: the table has the sensitivity %g for the bound of roundings, want %g", nb, got, mu)
		}
		if p.spec.Failure != a.failure {
			t.Errorf("%s: the ledger has the failure %g for the bound of roundings, want %g", nb, p.spec.Failure, a.failure)
		}
		dear := a
		dear.rest = 1e3
		p, err = planNoise(privacy.Proven, nb, b, rounds, n, k, d,
			func(float64, float64) (arithmetic, bool) { return dear, true })
		if err != nil || p.proved != nil {
			t.Errorf("%s: a bound that outweighs the noise is taken (error %v)", nb, err)
		}
	}
}

// The ledger says whether the error of the arithmetic is proved or assumed, and ranks have no proof at all.
func TestLedgerSaysWhatIsProved(t *testing.T) {
	for _, c := range []struct {
		k    int
		mode Mode
		want string
	}{{3, "", "which is in delta (T4)"}, {3, Multiparty, "assumed, not proved"}, {9, "", "assumed, not proved"}} {
		j := &Job{Problem: protocol.Problem{Clients: sample(t, "blobs", 200, 2, 2, 1).Table(), Columns: [][]int{{0}, {1}},
			K: c.k, Budget: privacy.Budget{Epsilon: 1, Delta: 1e-5}, NoQuality: true}, Mode: c.mode}
		if c.mode == Multiparty {
			j.Columns = [][]int{{}, {0}, {1}}
		}
		pl, err := j.plan()
		if err != nil {
			t.Fatal(err)
		}
		if all := strings.Join(pl.entries()[0].Conditions, "\n"); !strings.Contains(all, c.want) {
			t.Errorf("k %d, mode %q: the conditions lack %q: %s", c.k, c.mode, c.want, all)
		}
	}
	j := &Job{Problem: protocol.Problem{Clients: sample(t, "blobs", 200, 2, 2, 1).Table(),
		Columns: [][]int{{0}, {1}}, K: 3, Budget: privacy.Budget{Epsilon: 1, Delta: 1e-5}}, Argmin: Rank}
	if _, err := j.plan(); err == nil || !strings.Contains(err.Error(), "no proven bound") {
		t.Errorf("comparison by rank under the proven calibration: %v", err)
	}
}
