package staged

import (
	"context"
	"fmt"
	"math"

	"github.com/cohort-engine/cohort/engine"
	"github.com/cohort-engine/cohort/engine/privacy"
	"github.com/cohort-engine/cohort/internal/elementary"
	"github.com/cohort-engine/cohort/kernels"
)

// Projection is a kind of random projection.
type Projection string

const (
	// Sparse has entries sqrt(3) times 1, 0, -1 with probabilities 1/6, 2/3,
	// 1/6 (Achlioptas 2003).
	Sparse Projection = "sparse"
	// Dense has standard normal entries (Johnson and Lindenstrauss).
	Dense Projection = "dense"
)

// RandomProjection draws q rows of d entries of mean 0 and variance 1, times
// scale. It looks at no data; the matrix is public.
func RandomProjection(kind Projection, q, d int, scale float64, st *privacy.Stream) []float32 {
	rows := make([]float32, q*d)
	if kind == Dense {
		for i := range rows {
			rows[i] = float32(scale * st.Normal())
		}
		return rows
	}
	entry := float32(scale * math.Sqrt(3))
	for i := range rows {
		switch st.IntN(6) {
		case 0:
			rows[i] = entry
		case 1:
			rows[i] = -entry
		}
	}
	return rows
}

// Direction draws a row of normal entries, which points anywhere alike, and the square of its length.
func Direction(d int, st *privacy.Stream) (row []float64, square float64) {
	row = make([]float64, d)
	for h := range row {
		row[h] = st.Normal()
		square += float64(row[h] * row[h])
	}
	return row, square
}

// Directions are k points around a centre, so far from it in random directions, on the grid.
func Directions(stream *privacy.Stream, centre []float64, length float64, k, bits int) []float32 {
	points := make([]float32, 0, k*len(centre))
	for range k {
		direction, square := Direction(len(centre), stream)
		norm := math.Sqrt(square)
		for h, x := range direction {
			points = append(points, OnGrid(centre[h]+float64(length*x)/norm, bits))
		}
	}
	return points
}

// Project writes m (x - origin) for every record x, clipped to [-1,1] and
// truncated onto the grid: the records of a low-dimensional data set of their
// own, each a function of one record.
func Project(ctx context.Context, pool *engine.Pool, p *kernels.Panels, m *kernels.Matrix, origin []float32,
	bits int) (*kernels.Panels, error) {
	out := kernels.NewPanels(p.N, m.Q)
	single := kernels.NewPanels(1, p.D)
	single.Set(0, origin)
	shift := kernels.NewPanels(1, m.Q)
	kernels.Project(*single, m, *shift)
	offset := shift.Point(0, nil)
	grid := math.Ldexp(1, bits)
	err := pool.Scan(ctx, p, func(_ int, s engine.Shard) {
		part := out.Slice(s.Lo, s.Hi)
		kernels.Project(p.Slice(s.Lo, s.Hi), m, part)
		for base := 0; base < part.N; base += kernels.Lanes {
			lanes := min(kernels.Lanes, part.N-base)
			for q := range m.Q {
				row := part.Data[base*m.Q+q*kernels.Lanes:][:lanes]
				for l, y := range row {
					row[l] = float32(math.Trunc(min(max(float64(y)-float64(offset[q]), -1), 1)*grid) / grid)
				}
			}
		}
	})
	if err != nil {
		return nil, fmt.Errorf("projection: %w", err)
	}
	return out, nil
}

// LowDimension is ln(n)/2, at least 1 and at most d.
func LowDimension(n, d int) int { return min(max(int(elementary.Log(float64(n))/2), 1), d) }
