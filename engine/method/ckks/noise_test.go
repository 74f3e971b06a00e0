package ckks

import (
	"context"
	"encoding/json"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/cohort-engine/cohort/engine"
	"github.com/cohort-engine/cohort/engine/privacy"
	"github.com/cohort-engine/cohort/engine/protocol"
)

// The joint release of every round must fit the budget, composed as one
// Gaussian mechanism: the formulas of T4 are restated here.
func TestProvenNoisePaysForTheJointRelease(t *testing.T) {
	for _, nb := range []privacy.Neighbours{privacy.AddRemove, privacy.ReplaceOne} {
		for _, d := range []int{1, 2, 16} {
			for _, eps := range []float64{0.1, 1, 5} {
				b := privacy.Budget{Epsilon: eps, Delta: 1e-5}
				const n, k, rounds = 10000, 5, 7
				p, err := planNoise(privacy.Proven, nb, b, rounds, n, k, d, nil)
				if err != nil {
					t.Fatal(err)
				}
				c2, s2, f := 1/(p.count*p.count), 1/(p.sum*p.sum), float64(d)
				d2 := c2 + f*s2
				if nb == privacy.ReplaceOne {
					d2 = math.Max(2*c2+2*f*s2, 4*f*s2)
				}
				mu := overlap(k) * math.Sqrt(d2)
				if delta := privacy.DeltaOfMu(mu*math.Sqrt(rounds), eps); delta > b.Delta || delta < 0.98*b.Delta {
					t.Errorf("%s d %d epsilon %g: delta %g, want %g", nb, d, eps, delta, b.Delta)
				}
				if !p.keyHolder {
					t.Error("the key holder adds no noise")
				}
			}
		}
	}
}

// The paper's noise: one side, each query by itself, the better composition.
func TestClaimedNoiseIsThePapers(t *testing.T) {
	b := privacy.Budget{Epsilon: 1, Delta: 1e-5}
	p, err := planNoise(privacy.Claimed, privacy.AddRemove, b, 5, 5000, 15, 2, nil)
	if err != nil {
		t.Fatal(err)
	}
	if want := 5 * math.Sqrt(2*math.Log(1.25/2e-6)); math.Abs(p.count-want) > 1e-9 || p.sum != p.count || p.keyHolder {
		t.Errorf("5 rounds: %+v, want %g by simple composition, on one side", p, want)
	}
	many, err := planNoise(privacy.Claimed, privacy.AddRemove, b, 500, 5000, 15, 2, nil)
	if err != nil {
		t.Fatal(err)
	}
	if simple := 500 * math.Sqrt(2*math.Log(1.25/2e-8)); many.count >= simple {
		t.Errorf("500 rounds: %g, advanced composition must beat %g", many.count, simple)
	}
	if want := math.Sqrt(3); math.Abs(p.trueSpec.Scale*want-p.count) > 1e-9 {
		t.Errorf("true scale %g, want %g", p.trueSpec.Scale, p.count/want)
	}
}

// What the paper's noise costs is that of memberships as they are, not of one cluster each.
func TestTrueCostIsOfSoftMemberships(t *testing.T) {
	data := sample(t, "blobs", 400, 2, 3, 3)
	for _, c := range []struct {
		argmin Argmin
		nb     privacy.Neighbours
		square float64 // of the sensitivity at least, with memberships of the norm below
		norm   float64
	}{{Pairs, privacy.AddRemove, 3, 1.0001}, {Rank, privacy.AddRemove, 3, rankNorm(3)},
		{Rank, privacy.ReplaceOne, 8, rankNorm(3)}} {
		j := &Job{Problem: protocol.Problem{Clients: data.Table(), Bounds: data.Bounds, Columns: [][]int{{0}, {1}},
			K: 3, Iterations: 1, Calibration: privacy.Claimed, Seed: seed(3), Neighbours: c.nb,
			Budget: privacy.Budget{Epsilon: 1, Delta: 1e-5}}, Argmin: c.argmin}
		pl := planOf(t, j)
		got, one := pl.noise.count/pl.noise.trueSpec.Scale, math.Sqrt(c.square)
		if got < one*c.norm || got > 1.6*one {
			t.Errorf("%s, %s: a record moves a round by %g, want at least %g", c.argmin, c.nb, got, one*c.norm)
		}
	}
}

// Alice's integers are in the aggregates that Bob decrypts, and Bob's in the
// centroids that Alice receives: neither knows all of the noise.
func TestBothSidesAddTheirNoise(t *testing.T) {
	data := sample(t, "blobs", 400, 2, 2, 3)
	// first is the first round without Bob's noise and with: what is in the aggregates, both
	// sides' noise, and the centroids.
	first := func(c privacy.Calibration, budget privacy.Budget) (s *run, values, alice, bob []int64, units []float64,
		final [][]float64) {
		pool := engine.NewPool(1)
		defer pool.Close()
		j := &Job{Problem: protocol.Problem{Clients: data.Table(), Bounds: data.Bounds, Columns: [][]int{{0}, {1}},
			K: 2, Iterations: 1, Calibration: c, Seed: seed(3), Budget: budget}, Post: "none", chain: &smallChain}
		s, roles := setUp(t, j, pool)
		plays := func(ctx context.Context, p *protocol.Party) (*protocol.Outcome, error) {
			roles.alice.Party = p
			members, _, err := roles.alice.compareAll(ctx, 0, s.start)
			if err != nil {
				return nil, err
			}
			totals, err := roles.alice.computer.totals(ctx, pool, 0, members)
			if err != nil {
				return nil, err
			}
			msg, z, err := roles.alice.perturb(0, totals)
			if err != nil {
				return nil, err
			}
			alice, units = z, msg.Units
			for _, x := range msg.Totals {
				r := productOf(t, s.params, &roles.bob.small, x)
				for c := range r {
					r[c] = (r[c] + x.C0[c]) % s.params.Q()[c]
				}
				values = append(values, crt(s.params, r))
			}
			final, err = roles.alice.decrypt(ctx, 1, msg, s.start)
			return nil, err
		}
		answers := func(ctx context.Context, p *protocol.Party) (*protocol.Outcome, error) {
			roles.bob.Party = p
			err := roles.bob.answer(ctx, 1)
			st := p.Streams().Stream(0, 1, "ckks noise") // what he drew, in his own stream
			for i, u := range units {
				sigma := s.noise.sum * u
				if i%3 == 0 {
					sigma = s.noise.count * u
				}
				if sigma == 0 {
					break
				}
				g, err := privacy.NewDiscreteGaussian(sigma)
				if err != nil {
					return nil, err
				}
				bob = append(bob, g.Sample(st))
			}
			return nil, err
		}
		play(t, s.jobPlan, pool, plays, answers)
		return s, values, alice, bob, units, final
	}
	_, plain, _, _, _, _ := first(privacy.None, privacy.Budget{})
	s, noisy, alice, bob, units, final := first(privacy.Proven, privacy.Budget{Epsilon: 20, Delta: 1e-5})
	n := s.noise
	for i := range plain {
		if plain[i]+alice[i] != noisy[i] {
			t.Errorf("total %d: %d without noise, %d with, Alice drew %d", i, plain[i], noisy[i], alice[i])
		}
		noisy[i] += bob[i]
	}
	if want := divide(inRecords(noisy, units), s.start, n, "none"); !reflect.DeepEqual(want, final) {
		t.Errorf("centroids %v, want %v", final, want)
	}
	if reflect.DeepEqual(alice, bob) {
		t.Error("both sides drew the same noise")
	}
}

// What pruning promises: at every point the memberships sum to at most one and
// their squares to at most Overlap squared, whichever way cells are intersected.
func TestPrunedMembershipsStayBounded(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for _, d := range []int{2, 3} {
		for at := range 6 {
			k, blocks := 4+r.IntN(5), []int{1, 4, 16}[at%3]
			cs := make([][]float64, k)
			enc := make([]bool, d)
			enc[d-1] = true
			for i := range cs {
				for range d {
					cs[i] = append(cs[i], 2*r.Float64()-1)
				}
			}
			plan := &roundPlan{sign: []*composite{pairSign, earlySign}[at%2], unit: 30}
			plan.choose(columns{d: d, encrypted: enc}, layout{blocks: blocks}, cs, true)
			for range 4000 {
				x := make([]float64, d)
				for h := range x {
					x[h] = 2*r.Float64() - 1
				}
				w := make([]float64, k)
				for i := range w {
					w[i] = 1
				}
				for _, q := range plan.pairs {
					v := q.offset
					for h := range x {
						v += q.gain[h] * x[h]
					}
					if math.Abs(v) > 1 {
						t.Fatalf("comparison %g leaves its domain", v)
					}
					w[q.i] *= 0.5 - plan.sign.at(v)
					w[q.j] *= 0.5 + plan.sign.at(v)
				}
				var sum, squares float64
				for _, v := range w {
					sum += v
					squares += v * v
				}
				if sum > 1+float64(k)*signError || squares > overlap(k)*overlap(k) {
					t.Fatalf("d %d k %d at %v: memberships %v sum to %g, squares %g", d, k, x, w, sum, squares)
				}
			}
			if d == 2 && k > 6 && plan.sign == pairSign && len(plan.pairs) == k*(k-1)/2 {
				t.Errorf("k %d: nothing was pruned", k)
			}
		}
	}
}

// The linear programme and polygon clipping agree in the plane, up to the
// programme's margin.
func TestHalfSpacesMeetAlike(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	var met, apart int
	for range 400 {
		var hs, wider []half
		for range 2 + r.IntN(6) {
			h := half{a: []float64{2*r.Float64() - 1, 2*r.Float64() - 1}, b: 0.6*r.Float64() - 0.4}
			hs = append(hs, h)
			wider = append(wider, half{a: h.a, b: h.b + 1e-4})
		}
		switch plane, space := meetPlane(hs), meetSpace(hs, 2); {
		case plane && !space:
			t.Fatalf("%v: the plane meets, the programme says no", hs)
		case space && !meetPlane(wider):
			t.Fatalf("%v: the programme says yes, the plane is far from meeting", hs)
		case plane:
			met++
		default:
			apart++
		}
	}
	if met < 50 || apart < 50 {
		t.Errorf("%d met, %d did not: the test sees one side only", met, apart)
	}
}

func TestNetworksAreThePapers(t *testing.T) {
	if len(Networks()) != 10 {
		t.Fatalf("%d networks", len(Networks()))
	}
	n, err := findNetwork("ccwan50")
	if err != nil || n.Mbps != 50 || n.DelayMS != 150 || n.LossPercent != 0.5 {
		t.Errorf("%+v, %v", n, err)
	}
	if _, err := findNetwork("pigeon"); err == nil {
		t.Error("an unknown network was found")
	}
	log := &transcript{Parties: 3}
	log.record(Envelope{From: 1, Kind: kindColumn, Bytes: 1e6}, nil)
	log.record(Envelope{From: 2, Kind: kindColumn, Bytes: 2e6}, nil)
	log.record(Envelope{Step: 1, To: 1, Kind: kindAggregates, Bytes: 1e6}, nil)
	// Two steps; the first is bound by the 3 MB that party 0 receives.
	want := 2*0.175 + 4e6*8/(50e6*0.995)
	if got := log.transferTime(n).Seconds(); math.Abs(got-want) > 1e-6 {
		t.Errorf("transfer takes %g s, want %g", got, want)
	}
}

// What a round publishes are public values: no count that carries the computing
// party's noise alone, which she could take off.
func TestRoundsPublishNoTotals(t *testing.T) {
	b, err := json.Marshal(Round{})
	if err != nil {
		t.Fatal(err)
	}
	var fields map[string]any
	if err := json.Unmarshal(b, &fields); err != nil {
		t.Fatal(err)
	}
	for name := range fields {
		if !slices.Contains([]string{"index", "pairs", "depth", "degree", "operations"}, name) {
			t.Errorf("a round publishes %q", name)
		}
	}
}

// The refusal of a round's totals says nothing about them but that they are wrong.
func TestCheckTotalTellsNoValue(t *testing.T) {
	units := []float64{1, 1, 1, 1}
	var texts []string
	for _, values := range [][]int64{{9000, 0, 1, 0}, {71234, 5, 1, 0}} {
		_, err := checkTotal(values, units, 400, 2, 1, (&Job{}).memberships(),
			noisePlan{count: 3, sum: 3, keyHolder: true, shares: 2, needed: 1})
		if err == nil {
			t.Fatalf("%v is taken for 400 records", values)
		}
		texts = append(texts, err.Error())
	}
	if texts[0] != texts[1] {
		t.Errorf("the text depends on the values: %q and %q", texts[0], texts[1])
	}
}

// By rank the memberships of undecided records are below 0 by as much as the indicator is between two ranks: so are the
// counts of empty clusters, and no others. Records that no comparison decides may have next to nothing of any cluster.
func TestCheckTotalByRank(t *testing.T) {
	const k, n = 5, 10000
	least := (&Job{Argmin: Rank, Problem: protocol.Problem{K: k}}).memberships()
	for r := 1.0; r <= k; r += 1e-3 {
		if y := indicator(k, r); y < least.one {
			t.Errorf("the indicator is %v at %v, less than %v", y, r, least.one)
		}
	}
	for _, c := range []struct {
		first, second int64
		least         memberships
		sound         bool
	}{
		{n + 141, -141, least, true}, {n + 141, -141, memberships{one: -signError, sum: least.sum}, false},
		{n + 1000, -1000, least, false}, {-400, -400, memberships{one: least.one, sum: -1}, true},
		{2000, 2000, least, true}, {2000, 2000, (&Job{}).memberships(), false}, // all records between two centroids
		{100, -100, least, true},                                                                 // or between three
		{n + 300, 800, least, true}, {n + 300, 800, memberships{least.one, least.sum, 0}, false}, // between the farthest
		{n + 300, 1200, least, false}, {n + 1000, 1000, least, false}, {-400, -400, memberships{one: least.one}, false},
	} {
		values, units := []int64{c.first, 0, c.second, 0, 0, 0, 0, 0, 0, 0}, slices.Repeat([]float64{1}, 2*k)
		_, err := checkTotal(values, units, n, k, 1, c.least,
			noisePlan{count: 3, sum: 3, keyHolder: true, shares: 2, needed: 1})
		if (err == nil) != c.sound {
			t.Errorf("counts of %d and %d of %d records with memberships from %v: %v", c.first, c.second, n, c.least, err)
		}
	}
}

// A round's totals are opened once: what was decrypted has no second way out, with
// other noise or none.
func TestTotalsAreOpenedOnce(t *testing.T) {
	pool := engine.NewPool(1)
	defer pool.Close()
	j := &Job{Problem: protocol.Problem{Clients: sample(t, "blobs", 300, 2, 2, 3).Table(),
		Columns: [][]int{{0}, {1}}, K: 2, Iterations: 1,
		Seed: seed(5), Budget: privacy.Budget{Epsilon: 0.01, Delta: 1e-5}}, chain: &smallChain}
	s, roles := setUp(t, j, pool)
	again := false
	play(t, s.jobPlan, pool, firstRound(s, roles, func(p *protocol.Party) error {
		_, err := p.Open(s.released, 1, nil, protocol.NewPrivate(1))
		again = err == nil
		return nil
	})...)
	if again {
		t.Error("a round's totals were opened twice")
	}
}

// Any but the colluders' shares of all parties that draw noise make up the noise
// of the plan, so it does not grow with the number of key holders.
func TestMultipartySharesMakeUpTheNoise(t *testing.T) {
	data := sample(t, "blobs", 300, 5, 2, 3)
	for _, c := range []struct{ holders, colluders, shares, needed int }{{2, 1, 3, 2}, {4, 1, 5, 4}, {4, 2, 5, 3}} {
		j := &Job{Problem: protocol.Problem{Clients: data.Table(), Bounds: data.Bounds,
			Columns: make([][]int, c.holders+1), K: 2, Iterations: 1, Colluders: c.colluders, Seed: seed(1),
			Budget: privacy.Budget{Epsilon: 1, Delta: 1e-5}}, Mode: Multiparty, chain: &smallChain}
		for h := range 5 {
			j.Columns[h%len(j.Columns)] = append(j.Columns[h%len(j.Columns)], h)
		}
		pl := planOf(t, j)
		if pl.noise.shares != c.shares || pl.noise.needed != c.needed {
			t.Errorf("%d holders, %d colluders: %d shares of which %d are needed", c.holders, c.colluders, pl.noise.shares,
				pl.noise.needed)
		}
		q := &peer{run: &run{jobPlan: pl}}
		groups, err := q.noiseGroups([]float64{1 << 30, 1 << 30})
		if err != nil {
			t.Fatal(err)
		}
		own := groups[0].Noise.Scale / math.Sqrt(float64(groups[0].Noise.Shares))
		if whole := math.Sqrt(float64(c.needed)) * own; math.Abs(whole/(pl.noise.count*(1<<30))-1) > 1e-9 {
			t.Errorf("%d holders, %d colluders: %d shares of deviation %g make up %g, the plan has %g", c.holders, c.colluders,
				c.needed, own, whole, pl.noise.count*(1<<30))
		}
	}
	j := &Job{Problem: protocol.Problem{Clients: data.Table(), Bounds: data.Bounds,
		Columns: [][]int{{0, 1, 2}, {3, 4}}, K: 2, Colluders: 2, Budget: privacy.Budget{Epsilon: 1, Delta: 1e-5}},
		chain: &smallChain}
	if _, err := j.plan(); err == nil {
		t.Error("two parties that may both collude were accepted")
	}
}

// What the ledger says of the scheme's own error is the total variation of T4: that of a
// Gaussian mechanism at epsilon 0, and nothing where the computing party knows the noise.
func TestSchemeErrorIsStated(t *testing.T) {
	n := noisePlan{count: 8, sum: 4, keyHolder: true, proved: &arithmetic{rest: 0.1, failure: 1e-7, rounds: 3}}
	for _, rounds := range []int{1, 3, 10} {
		want := privacy.DeltaOfMu(math.Sqrt(float64(rounds))*0.1/4, 0) + 1e-7
		if got := n.schemeDistance(rounds); math.Abs(got-want) > 1e-12 {
			t.Errorf("%d rounds: total variation %v, want %v", rounds, got, want)
		}
	}
	n.proved = nil
	for _, n := range []noisePlan{{}, n} {
		if got := n.schemeDistance(1); got != 1 {
			t.Errorf("without noise, or a bound: %v, want 1", got)
		}
	}
	for c, want := range map[privacy.Calibration]string{privacy.Proven: "within total variation",
		privacy.Claimed: "no bound on what it tells of keys"} {
		job := &Job{Problem: protocol.Problem{Clients: sample(t, "blobs", 200, 2, 2, 1).Table(),
			Columns: [][]int{{0}, {1}}, K: 2,
			Budget: privacy.Budget{Epsilon: 1, Delta: 1e-5}, Calibration: c, NoQuality: true}}
		pl := planOf(t, job)
		if !strings.Contains(strings.Join(pl.Notes, "\n"), want) {
			t.Errorf("%s: the notes lack %q: %q", c, want, pl.Notes)
		}
	}
}
