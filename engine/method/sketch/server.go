package sketch

import (
	"context"
	"encoding/binary"
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/cohort-engine/cohort/engine"
	"github.com/cohort-engine/cohort/engine/dataset"
	"github.com/cohort-engine/cohort/engine/privacy"
	"github.com/cohort-engine/cohort/engine/protocol"
	"github.com/cohort-engine/cohort/engine/synopsis"
	"github.com/cohort-engine/cohort/internal/fault"
	"github.com/cohort-engine/cohort/kernels"
)

// server is the coordinator's side of a run: it holds what the parties sent.
type server struct {
	*protocol.Party
	*run
	messages []*message
	// centers are the local centres of each party as it decoded them.
	centers [][]float32
	// records is the noisy number of records, 0 if it was not released.
	records  float64
	reports  [][]uint8
	labels   [][]uint16 // exact memberships, where they are sent
	grid     *Grid
	solution *synopsis.Solution
}

// play is the server's program.
func (v *server) play(ctx context.Context, p *protocol.Party) (*protocol.Outcome, error) {
	v.Party = p
	if err := v.gather(ctx); err != nil || p.Replay != nil {
		return nil, err
	}
	var err error
	if v.grid, err = v.weights(ctx); err != nil {
		return nil, err
	}
	v.grid.round()
	if v.job.ExactWeights && v.job.Method.private() {
		if v.grid, err = exactGrid(ctx, v.Pool(), v.labels, v.plan.clusters); err != nil {
			return nil, err
		}
	}
	if v.solution, err = v.cluster(ctx, v.grid); err != nil {
		return nil, err
	}
	var centers []float64
	for _, x := range v.solution.Centers {
		centers = append(centers, float64(dataset.Truncate(x, v.bits)))
	}
	o := v.outcome(v.grid.len(), centers, v.solution.Weights)
	if v.returned != nil {
		if err := v.giveBack(ctx, o); err != nil {
			return nil, err
		}
	}
	return o, v.EndRound(ctx, 0, 1)
}

// gather takes what the parties send.
func (v *server) gather(ctx context.Context) error {
	for l := range v.plan.parties {
		b, err := v.Receive(ctx, protocol.Role(l))
		if err != nil {
			return err
		}
		m, err := decodeMessage(b)
		if err != nil {
			return err
		}
		if !v.fits(m, l) {
			return fault.Failed("sketch message", "of "+partyName(l)+" is not what the plan says",
				"the sender and the server must run the same protocol", nil)
		}
		v.messages = append(v.messages, m)
		unit := math.Ldexp(1, m.FractionBits)
		centers := make([]float32, len(m.Centers))
		for i, c := range m.Centers {
			centers[i] = float32(float64(c) / unit)
		}
		v.centers = append(v.centers, centers)
		if v.job.Method == LocalReports {
			b, err := v.bytesOf(ctx, l, 256)
			if err != nil {
				return err
			}
			v.reports = append(v.reports, b)
		}
		if l == 0 && v.hasRecords {
			if v.records, err = v.recordsOf(ctx, l); err != nil {
				return err
			}
		}
		if v.memberships != nil {
			b, err := v.bytesOf(ctx, l, v.plan.clusters)
			if err != nil {
				return err
			}
			labels := make([]uint16, len(b))
			for i, a := range b {
				labels[i] = uint16(a)
			}
			v.labels = append(v.labels, labels)
		}
	}
	return nil
}

// recordsOf takes a party's noisy number of records.
func (v *server) recordsOf(ctx context.Context, l int) (float64, error) {
	b, err := v.Receive(ctx, protocol.Role(l))
	if err != nil {
		return 0, err
	}
	if len(b) != 8 {
		return 0, fault.Failed("message", fmt.Sprintf("of %s has %d bytes where 8 were expected", partyName(l), len(b)),
			"restart the run", nil)
	}
	return max(float64(int64(binary.LittleEndian.Uint64(b))), 1), nil
}

// bytesOf takes a byte below `below` for each record from party l.
func (v *server) bytesOf(ctx context.Context, l, below int) ([]byte, error) {
	b, err := v.Receive(ctx, protocol.Role(l))
	if err != nil {
		return nil, err
	}
	if len(b) != v.job.Own() || slices.ContainsFunc(b, func(x byte) bool { return int(x) >= below }) {
		return nil, fault.Failed("message", "of "+partyName(l)+" has no value for each record", "restart the run", nil)
	}
	return b, nil
}

// weights estimates the grid from what was gathered.
func (v *server) weights(ctx context.Context) (*Grid, error) {
	switch v.job.Method {
	case Plain:
		span := v.Begin(engine.PhaseWeights, 0)
		defer v.End(span)
		return exactGrid(ctx, v.Pool(), v.labels, v.plan.clusters)
	case Independent:
		return v.independent()
	case LocalReports:
		span := v.Begin(engine.PhaseWeights, 0)
		defer v.End(span)
		return v.aggregateReports(ctx, v.frequency, v.reports)
	}
	release := v.release()
	if v.returned != nil {
		grid, err := v.drawn(ctx, release)
		v.doubt(release)
		return grid, err
	}
	v.warn(release)
	grid, err := v.estimate(ctx, release)
	v.doubt(release)
	return grid, err
}

// independent is the grid of IND-LAP.
func (v *server) independent() (*Grid, error) {
	sizes := make([][]float64, v.plan.parties)
	for l, m := range v.messages {
		sizes[l] = floats(m.Sizes, m.SizeBits)
		for a, x := range sizes[l] {
			sizes[l][a] = max(x, 0)
		}
	}
	span := v.Begin(engine.PhaseWeights, 0)
	defer v.End(span)
	grid, err := newDenseGrid(v.plan.parties, v.plan.clusters)
	if err != nil {
		return nil, err
	}
	independent(grid, sizes, v.records)
	rescale(grid.Weights, v.records)
	return grid, nil
}

// release is what the server holds of the sketch protocols.
func (v *server) release() *Release {
	r := v.receive(v.messages)
	r.search, r.centers, r.columns = v.search, v.centers, v.job.Columns
	if v.records > 0 {
		r.Records = v.records
	}
	return r
}

// estimate is phase 3.
func (v *server) estimate(ctx context.Context, r *Release) (*Grid, error) {
	span := v.Begin(engine.PhaseWeights, 0)
	defer v.End(span)
	return r.estimate(ctx, v.Pool(), v.job.Estimator)
}

// cluster is phase 4: weighted k-means on the grid, whose points are the
// concatenated local centres.
func (v *server) cluster(ctx context.Context, grid *Grid) (*synopsis.Solution, error) {
	span := v.Begin(engine.PhaseSearch, 0)
	defer v.End(span)
	return v.search(ctx, grid, 20)
}

// searchedCells is the number of cells on which starts and swaps work: of more, so many are drawn by weight, as of the
// records in plainCenters.
const searchedCells = 20_000

// search is cluster from so many starts.
func (v *server) search(ctx context.Context, grid *Grid, starts int) (*synopsis.Solution, error) {
	w := gridPoints(grid, v.centers, v.D, v.job.Columns)
	return synopsis.Search(ctx, v.Pool(), w, v.job.K, synopsis.SearchOptions{Starts: starts, Sample: searchedCells},
		v.Public.Stream(int(protocol.Server), 0, "final search"))
}

// outcome is what the run ends with: from a grid of so many cells, centroids and the weights of their clusters.
func (r *run) outcome(cells int, centroids, weights []float64) *protocol.Outcome {
	j := r.job
	o := &protocol.Outcome{Iterations: 1, Centroids: centroids,
		Details: map[string]any{"local_k": r.plan.clusters, "grid_cells": cells, "weights": weights}}
	if j.Method.private() {
		o.Sizes = weights
	}
	if j.Method.sketches() {
		o.Details["sketches"], o.Details["gamma"] = r.plan.sketches, j.Gamma
		o.Details["phantoms"], o.Details["estimator"] = r.plan.phantoms, string(j.Estimator)
	}
	return o
}

// receive is what the server makes of the messages.
func (v *server) receive(messages []*message) *Release {
	plan := v.plan
	r := &Release{Parties: plan.parties, Clusters: plan.clusters, Mixture: plan.mixture, Classes: plan.classes,
		refit: plan.refits(v.job)}
	view := func(sketches ...*Sketches) *View {
		return &View{Distribution: plan.distribution, Sketches: sketches, Phantoms: plan.phantoms,
			Shared: v.job.Calibration == privacy.Proven, Floor: plan.floor}
	}
	if plan.pairKeys {
		for l1 := range plan.parties {
			for l2 := l1 + 1; l2 < plan.parties; l2++ {
				r.Pairs = append(r.Pairs, view(messages[l1].Sets[l2-1], messages[l2].Sets[l1]))
			}
		}
	} else {
		r.Joint = view()
		for _, m := range messages {
			r.Joint.Sketches = append(r.Joint.Sketches, m.Sets[0])
		}
	}
	if messages[0].Sizes == nil {
		return r
	}
	deviation := v.parties[0].sizes.deviation()
	r.SizeVariance = float64(deviation * deviation)
	// Every party counts all records; noisy sizes below 1 say no more than 1.
	for _, m := range messages {
		margin := floats(m.Sizes, m.SizeBits)
		for a, x := range margin {
			r.Records += x / float64(plan.parties)
			margin[a] = max(x, 1)
		}
		r.Margins = append(r.Margins, margin)
	}
	r.Records = max(r.Records, 1)
	for _, margin := range r.Margins {
		rescale(margin, r.Records)
	}
	return r
}

// estimate turns the release into the weights of the grid.
func (r *Release) estimate(ctx context.Context, run runner, e Estimator) (*Grid, error) {
	switch {
	case e == estimatorBasic:
		return basicEstimate(r.Joint, r.Records)
	case e == EstimatorPaper:
		return twoPartyEstimate(ctx, run, r)
	case e == EstimatorPair:
		return pairEstimate(ctx, run, r)
	case r.Joint != nil:
		g, err := jointEstimate(ctx, run, r.Joint, r.Records, r.Margins, r.SizeVariance, emThresholds)
		if err != nil || !r.refit || r.search == nil {
			return g, err
		}
		return refitJoint(ctx, run, r, g)
	}
	return pairwiseJointEstimate(ctx, run, r)
}

// doubt notes what is doubtful about an estimate.
func (v *server) doubt(r *Release) {
	for _, d := range r.doubts {
		v.Note("%s", d)
	}
}

// warn notes settings in which the sketches can say little.
func (v *server) warn(r *Release) {
	views := r.Pairs
	if r.Joint != nil {
		views = []*View{r.Joint}
	}
	// The paper's estimators see the records through the union of almost all
	// sketches; the likelihoods see each cell against its own background.
	phantoms, records, where := views[0].inUnion(), r.Records, "the union of sketches that an estimate rests on holds"
	if v.job.Estimator == EstimatorEM || v.job.Estimator == EstimatorPair && views[0].Shared {
		phantoms, records, where = views[0].inCell(), r.Records/float64(r.Clusters), "each cell of the grid holds"
	}
	if phantoms > records {
		v.Note("%s %.0f phantoms for about %.0f records: expect weights that are mostly noise; use more records, a "+
			"larger epsilon, a smaller local-k or fewer sketches", where, phantoms, records)
	}
	if v.plan.pairKeys {
		v.Note("each of the %d pairs of parties has keys of its own", len(r.Pairs))
		if r.Mixture || !r.listed() {
			v.Note("the grid of %d^%d cells is not built: cells are drawn from a mixture of at most %d classes, which is "+
				"fitted to the tables of all pairs", r.Clusters, r.Parties, r.Classes)
		}
	}
}

// recordsPerCount is the number of records that a task of exactGrid counts.
const recordsPerCount = 1 << 16

// exactGrid is the grid of exact counts of memberships by party, its support the cells
// that hold a record.
func exactGrid(ctx context.Context, run runner, labels [][]uint16, k int) (*Grid, error) {
	parties, n := len(labels), len(labels[0])
	if _, ok := product(k, parties, maxDense); !ok {
		return exactSparse(labels, k), nil
	}
	g, err := newDenseGrid(parties, k)
	if err != nil {
		return nil, err
	}
	counts := make([][]int64, run.Workers())
	err = run.Run(ctx, (n+recordsPerCount-1)/recordsPerCount, func(worker, task int) {
		if counts[worker] == nil {
			counts[worker] = make([]int64, g.len())
		}
		columns := make([][]uint16, parties)
		for l, of := range labels {
			columns[l] = of[task*recordsPerCount : min((task+1)*recordsPerCount, n)]
		}
		kernels.CountCells(columns, k, counts[worker])
	})
	if err != nil {
		return nil, err
	}
	for _, part := range counts {
		for cell, c := range part {
			g.Weights[cell] += float64(c)
		}
	}
	kept := 0
	for i, w := range g.Weights {
		if w > 0 {
			copy(g.Cells[kept*parties:], g.cell(i))
			g.Weights[kept] = w
			kept++
		}
	}
	g.Cells, g.Weights = g.Cells[:kept*parties], g.Weights[:kept]
	return g, nil
}

// exactSparse is exactGrid where the cells are too many to list.
func exactSparse(labels [][]uint16, k int) *Grid {
	parties, n := len(labels), len(labels[0])
	counts := make(map[string]float64)
	cell := make([]byte, parties)
	for i := range n {
		for l := range labels {
			cell[l] = byte(labels[l][i])
		}
		counts[string(cell)]++
	}
	g := &Grid{Parties: parties, Clusters: k}
	for _, c := range slices.Sorted(maps.Keys(counts)) {
		g.Cells = append(g.Cells, c...)
		g.Weights = append(g.Weights, counts[c])
	}
	return g
}

// gridPoints lists the cells of positive weight as points with all d columns in
// the data's order.
func gridPoints(grid *Grid, centers [][]float32, d int, split Split) *synopsis.Weighted {
	w := &synopsis.Weighted{D: d}
	point := make([]float64, d)
	for i, weight := range grid.Weights {
		if weight <= 0 {
			continue
		}
		for l, a := range grid.cell(i) {
			columns := split[l]
			for h, column := range columns {
				point[column] = float64(centers[l][int(a)*len(columns)+h])
			}
		}
		w.Append(point, weight)
	}
	return w
}

// intersectionError is the relative intersection error of Sketch-V, section
// 6.2: (1/n) sum over cells of |w - truth|.
func intersectionError(w, truth *Grid, n int) float64 {
	sum := 0.0
	i, t := 0, 0
	for i < w.len() || t < truth.len() {
		order := 0
		switch {
		case i == w.len():
			order = 1
		case t == truth.len():
			order = -1
		default:
			order = slices.Compare(w.cell(i), truth.cell(t))
		}
		switch {
		case order < 0:
			sum += math.Abs(w.Weights[i])
			i++
		case order > 0:
			sum += truth.Weights[t]
			t++
		default:
			sum += math.Abs(w.Weights[i] - truth.Weights[t])
			i++
			t++
		}
	}
	return sum / float64(n)
}
