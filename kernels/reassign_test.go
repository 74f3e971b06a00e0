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

// Within its margin a block keeps its labels wherever the centroids go, and
// within its reach no point is cut; a little beyond, labels do change.
func TestBoundsHold(t *testing.T) {
	body := func(t *testing.T) {
		rng := rand.New(rand.NewPCG(5, 12))
		settled, changed := 0, 0
		for trial := range 3000 {
			d, k, f := 1+rng.IntN(15), 1+rng.IntN(7), []int{4, 10, 16, 22}[rng.IntN(4)]
			n := 1 + rng.IntN(2*BoundPoints)
			unit := math.Ldexp(1, -f)
			on := func(x float64) float32 { return float32(math.Trunc(x/unit) * unit) }
			rows := make([]float32, n*d)
			centres := make([]float32, k*d)
			for i := range centres {
				centres[i] = on(2*rng.Float64() - 1)
			}
			for i := range n {
				j := rng.IntN(k)
				for h := range d {
					rows[i*d+h] = on(max(-1, min(1, float64(centres[j*d+h])+0.05*rng.NormFloat64())))
				}
			}
			p := packed(rows, n, d)
			c := NewCentroids(k, d)
			c.Set(centres)
			labels := make([]uint16, n)
			acc := NewAccumulator(k, d, f)
			Accumulate(*p, labels, acc)
			bounds := make([]Bound, (n+BoundPoints-1)/BoundPoints)
			r2 := float32(math.Inf(1))
			if trial%3 == 0 {
				r2 = on(0.02*float64(d)) + float32(unit)
			}
			Reassign(*p, c, r2, labels, acc, bounds)
			b := rng.IntN(len(bounds))
			margin := bounds[b].Margin
			if !(margin > 0) {
				continue
			}
			// Two centroids of a point share the margin, by preference along the line
			// between them; the others move by no more than either.
			i := b*BoundPoints + rng.IntN(min(n, (b+1)*BoundPoints)-b*BoundPoints)
			mine := int(labels[i])
			length := min(margin, 2)
			if trial%4 == 3 {
				length = 3 * margin // too far: the test must be able to fail
			}
			share := rng.Float64()
			moved := slices.Clone(centres)
			most := [2]float64{}
			for j := range k {
				away, budget := 1.0, length*min(share, 1-share)
				switch {
				case j == mine:
					budget = length * share
				case j == (mine+1)%k:
					budget, away = length*(1-share), -1
				}
				sum := 0.0
				direction := make([]float64, d)
				for h := range direction {
					direction[h] = float64(centres[j*d+h] - rows[i*d+h])
					sum += direction[h] * direction[h]
				}
				if sum == 0 {
					continue
				}
				sum, step := math.Sqrt(sum), 0.0
				for h := range direction {
					moved[j*d+h] = on(float64(centres[j*d+h]) + away*budget*direction[h]/sum)
					x := float64(moved[j*d+h] - centres[j*d+h])
					step += x * x
				}
				step = math.Sqrt(step)
				most[1] = max(most[1], min(step, most[0]))
				most[0] = max(most[0], step)
			}
			inside := most[0]+most[1] <= margin
			if math.IsInf(margin, 1) {
				inside = true
			}
			c.Set(moved)
			later := make([]uint16, n)
			cutAt := r2
			if reach := (bounds[b].Reach + most[0]) * (1 + 0x1p-18); !math.IsInf(float64(r2), 1) && inside {
				cutAt = float32(reach * reach)
				if float64(cutAt) < reach*reach {
					cutAt = math.Nextafter32(cutAt, 2*cutAt)
				}
			}
			AssignRadius(*p, c, cutAt, later, nil)
			same := slices.Equal(later[b*BoundPoints:min(n, (b+1)*BoundPoints)], labels[b*BoundPoints:min(n, (b+1)*BoundPoints)])
			switch {
			case inside && !same:
				t.Fatalf("trial %d, d=%d k=%d f=%d: labels change within margin %g (moves %v)", trial, d, k, f, margin, most)
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
