package lloyd

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/cohort-engine/cohort/engine"
	"github.com/cohort-engine/cohort/engine/dataset"
	"github.com/cohort-engine/cohort/engine/enginetest"
	"github.com/cohort-engine/cohort/engine/privacy"
	"github.com/cohort-engine/cohort/engine/protocol"
	"github.com/cohort-engine/cohort/kernels"
)

// dealtTable is a table of one column on the grid.
func dealtTable(rows []float32) *dataset.Normalised {
	p := kernels.NewPanels(len(rows), 1)
	kernels.Pack(p, rows)
	return &dataset.Normalised{Points: p, Bounds: dataset.SameBounds(1, -1, 1), FractionBits: dataset.DefaultFractionBits}
}

// TestDealtTable: a table in which one client of two gets all ones and the other all minus ones. A record more deals
// both anew, and what clusters of limited sizes release changes by many times what T1 gives for a record of one client:
// plans of a dealt table say so and are refused by ledger files. The noise is that of one seed on both sides.
func TestDealtTable(t *testing.T) {
	const n, k = 1000, 2
	rows := make([]float32, n+1)
	deal := func(rows []float32) []dataset.Part {
		parts, err := dealtTable(rows).Split(2, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		return parts
	}
	for client, part := range deal(rows[:n]) {
		for _, r := range part.Rows {
			rows[r] = float32(1 - 2*client)
		}
	}
	rows[n] = 1
	eng := enginetest.New(t, engine.WithWorkers(1))
	seed := uint64(3)
	var released [2][][]float64
	for side, with := range [][]float32{rows[:n], rows} {
		j := &Job{Method: FastLloyd, Problem: protocol.Problem{Clients: deal(with), K: k, Records: n,
			Iterations: 1, Budget: privacy.Budget{Epsilon: 1, Delta: 1e-5}, Seed: &seed, NoQuality: true}}
		r := enginetest.Run(t, eng, j)
		released[side] = r.Centroids
	}
	change := 0.0
	for c, row := range released[0] {
		change = math.Hypot(change, row[0]-released[1][c][0])
	}
	lo := int(math.Ceil(n / (2 * k * 1.25)))
	if bound := 2 * math.Sqrt(k) / float64(2*lo); change < 50*bound {
		t.Errorf("the release changes by %v, which a bound of %v for a record covers", change, bound)
	}
}

// TestDealtPlans: which plans say that no bound holds for a record of a dealt table.
func TestDealtPlans(t *testing.T) {
	for _, c := range []struct {
		method     Method
		clients    int
		dealt      bool
		neighbours privacy.Neighbours
		open       bool
	}{
		{FastLloyd, 2, true, "", true}, {CSuLloyd, 3, true, privacy.AddRemove, true},
		{FastLloyd, 2, false, "", false}, {FastLloyd, 1, true, "", false},
		{FastLloyd, 2, true, privacy.ReplaceOne, false}, {SuLloyd, 2, true, "", false}, {Relative, 2, true, "", false},
		{CLloyd, 2, true, "", false},
	} {
		table := dealtTable(make([]float32, 300))
		parts, err := table.Split(c.clients, nil, 0)
		if !c.dealt {
			parts, err = table.SplitFiles([]int{100, 200})
		}
		if err != nil {
			t.Fatal(err)
		}
		j := &Job{Method: c.method, Problem: protocol.Problem{Clients: parts, K: 2, Records: 300,
			Neighbours: c.neighbours, Budget: privacy.Budget{Epsilon: 1, Delta: 1e-5}}}
		if !c.method.Private() {
			j.Budget, j.Records = privacy.Budget{}, 0
		}
		p := planOf(t, j)
		tells := func(s string) bool { return strings.Contains(s, "how the table was dealt") }
		for what, open := range map[string]bool{"doubts": slices.ContainsFunc(p.Doubts, tells),
			"notes": slices.ContainsFunc(p.Notes, tells), "refusal by a ledger file": p.Unpaid != ""} {
			if open != c.open {
				t.Errorf("%+v: %s: %v", c, what, open)
			}
		}
	}
}
