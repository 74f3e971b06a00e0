package sketch

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	"github.com/cohort-engine/cohort/engine"
	"github.com/cohort-engine/cohort/engine/privacy"
	"github.com/cohort-engine/cohort/engine/protocol"
	"github.com/cohort-engine/cohort/internal/fault"
)

// Return says who may see the result of the sketches.
type Return string

const (
	// ToServer leaves it with the server: the parties hold the keys and know the phantoms, so that to them what is
	// estimated from sketches has no noise. It is the default.
	ToServer Return = "server"
	// Noised gives it to the parties, too, made of what they may see: the local centres and sizes, and the cells that the
	// keys draw, counted with noise of the server's (THEOREMS.md T16).
	Noised Return = "noised"
)

// estimatorDraws estimates the grid from the cells that the keys draw: that of Noised.
const estimatorDraws Estimator = "drawn-cells"

// returned is how the cells that the keys draw are counted for those who hold the keys.
type returned struct {
	// pairs of parties have the same keys, and sets of keys there are.
	pairs, sets int
	// chance is that of a key that a record changes its draw, scale the noise of a count.
	chance, scale float64
	// deviation is about that of the estimate of a pair's cell, in records.
	deviation float64
}

// planReturn finds how many keys and phantoms per cell make the drawn cells tell most: at least so many phantoms as the
// sketches need, a sqrt(keys) in a cell.
func (p *plan) planReturn(j *Job, slack, a float64) error {
	r := &returned{pairs: p.pairs(), sets: 1, deviation: math.Inf(1)}
	if p.pairKeys {
		r.pairs, r.sets = 1, r.pairs
	}
	p.returned = r
	least, most := leastPlanned, mostPlanned
	if p.sketches != 0 {
		least, most = p.sketches, p.sketches
	}
	n, perCell := float64(j.PublicRecords()), math.Pow(float64(p.clusters), float64(p.sharing()))
	best := *r
	for m := least; m <= most; m *= 2 {
		for phantoms := math.Ceil(a * math.Sqrt(float64(m))); ; phantoms = math.Ceil(phantoms * 1.5) {
			if err := p.noiseOfDraws(j, m, phantoms, slack); err != nil {
				return err
			}
			ids := (n + phantoms*perCell) / float64(m) // for a key
			r.deviation = ids * math.Sqrt(r.scale*r.scale+float64(m)/float64(p.clusters*p.clusters))
			if r.deviation < 0.95*best.deviation { // less is not worth the time of more keys
				best, p.sketches, p.phantoms = *r, m, phantoms
			}
			if phantoms*perCell > 4*n {
				break
			}
		}
	}
	*r = best
	return nil
}

// sharing is the number of parties with the same keys.
func (p *plan) sharing() int {
	if p.pairKeys {
		return 2
	}
	return p.parties
}

// noiseOfDraws finds the noise of the counts of m keys' draws, with so many phantoms in a cell: a record may change the
// draw of a key if its hash is less than 1+gamma times the least of the phantoms', or where both are beyond the
// greatest height (THEOREMS.md T16 ii).
func (p *plan) noiseOfDraws(j *Job, m int, phantoms, slack float64) error {
	r := p.returned
	all := phantoms * math.Pow(float64(p.clusters), float64(p.sharing()))
	r.chance = min(0.5, (1+j.Gamma)/(all+1)+(all+1)*0x1p-63)
	own := float64(r.sets) * p.drawnSlack(minScale)
	scale, err := privacy.DrawnScale(j.Budget, p.localMu*math.Sqrt(float64(p.parties)),
		privacy.Drawn{Trials: m, P: r.chance}, r.sets, slack+own)
	if err != nil {
		return fault.Request("sketch-share", fmt.Sprintf("is %v: %v", p.share, err),
			"use a larger one")
	}
	r.scale = gaussianScale(math.Sqrt(float64(2*r.pairs)), 1/scale)
	return nil
}

// drawnSlack is the distance of the counts' noise under one set of keys from continuous noise.
func (p *plan) drawnSlack(scale float64) float64 {
	return privacy.GaussianSlack(scale*(1<<releaseBits), p.returned.pairs*p.clusters*p.clusters)
}

// planReturned plans the release of the cells that the keys draw, and what follows from it.
func (r *run) planReturned() {
	p := r.plan.returned
	b := tableBound(r.job.Method, r.job.Calibration, "cells that the keys draw", privacy.Shape{D: r.D, K: r.plan.clusters,
		Bound: 1, Pairs: p.pairs, Neighbours: r.job.relation()})
	e := b.Entry("cells that the keys draw, of each pair of parties", "discrete-gaussian", "L2")
	e.Scale, e.Unit, e.Noise = p.scale, "keys", privacy.DrawnBy(privacy.Server)
	e.Cost = privacy.Spec{Family: "drawn-gaussian", Scale: e.Scale / e.Sensitivity, Trials: r.plan.sketches, P: p.chance,
		Slack: r.plan.drawnSlack(e.Scale)}
	if p.sets > 1 {
		e.Cost.Rounds = p.sets
	}
	e.Viewers, e.Derived = []string{privacy.Clients, privacy.Outsider}, []string{privacy.Server}
	e.Conditions = slices.Clone(b.Rule.Conditions)
	if r.job.IDs == nil {
		e.Conditions = append(e.Conditions, "records have the numbers of their rows for ids: the bound is for a row that is "+
			"left out while the others keep their numbers")
	}
	e.Remark = fmt.Sprintf("the sensitivity is that of one key; a record changes the draw of each of %d keys with "+
		"probability %.3g", r.plan.sketches, p.chance)
	r.Drawable(e.What, e.Scale*(1<<releaseBits))
	r.returned = &release{r.Add(&protocol.Release{Name: e.What, Makers: protocol.Holder,
		Entries: []privacy.Entry{e}}), protocol.Gaussian, e.Scale}
	if cell := float64(r.N) / float64(r.plan.clusters*r.plan.clusters); p.deviation > cell {
		r.Doubts = append(r.Doubts, fmt.Sprintf("what is returned has noise of about %.0f records in a cell of %.0f: use "+
			"more records, a larger epsilon or --sketch-share, or a smaller --local-k", p.deviation, cell))
	}
}

// draw counts, by cell of the clusters of two of the view's parties, the keys that draw it: of a key the cell of the
// greatest height, unless two clusters of a party have it.
func (v *View) draw(l1, l2 int, counts []int64) {
	x, y := v.Sketches[l1], v.Sketches[l2]
	for key := range x.Keys {
		a, first := greatest(x.Row(key))
		b, second := greatest(y.Row(key))
		if a >= 0 && b >= 0 && first == second {
			counts[a*v.clusters()+b]++
		}
	}
}

// greatest is the place of the greatest of some heights, and it; the place is -1 if two are.
func greatest(heights []uint16) (at int, most uint16) {
	for a, h := range heights {
		switch {
		case h > most:
			at, most = a, h
		case h == most:
			at = -1
		}
	}
	return at, most
}

// draws counts the cells that the keys draw, of each pair of parties.
func (r *Release) draws(counts []int64) {
	k := r.Clusters
	for l1, at := 0, 0; l1 < r.Parties; l1++ {
		for l2 := l1 + 1; l2 < r.Parties; l2, at = l2+1, at+k*k {
			if r.Joint != nil {
				r.Joint.draw(l1, l2, counts[at:at+k*k])
			} else {
				r.pair(l1, l2).draw(0, 1, counts[at:at+k*k])
			}
		}
	}
}

// pairs is the number of pairs of parties.
func (p *plan) pairs() int { return p.parties * (p.parties - 1) / 2 }

// noisyDraws releases what draws counts, in multiples of 2^-unit.
func (v *server) noisyDraws(r *Release) (counts []int64, unit int, err error) {
	return noisy(v.Party, v.returned, 0, "drawn cells", 0, func(words []int64) error {
		r.draws(words)
		return nil
	}, v.plan.pairs()*r.Clusters*r.Clusters)
}

// drawn releases the cells that the keys draw and makes tables of the pairs of parties of them, in records: of an id
// that is drawn, a record or a phantom, the cell is known. Tables are fitted to the sizes of the clusters.
func (v *server) drawn(ctx context.Context, r *Release) (*Grid, error) {
	span := v.Begin(engine.PhaseWeights, 0)
	defer v.End(span)
	k := v.plan.clusters
	counts, unit, err := v.noisyDraws(r)
	if err != nil {
		return nil, err
	}
	phantoms := v.plan.phantoms * math.Pow(float64(k), float64(v.plan.sharing()))
	each := (r.Records + phantoms) / float64(v.plan.sketches) // ids for a key
	var tables [][]float64
	for l1 := range v.plan.parties {
		for l2 := l1 + 1; l2 < v.plan.parties; l2++ {
			at := len(tables) * k * k
			table := floats(counts[at:at+k*k], unit)
			for i, x := range table {
				table[i] = float64(x*each) - phantoms/float64(k*k)
			}
			projectSimplex(table, r.Records)
			rake(table, r.Margins[l1], r.Margins[l2])
			tables = append(tables, table)
		}
	}
	return fitPairs(ctx, v.Pool(), r, tables)
}

// rake scales rows and columns of a table to sums in turn.
func rake(table, rows, columns []float64) {
	const sweeps = 20
	k := len(rows)
	scale := func(first, step int, target float64) {
		sum := 0.0
		for i := range k {
			sum += table[first+i*step]
		}
		if sum <= 0 {
			return
		}
		for i := range k {
			table[first+i*step] *= target / sum
		}
	}
	for range sweeps {
		for a, target := range rows {
			scale(a*k, 1, target)
		}
		for b, target := range columns {
			scale(b, k, target)
		}
	}
}

// returnedBytes is the length of what the server sends to a party: how many cells the grid has, and so many centroids
// with their weights.
func (r *run) returnedBytes(rows int) int { return 8 * (1 + rows*(r.D+1)) }

// giveBack sends the result to all parties.
func (v *server) giveBack(ctx context.Context, o *protocol.Outcome) error {
	b := binary.LittleEndian.AppendUint64(nil, uint64(v.grid.len()))
	for _, x := range append(append([]float64(nil), o.Centroids...), o.Sizes...) {
		b = binary.LittleEndian.AppendUint64(b, math.Float64bits(x))
	}
	for l := range v.plan.parties {
		if err := v.Send(ctx, v.returned.Release, protocol.Role(l), b); err != nil {
			return err
		}
	}
	return nil
}

// takeBack is the result as a party gets it, nil where it gets none.
func (p *party) takeBack(ctx context.Context) (*protocol.Outcome, error) {
	if p.returned == nil || p.Replay != nil {
		return nil, nil
	}
	b, err := p.Receive(ctx, protocol.Server)
	if err != nil {
		return nil, err
	}
	cells, numbers, err := decodeReturned(b, p.K, p.D)
	if err != nil {
		return nil, err
	}
	rows := len(numbers) / (p.D + 1)
	return p.outcome(cells, numbers[:rows*p.D], numbers[rows*p.D:]), nil
}

// decodeReturned reads what giveBack sends: the number of the grid's cells, up to k centroids in d columns, and their
// sizes.
func decodeReturned(b []byte, k, d int) (cells int, numbers []float64, err error) {
	rows := (len(b)/8 - 1) / (d + 1)
	if rows < 1 || rows > k || len(b) != 8*(1+rows*(d+1)) {
		return 0, nil, fault.Failed("message", fmt.Sprintf("of the server has %d bytes, which are no centroids", len(b)),
			"restart the run", nil)
	}
	numbers = make([]float64, rows*(d+1))
	for i := range numbers {
		x := math.Float64frombits(binary.LittleEndian.Uint64(b[8+8*i:]))
		if math.IsNaN(x) || math.IsInf(x, 0) {
			return 0, nil, fault.Failed("message", "of the server has a centroid that is no number", "restart the run", nil)
		}
		numbers[i] = x
	}
	return int(binary.LittleEndian.Uint64(b) & math.MaxInt64), numbers, nil
}
