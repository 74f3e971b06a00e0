package kernels

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
)

// withPath runs a test body on every path of this CPU but the portable one.
func withPaths(t *testing.T, body func(t *testing.T)) {
	for _, p := range supportedPaths()[1:] {
		t.Run(p.String(), func(t *testing.T) {
			defer forcePath(p)()
			body(t)
		})
	}
}

// forcePath makes p the current path and returns the function that restores the
// previous one.
func forcePath(p path) func() {
	previous := current
	current = p
	return func() { current = previous }
}

// equalityNs has sizes around one panel, and around the groups of panels that a
// kernel has in flight.
var equalityNs = []int{1, 15, 16, 17, 31, 32, 33, 63, 64, 65, 80, 95, 112, 127, 128, 129, 145}

// equalityDims is 1 to 33, for all forms and block tails, and a long one.
var equalityDims = func() []int {
	dims := []int{784}
	for d := 1; d <= 33; d++ {
		dims = append(dims, d)
	}
	return dims
}()

// shapes calls body with all of equalityDims and all k from 1 to 130, the sizes
// going round; small shapes meet every size. Most long ones are left out and, in
// short mode, seven of eight.
func shapes(body func(n, d, k int)) {
	for _, d := range equalityDims {
		for k := 1; k <= 130; k++ {
			if testing.Short() && (3*d+k)%8 != 0 || d == 784 && k%13 > 1 {
				continue
			}
			n := equalityNs[(d*131+k)%len(equalityNs)]
			if most := max(1, 60000/(d*k)); n > most {
				n = most
			}
			body(n, d, k)
		}
		if d <= 20 {
			for _, n := range equalityNs {
				body(n, d, 1+n%7)
			}
		}
	}
	body(129, 784, 10)
	body(70, 100, 64)
	for k := maxTileWidth; k <= oneTile+1; k++ { // one tile of AVX-512 from oneTileDims on, of less than its width
		for i, n := range []int{1, 17, 47, 64, 81} {
			body(n, oneTileDims-1+i, k)
		}
	}
}

// hardRows draws points that favour ties and extremes: few grid values, copies
// of earlier points, subnormal numbers, corners of the cube.
func hardRows(rng *rand.Rand, n, d int) []float32 {
	rows := make([]float32, n*d)
	mode := rng.IntN(5)
	for i := range n {
		row := rows[i*d : i*d+d]
		if i > 0 && rng.IntN(4) == 0 {
			copy(row, rows[rng.IntN(i)*d:])
			continue
		}
		for j := range row {
			switch mode {
			case 0:
				row[j] = gridValue(rng, 22)
			case 1:
				row[j] = float32(rng.IntN(3) - 1)
			case 2:
				row[j] = math.Float32frombits(rng.Uint32N(1<<24) | rng.Uint32()&(1<<31))
			case 3:
				row[j] = gridValue(rng, 2)
			default:
				row[j] = gridValue(rng, 16)
			}
		}
	}
	return rows
}

func sameBits(a, b []float32) bool {
	for i := range a {
		if math.Float32bits(a[i]) != math.Float32bits(b[i]) {
			return false
		}
	}
	return len(a) == len(b)
}

// TestAssignManyCentroids has more than a call takes, with ties across the blocks.
func TestAssignManyCentroids(t *testing.T) {
	withPaths(t, func(t *testing.T) {
		rng := rand.New(rand.NewPCG(14, 7))
		for _, s := range [][3]int{{81, 15, 4500}, {70, 2, 33000}, {81, 16, 4200}, {65, 100, 1321}, {17, 784, 168},
			{33, 784, 170}, {16, 7000, 25}, {50, 7000, 9}} {
			n, d, k := s[0], s[1], s[2]
			p := packed(hardRows(rng, n, d), n, d)
			c := NewCentroids(k, d)
			rows := hardRows(rng, k, d)
			copy(rows[(k-1)*d:], rows[:d])
			c.Set(rows)
			l0, d0, s0 := make([]uint16, n), make([]float32, n), make([]float32, n)
			assignPortable(p, c, l0, d0, s0)
			l1, d1, s1 := make([]uint16, n), make([]float32, n), make([]float32, n)
			Assign2(*p, c, l1, d1, s1)
			if !slices.Equal(l0, l1) || !sameBits(d0, d1) || !sameBits(s0, s1) {
				t.Fatalf("Assign2 n=%d d=%d k=%d:\n%v\n%v\n%v\n%v\n%v\n%v", n, d, k, l0, l1, d0, d1, s0, s1)
			}
			clear(l1)
			Assign(*p, c, l1, nil)
			if !slices.Equal(l0, l1) {
				t.Fatalf("Assign n=%d d=%d k=%d:\n%v\n%v", n, d, k, l0, l1)
			}
		}
	})
}

func TestAssignEqualsPortable(t *testing.T) {
	withPaths(t, func(t *testing.T) {
		rng := rand.New(rand.NewPCG(1, 7))
		shapes(func(n, d, k int) {
			p := packed(hardRows(rng, n, d), n, d)
			c := NewCentroids(k, d)
			c.Set(hardRows(rng, k, d))
			l0, d0, s0 := make([]uint16, n), make([]float32, n), make([]float32, n)
			assignPortable(p, c, l0, d0, s0)
			l1, d1, s1 := make([]uint16, n), make([]float32, n), make([]float32, n)
			Assign2(*p, c, l1, d1, s1)
			if !slices.Equal(l0, l1) || !sameBits(d0, d1) || !sameBits(s0, s1) {
				t.Fatalf("Assign2 n=%d d=%d k=%d:\n%v\n%v\n%v\n%v\n%v\n%v", n, d, k, l0, l1, d0, d1, s0, s1)
			}
			clear(l1)
			clear(d1)
			Assign(*p, c, l1, d1)
			if !slices.Equal(l0, l1) || !sameBits(d0, d1) {
				t.Fatalf("Assign n=%d d=%d k=%d:\n%v\n%v\n%v\n%v", n, d, k, l0, l1, d0, d1)
			}
			clear(l1)
			Assign(*p, c, l1, nil)
			if !slices.Equal(l0, l1) {
				t.Fatalf("Assign without distances n=%d d=%d k=%d:\n%v\n%v", n, d, k, l0, l1)
			}
			r2 := d0[rng.IntN(n)]
			cutPortable(l0, d0, r2, uint16(k))
			AssignRadius(*p, c, r2, l1, nil)
			if !slices.Equal(l0, l1) {
				t.Fatalf("AssignRadius n=%d d=%d k=%d:\n%v\n%v", n, d, k, l0, l1)
			}
		})
	})
}

// TestArrivalsEqualPortable: registers have the bits of the portable form, and those
// up to a smaller limit have the same ones, for records in any order.
func TestArrivalsEqualPortable(t *testing.T) {
	withPaths(t, func(t *testing.T) {
		rng := rand.New(rand.NewPCG(2, 7))
		var scratch ArrivalScratch
		portable := arrivalSteps{
			func(key *ArrivalKey, digests [][16]byte, rate, limit, horizon float64, reg []float64, states []ArrivalState) int {
				return arrivalsPortable(key, digests, -1/(float64(len(reg))*rate), limit, horizon, reg, states)
			},
			func(key *ArrivalKey, states []ArrivalState, rate, limit float64, reg []float64) {
				advancePortable(key, states, -1/(float64(len(reg))*rate), limit, reg)
			}}
		ours := arrivalSteps{
			func(key *ArrivalKey, digests [][16]byte, rate, limit, horizon float64, reg []float64, states []ArrivalState) int {
				return Arrivals(key, digests, rate, limit, horizon, reg, states, &scratch)
			},
			func(key *ArrivalKey, states []ArrivalState, rate, limit float64, reg []float64) {
				Continue(key, states, rate, limit, reg, &scratch)
			}}
		for i, n := range []int{0, 1, 2, 3, 7, 8, 9, 15, 31, 33, 100, 255, 256, 257, 700, 1, 5, 40, 300} {
			key, digests := NewArrivalKey(randomBlocks(rng, 1)[0]), randomBlocks(rng, n)
			m := []int{1, 2, 3, 100, 256, 4095, 70001}[i%7]
			rate := math.Exp(4 * rng.NormFloat64())
			limit := (math.Log(float64(m)) + 2) / rate / float64(n+1)
			want, got, less := registers(m), registers(m), registers(m)
			arrivalsPortable(key, digests, -1/(float64(m)*rate), limit, limit, want, nil)
			Arrivals(key, digests, rate, limit, limit, got, nil, &scratch)
			if !slices.Equal(got, want) {
				t.Fatalf("n=%d m=%d rate %v limit %v:\n%x\n%x", n, m, rate, limit, got, want)
			}
			rng.Shuffle(n, func(i, j int) { digests[i], digests[j] = digests[j], digests[i] })
			Arrivals(key, digests[:n/3], rate, limit/2, limit/2, less, nil, &scratch)
			Arrivals(key, digests[n/3:], rate, limit/2, limit/2, less, nil, &scratch)
			for j, x := range less {
				if x <= limit/2 && x != want[j] || x > limit/2 && want[j] <= limit/2 {
					t.Fatalf("n=%d m=%d limit %v, half of it: register %d is %v, want %v", n, m, limit, j, x, want[j])
				}
			}
			if m < 5000 && i%2 == 0 {
				continued(t, key, digests, rate, limit, want, portable, ours)
			}
		}
	})
}

// arrivalSteps are a form of [Arrivals] and [Continue].
type arrivalSteps struct {
	begin func(key *ArrivalKey, digests [][16]byte, rate, limit, horizon float64, reg []float64, states []ArrivalState) int
	next  func(key *ArrivalKey, states []ArrivalState, rate, limit float64, reg []float64)
}

// continued goes to the limit in steps, in two forms, and compares their states and
// registers, and the last registers with those of one step.
func continued(t *testing.T, key *ArrivalKey, digests [][16]byte, rate, limit float64, want []float64,
	forms ...arrivalSteps) {
	t.Helper()
	n, m := len(digests), len(want)
	for _, horizon := range []float64{limit, 2.5 * limit, math.Inf(1)} {
		var kept [2]int
		var states [2][]ArrivalState
		var reg [2][]float64
		for i, form := range forms {
			states[i], reg[i] = make([]ArrivalState, n), registers(m)
			kept[i] = form.begin(key, digests, rate, limit/5, horizon, reg[i], states[i])
		}
		for _, part := range []float64{5, 3, 1} {
			for i, form := range forms {
				form.next(key, states[i][:kept[i]], rate, limit/part, reg[i])
			}
			if kept[0] != kept[1] || !slices.Equal(reg[0], reg[1]) ||
				!slices.Equal(sorted(states[0][:kept[0]]), sorted(states[1][:kept[1]])) {
				t.Fatalf("n=%d m=%d limit %v: %d and %d states, or the registers, differ", n, m, limit/part, kept[0], kept[1])
			}
		}
		if !slices.Equal(reg[0], want) {
			t.Fatalf("n=%d m=%d limit %v in steps: registers differ", n, m, limit)
		}
	}
}

func sorted(states []ArrivalState) []ArrivalState {
	return slices.SortedFunc(slices.Values(states), func(a, b ArrivalState) int { // whatever their order
		return cmp.Or(cmp.Compare(a.time, b.time), cmp.Compare(a.block[0], b.block[0]), cmp.Compare(a.block[1], b.block[1]))
	})
}

// registers returns m registers without arrivals.
func registers(m int) []float64 {
	r := make([]float64, m)
	for i := range r {
		r[i] = math.Inf(1)
	}
	return r
}

func randomBlocks(rng *rand.Rand, n int) [][16]byte {
	blocks := make([][16]byte, n)
	for i := range blocks {
		for j := range blocks[i] {
			blocks[i][j] = byte(rng.Uint32())
		}
	}
	return blocks
}

// gridHardRows is hardRows on the grid 2^-f.
func gridHardRows(rng *rand.Rand, n, d, f int) []float32 {
	rows := gridRows(rng, n, d, f)
	if rng.IntN(3) == 0 { // the largest sums
		for i := range rows {
			rows[i] = float32(math.Copysign(1, float64(rows[0])))
		}
	}
	for i := range n {
		if rng.IntN(4) == 0 {
			copy(rows[i*d:i*d+d], rows[rng.IntN(n)*d:])
		}
	}
	return rows
}

func TestAccumulateEqualsPortable(t *testing.T) {
	withPaths(t, func(t *testing.T) {
		rng := rand.New(rand.NewPCG(3, 7))
		check := func(n, d, k, f int) {
			p := packed(gridHardRows(rng, n, d, f), n, d)
			c := NewCentroids(k, d)
			c.Set(gridHardRows(rng, k, d, f))
			want, got := NewAccumulator(k, d, f), NewAccumulator(k, d, f)
			l0, l1 := make([]uint16, n), make([]uint16, n)
			equal := func(what string) {
				t.Helper()
				if !slices.Equal(want.Sums, got.Sums) || !slices.Equal(want.Counts, got.Counts) || !slices.Equal(l0, l1) {
					t.Fatalf("%s n=%d d=%d k=%d f=%d:\n%v\n%v\n%v\n%v", what, n, d, k, f, want.Counts, got.Counts, want.Sums, got.Sums)
				}
			}
			assignAccumulatePortable(p, c, l0, want)
			AssignAccumulate(*p, c, l1, got)
			equal("AssignAccumulate")
			assignAccumulatePortable(p, c, l0, want)
			AssignAccumulate(*p, c, nil, got)
			equal("AssignAccumulate without labels")
			for i := range l0 {
				l0[i] = uint16(rng.IntN(k + 1))
			}
			copy(l1, l0)
			accumulatePortable(p, l0, want)
			Accumulate(*p, l1, got)
			equal("Accumulate")
		}
		i := 0
		shapes(func(n, d, k int) {
			i++
			check(n, d, k, []int{16, 22, 18, 19, 0}[i%5])
		})
		for _, f := range []int{16, 18, 19, 22} { // long enough to fold on the way
			check(40000, 2, 3, f)
			check(40000, 2, 40, f)
			check(40000, 5, 2, f)
			check(40000, 17, 2, f)
		}
	})
}

// TestLargestSumsAreExact adds points whose sums are the largest and need all bits:
// a table that is folded too late overflows, or rounds.
func TestLargestSumsAreExact(t *testing.T) {
	withPaths(t, func(t *testing.T) {
		const n = 40000
		for _, d := range []int{1, 3, 4, 8, 17} {
			for _, k := range []int{1, 3, 40} {
				for _, f := range []int{16, 18, 19, 22} {
					unit := int64(1)<<f - 1
					if d%2 == 0 {
						unit = -unit
					}
					p := NewPanels(n, d)
					x := float32(math.Ldexp(float64(unit), -f))
					for i := range p.Data {
						p.Data[i] = x
					}
					c, far := NewCentroids(k, d), make([]float32, k*d)
					copy(far, p.Data[:d]) // the first centroid takes all points
					c.Set(far)
					acc := NewAccumulator(k, d, f)
					AssignAccumulate(*p, c, nil, acc)
					for j, got := range acc.Sums[:d] {
						if got != n*unit || acc.Counts[0] != n {
							t.Fatalf("d=%d k=%d f=%d: sum %d is %d of %d points, want %d of %d", d, k, f, j, got, acc.Counts[0], n*unit, n)
						}
					}
				}
			}
		}
	})
}

func TestPackEqualsPortable(t *testing.T) {
	withPaths(t, func(t *testing.T) {
		rng := rand.New(rand.NewPCG(4, 7))
		for _, d := range equalityDims {
			for _, n := range equalityNs {
				rows := gridRows(rng, n, d, 16)
				want, got := NewPanels(n, d), NewPanels(n, d)
				for i := range got.Data {
					got.Data[i] = 7
				}
				packPortable(want, rows)
				Pack(got, rows)
				if !sameBits(want.Data, got.Data) {
					t.Fatalf("n=%d d=%d:\n%v\n%v", n, d, want.Data, got.Data)
				}
			}
		}
	})
}

func TestDistancesEqualPortable(t *testing.T) {
	withPaths(t, func(t *testing.T) {
		rng := rand.New(rand.NewPCG(5, 7))
		shapes(func(n, d, k int) {
			p := packed(hardRows(rng, n, d), n, d)
			c := NewCentroids(k, d)
			c.Set(hardRows(rng, k, d))
			labels := make([]uint16, n)
			for i := range labels {
				labels[i] = uint16(rng.IntN(k + 1))
			}
			want, got := make([]float32, n), make([]float32, n)
			distancesPortable(p, c, labels, want)
			Distances(*p, c, labels, got)
			if !sameBits(want, got) {
				t.Fatalf("n=%d d=%d k=%d:\n%v\n%v", n, d, k, want, got)
			}
		})
	})
}

// TestAccumulateOffsetsEqualsPortable has offsets of all sizes from centroids in and beyond the box, on each grid, of
// more points than a row of the table may take.
func TestAccumulateOffsetsEqualsPortable(t *testing.T) {
	withPaths(t, func(t *testing.T) {
		rng := rand.New(rand.NewPCG(8, 7))
		check := func(d, k, f int, points, centroids, factor []float32) {
			n := len(factor)
			p, c := packed(points, n, d), NewCentroids(k, d)
			c.Set(centroids)
			labels := make([]uint16, n)
			for i := range labels {
				if labels[i] = uint16(rng.IntN(k)); rng.IntN(8) == 0 {
					labels[i] = uint16(k)
				}
				factor[i] *= float32(math.Ldexp(1, f))
			}
			want, got := NewAccumulator(k, d, f), NewAccumulator(k, d, f)
			for range 2 {
				accumulateOffsetsPortable(p, c, labels, factor, want)
				AccumulateOffsets(*p, c, labels, factor, got)
			}
			if !slices.Equal(want.Sums, got.Sums) || !slices.Equal(want.Counts, got.Counts) {
				t.Fatalf("n=%d d=%d k=%d f=%d:\n%v\n%v", n, d, k, f, want.Sums, got.Sums)
			}
		}
		i, grids := 0, []int{16, 22, 19, 0, 20}
		shapes(func(n, d, k int) {
			i++
			f, factor := grids[i%len(grids)], ones32(n)
			for i := range factor {
				if i%3 > 0 {
					factor[i] = rng.Float32()
				}
			}
			check(d, k, f, gridHardRows(rng, n, d, f), gridHardRows(rng, k, d, f), factor)
		})
		for _, f := range grids { // the longest offsets, all one way
			for _, k := range []int{1, Lanes + 1} {
				const n, d = 40000, 5 // without replicas of the table
				check(d, k, f, slices.Repeat([]float32{-1}, n*d), slices.Repeat([]float32{7}, k*d), ones32(n))
			}
		}
	})
}

func ones32(n int) []float32 { return slices.Repeat([]float32{1}, n) }

func TestCostRowsEqualPortable(t *testing.T) {
	withPaths(t, func(t *testing.T) {
		rng := rand.New(rand.NewPCG(6, 7))
		i := 0
		shapes(func(n, d, k int) {
			i++
			f := []int{16, 22, 0}[i%3]
			p := packed(gridHardRows(rng, n, d, f), n, d)
			c := NewCentroids(k, d)
			c.Set(gridHardRows(rng, k, d, f))
			lo := rng.IntN(n + 1)
			hi := lo + rng.IntN(n-lo+1)
			want, got := make([]int64, (hi-lo)*k), make([]int64, (hi-lo)*k)
			costRowsPortable(p, lo, hi, c, f, want)
			CostRows(*p, lo, hi, c, f, got)
			if !slices.Equal(want, got) {
				t.Fatalf("n=%d d=%d k=%d f=%d [%d:%d]:\n%v\n%v", n, d, k, f, lo, hi, want, got)
			}
		})
	})
}

func TestAddUint64EqualsPortable(t *testing.T) {
	withPaths(t, func(t *testing.T) {
		rng := rand.New(rand.NewPCG(7, 7))
		for n := range 140 {
			got, a := make([]uint64, n), make([]uint64, n)
			for i := range n {
				got[i], a[i] = rng.Uint64(), rng.Uint64()>>rng.IntN(64)
			}
			want := slices.Clone(got)
			AddUint64(got, a)
			addUint64Portable(want, a)
			if !slices.Equal(got, want) {
				t.Fatalf("n=%d:\n%x\n%x", n, got, want)
			}
		}
	})
}

func TestLabelKernelsEqualPortable(t *testing.T) {
	withPaths(t, func(t *testing.T) {
		rng := rand.New(rand.NewPCG(8, 7))
		const most = math.MaxFloat32
		near := []float32{0, 0.5, math.Nextafter32(0.5, 0), math.Nextafter32(0.5, 1), math.SmallestNonzeroFloat32, most,
			float32(math.Inf(1))}
		for n := range 200 {
			labels, dist := make([]uint16, n), make([]float32, n)
			for i := range labels {
				// Distances on, next to and far from the limit, and labels that
				// are large as signed numbers.
				labels[i], dist[i] = uint16(rng.Uint32()), near[rng.IntN(len(near))]
			}
			if got, want := largest(labels), largestPortable(labels); got != want {
				t.Fatalf("largest of %v is %d, want %d", labels, got, want)
			}
			for i := range labels { // the largest in each place
				old := labels[i]
				labels[i] = math.MaxUint16
				if got := largest(labels); got != math.MaxUint16 {
					t.Fatalf("largest of %v is %d", labels, got)
				}
				labels[i] = old
			}
			for _, r2 := range []float32{0.5, 0, most, float32(math.Inf(1))} {
				want, got := slices.Clone(labels), slices.Clone(labels)
				cutPortable(want, dist, r2, 40000)
				cut(got, dist, r2, 40000)
				if !slices.Equal(got, want) {
					t.Fatalf("cut at %g:\n%v\n%v", r2, got, want)
				}
			}
		}
	})
}

// sameFloats compares two sums bit for bit, so that zeros of both signs differ.
func sameFloats(a, b []float64) bool {
	for i := range a {
		if math.Float64bits(a[i]) != math.Float64bits(b[i]) {
			return false
		}
	}
	return len(a) == len(b)
}

func sameWeighted(a, b *WeightedAccumulator) bool {
	return sameFloats(a.Sums, b.Sums) && sameFloats(a.Weights, b.Weights) &&
		math.Float64bits(a.Cost) == math.Float64bits(b.Cost)
}

// weightedPoints joins points with weights of many magnitudes, both signs and
// zeros.
func weightedPoints(rng *rand.Rand, p *Panels) *WeightedPoints {
	weights := make([]float64, p.N)
	for i := range weights {
		if rng.IntN(8) > 0 {
			weights[i] = math.Ldexp(rng.NormFloat64(), rng.IntN(60)-30)
		}
	}
	return NewWeightedPoints(*p, weights)
}

func TestAccumulateWeightedEqualsPortable(t *testing.T) {
	for _, path := range supportedPaths() {
		t.Run(path.String(), func(t *testing.T) {
			defer forcePath(path)()
			rng := rand.New(rand.NewPCG(10, 7))
			check := func(n, d, k int) {
				p := packed(hardRows(rng, n, d), n, d)
				c := NewCentroids(k, d)
				c.Set(hardRows(rng, k, d))
				w := weightedPoints(rng, p)
				want, got := NewWeightedAccumulator(k, d), NewWeightedAccumulator(k, d)
				equal := func(what string) {
					t.Helper()
					if !sameWeighted(want, got) {
						t.Fatalf("%s n=%d d=%d k=%d:\n%v\n%v\n%v\n%v\n%v\n%v", what, n, d, k, want.Sums, got.Sums, want.Weights,
							got.Weights, want.Cost, got.Cost)
					}
				}
				labels := make([]uint16, n)
				d0, s0 := make([]float32, n), make([]float32, n)
				assignPortable(p, c, labels, d0, s0)
				accumulateWeightedPortable(w, labels, d0, want)
				l1, d1, s1 := make([]uint16, n), make([]float32, n), make([]float32, n)
				AssignAccumulateWeighted(w, c, l1, d1, s1, got)
				equal("AssignAccumulateWeighted")
				if !slices.Equal(labels, l1) || !sameBits(d0, d1) || !sameBits(s0, s1) {
					t.Fatalf("AssignAccumulateWeighted n=%d d=%d k=%d: labels or distances differ", n, d, k)
				}
				var costs [weightedChains]float64
				addCostsPortable(w.Weights, d0, &costs)
				if cost := WeightedCost(w.Weights, d0); cost != tree(&costs) {
					t.Fatalf("WeightedCost n=%d d=%d k=%d: %v, want %v", n, d, k, cost, tree(&costs))
				}
				which := make([]int32, 2*n) // some more than once, some not at all
				for i := range which {
					which[i] = int32(rng.IntN(n))
				}
				members := [2][]float64{make([]float64, k*w.Width()), make([]float64, k*w.Width())}
				for range 2 { // the second time onto sums that are not zero
					addMembersPortable(w, which, labels, members[0])
					AddMembers(w, which, labels, members[1])
				}
				if !sameFloats(members[0], members[1]) {
					t.Fatalf("AddMembers n=%d d=%d k=%d:\n%v\n%v", n, d, k, members[0], members[1])
				}
				accumulateWeightedPortable(w, labels, d0, want)
				AssignAccumulateWeighted(w, c, nil, nil, nil, got)
				equal("AssignAccumulateWeighted without labels, onto sums that are not zero")
			}
			shapes(check)
			check(3000, 2, 5) // several blocks
			check(3000, 20, 3)
			check(40, 784, 30) // one chain
		})
	}
}

func TestExchangeEqualsPortable(t *testing.T) {
	withPaths(t, func(t *testing.T) {
		rng := rand.New(rand.NewPCG(13, 7))
		for n := range 300 {
			k := 1 + rng.IntN(70)
			own, near, next, labels := exchangeData(rng, n, k)
			var weights []float64
			if n%2 == 1 {
				weights = make([]float64, n)
			}
			for i := range own {
				labels[i] = uint16(rng.IntN(k + 1))
				switch rng.IntN(8) {
				case 0:
					own[i] = near[i]
				case 1:
					own[i] = next[i]
				case 2:
					next[i] = float32(math.Inf(1)) // there is one centre
				case 3:
					own[i], near[i] = 0, math.Float32frombits(rng.Uint32N(1<<23))
				}
				if weights != nil {
					weights[i] = math.Ldexp(rng.Float64(), rng.IntN(60)-30)
				}
			}
			got := NewExchanges(k)
			table, base := make([]float64, (k+1)*weightedChains), [weightedChains]float64{}
			Exchange(own, near, next, labels, weights, got)
			exchangePortable(own, near, next, labels, weights, table, &base)
			want := NewExchanges(k)
			want.Base = tree(&base)
			for j := range k {
				want.Gains[j] = tree((*[weightedChains]float64)(table[j*weightedChains:]))
			}
			if !sameFloats(want.Gains, got.Gains) || math.Float64bits(want.Base) != math.Float64bits(got.Base) {
				t.Fatalf("n=%d k=%d:\n%v %v\n%v %v", n, k, want.Base, want.Gains, got.Base, got.Gains)
			}
			for _, root := range []bool{false, true} {
				want, got := slices.Clone(near), slices.Clone(near)
				pointLossesPortable(want, root, 0.7)
				PointLosses(got, root, 0.7)
				if !sameBits(want, got) {
					t.Fatalf("PointLosses n=%d root=%t:\n%v\n%v", n, root, want, got)
				}
			}
		}
	})
}

func TestKernelsDoNotAllocate(t *testing.T) {
	for _, path := range supportedPaths() {
		t.Run(path.String(), func(t *testing.T) {
			defer forcePath(path)()
			rng := rand.New(rand.NewPCG(12, 7))
			for _, shape := range [][3]int{{100, 2, 5}, {100, 2, 40}, {100, 7, 30}, {100, 20, 14}} {
				n, d, k := shape[0], shape[1], shape[2]
				rows := gridRows(rng, n, d, 16)
				p := packed(rows, n, d)
				c := NewCentroids(k, d)
				labels, dist, second := make([]uint16, n), make([]float32, n), make([]float32, n)
				acc, weighted := NewAccumulator(k, d, 16), NewWeightedAccumulator(k, d)
				points, exchanges := weightedPoints(rng, p), NewExchanges(k)
				units, wide := NewUnitMap(make([]float64, d), ones(d), 16), make([]float64, n*d)
				r2, costs, ranges := make([]float32, k), make([]int64, n*k), NewRanges[float32](d)
				m, out := NewMatrix(7, d, gridRows(rng, 7, d, 16)), NewPanels(n, 7)
				keys, digests := randomBlocks(rng, 2), randomBlocks(rng, 9)
				key, reg, scratch := NewArrivalKey(keys[0]), registers(100), new(ArrivalScratch)
				states := make([]ArrivalState, len(digests))
				columns, cells := columnsOf(rng, n, 2, k), make([]int64, k*k)
				u64, v64, u32, f64 := make([]uint64, n), make([]uint64, n), make([]uint32, n), make([]float64, n)
				centres := gridRows(rng, k, d, 16)
				for name, fn := range map[string]func(){
					"Set":               func() { c.Set(centres) },
					"Arrivals":          func() { Arrivals(key, digests, 1, 1, 5, reg, states, scratch) },
					"Continue":          func() { Continue(key, states, 1, 2, reg, scratch) },
					"Pack":              func() { Pack(p, rows) },
					"Quantise":          func() { Quantise(rows, wide, units) },
					"Extend":            func() { Extend(ranges, rows) },
					"Stale":             func() { Stale(dist, labels, second, u32[:(n+31)/32]) },
					"StaleByDistance":   func() { StaleByDistance(dist, dist, second, DistanceBound{}, u32[:(n+31)/32]) },
					"BoundKeys":         func() { BoundKeys(dist, second, labels, f64, KeyBound{1, 1, 1}, dist, second) },
					"Assign":            func() { Assign(*p, c, labels, dist) },
					"AssignRadius":      func() { AssignRadius(*p, c, 0.5, labels, nil) },
					"Assign2":           func() { Assign2(*p, c, labels, dist, second) },
					"Distances":         func() { Distances(*p, c, labels, dist) },
					"AssignAccumulate":  func() { AssignAccumulate(*p, c, nil, acc) },
					"Accumulate":        func() { Accumulate(*p, labels, acc) },
					"AccumulateOffsets": func() { AccumulateOffsets(*p, c, labels, dist, acc) },
					"AssignAccumulateWeighted": func() {
						AssignAccumulateWeighted(points, c, nil, nil, nil, weighted)
					},
					"Exchange":    func() { Exchange(dist, dist, second, labels, nil, exchanges) },
					"PointLosses": func() { PointLosses(dist, true, 3) },
					"CostRows":    func() { CostRows(*p, 3, n, c, 16, costs[:(n-3)*k]) },
					"TopTwo": func() {
						if d < TopTwoDims {
							TopTwo(*p, c.rows, r2, 1e-6, 1, labels, u32, dist)
						}
					},
					"LeastDot":  func() { LeastDot(f64, n/d, n/d, f64[:d]) },
					"Project":   func() { Project(*p, m, *out) },
					"AddUint64": func() { AddUint64(u64, v64) },
					"ShareCounts": func() {
						ShareCounts(f64[:32], f64[32:64], 16, []int32{0, 16}, u64[:9], f64[64:73], f64[73:82])
					},
					"SumMaxima":  func() { f64[0] = SumMaxima(f64, f64) },
					"CountCells": func() { CountCells(columns, k, cells) },
					"CountGrid":  func() { CountGrid(*p, 1, cells[:1]) },
					"WeighGrid":  func() { WeighGrid(*p, 1, u32, cells[:1]) },
				} {
					if got := testing.AllocsPerRun(5, fn); got != 0 {
						t.Errorf("%s allocates %g times at n=%d d=%d k=%d", name, got, n, d, k)
					}
				}
			}
		})
	}
}

// TestCostRowsAfterSet takes costs on several goroutines at once, after each of two sets of centroids.
func TestCostRowsAfterSet(t *testing.T) {
	withPaths(t, func(t *testing.T) {
		const n, d, k, fraction = 40, 19, 21, 12
		rng := rand.New(rand.NewPCG(19, 41))
		p, c := packed(gridRows(rng, n, d, fraction), n, d), NewCentroids(k, d)
		for range 2 {
			c.Set(gridRows(rng, k, d, fraction))
			want := make([]int64, n*k)
			costRowsPortable(p, 0, n, c, fraction, want)
			var wg sync.WaitGroup
			for range 4 {
				wg.Go(func() {
					got := make([]int64, n*k)
					if CostRows(*p, 0, n, c, fraction, got); !slices.Equal(want, got) {
						t.Error("costs differ from the portable form's")
					}
				})
			}
			wg.Wait()
		}
	})
}
