package synopsis

import (
	"context"
	"fmt"

	"github.com/cohort-engine/cohort/kernels"
)

// Hyperplanes are the normals of a locality sensitive hash of signs (SimHash):
// bit l of a record is 1 if its product with normal l is at least 0. They are
// drawn without looking at the data.
type Hyperplanes struct {
	D       int
	Normals []float32 // row-major, levels x D
}

// NewHyperplanes draws normals with nearly Gaussian coordinates (the sum of
// twelve uniform numbers), exact multiples of 2^-20.
func NewHyperplanes(d, levels int, src Source) *Hyperplanes {
	h := &Hyperplanes{D: d, Normals: make([]float32, d*levels)}
	for i := range h.Normals {
		sum := int64(0)
		for range 6 {
			w := src.Uint64()
			sum += int64(w&(1<<20-1)) + int64(w>>32&(1<<20-1))
		}
		h.Normals[i] = float32(sum-6<<20) / (1 << 20)
	}
	return h
}

// HyperplanePaths gives each record the signs of its products with the normals,
// one bit a level, at most 64 levels.
func HyperplanePaths(ctx context.Context, r Runner, p *kernels.Panels, planes *Hyperplanes) (*Paths, error) {
	levels := len(planes.Normals) / planes.D
	if levels < 1 || levels > 64 || planes.D != p.D {
		panic(fmt.Sprintf("synopsis: HyperplanePaths: %d levels in %d dimensions for points in %d", levels, planes.D, p.D))
	}
	paths := newPaths(1, levels, p.N)
	err := eachShard(ctx, r, p.N, p.D*levels, func(lo, hi int) {
		dots := make([][kernels.Lanes]float32, levels)
		for b := lo / kernels.Lanes; b*kernels.Lanes < hi; b++ {
			clear(dots)
			panel := p.Data[b*p.D*kernels.Lanes:]
			for h := range p.D {
				row := panel[h*kernels.Lanes : (h+1)*kernels.Lanes]
				for l := range dots {
					dot, w := &dots[l], planes.Normals[l*p.D+h]
					for i, x := range row {
						dot[i] += float32(w * x)
					}
				}
			}
			var codes [kernels.Lanes]uint64
			for l := range dots {
				for i, dot := range dots[l] {
					codes[i] <<= 1
					if dot >= 0 {
						codes[i] |= 1
					}
				}
			}
			paths.set(b*kernels.Lanes, codes[:min(kernels.Lanes, hi-b*kernels.Lanes)]...)
		}
	})
	return paths, err
}
