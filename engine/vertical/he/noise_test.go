package he

import (
	"context"
	"math"
	"math/rand/v2"
	"reflect"
	"testing"

	"github.com/cohort-engine/cohort/engine"
	"github.com/cohort-engine/cohort/engine/privacy"
)

// The joint release of every round must fit the budget, composed as one
// Gaussian mechanism: the formulas of T4 are restated here.
func TestProvenNoisePaysForTheJointRelease(t *testing.T) {
	for _, nb := range []privacy.Neighbours{privacy.AddRemove, privacy.ReplaceOne} {
		for _, d := range []int{1, 2, 16} {
			for _, eps := range []float64{0.1, 1, 5} {
				b := privacy.Budget{Epsilon: eps, Delta: 1e-5}
				const n, k, rounds = 10000, 5, 7
				p, err := planNoise(privacy.Proven, nb, b, rounds, n, k, d)
				if err != nil {
					t.Fatal(err)
				}
				c2, s2, f := 1/(p.count*p.count), 1/(p.sum*p.sum), float64(d)
				d2 := c2 + f*s2
				if nb == privacy.ReplaceOne {
					d2 = math.Max(2*c2+2*f*s2, 4*f*s2)
				}
				mu := Overlap(k)*math.Sqrt(d2) + 2*evaluationError(n, k, d)/math.Min(p.count, p.sum)
				if delta := privacy.DeltaOfMu(mu*math.Sqrt(rounds), eps); delta > b.Delta || delta < 0.98*b.Delta {
					t.Errorf("%s d %d epsilon %g: delta %g, want %g", nb, d, eps, delta, b.Delta)
				}
				if !p.bob {
					t.Error("the key holder adds no noise")
				}
			}
		}
	}
}

// The paper's noise: one side, each query by itself, the better composition.
func TestClaimedNoiseIsThePapers(t *testing.T) {
	b := privacy.Budget{Epsilon: 1, Delta: 1e-5}
	p, err := planNoise(privacy.Claimed, privacy.AddRemove, b, 5, 5000, 15, 2)
	if err != nil {
		t.Fatal(err)
	}
	if want := 5 * math.Sqrt(2*math.Log(1.25/2e-6)); math.Abs(p.count-want) > 1e-9 || p.sum != p.count || p.bob {
		t.Errorf("5 rounds: %+v, want %g by simple composition, on one side", p, want)
	}
	many, err := planNoise(privacy.Claimed, privacy.AddRemove, b, 500, 5000, 15, 2)
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

// Alice's integers are in the aggregates that Bob decrypts, and Bob's in the
// centroids that Alice receives: neither knows all of the noise.
func TestBothSidesAddTheirNoise(t *testing.T) {
	data := sample(t, "blobs", 400, 2, 2, 3)
	first := func(budget *privacy.Budget) (*session, []int64, []float64, [][]float64) {
		j := &Job{Data: data, Columns: [][]int{{0}, {1}}, K: 2, Rounds: 1, Seed: seed(3), Budget: budget, Post: "none", chain: &smallChain}
		pool := engine.NewPool(1)
		defer pool.Close()
		s, err := newSession(j, engine.NewRuntime(pool))
		if err != nil {
			t.Fatal(err)
		}
		var aggregates []byte
		s.log.Tap = func(e Envelope, b []byte) {
			if e.Kind == KindAggregates {
				aggregates = b
			}
		}
		final, err := s.run(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		m, err := readAggregates(s.params, 1, 6, aggregates)
		if err != nil {
			t.Fatal(err)
		}
		values := make([]int64, 6)
		for i := range values {
			x := s.bob.small.product(s.params, &m.Totals[i])
			for c := range x {
				x[c] = (x[c] + m.Totals[i].C0[c]) % s.params.Q()[c]
			}
			values[i] = crt(s.params, x)
		}
		return s, values, m.Units, final
	}
	_, plain, _, _ := first(nil)
	s, noisy, units, final := first(&privacy.Budget{Epsilon: 20, Delta: 1e-5})
	n := s.plan.noise
	alice, err := drawNoise(n, s.streams, 0, 1, units, 2)
	if err != nil {
		t.Fatal(err)
	}
	bob, err := drawNoise(n, s.streams, 1, 1, units, 2)
	if err != nil {
		t.Fatal(err)
	}
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
	p := smallParameters(t)
	r := rand.New(rand.NewPCG(3, 4))
	for _, d := range []int{2, 3} {
		for range 6 {
			k := 4 + r.IntN(5)
			cs := make([][]float64, k)
			enc := make([]bool, d)
			enc[d-1] = true
			for i := range cs {
				for range d {
					cs[i] = append(cs[i], 2*r.Float64()-1)
				}
			}
			all := allPairs(p, columns{d: d, encrypted: enc}, cs, 30)
			kept := prune(all, cs)
			for range 4000 {
				x := make([]float64, d)
				for h := range x {
					x[h] = 2*r.Float64() - 1
				}
				w := make([]float64, k)
				for i := range w {
					w[i] = 1
				}
				for _, q := range kept {
					v := q.offset
					for h := range x {
						v += q.gain[h] * x[h]
					}
					if math.Abs(v) > 1 {
						t.Fatalf("comparison %g leaves its domain", v)
					}
					w[q.i] *= 0.5 - halfSign(v)
					w[q.j] *= 0.5 + halfSign(v)
				}
				var sum, squares float64
				for _, v := range w {
					sum += v
					squares += v * v
				}
				if sum > 1+float64(k)*SignError || squares > Overlap(k)*Overlap(k) {
					t.Fatalf("d %d k %d at %v: memberships %v sum to %g, squares %g", d, k, x, w, sum, squares)
				}
			}
			if d == 2 && k > 6 && len(kept) == len(all) {
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
	n, err := FindNetwork("ccwan50")
	if err != nil || n.Mbps != 50 || n.DelayMS != 150 || n.LossPercent != 0.5 {
		t.Errorf("%+v, %v", n, err)
	}
	if _, err := FindNetwork("pigeon"); err == nil {
		t.Error("an unknown network was found")
	}
	log := &Transcript{Parties: 3}
	log.send(1, 0, KindColumn, make([]byte, 1e6))
	log.send(2, 0, KindColumn, make([]byte, 2e6))
	log.next()
	log.send(0, 1, KindAggregates, make([]byte, 1e6))
	// Two steps; the first is bound by the 3 MB that party 0 receives.
	want := 2*0.175 + 4e6*8/(50e6*0.995)
	if got := log.TransferTime(n).Seconds(); math.Abs(got-want) > 1e-6 {
		t.Errorf("transfer takes %g s, want %g", got, want)
	}
}
