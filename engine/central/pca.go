package central

import (
	"context"
	"math"

	"github.com/cohort-engine/cohort/engine"
	"github.com/cohort-engine/cohort/engine/fault"
	"github.com/cohort-engine/cohort/engine/privacy"
	"github.com/cohort-engine/cohort/engine/synopsis"
	"github.com/cohort-engine/cohort/kernels"
)

// PCA is k-means on the first principal components, without noise: a reference
// for what a projection that looks at the data would give. No private method
// offers it, as the components are a release of their own.
type PCA struct {
	Data
	K int
	// Components is their number, at most D; 0 means ln(n)/2, as for balcan.
	Components int
	// Seed makes the run reproducible.
	Seed *uint64
}

// Method is "pca".
func (j *PCA) Method() string { return "pca" }

// Plan implements engine.Job.
func (j *PCA) Plan() (engine.Plan, error) { return j, j.Validate() }

// Validate checks the fields.
func (j *PCA) Validate() error {
	if err := j.validate(j.K); err != nil {
		return err
	}
	if len(j.Clients) != 1 {
		return fault.Range("clients", len(j.Clients), "1: pca is a central method")
	}
	if d := j.Clients[0].Points.D; j.Components < 0 || j.Components > d {
		return fault.Range("components", j.Components, "1 to the number of columns")
	}
	return nil
}

// Run runs the method.
func (j *PCA) Run(ctx context.Context, rt *engine.Runtime) (*engine.Result, error) {
	s := newSession(ctx, rt, &j.Data, j.K, j.Seed, 0)
	records := j.Clients[0].Points
	q := j.Components
	if q == 0 {
		q = lowDimension(s.n, s.d)
	}
	span := rt.Begin(engine.PhaseEncode, 0, 0)
	mean, axes, err := s.principalAxes(records, q)
	if err != nil {
		return nil, err
	}
	// All records fit into [-1,1]^q after division by the diameter of the box.
	scale := float32(1 / (2 * math.Sqrt(float64(s.d))))
	for i := range axes {
		axes[i] *= scale
	}
	low, err := s.project(records, kernels.NewMatrix(q, s.d, axes), mean, s.bits)
	rt.End(span)
	if err != nil {
		return nil, err
	}
	points := &synopsis.Weighted{D: q}
	row := make([]float32, q)
	for i := range s.n {
		points.Append(widen(low.Point(i, row)), 1)
	}
	span = rt.Begin(engine.PhaseSearch, 0, 0)
	found, err := synopsis.Search(ctx, rt.Pool(), points, j.K, synopsis.SearchOptions{Starts: 4, Swaps: 20}, s.streams.Stream(engine.Server, 0, "search"))
	rt.End(span)
	if err != nil {
		return nil, err
	}
	counts := make([]int64, j.K)
	sums, err := s.sumByLabel(records, found.Labels, j.K, counts)
	if err != nil {
		return nil, err
	}
	centroids := make([]float64, j.K*s.d)
	for i := range centroids {
		if n := counts[i/s.d]; n > 0 {
			centroids[i] = math.Ldexp(float64(sums[i])/float64(n), -s.bits)
		} else {
			centroids[i] = float64(mean[i%s.d])
		}
	}
	res, err := s.result(j.Method(), privacy.None, centroids, privacy.Budget{}, 1)
	if err != nil {
		return nil, err
	}
	res.Epsilon, res.Delta = nil, nil
	return res, nil
}

// principalAxes returns the mean of the records and the first q axes of their
// covariance (row-major), by subspace iteration from a random start.
func (s *session) principalAxes(p *kernels.Panels, q int) ([]float32, []float32, error) {
	const iterations, blocks = 8, 16
	sums, err := s.sumByLabel(p, make([]uint16, p.N), 1, nil)
	if err != nil {
		return nil, nil, err
	}
	mean := make([]float32, s.d)
	for h, x := range sums {
		mean[h] = onGrid(math.Ldexp(float64(x)/float64(p.N), -s.bits), s.bits)
	}
	axes := randomProjection(Dense, q, s.d, 1, s.streams.Stream(engine.Server, 0, "axes"))
	orthonormalise(axes, q, s.d)
	step := (p.N/blocks + kernels.Lanes) / kernels.Lanes * kernels.Lanes
	for range iterations {
		// axes <- sum over records of (axes (x - mean)) (x - mean)^T, in blocks of a
		// fixed size, so that the order of additions does not depend on the workers.
		m := kernels.NewMatrix(q, s.d, axes)
		single, shift := kernels.NewPanels(1, s.d), kernels.NewPanels(1, q)
		single.Set(0, mean)
		kernels.Project(*single, m, *shift)
		offset := shift.Point(0, nil)
		parts := make([][]float64, blocks)
		err := s.rt.Pool().Run(s.ctx, blocks, func(_, b int) {
			part := make([]float64, q*s.d)
			parts[b] = part
			lo, hi := b*step, min((b+1)*step, p.N)
			if lo >= hi {
				return
			}
			y := kernels.NewPanels(hi-lo, q)
			block := p.Slice(lo, hi)
			kernels.Project(block, m, *y)
			for base := 0; base < block.N; base += kernels.Lanes {
				for h := range s.d {
					x := block.Data[base*s.d+h*kernels.Lanes:]
					for a := range q {
						sum := 0.0
						for lane, v := range y.Data[base*q+a*kernels.Lanes:][:min(kernels.Lanes, block.N-base)] {
							sum += float64(float64(v-offset[a]) * float64(x[lane]-mean[h]))
						}
						part[a*s.d+h] += sum
					}
				}
			}
		})
		if err != nil {
			return nil, nil, err
		}
		for i := range axes {
			sum := 0.0
			for _, part := range parts {
				sum += part[i]
			}
			axes[i] = float32(sum / float64(p.N))
		}
		orthonormalise(axes, q, s.d)
	}
	return mean, axes, nil
}

// orthonormalise makes the q rows orthonormal (modified Gram-Schmidt). A row in
// the span of the earlier ones becomes 0.
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
