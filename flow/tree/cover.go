package tree

import (
	"math"
	"slices"

	"github.com/cohort-engine/cohort/kernels"
)

// Ratio is the number of boxes in one of the next level.
const Ratio = 8

// Runs are the sizes of the runs of points that have boxes, in leaves, level by level.
var Runs = [...]int{1, Ratio, Ratio * Ratio}

// Cover holds boxes around the runs of points of each level.
type Cover struct {
	Boxes [len(Runs)][]float32 // the least of each coordinate, then the largest of each
	Most  [len(Runs)][]int64   // no value of the points that were noted is larger
}

// Note notes the largest of some values of the points, so many in a leaf, in each box.
func (b *Cover) Note(values []int64, leaf int) {
	size := leaf
	for level := range Runs {
		b.Most[level] = b.Most[level][:0]
		for first := 0; first < len(values); first += size {
			b.Most[level] = append(b.Most[level], slices.Max(values[first:min(len(values), first+size)]))
		}
		values, size = b.Most[level], Ratio
	}
}

// Set makes the boxes of points, so many in a leaf.
func (b *Cover) Set(points kernels.Panels, leaf int) {
	n, d := points.N, points.D
	for level := range Runs {
		count := (n + leaf*Runs[level] - 1) / (leaf * Runs[level])
		b.Boxes[level] = sized(b.Boxes[level], count*2*d)
		for index := range count {
			box := b.Boxes[level][index*2*d : (index+1)*2*d]
			for c := range d {
				box[c], box[d+c] = math.MaxFloat32, -math.MaxFloat32
			}
			if level > 0 {
				below := b.Boxes[level-1]
				for child := index * Ratio; child < (index+1)*Ratio && child*2*d < len(below); child++ {
					for c := range d {
						box[c], box[d+c] = min(box[c], below[child*2*d+c]), max(box[d+c], below[child*2*d+d+c])
					}
				}
				continue
			}
			for i := index * leaf; i < min(n, (index+1)*leaf); i++ {
				from := i/kernels.Lanes*d*kernels.Lanes + i%kernels.Lanes
				for c := range d {
					x := points.Data[from+c*kernels.Lanes]
					box[c], box[d+c] = min(box[c], x), max(box[d+c], x)
				}
			}
		}
	}
}

// Extent returns the squares of the least and the largest distance of a place from a box.
func Extent[T, U float32 | float64](box []T, place []U) (near, far float64) {
	for h, y := range place {
		lo, hi := float64(box[h])-float64(y), float64(y)-float64(box[len(place)+h])
		out := max(0, lo, hi)
		in := max(-lo, -hi)
		near += out * out
		far += in * in
	}
	return near, far
}
