package ckks

import (
	"context"
	"math"
	"math/big"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/cohort-engine/cohort/engine"
	"github.com/cohort-engine/cohort/engine/method/ckks/rns"
	"github.com/cohort-engine/cohort/engine/privacy"
	"github.com/cohort-engine/cohort/engine/protocol"
	"github.com/cohort-engine/cohort/internal/fault"
)

// rounded is the sign's evaluation in floating point with the given roundings.
func (s *composite) rounded(t float64, off []float64) float64 {
	next := 0
	round := func(x float64) float64 { next++; return x + off[next-1] }
	double := func(x float64) float64 { return 2*x*x - 1 }
	t = round(t)
	for _, p := range s.polynomials {
		t2 := round(double(t))
		u := round(2*t*t2 + p.r*t)
		if len(p.odd) == 3 {
			t = round(p.a*t2*u + p.b*t)
			continue
		}
		t4 := round(double(t2))
		if len(p.odd) == 4 {
			t = round(p.a*t4*u + p.b*t + p.c*u)
			continue
		}
		v := round(t4*u + p.b*t + p.c*u)
		w := round(double(t4) + p.s*t4 + p.t)
		t = round(p.a*w*v + p.f*t + p.g*u)
	}
	return t
}

func roundedSign(t float64, off *[signStages]float64) float64 { return pairSign.rounded(t, off[:]) }

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
	s := &setting{p: p, n: n, k: k, d: d, rounds: 4, encrypted: 1, holders: 1, failure: 1e-7,
		lowScale: columnScale(p, n, 20)}
	s.unit = s.lowScale * math.Exp2(float64(p.Chain.LogLevel)) / float64(p.N())
	s.prepare()
	return s
}

// A kept bound is that of its own setting, also where more settings than are kept came since.
func TestKnownSign(t *testing.T) {
	s := plannedSetting(t, 1000, 5, 2)
	variances, _ := s.variances()
	inputMost, most := 2*s.log, 2*s.log*s.relin.most
	signBounds.next, signBounds.known = 0, [len(signBounds.known)]knownBound{}
	for i := range 3 * len(signBounds.known) {
		v, by := variances, [3]float64{1, 1, 1}
		by[i%3] = float64(1 + i%(len(signBounds.known)+2)/2) // some again after others, some too late
		for at := range v {
			v[at] *= by[0]
		}
		if got, want := knownSign(v, by[1]*inputMost, by[2]*most), boundSign(v, by[1]*inputMost, by[2]*most); got != want {
			t.Errorf("setting %v: %+v, want %+v", by, got, want)
		}
	}
}

// What roundings do to a comparison stays below the bounds of its derivatives, at roundings of any size that the
// bounds are made for: T4 sums them up over records.
func TestSignBoundsHold(t *testing.T) {
	s := plannedSetting(t, 1000, 5, 2)
	variances, _ := s.variances()
	inputMost, most := 2*s.log, 2*s.log*s.relin.most
	b := boundSign(variances, inputMost, most)
	r := rand.New(rand.NewPCG(1, 2))
	var steepest, tightest float64
	for range 20000 {
		x := (2*r.Float64() - 1) * (1 - inputSpare)
		if r.IntN(2) == 0 {
			x *= undecided
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

// Intervals hold the exact results of their operations on their ends, which float64 cannot.
func TestIntervalsRoundOutwards(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	ends := func() interval {
		x, y := r.NormFloat64()*math.Exp2(float64(r.IntN(80)-40)), r.NormFloat64()
		return interval{min(x, y), max(x, y)}
	}
	holds := func(what string, got interval, lo, hi *big.Float) {
		if big.NewFloat(got.lo).Cmp(lo) > 0 || big.NewFloat(got.hi).Cmp(hi) < 0 {
			t.Fatalf("%s: [%v, %v] does not hold [%v, %v]", what, got.lo, got.hi, lo, hi)
		}
		if slack := (math.Abs(got.lo) + math.Abs(got.hi)) * 0x1p-50; new(big.Float).Sub(lo,
			big.NewFloat(got.lo)).Cmp(big.NewFloat(slack)) > 0 {
			t.Fatalf("%s: [%v, %v] is far wider than [%v, %v]", what, got.lo, got.hi, lo, hi)
		}
	}
	exact := func() *big.Float { return new(big.Float).SetPrec(2000) }
	of := func(x float64) *big.Float { return exact().SetFloat64(x) }
	for range 2000 {
		a, b := ends(), ends()
		holds("sum", a.plus(b), exact().Add(of(a.lo), of(b.lo)), exact().Add(of(a.hi), of(b.hi)))
		lo, hi := exact().Mul(of(a.lo), of(b.lo)), exact().Mul(of(a.lo), of(b.lo))
		for _, x := range []float64{a.lo, a.hi} {
			for _, y := range []float64{b.lo, b.hi} {
				switch z := exact().Mul(of(x), of(y)); {
				case z.Cmp(lo) < 0:
					lo = z
				case z.Cmp(hi) > 0:
					hi = z
				}
			}
		}
		holds("product", a.times(b), lo, hi)
		by := math.Abs(b.lo)
		holds("wider", a.widened(by), exact().Sub(of(a.lo), of(by)), exact().Add(of(a.hi), of(by)))
	}
}

// A round's totals are off by less than the root of the variance proxies that the bound is made of, and so by far
// less than the bound, in every mode and for clusters few and many. The same round again is off by something else: its
// roundings are new ones. Nor is the bound made of much that is not there: errors are a good part of it.
func TestProvedBoundCoversRounds(t *testing.T) {
	for _, c := range []struct {
		n, k int
		mode Mode
		cols [][]int
	}{
		{900, 4, TwoParty, [][]int{{0}, {1, 2}}},
		{600, 9, TwoParty, [][]int{{0}, {1}}},
		{600, 4, ServerAided, [][]int{{0}, {1}, {2}}},
		{600, 3, Multiparty, [][]int{{0}, {1}, {2}}},
	} {
		d := slices.Max(c.cols[len(c.cols)-1]) + 1
		j := &Job{Problem: protocol.Problem{Clients: sample(t, "blobs", c.n, d, c.k, 5).Table(), Columns: c.cols, K: c.k,
			Iterations: 1, Budget: privacy.Budget{Epsilon: 1, Delta: 1e-5}, Seed: seed(2)}, Mode: c.mode}
		pl := planOf(t, j)
		a := pl.noise.proved
		got, r, s, roles := oneRound(t, j, pairSign)
		off, root := norm(got, softTotals(t, s, roles, r, false)), math.Sqrt(a.fresh+a.once)
		t.Logf("%s, n %d k %d: error %.4g, root of the proxies %.4g, bound %.4g", c.mode, c.n, c.k, off, root, a.most())
		if off > root || off < root/math.Sqrt(1000) {
			t.Errorf("%s, n %d k %d: error %g, the proxies have %g", c.mode, c.n, c.k, off, root)
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
	var whole [2][]int64
	for i := range whole {
		e.roundBy(roles.alice.peer.rnd.rounding("test", i))
		whole[i] = slices.Clone(e.encode(t, values, 1<<20))
	}
	if reflect.DeepEqual(whole[0], whole[1]) {
		t.Error("roundings of an encoding are the same twice: the bound of their error (T4) is void")
	}
}

// What an encryption under a public key divides is rounded at random: one quotient of a quarter in
// four goes up.
func TestPublicEncryptionRoundsAtRandom(t *testing.T) {
	p := smallParameters(t)
	rnd := testEntropy(3)
	e := newPublicEncryptor(p, &publicKey{LevelQ: p.MaxLevel()}, rnd)
	primes := p.primes(p.MaxLevel(), 0)
	e.b = p.lattice.NewPoly(len(primes) - 1)
	for j, row := range e.b {
		for i := range row { // the constant polynomial p_0/4, rounded down
			row[i] = uint32(p.P()[0] / 4 % primes[j])
		}
	}
	c := newColumnCipher(1, 1)
	e.encrypt(c, make([]int64, p.N()), "test", 0)
	p.lattice.Inverse(c.C0)
	var zero int
	for _, x := range c.C0[0] {
		if x == 0 {
			zero++
		}
	}
	// Two thirds of u's coefficients are 1 or -1, and a quarter of their quotients not 0. A sum of N coins deviates by at
	// most sqrt(N)/2.
	if n := float64(p.N()); math.Abs(float64(zero)-5*n/6) > 5*math.Sqrt(n)/2 {
		t.Errorf("%d of %g quotients are 0, want five sixths", zero, n)
	}
}

// Errors of encrypted columns are within what comparisons keep for them, in every mode, and no hundred times below.
func TestEncryptionStaysWithinTheSpare(t *testing.T) {
	for _, mode := range []Mode{TwoParty, ServerAided, Multiparty} {
		pool := engine.NewPool(2)
		data := sample(t, "blobs", 300, 4, 2, 3)
		j := &Job{Problem: protocol.Problem{Clients: data.Table(), Columns: [][]int{{0}, {1}, {2}, {3}}, K: 3, Iterations: 1,
			Seed: seed(5), Budget: privacy.Budget{Epsilon: 1, Delta: 1e-5}}, Mode: mode}
		if mode == TwoParty {
			j.Columns = [][]int{{0}, {1, 2, 3}}
		}
		s, roles := setUp(t, j, pool)
		var most float64
		for h := 1; h < 4; h++ {
			got := decode(t, s.params, roles.alice.tops[h][0], roles.key(s.params))
			for i := range data.Points.N {
				most = max(most, math.Abs(got[i*s.lay.blocks]-float64(data.Points.Point(i, nil)[h])))
			}
		}
		if most > s.cols.spare || most < s.cols.spare/100 {
			t.Errorf("%s: columns are off by %g, comparisons keep %g", mode, most, s.cols.spare)
		}
		pool.Close()
	}
}

// Slots beside the block that counts are 0 but for the errors of encryption. What a record's comparisons there, in the
// wrong order, can take of them is in what it moves the totals by.
func TestSlotsBesideRecordsAreCounted(t *testing.T) {
	pool := engine.NewPool(2)
	defer pool.Close()
	const n, k, d = 100, 9, 4
	j := &Job{Problem: protocol.Problem{Clients: sample(t, "blobs", n, d, k, 3).Table(), Columns: [][]int{{0}, {1, 2, 3}},
		K: k, Iterations: 1, Seed: seed(5), Budget: privacy.Budget{Epsilon: 1, Delta: 1e-5}}}
	s, roles := setUp(t, j, pool)
	var errors [d][]float64
	for h := 1; h < d; h++ {
		errors[h] = decode(t, s.params, roles.alice.lows[h][0], roles.key(s.params))
	}
	beside := 2 * float64(s.lay.blocks-1)
	var most, largest float64
	for i := range n {
		var squares float64
		for at := max(i-1, 0) * s.lay.blocks; at < (i+1)*s.lay.blocks; at++ {
			if at%s.lay.blocks == 0 {
				continue
			}
			for h := 1; h < d; h++ {
				squares += math.Pow(errors[h][at], 2)
				largest = max(largest, math.Abs(errors[h][at]))
			}
		}
		most = max(most, math.Sqrt(beside*k*squares/d))
	}
	pl := planOf(t, j)
	column := pl.noise.proved.column - 1
	if most > column || most < column/20 || most < 2*largest {
		t.Errorf("%d blocks: what lies beside a record moves the totals by %g of what it does, and %g is planned",
			s.lay.blocks, most, column)
	}
}

// What roundings do at slots without a record, where columns hold nothing but the errors of their encryption, is in the
// bound: with one record it is most of what such errors add.
func TestSlotsWithoutRecordsAreCounted(t *testing.T) {
	s := plannedSetting(t, 1, 2, 4)
	s.encrypted = 3
	variances, _ := s.variances()
	var steepest float64
	for x := 0.0; x < undecided; x += 1.0 / 4096 {
		const step = 1e-5
		var slope float64
		for i, v := range variances[1:] {
			var up, down [signStages]float64
			up[i+1], down[i+1] = step, -step
			slope += v * math.Pow((roundedSign(x, &up)-roundedSign(x, &down))/(2*step), 2)
		}
		steepest = max(steepest, slope)
	}
	exact, ok := s.bound()
	s.lowScale = math.Sqrt(s.encryption()) // errors as large as the records
	rough, _ := s.bound()
	// The record's own slot has them, too: its columns are so much larger.
	beside := rough.fresh - math.Pow(1+math.Sqrt(2*s.log), 2)*exact.fresh
	if want := 3 * float64(s.p.N()) * steepest * s.relin.mean; !ok || beside < want || beside > 1000*want {
		t.Errorf("errors of three columns add %g to the squares of roundings, want %g and more", beside, want)
	}
}

// A product's and a rotation's errors at the slots have the squares that they are weighed by, or half of them: proxies
// are variances' bounds.
func TestWeightsAreThoseOfErrors(t *testing.T) {
	p, err := buildParameters(Chain{LogN: 11, Levels: signDepth + 1, LogLevel: 30, LogP: []int{24, 24}})
	if err != nil {
		t.Fatal(err)
	}
	s := &setting{p: p, n: p.N(), k: 3, d: 2, rounds: 1, encrypted: 1, holders: 1, failure: 1e-7}
	s.prepare()
	rnd := testEntropy(4)
	sk := newSecretKey(p, rnd, alone)
	ev, err := newEvaluator(p, newRelinearisation(p, sk, rnd).make(alone).expand(p, alone),
		map[int]*rns.Key{1: newRotation(p, sk, 1, rnd.key("seed", 0), rnd).make(alone).expand(p, alone)})
	if err != nil {
		t.Fatal(err)
	}
	w := newScratch(p)
	w.round(rnd.rounding("test", 0))
	values := make([]float64, p.N())
	for i := range values {
		values[i] = math.Sin(float64(i))
	}
	const level = 2
	encrypt := func(index int) *cipher {
		return encryptSeeded(p, w.embed.encode(t, values, 1<<30), level, 1<<30, sk, rnd, "test", index).expand(p)
	}
	check := func(what string, got *cipher, want func(i int) float64, weight slots) {
		var squares float64
		for i, x := range decode(t, p, got, sk) {
			squares += math.Pow((x-want(i))*got.scale, 2) / float64(p.N())
		}
		if proxy := weight.mean * float64(p.N()) / 2; squares > proxy || squares < proxy/4 {
			t.Errorf("%s: errors have squares of %g, the proxy is %g", what, squares, proxy)
		}
	}
	a, b := encrypt(0), encrypt(1)
	x, y := decode(t, p, a, sk), decode(t, p, b, sk)
	ev.product(w, a, b, 1)
	product := ev.finish(w, unfinished{level, a.scale * b.scale})
	check("product", product, func(i int) float64 { return x[i] * y[i] }, s.relin)
	turned, err := ev.rotate(w, a, 1)
	if err != nil {
		t.Fatal(err)
	}
	check("rotation", turned, func(i int) float64 { return x[(i+1)%len(x)] }, s.turn)
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
		dear.rest = 100
		q, err := planNoise(privacy.Proven, nb, b, rounds, n, k, d,
			func(float64, float64) (arithmetic, bool) { return dear, true })
		if err != nil || q.proved == nil || q.count < 50*p.count {
			t.Errorf("%s: a bound of 100 records raises the noise from %g to %g (error %v)", nb, p.count, q.count, err)
		}
		vast := a
		vast.fresh = 1e24 // more than any noise outweighs
		for what, bound := range map[string]func(float64, float64) (arithmetic, bool){
			"without a bound":   func(float64, float64) (arithmetic, bool) { return arithmetic{}, false },
			"with a vast bound": func(float64, float64) (arithmetic, bool) { return vast, true },
		} {
			if p, err := planNoise(privacy.Proven, nb, b, rounds, n, k, d, bound); !fault.IsRequest(err) {
				t.Errorf("%s: %s: noise of %g, %v, want a refusal", nb, what, p.count, err)
			}
		}
	}
}

// Under the proven calibration the error of the arithmetic is proved in every mode, and ranks, which have no proof, are
// refused.
func TestProvenIsProved(t *testing.T) {
	for _, c := range []struct {
		k    int
		mode Mode
	}{{3, TwoParty}, {15, TwoParty}, {3, ServerAided}, {9, ServerAided}, {3, Multiparty}, {9, Multiparty}} {
		j := &Job{Problem: protocol.Problem{Clients: sample(t, "blobs", 200, 2, 2, 1).Table(), Columns: [][]int{{0}, {1}},
			K: c.k, Budget: privacy.Budget{Epsilon: 1, Delta: 1e-5}, NoQuality: true}, Mode: c.mode}
		if c.mode == Multiparty {
			j.Columns = [][]int{{}, {0}, {1}}
		}
		pl := planOf(t, j)
		all := strings.Join(pl.entries()[0].Conditions, "\n")
		if strings.Contains(all, "assumed") || !strings.Contains(all, "which is in delta (T4)") {
			t.Errorf("k %d, mode %q: the conditions are: %s", c.k, c.mode, all)
		}
	}
	j := &Job{Problem: protocol.Problem{Clients: sample(t, "blobs", 200, 2, 2, 1).Table(),
		Columns: [][]int{{0}, {1}}, K: 3, Budget: privacy.Budget{Epsilon: 1, Delta: 1e-5}}, Argmin: Rank}
	if _, err := j.plan(); err == nil || !strings.Contains(err.Error(), "no proven bound") {
		t.Errorf("comparison by rank under the proven calibration: %v", err)
	}
}

// What roundings do to the sign of early rounds is within the bounds of the pairs' sign, cell by cell: its input's
// rounding is at the place of the inner polynomial's, with no more than its weight, and at its scale.
func TestEarlySignIsWithinTheBounds(t *testing.T) {
	s := plannedSetting(t, 1000, 5, 2)
	variances, _ := s.variances()
	most := 2 * s.log * s.relin.most
	b := boundSign(variances, 2*s.log, most)
	logQ := s.p.logPrimes()
	for depth := range s.p.maxDepth() + 1 {
		full := pairSign.plan(s.p, aggregateLevel, depth, 1)
		early := earlySign.plan(s.p, aggregateLevel, depth, 1)
		want := pairSign.scales(logQ, topLevel(depth, pairSign), full.in)[3:]
		for i, x := range earlySign.scales(logQ, topLevel(depth, earlySign), early.in) {
			if math.Abs(x-want[i]) > 1e-9 {
				t.Errorf("depth %d: stage %d has the scale 2^%g, with the inner polynomial 2^%g", depth, i, x, want[i])
			}
		}
		if early.out != full.out || early.in < float64(s.p.Chain.LogLevel-1) {
			t.Errorf("depth %d: scales %v, the pairs' %v", depth, early, full)
		}
	}
	var squares [signStages]float64
	for i, v := range variances {
		squares[i] = v * most
	}
	cell := &signCell{most: &squares}
	for n := range int(inputCells) {
		x := interval{float64(n) / signCells, float64(n+1) / signCells}
		cell.next, cell.taken = 3, 0
		in := cell.jet(0)
		in.exact = x
		h := cell.outer(in.rounded(cell))
		var v cellBound
		var turn float64
		for i := 3; i < signStages; i++ {
			first, near, bend := h.first[i].magnitude(), h.slope[i].magnitude(), h.bend[i][i].magnitude()
			v[0], v[4] = v[0]+first*first*variances[i], v[4]+near*near*variances[i]
			v[1] += bend * variances[i] / 2
			for j := 3; j < i; j++ {
				turn += math.Pow(h.bend[i][j].magnitude(), 2) * variances[i] * variances[j]
			}
		}
		first := h.first[3].magnitude() // of columns' roundings, as the input's
		v[2] = first * first * variances[0]
		if off := h.off(&squares); off > b.error || turn > b.turn {
			t.Fatalf("at %v: off by %g, turned by %g, the bounds are %g and %g", x, off, turn, b.error, b.turn)
		}
		span := 0.0
		if x.lo < earlyUndecided {
			span = 0.25 - math.Pow(h.exact.magnitude(), 2)
		}
		for kind, p := range map[int]profile{0: b.variance, 1: b.bend, 2: b.input, 4: b.steepest} {
			if v[kind] > p.far+p.near*span || v[kind] > p.most {
				t.Fatalf("at %v: bound %d is %g, the pairs' %g", x, kind, v[kind], p.far+p.near*span)
			}
		}
	}
}
