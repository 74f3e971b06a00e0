package lloyd

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/cohort-engine/cohort/engine"
	"github.com/cohort-engine/cohort/engine/dataset"
	"github.com/cohort-engine/cohort/engine/enginetest"
	"github.com/cohort-engine/cohort/engine/privacy"
	"github.com/cohort-engine/cohort/engine/protocol"
	"github.com/cohort-engine/cohort/engine/step"
	"github.com/cohort-engine/cohort/internal/fault"
	"github.com/cohort-engine/cohort/kernels"
)

// weightedParts deals records with weights to clients, or each record as often as it weighs.
func weightedParts(t *testing.T, clients int, repeat bool) []dataset.Part {
	t.Helper()
	const n, d = 900, 3
	rng := rand.New(rand.NewPCG(4, 2))
	parts := make([]dataset.Part, clients)
	rows, weights := make([][]float32, clients), make([][]float64, clients)
	for i := range n {
		row := make([]float32, d)
		for h := range row {
			row[h] = dataset.Truncate(float64(i%4)/2-0.75+0.1*rng.NormFloat64()/3, 16)
		}
		w, times := i%5, 1
		if repeat {
			w, times = 1, w
		}
		for range times {
			rows[i%clients] = append(rows[i%clients], row...)
			weights[i%clients] = append(weights[i%clients], float64(w)*0.75)
		}
	}
	for q := range parts {
		p := kernels.NewPanels(len(rows[q])/d, d)
		kernels.Pack(p, rows[q])
		parts[q] = dataset.Part{Points: p, FractionBits: 16, Weights: weights[q]}
		if repeat {
			parts[q].Weights = nil
		}
	}
	return parts
}

// A record of weight w counts as w records do, to the last bit of the centroids.
func TestWeightsAreRepetitions(t *testing.T) {
	eng := enginetest.New(t, engine.WithWorkers(2))
	start := []float64{-0.9, -0.9, -0.9, 0, 0, 0, 0.1, 0.2, 0.3, 0.9, 0.9, 0.9}
	seed := uint64(1)
	for _, clients := range []int{1, 3} {
		for _, ring := range []int{32, 64} {
			var want [][]float64
			for _, repeat := range []bool{true, false} {
				job := &Job{Method: Lloyd, Problem: protocol.Problem{K: 4,
					Clients: weightedParts(t, clients, repeat), Start: start, Seed: &seed, NoQuality: true,
					Iterations: 5}, RingBits: ring}
				res, err := eng.Run(context.Background(), job)
				switch {
				case ring == 32 && !repeat: // the ring is too small for weights
					if !fault.IsRequest(err) {
						t.Errorf("a ring of 32 bits: %v", err)
					}
				case err != nil:
					t.Fatal(err)
				case repeat:
					want = res.Centroids
				case !slices.EqualFunc(res.Centroids, want, slices.Equal[[]float64]):
					t.Errorf("%d clients: weights give %v, repeated records %v", clients, res.Centroids, want)
				}
			}
		}
	}
}

// A start looks at weights: records that weigh nothing are never centroids.
func TestStartsAreWeighted(t *testing.T) {
	eng := enginetest.New(t, engine.WithWorkers(1))
	for seed := range uint64(20) {
		parts := weightedParts(t, 2, false)
		for q := range parts {
			for i := range parts[q].Weights {
				if parts[q].Points.Point(i, nil)[0] > 0.5 {
					parts[q].Weights[i] = 0
				}
			}
		}
		res := enginetest.Run(t, eng, &Job{Method: Lloyd, Problem: protocol.Problem{K: 3, Clients: parts,
			Seed: &seed, NoQuality: true}, NInit: 1})
		for _, c := range res.Centroids {
			if c[0] > 0.5 {
				t.Errorf("seed %d: a centroid at %v, where nothing weighs", seed, c)
			}
		}
	}
}

func TestWeightsRefused(t *testing.T) {
	for name, change := range map[string]func(*Job){
		"constrained noise": func(j *Job) { j.Method, j.Budget = FastLloyd, privacy.Budget{Epsilon: 1} },
		"a paper's claim": func(j *Job) {
			j.Method, j.Budget, j.Calibration = SuLloyd, privacy.Budget{Epsilon: 1}, privacy.Claimed
		},
		"constrained sizes":  func(j *Job) { j.Method = CLloyd },
		"means":              func(j *Job) { j.Release = Centroid },
		"quality":            func(j *Job) { j.NoQuality = false },
		"a negative weight":  func(j *Job) { j.Clients[0].Weights[3] = -1 },
		"no weight":          func(j *Job) { clear(j.Clients[0].Weights); clear(j.Clients[1].Weights) },
		"one client's alone": func(j *Job) { j.Clients[1].Weights = nil },
	} {
		job := &Job{Method: Lloyd, Problem: protocol.Problem{K: 4, Clients: weightedParts(t, 2, false),
			NoQuality: true}}
		if _, err := job.Plan(); err != nil {
			t.Fatal(err)
		}
		change(job)
		if _, err := job.Plan(); !fault.IsRequest(err) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestCappedSensitivity adds an extreme record of some weight, often above the cap, to what a client releases: the sums
// and counts change by at most what a record without weights may change them by, times its weight in caps, and so
// much they do change. Records that are added to an empty client have nothing else to hide behind.
func TestCappedSensitivity(t *testing.T) {
	const d, k = 3, 2
	rng := rand.New(rand.NewPCG(6, 7))
	for _, m := range []Method{SuLloyd, Relative} {
		for _, beyond := range []Beyond{Clip, Exclude} {
			if m == SuLloyd && beyond == Exclude {
				continue
			}
			for _, pair := range [][2]float64{{0.001, 4}, {1.3, 4}, {4, 4}, {1e9, 4}, {1e-323, 1e-322}, {1, 1e-322}} {
				w, most := pair[0], pair[1]
				points := kernels.NewPanels(16, d)
				for i := range points.N {
					points.Set(i, []float32{float32(rng.IntN(3) - 1), float32(rng.IntN(3) - 1), 1})
				}
				weights := make([]float64, points.N)
				weights[5] = w
				job := &Job{Method: m, Problem: protocol.Problem{K: k, Clients: []dataset.Part{{Points: points,
					FractionBits: 16, Weights: weights}}, NoQuality: true, WeightCap: most,
					Start: []float64{-0.5, 0.25, 0, 0.5, -0.25, 0}, Budget: privacy.Budget{Epsilon: 1, Delta: 1e-6}}}
				if m == Relative {
					job.Beyond = beyond
				}
				p := planOf(t, job)
				c := newClient(p, step.Records{Part: job.Clients[0]}, kernels.NewAccumulator(p.k, p.d, p.fraction),
					protocol.NewPrivate(p.length))
				c.use(newPublic(p.k, p.d))
				copy(c.centroids, job.Start)
				c.setGrid()
				a := &weighted{c: c, units: make([]int64, points.N), origin: make([]float32, d)}
				a.units[5] = p.weightUnits(w)
				labels := make([]uint16, points.N)
				kernels.Assign(c.points, c.centres, labels, nil)
				radius := math.Inf(1)
				reach := int64(math.MaxInt64)
				if m == Relative {
					radius = 0.5
					reach = step.Reach(radius, p.scale)
				}
				a.addCapped(c.points, labels, a.units, c.acc, make([]int64, d), reach)
				caps := math.Round(min(w/most, 1)*p.scale) / p.scale
				square, count := 0.0, 0.0
				for _, x := range c.acc.Sums {
					square += float64(x) * float64(x) / (p.scale * p.scale)
				}
				for _, n := range c.acc.Counts {
					count += float64(n) / p.scale
				}
				bound := caps * min(radius, math.Sqrt(d))
				switch {
				case beyond == Exclude:
					if count != 0 || square != 0 { // all records are far
						t.Errorf("%s, weight %v: what is left out counts for %v, %v", m, w, count, square)
					}
				case count != caps:
					t.Errorf("%s, weight %v: the counts change by %v, want %v", m, w, count, caps)
				case math.Sqrt(square) > bound*(1+1e-12):
					t.Errorf("%s, weight %v: the sums change by %v of at most %v", m, w, math.Sqrt(square), bound)
				case caps > 0.1 && math.Sqrt(square) < 0.5*bound:
					t.Errorf("%s, weight %v: the sums change by %v only", m, w, math.Sqrt(square))
				}
			}
		}
	}
}
