package audit

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"

	"github.com/cohort-engine/cohort/engine"
	"github.com/cohort-engine/cohort/engine/catalog"
	"github.com/cohort-engine/cohort/engine/dataset"
	"github.com/cohort-engine/cohort/engine/enginetest"
	"github.com/cohort-engine/cohort/engine/method"
	"github.com/cohort-engine/cohort/engine/privacy"
	"github.com/cohort-engine/cohort/engine/protocol"
	"github.com/cohort-engine/cohort/kernels"
)

// pair is a random request and two neighbouring data sets of it.
type pair struct {
	method   string
	settings method.Settings
	d, k     int
	clients  int
	bits     int
	records  int // public
	weighted bool
	budget   privacy.Budget
	seed     uint64
	sides    [2][]holding
}

// holding is a record and who has it.
type holding struct {
	row    []float32
	weight float64
	client int
}

func (p *pair) String() string {
	return fmt.Sprintf("%s %v, d=%d, k=%d, n=%d, records=%d, clients=%d, bits=%d, weights=%v, %+v", p.method, p.settings,
		p.d, p.k, len(p.sides[0]), p.records, p.clients, p.bits, p.weighted, p.budget)
}

// one draws a value.
func one[T any](rng *rand.Rand, of ...T) T { return of[rng.IntN(len(of))] }

// newPair draws the request for one of the methods, of about so many records, and its data: the last record is away
// from the second set, or another one there.
func newPair(rng *rand.Rand, methods []string, dims []int, n int) *pair {
	p := &pair{method: one(rng, methods...), settings: method.Settings{}, d: one(rng, dims...), k: 1 + rng.IntN(6),
		clients: one(rng, 1, 1, 2, 3), bits: one(rng, 8, 12, 16, 20, 22), seed: rng.Uint64(),
		budget: privacy.Budget{Epsilon: math.Exp(7*rng.Float64() - 3), Delta: one(rng, 0, 1e-5, 1e-5)}}
	replaced := rng.IntN(3) == 0
	if replaced {
		p.settings["neighbours"] = string(privacy.ReplaceOne)
	}
	p.weighted = !slices.Contains([]string{"balcan", "csulloyd", "fastlloyd"}, p.method) && rng.IntN(3) == 0
	for range n + 1 {
		p.sides[0] = append(p.sides[0], holding{p.row(rng), one(rng, 0, 1, .3, rng.Float64(), 5), rng.IntN(p.clients)})
	}
	p.sides[1] = slices.Clone(p.sides[0][:n])
	if last := p.sides[0][n]; replaced {
		other := holding{p.row(rng), one(rng, 0, 1, rng.Float64()), last.client}
		if rng.IntN(2) == 0 {
			for h, x := range last.row {
				other.row[h] = -x
			}
		}
		p.sides[1] = append(p.sides[1], other)
	}
	p.records = max(p.k, one(rng, n, n+1, n, rng.IntN(3*n+1)))
	return p
}

// row draws a record on the grid: a corner, the centre, or one of clusters.
func (p *pair) row(rng *rand.Rand) []float32 {
	row, kind := make([]float32, p.d), rng.IntN(6)
	for h := range row {
		x := [...]float64{float64(2*rng.IntN(2) - 1), 2*rng.Float64() - 1, 0, 1, .02 * rng.NormFloat64(),
			.7 + .1*rng.NormFloat64()}[kind]
		row[h] = float32(math.Ldexp(math.Trunc(math.Ldexp(min(max(x, -1), 1), p.bits)), -p.bits))
	}
	return row
}

// parts are the clients' records on one side.
func (p *pair) parts(side int) []dataset.Part {
	parts := make([]dataset.Part, p.clients)
	for client := range parts {
		var rows []float32
		part, weights := &parts[client], []float64{}
		for _, x := range p.sides[side] {
			if x.client == client {
				rows, weights = append(rows, x.row...), append(weights, x.weight)
				part.Rows = append(part.Rows, len(part.Rows))
			}
		}
		part.Points, part.FractionBits = kernels.NewPanels(len(part.Rows), p.d), p.bits
		kernels.Pack(part.Points, rows)
		if p.weighted {
			part.Weights = weights
		}
	}
	return parts
}

// run runs the request on both sides, with the released values of the first as those of the second, and returns what
// the exact ones differ by over what the ledger has for it; false if the request is refused.
func (p *pair) run(ctx context.Context, rt *engine.Runtime) (share float64, ran bool, err error) {
	replay := &privacy.Replay{Records: p.records}
	var ledger *privacy.Ledger
	for side := range p.sides {
		job, err := catalog.Methods().Job(p.method, protocol.Problem{Clients: p.parts(side), K: p.k, Records: p.records,
			Budget: p.budget, Seed: &p.seed, NoQuality: true, Bounds: dataset.SameBounds(p.d, -1, 1)}, p.settings)
		if err != nil {
			return 0, false, nil
		}
		plan, err := job.Plan()
		if err != nil {
			return 0, false, nil
		}
		runner := plan.(protocol.Runner)
		if side == 0 {
			replay.Record()
			ledger, err = runner.Core().Ledger(nil)
		} else {
			replay.Replay()
		}
		if err != nil {
			return 0, false, err
		}
		if _, err := runner.Connect(ctx, rt, protocol.Options{Replay: replay}); err != nil {
			return 0, false, err
		}
	}
	if _, err := replay.Loss(); err != nil {
		return 0, false, err
	}
	if total := ledger.TotalFor(privacy.Outsider).Epsilon; total == nil || *total > p.budget.Epsilon*(1+1e-9) {
		return 0, false, fmt.Errorf("the ledger's total is %v", total)
	}
	laplace, gaussian := replay.Distance()
	var pure, mu2 float64
	for _, e := range ledger.Entries() {
		switch times := float64(e.Cost.Times()); {
		case e.Kind != privacy.Release:
		case e.Cost.Family == "discrete-gaussian":
			mu2 += times / (e.Cost.Scale * e.Cost.Scale)
		case e.Cost.Family == "discrete-laplace":
			pure += times / e.Cost.Scale
		}
	}
	if pure == 0 && laplace > 0 || mu2 == 0 && gaussian > 0 {
		return 0, false, fmt.Errorf("noise of a kind that the ledger has not")
	}
	if pure > 0 {
		share = laplace / pure
	}
	if mu2 > 0 {
		share = max(share, math.Sqrt(gaussian/mu2))
	}
	return share, true, nil
}

// stage draws the settings of a method of stages.
func (p *pair) stage(rng *rand.Rand) {
	if p.method != "hybrid" {
		p.clients = 1
		for side := range p.sides {
			for i := range p.sides[side] {
				p.sides[side][i].client = 0
			}
		}
		return
	}
	if branch := one(rng, "", "tree", "tree", "grid", "high-d", "projected", "mean"); branch != "" {
		p.settings["branch"] = branch
	}
	switch tree := p.settings["branch"] == "tree"; {
	case tree && rng.IntN(3) == 0:
		p.settings["balance"] = "2"
	case tree && rng.IntN(2) == 0:
		p.settings["frame"] = "on"
	case tree:
		p.settings["k-least"] = "1"
	}
}

// lloyd draws the settings of a Lloyd method.
func (p *pair) lloyd(rng *rand.Rand) {
	p.settings["iterations"] = strconv.Itoa(1 + rng.IntN(3))
	if p.clients > 1 {
		p.settings["aggregator"] = one(rng, "ring", "shares")
	}
	p.settings["mechanism"] = "laplace"
	if p.budget.Delta > 0 {
		p.settings["mechanism"] = one(rng, "laplace", "gaussian")
	}
	if p.method != "csulloyd" && p.method != "fastlloyd" {
		return
	}
	switch rng.IntN(5) {
	case 0:
		p.settings["exclusivity"] = strconv.Itoa(1 + rng.IntN(min(p.k, 3)))
	case 1:
		p.settings["exclusivity"] = "nonexclusive"
	case 2:
		p.settings["radius"] = strconv.FormatFloat(.05+2*rng.Float64(), 'g', 4, 64)
	case 3:
		p.settings["radius-schedule"] = one(rng, "sqrt", "geometric")
	}
	p.settings["eta-min-alpha"], p.settings["eta-max-alpha"] = one(rng, "1.25", "2", "5"), one(rng, "1.25", "2", "1")
}

// No exact values of two neighbours, of random requests on random records, differ by more than the ledger has.
func TestRandomNeighbours(t *testing.T) {
	eng := enginetest.New(t, engine.WithWorkers(1))
	rt, rng := engine.NewRuntime(eng.Pool()), rand.New(rand.NewPCG(1, 77))
	for _, x := range []struct {
		methods []string
		dims    []int
		draw    func(p *pair, rng *rand.Rand)
		pairs   int
		records int
	}{
		{[]string{"sulloyd", "relative", "csulloyd", "fastlloyd", "csulloyd", "fastlloyd"}, []int{1, 2, 3, 4, 6, 9},
			(*pair).lloyd, 400, 150},
		{[]string{"hybrid", "hybrid", "hybrid", "hybrid", "lsf", "eugkm", "evolve", "balcan"},
			[]int{1, 2, 3, 4, 6, 9, 10, 14, 55}, (*pair).stage, 80, 400},
	} {
		ran, most := 0, 0.0
		for range x.pairs {
			p := newPair(rng, x.methods, x.dims, 1+rng.IntN(x.records))
			x.draw(p, rng)
			share, ok, err := p.run(t.Context(), rt)
			switch {
			case err != nil:
				t.Errorf("%v: %v", p, err)
			case share > 1+1e-7: // costs in the ledger are rounded
				t.Errorf("%v: exact values differ by %.9f of what the ledger has", p, share)
			case ok:
				ran, most = ran+1, max(most, share)
			}
		}
		if ran < x.pairs/2 || most < .99 {
			t.Errorf("%s: %d of %d pairs ran, the largest share was %.4f", x.methods, ran, x.pairs, most)
		}
	}
}
