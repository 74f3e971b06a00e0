package kernels

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

func TestReassignEqualsPortable(t *testing.T) {
	withPaths(t, func(t *testing.T) {
		rng := rand.New(rand.NewPCG(5, 10))
		check := func(n, d, k, f int) {
			p := packed(gridHardRows(rng, n, d, f), n, d)
			c := NewCentroids(k, d)
			c.Set(gridHardRows(rng, k, d, f))
			labels, dist := make([]uint16, n), make([]float32, n)
			for i := range labels {
				labels[i] = uint16(rng.IntN(k + 1))
			}
			distancesPortable(p, c, labels, dist)
			limits := []float32{dist[rng.IntN(n)], 0, float32(math.Inf(1))}
			want, got := NewAccumulator(k, d, f), NewAccumulator(k, d, f)
			Accumulate(*p, labels, want)
			Accumulate(*p, labels, got)
			before, after := slices.Clone(labels), slices.Clone(labels)
			// Three rounds, so that later ones start from what Reassign left behind.
			for _, r2 := range limits {
				c.Set(gridHardRows(rng, k, d, f))
				var bounds []Bound
				if d < exactDims && rng.IntN(2) == 0 {
					bounds = make([]Bound, (n+BoundPoints-1)/BoundPoints)
				}
				ch0 := reassignPortable(p, c, r2, before, want)
				ch1 := Reassign(*p, c, r2, after, got, bounds)
				if ch0 != ch1 || !slices.Equal(before, after) || !slices.Equal(want.Sums, got.Sums) ||
					!slices.Equal(want.Counts, got.Counts) {
					t.Fatalf("n=%d d=%d k=%d f=%d r2=%g: %+v %+v:\n%v\n%v", n, d, k, f, r2, ch0, ch1, want.Counts, got.Counts)
				}
			}
			fresh := NewAccumulator(k, d, f)
			again := make([]uint16, n)
			assignAccumulateRadiusReference(p, c, limits[2], again, fresh)
			if !slices.Equal(again, after) || !slices.Equal(fresh.Sums, got.Sums) || !slices.Equal(fresh.Counts, got.Counts) {
				t.Fatalf("n=%d d=%d k=%d f=%d: not what an assignment of its own gives", n, d, k, f)
			}
		}
		i := 0
		shapes(func(n, d, k int) {
			i++
			check(n, d, k, []int{16, 22, 18, 19, 0}[i%5])
		})
		check(5000, 2, 3, 16)
		check(3*chunkPoints+77, 5, 40, 18)
	})
}

func TestMeasureBoundsEqualsPortable(t *testing.T) {
	withPaths(t, func(t *testing.T) {
		rng := rand.New(rand.NewPCG(5, 12))
		shapes(func(n, d, k int) {
			if d >= exactDims {
				return
			}
			p, c := packed(gridHardRows(rng, n, d, 16), n, d), NewCentroids(k, d)
			c.Set(gridHardRows(rng, k, d, 16))
			labels, dist, second := make([]uint16, n), make([]float32, n), make([]float32, n)
			assignPortable(p, c, labels, dist, second)
			got := make([]Bound, (n+BoundPoints-1)/BoundPoints)
			MeasureBounds(*p, c, got)
			for b, x := range got {
				lo, hi := b*BoundPoints, min((b+1)*BoundPoints, n)
				want := make([]Bound, 1)
				if fillBounds(want, dist[lo:hi], second[lo:hi], c, float32(math.Inf(1))); x != want[0] {
					t.Fatalf("n=%d d=%d k=%d block %d: %+v, want %+v", n, d, k, b, x, want[0])
				}
			}
		})
	})
}

func TestExtremesEqualPortable(t *testing.T) {
	withPaths(t, func(t *testing.T) {
		rng := rand.New(rand.NewPCG(5, 11))
		for _, n := range []int{1, 127, 128, 129, 255, 256, 300, 1024} {
			dist, second := make([]float32, n), make([]float32, n)
			for i := range dist {
				dist[i] = rng.Float32()
				second[i] = dist[i] + rng.Float32()
			}
			if rng.IntN(2) == 0 {
				second[rng.IntN(n)] = float32(math.Inf(1))
			}
			want, got := make([][4]float32, (n+127)/128), make([][4]float32, (n+127)/128)
			extremesPortable(dist, second, want)
			extreme(dist, second, got)
			for b := range want {
				if !slices.Equal(want[b][:3], got[b][:3]) {
					t.Fatalf("n=%d block %d: %v, want %v", n, b, got[b], want[b])
				}
			}
		}
	})
}

// boundedBlock is a block of points near centroids, all of them on a grid, with the bounds that
// their assignment to the nearest centroid within a radius gives.
type boundedBlock struct {
	Bound
	p             *Panels
	centres, rows []float32
	d, k, f       int
	labels        []uint16
	r2            float32 // infinite: no radius
	lo, hi        int     // the block's points
}

// newBoundedBlock draws points and centroids, and one of the points' blocks.
func newBoundedBlock(rng *rand.Rand, radius bool) *boundedBlock {
	d, k, f := 1+rng.IntN(15), 1+rng.IntN(7), []int{4, 10, 16, 22}[rng.IntN(4)]
	n := 1 + rng.IntN(2*BoundPoints)
	a := &boundedBlock{centres: gridRows(rng, k, d, f), rows: make([]float32, n*d), d: d, k: k, f: f,
		labels: make([]uint16, n), r2: float32(math.Inf(1))}
	for i := range n {
		j := rng.IntN(k)
		for h := range d {
			a.rows[i*d+h] = a.onGrid(max(-1, min(1, float64(a.centres[j*d+h])+0.05*rng.NormFloat64())))
		}
	}
	a.p = packed(a.rows, n, d)
	c := NewCentroids(k, d)
	c.Set(a.centres)
	acc := NewAccumulator(k, d, f)
	Accumulate(*a.p, a.labels, acc)
	bounds := make([]Bound, (n+BoundPoints-1)/BoundPoints)
	if radius {
		a.r2 = a.onGrid(0.02*float64(d)) + float32(math.Ldexp(1, -f))
	}
	Reassign(*a.p, c, a.r2, a.labels, acc, bounds)
	b := rng.IntN(len(bounds))
	a.Bound, a.lo, a.hi = bounds[b], b*BoundPoints, min(n, (b+1)*BoundPoints)
	return a
}

// onGrid cuts a value to the grid.
func (a *boundedBlock) onGrid(x float64) float32 {
	return float32(math.Ldexp(math.Trunc(math.Ldexp(x, a.f)), -a.f))
}

// move moves the centroids and returns them with the two longest ways that they went: two centroids of
// a point share the length, by preference along the line between them; the others go no further
// than either.
func (a *boundedBlock) move(rng *rand.Rand, length float64) (moved []float32, most [2]float64) {
	i := a.lo + rng.IntN(a.hi-a.lo)
	mine, share := int(a.labels[i]), rng.Float64()
	moved = slices.Clone(a.centres)
	for j := range a.k {
		away, budget := 1.0, length*min(share, 1-share)
		switch {
		case j == mine:
			budget = length * share
		case j == (mine+1)%a.k:
			budget, away = length*(1-share), -1
		}
		from, to := a.centres[j*a.d:(j+1)*a.d], moved[j*a.d:(j+1)*a.d]
		direction, sum := make([]float64, a.d), 0.0
		for h := range direction {
			direction[h] = float64(from[h] - a.rows[i*a.d+h])
			sum += direction[h] * direction[h]
		}
		if sum == 0 {
			continue
		}
		way := 0.0
		for h := range direction {
			to[h] = a.onGrid(float64(from[h]) + away*budget*direction[h]/math.Sqrt(sum))
			x := float64(to[h] - from[h])
			way += x * x
		}
		way = math.Sqrt(way)
		most[1] = max(most[1], min(way, most[0]))
		most[0] = max(most[0], way)
	}
	return moved, most
}

// keeps tells whether the block's points keep their labels with other centroids, under a radius that
// is cut to the block's reach where it must hold.
func (a *boundedBlock) keeps(moved []float32, furthest float64, inside bool) bool {
	cutAt := a.r2
	if reach := (a.Reach + furthest) * (1 + 0x1p-18); !math.IsInf(float64(cutAt), 1) && inside {
		cutAt = float32(reach * reach)
		if float64(cutAt) < reach*reach {
			cutAt = math.Nextafter32(cutAt, 2*cutAt)
		}
	}
	c := NewCentroids(a.k, a.d)
	c.Set(moved)
	later := make([]uint16, a.p.N)
	AssignRadius(*a.p, c, cutAt, later, nil)
	return slices.Equal(later[a.lo:a.hi], a.labels[a.lo:a.hi])
}

// Within its margin a block keeps its labels wherever the centroids go, and
// within its reach no point is cut; a little beyond, labels do change.
func TestBoundsHold(t *testing.T) {
	body := func(t *testing.T) {
		rng := rand.New(rand.NewPCG(5, 12))
		settled, changed := 0, 0
		for trial := range 3000 {
			a := newBoundedBlock(rng, trial%3 == 0)
			if !(a.Margin > 0) {
				continue
			}
			length := min(a.Margin, 2)
			if trial%4 == 3 {
				length = 3 * a.Margin // too far: the test must be able to fail
			}
			moved, most := a.move(rng, length)
			inside := math.IsInf(a.Margin, 1) || most[0]+most[1] <= a.Margin
			switch same := a.keeps(moved, most[0], inside); {
			case inside && !same:
				t.Fatalf("trial %d, d=%d k=%d f=%d: labels change within margin %g (moves %v)", trial, a.d, a.k, a.f,
					a.Margin, most)
			case inside:
				settled++
			case !same:
				changed++
			}
		}
		if settled < 300 || changed < 30 {
			t.Errorf("%d blocks stayed and %d changed: too few to tell", settled, changed)
		}
	}
	t.Run("generic", func(t *testing.T) {
		defer forcePath(generic)()
		body(t)
	})
	withPaths(t, body)
}

func TestUpdateSumsEqualsPortable(t *testing.T) {
	withPaths(t, func(t *testing.T) {
		rng := rand.New(rand.NewPCG(5, 15))
		for trial := range 400 {
			n, d, k, f := 1+rng.IntN(2500), 1+rng.IntN(20), 1+rng.IntN(20), []int{16, 22, 0}[trial%3]
			p := packed(gridHardRows(rng, n, d, f), n, d)
			before, now := make([]uint16, n), make([]uint16, n)
			share := rng.Float64() * rng.Float64()
			changes := 0
			for i := range now {
				before[i] = uint16(rng.IntN(k + 1))
				if now[i] = before[i]; rng.Float64() < share {
					now[i] = uint16(rng.IntN(k + 1))
				}
				if now[i] != before[i] {
					changes++
				}
			}
			want, got := NewAccumulator(k, d, f), NewAccumulator(k, d, f)
			Accumulate(*p, before, want)
			Accumulate(*p, before, got)
			l0, l1 := slices.Clone(before), slices.Clone(before)
			most := max(0, changes-rng.IntN(2))
			n0, n1 := updateSumsPortable(p, l0, now, most, want), UpdateSums(*p, l1, now, most, got)
			if n0 != n1 || n1 >= 0 && n1 != changes || (n1 < 0) != (changes > most) || !slices.Equal(l0, l1) ||
				!slices.Equal(want.Sums, got.Sums) || !slices.Equal(want.Counts, got.Counts) {
				t.Fatalf("n=%d d=%d k=%d f=%d, %d of at most %d: %d %d:\n%v\n%v", n, d, k, f, changes, most, n0, n1,
					want.Counts, got.Counts)
			}
			if fresh := NewAccumulator(k, d, f); n1 >= 0 {
				Accumulate(*p, now, fresh)
				if !slices.Equal(fresh.Sums, got.Sums) || !slices.Equal(fresh.Counts, got.Counts) {
					t.Fatalf("n=%d d=%d k=%d f=%d: not what accumulating gives", n, d, k, f)
				}
			}
		}
	})
}
