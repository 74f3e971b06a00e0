package pca

import (
	"context"
	"math"

	"github.com/cohort-engine/cohort/engine"
	"github.com/cohort-engine/cohort/engine/privacy"
	"github.com/cohort-engine/cohort/engine/protocol"
	"github.com/cohort-engine/cohort/engine/step/staged"
	"github.com/cohort-engine/cohort/engine/synopsis"
	"github.com/cohort-engine/cohort/internal/fault"
	"github.com/cohort-engine/cohort/kernels"
)

// Job is k-means on the first principal components, without noise: a reference
// for what a projection that looks at the data would give. No private method
// offers it, as the components are a release of their own.
type Job struct {
	protocol.Problem
	// Components is their number, at most D; 0 means ln(n)/2, as for balcan.
	Components int
}

// Plan implements engine.Job.
func (j *Job) Plan() (engine.Plan, error) { return staged.Make(j, (*Job).plan) }

func (j *Job) plan() (*staged.Plan, error) {
	if err := j.Check("pca", protocol.Takes{}); err != nil {
		return nil, err
	}
	if j.Components < 0 || j.Components > j.D() {
		return nil, fault.Range("components", j.Components, "1 to the number of columns")
	}
	f, err := staged.NewPlain("pca", &j.Problem)
	if err != nil {
		return nil, err
	}
	centroids := f.Add(&protocol.Release{Name: "exact centroids", Entries: []privacy.Entry{
		{What: "exact centroids", Viewers: f.Audience, Mechanism: "none", Calibration: privacy.None}}})
	components := j.Components
	f.Does(1, func(ctx context.Context, p *staged.Party) (*protocol.Outcome, error) {
		found, err := onAxes(ctx, p, components)
		if err != nil {
			return nil, err
		}
		public, err := p.OwnReals(centroids, 0, "", 0, protocol.NewPrivateReals(found))
		return &protocol.Outcome{Centroids: public, Iterations: 1}, err
	})
	return f, nil
}

// onAxes is k-means on the first q principal components (0 for the rule), with the
// means of the clusters found there in all dimensions.
func onAxes(ctx context.Context, p *staged.Party, q int) ([]float64, error) {
	records := p.Records
	if q == 0 {
		q = staged.LowDimension(records.N, p.D)
	}
	span := p.Begin(engine.PhaseEncode, 0)
	mean, axes, err := principalAxes(ctx, p, q)
	if err != nil {
		return nil, err
	}
	// All records fit into [-1,1]^q after division by the diameter of the box.
	scale := float32(1 / (2 * math.Sqrt(float64(p.D))))
	for i := range axes {
		axes[i] *= scale
	}
	low, err := staged.Project(ctx, p.Pool(), records, kernels.NewMatrix(q, p.D, axes), mean, p.FractionBits)
	p.End(span)
	if err != nil {
		return nil, err
	}
	points := &synopsis.Weighted{D: q}
	row := make([]float32, q)
	for i := range records.N {
		points.Append(staged.Widen(low.Point(i, row)), 1)
	}
	span = p.Begin(engine.PhaseSearch, 0)
	found, err := synopsis.Search(ctx, p.Pool(), points, p.K, synopsis.SearchOptions{Starts: 4, Swaps: 20},
		p.Public.Stream(int(protocol.Server), 0, "search"))
	p.End(span)
	if err != nil {
		return nil, err
	}
	counts, sums := make([]int64, p.K), make([]int64, p.K*p.D)
	if err := staged.SumByLabel(ctx, p.Pool(), records, found.Labels, p.K, p.FractionBits, sums, counts); err != nil {
		return nil, err
	}
	centroids := make([]float64, p.K*p.D)
	for i := range centroids {
		if n := counts[i/p.D]; n > 0 {
			centroids[i] = math.Ldexp(float64(sums[i])/float64(n), -p.FractionBits)
		} else {
			centroids[i] = float64(mean[i%p.D])
		}
	}
	return centroids, nil
}

// principalAxes returns the mean of the records and the first q axes of their
// covariance (row-major), by subspace iteration from a random start.
func principalAxes(ctx context.Context, p *staged.Party, q int) ([]float32, []float32, error) {
	const iterations, blocks = 8, 16
	records, d := p.Records, p.D
	sums := make([]int64, d)
	if err := staged.SumByLabel(ctx, p.Pool(), records, make([]uint16, records.N), 1, p.FractionBits, sums,
		nil); err != nil {
		return nil, nil, err
	}
	mean := make([]float32, d)
	for h, x := range sums {
		mean[h] = staged.OnGrid(math.Ldexp(float64(x)/float64(records.N), -p.FractionBits), p.FractionBits)
	}
	axes := staged.RandomProjection(staged.Dense, q, d, 1, p.Public.Stream(int(protocol.Server), 0, "axes"))
	orthonormalise(axes, q, d)
	step := (records.N/blocks + kernels.Lanes) / kernels.Lanes * kernels.Lanes
	for range iterations {
		// axes <- sum over records of (axes (x - mean)) (x - mean)^T, in blocks of a
		// fixed size, so that the order of additions does not depend on the workers.
		m := kernels.NewMatrix(q, d, axes)
		single, shift := kernels.NewPanels(1, d), kernels.NewPanels(1, q)
		single.Set(0, mean)
		kernels.Project(*single, m, *shift)
		offset := shift.Point(0, nil)
		parts := make([][]float64, blocks)
		err := p.Pool().Run(ctx, blocks, func(_, b int) {
			part := make([]float64, q*d)
			parts[b] = part
			lo, hi := b*step, min((b+1)*step, records.N)
			if lo >= hi {
				return
			}
			y := kernels.NewPanels(hi-lo, q)
			block := records.Slice(lo, hi)
			kernels.Project(block, m, *y)
			addProducts(part, block, y, offset, mean)
		})
		if err != nil {
			return nil, nil, err
		}
		for i := range axes {
			sum := 0.0
			for _, part := range parts {
				sum += part[i]
			}
			axes[i] = float32(sum / float64(records.N))
		}
		orthonormalise(axes, q, d)
	}
	return mean, axes, nil
}

// addProducts adds to sums, q x d, the outer products of the projections y less offset and the records less mean.
func addProducts(sums []float64, records kernels.Panels, y *kernels.Panels, offset, mean []float32) {
	d, q := records.D, y.D
	for base := 0; base < records.N; base += kernels.Lanes {
		for h := range d {
			x := records.Data[base*d+h*kernels.Lanes:]
			for a := range q {
				sum := 0.0
				for lane, v := range y.Data[base*q+a*kernels.Lanes:][:min(kernels.Lanes, records.N-base)] {
					sum += float64(float64(v-offset[a]) * float64(x[lane]-mean[h]))
				}
				sums[a*d+h] += sum
			}
		}
	}
}

// orthonormalise makes the q rows orthonormal (modified Gram-Schmidt). A row in
// the span of the earlier ones becomes 0. It is written out, as gonum's decompositions
// add in an order that depends on the architecture, and results are the same bits on
// all.
func orthonormalise(rows []float32, q, d int) {
	for a := range q {
		row := rows[a*d : (a+1)*d]
		for b := range a {
			other, dot := rows[b*d:(b+1)*d], 0.0
			for h := range row {
				dot += float64(float64(row[h]) * float64(other[h]))
			}
			for h := range row {
				row[h] = float32(float64(row[h]) - float64(dot*float64(other[h])))
			}
		}
		norm := 0.0
		for _, x := range row {
			norm += float64(float64(x) * float64(x))
		}
		norm = math.Sqrt(norm)
		for h := range row {
			if norm > 1e-12 {
				row[h] = float32(float64(row[h]) / norm)
			} else {
				row[h] = 0
			}
		}
	}
}
