package kernels

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// fuzzShape reads n, d and k from the head of the data, and rows of raw float32
// from the rest, without NaN and infinities; missing values repeat the data.
func fuzzShape(data []byte) (n, d, k int, values func(count int) []float32) {
	head := make([]byte, 3)
	copy(head, data)
	n, d, k = 1+int(head[0])%100, 1+int(head[1])%40, 1+int(head[2])%50
	body := data[min(3, len(data)):]
	at := 0
	return n, d, k, func(count int) []float32 {
		v := make([]float32, count)
		if len(body) < 4 {
			return v
		}
		for i := range v {
			if at+4 > len(body) {
				at = 0
			}
			v[i] = math.Float32frombits(binary.LittleEndian.Uint32(body[at:]))
			at += 4
			// Magnitudes whose squares stay finite over all dimensions.
			if !(v[i] >= -1e15 && v[i] <= 1e15) {
				v[i] = float32(at % 3)
			}
		}
		return v
	}
}

func fuzzSeeds(f *testing.F) {
	f.Add([]byte{})
	f.Add([]byte{16, 1, 2, 0, 0, 128, 63, 0, 0, 128, 191})
	f.Add([]byte{33, 17, 13, 1, 0, 0, 0, 0, 0, 128, 127, 1, 2, 3, 4, 5, 6, 7, 8})
	f.Add([]byte{99, 39, 49, 0, 0, 0, 128, 255, 255, 127, 0})
}

func FuzzAssign(f *testing.F) {
	fuzzSeeds(f)
	f.Fuzz(func(t *testing.T, data []byte) {
		n, d, k, values := fuzzShape(data)
		rows, centres := values(n*d), values(k*d)
		l0, d0, s0 := make([]uint16, n), make([]float32, n), make([]float32, n)
		l1, d1, s1 := make([]uint16, n), make([]float32, n), make([]float32, n)
		e0, e1 := make([]float32, n), make([]float32, n)
		for _, path := range supportedPaths()[1:] {
			restore := forcePath(path)
			p := packed(rows, n, d)
			c := NewCentroids(k, d)
			c.Set(centres)
			Assign2(*p, c, l1, d1, s1)
			Distances(*p, c, l1, e1)
			assignPortable(p, c, l0, d0, s0)
			distancesPortable(p, c, l0, e0)
			restore()
			if !slices.Equal(l0, l1) || !sameBits(d0, d1) || !sameBits(s0, s1) || !sameBits(e0, e1) {
				t.Fatalf("%s n=%d d=%d k=%d:\n%v\n%v\n%v\n%v\n%v\n%v", path, n, d, k, l0, l1, d0, d1, s0, s1)
			}
		}
	})
}

// FuzzFilter attacks the candidate filter's bounds: each integer score must lie within its band of the chain, and
// labels must be the portable ones, for points of any size, copies of centroids and points between two of them, a
// step of float32 off.
func FuzzFilter(f *testing.F) {
	for mode := range byte(4) {
		f.Add([]byte{33, 17, 13, 1, 0, 0, 0, 0, 0, 128, 127, 1, 2, 3, 4, 5, 6, 7, 8}, mode, uint8(16))
		f.Add([]byte{99, 39, 49, 0, 0, 0, 128, 255, 255, 127, 62, 1, 77, 130, 190, 9, 8, 7}, mode, uint8(4))
	}
	f.Fuzz(func(t *testing.T, data []byte, mode, fraction uint8) {
		n, d, k, values := fuzzShape(data)
		d += exactDims - 1
		rows, centres := values(n*d), values(k*d)
		if mode&1 != 0 {
			bits := int(fraction) % (MaxFractionBits + 1)
			rows, centres = onGrid(rows, bits), onGrid(centres, bits)
		}
		for i := range n {
			a, b := i%k, (i*7+int(mode))%k
			for j := range d {
				switch x, y := centres[a*d+j], centres[b*d+j]; {
				case mode&2 != 0 && i%3 == 0:
					rows[i*d+j] = x
				case mode&2 != 0 && i%3 == 1:
					rows[i*d+j] = x/2 + y/2
				}
			}
			if j := i*d + i%d; mode&4 != 0 && math.Abs(float64(rows[j])) < 1e15 {
				rows[j] = math.Nextafter32(rows[j], float32(i%2*4-2))
			}
		}
		for _, path := range supportedPaths()[1:] {
			restore := forcePath(path)
			for _, group := range filterGroups() {
				p, c := packed(rows, n, d), NewCentroids(k, d)
				filtered(t, group, p, c, centres)
				want, got := make([]uint16, n), make([]uint16, n)
				assignPortable(p, c, want, nil, nil)
				for i := range got {
					got[i] = uint16(i * i) // a guess
				}
				Assign(*p, c, got, nil)
				if !slices.Equal(want, got) {
					t.Fatalf("%s n=%d d=%d k=%d, %d to a word:\n%v\n%v", path, n, d, k, group, want, got)
				}
				if p.filter == nil {
					continue
				}
				call, ok := p.filter.call(c)
				for i := 0; ok && i < n; i++ {
					bounds := p.filter.panels[i/Lanes]
					half := call.band(float64(bounds[0]), float64(bounds[1])) / 2
					for a := range k {
						if off := math.Abs(scoreError(p, c, &call, i, a)); off > half-call.raise(c, a) {
							t.Fatalf("%s d=%d, %d to a word: a score is off by %g, want at most %g", path, d, group, off, half)
						}
					}
				}
			}
			restore()
		}
	})
}

// onGrid maps values to the grid 2^-f in [-1, 1].
func onGrid(values []float32, f int) []float32 {
	for i, x := range values {
		y := math.Mod(float64(x), 1)
		values[i] = float32(math.Ldexp(math.Trunc(math.Ldexp(y, f)), -f))
	}
	return values
}

func FuzzAccumulate(f *testing.F) {
	fuzzSeeds(f)
	f.Fuzz(func(t *testing.T, data []byte) {
		n, d, k, values := fuzzShape(data)
		bits := n % (MaxFractionBits + 1)
		rows, centres := onGrid(values(n*d), bits), onGrid(values(k*d), bits)
		for _, path := range supportedPaths()[1:] {
			restore := forcePath(path)
			p := packed(rows, n, d)
			c := NewCentroids(k, d)
			c.Set(centres)
			want, got := NewAccumulator(k, d, bits), NewAccumulator(k, d, bits)
			l0, l1 := make([]uint16, n), make([]uint16, n)
			AssignAccumulate(*p, c, l1, got)
			Accumulate(*p, l1, got)
			assignAccumulatePortable(p, c, l0, want)
			accumulatePortable(p, l0, want)
			c0, c1 := make([]int64, n*k), make([]int64, n*k)
			CostRows(*p, 0, n, c, bits, c1)
			costRowsPortable(p, 0, n, c, bits, c0)
			restore()
			if !slices.Equal(l0, l1) || !slices.Equal(want.Sums, got.Sums) || !slices.Equal(want.Counts, got.Counts) ||
				!slices.Equal(c0, c1) {
				t.Fatalf("%s n=%d d=%d k=%d f=%d:\n%v\n%v\n%v\n%v", path, n, d, k, bits, want.Counts, got.Counts,
					want.Sums, got.Sums)
			}
		}
	})
}

// FuzzAccumulateWeighted takes the weights from the data too.
func FuzzAccumulateWeighted(f *testing.F) {
	fuzzSeeds(f)
	f.Fuzz(func(t *testing.T, data []byte) {
		n, d, k, values := fuzzShape(data)
		rows, centres, weights := values(n*d), values(k*d), make([]float64, n)
		for i, x := range values(n) {
			weights[i] = float64(x) / 3
		}
		for _, path := range supportedPaths()[1:] {
			restore := forcePath(path)
			p := packed(rows, n, d)
			w := NewWeightedPoints(*p, weights)
			c := NewCentroids(k, d)
			c.Set(centres)
			want, got := NewWeightedAccumulator(k, d), NewWeightedAccumulator(k, d)
			labels, dist := make([]uint16, n), make([]float32, n)
			AssignAccumulateWeighted(w, c, nil, nil, nil, got)
			assignPortable(p, c, labels, dist, nil)
			accumulateWeightedPortable(w, labels, dist, want)
			which := make([]int32, n)
			for i := range which {
				which[i] = int32(n - 1 - i)
			}
			members := [2][]float64{make([]float64, k*w.Width()), make([]float64, k*w.Width())}
			addMembersPortable(w, which, labels, members[0])
			AddMembers(w, which, labels, members[1])
			restore()
			if !sameFloats(members[0], members[1]) {
				t.Fatalf("%s n=%d d=%d k=%d:\n%v\n%v", path, n, d, k, members[0], members[1])
			}
			if !sameWeighted(want, got) {
				t.Fatalf("%s n=%d d=%d k=%d:\n%v\n%v\n%v\n%v", path, n, d, k, want.Weights, got.Weights, want.Sums, got.Sums)
			}
		}
	})
}

func FuzzProject(f *testing.F) {
	fuzzSeeds(f)
	f.Fuzz(func(t *testing.T, data []byte) {
		n, d, q, values := fuzzShape(data)
		rows, coefficients := values(n*d), values(q*d)
		for _, path := range supportedPaths()[1:] {
			restore := forcePath(path)
			p, m := packed(rows, n, d), NewMatrix(q, d, coefficients)
			want, got := NewPanels(n, q), NewPanels(n, q)
			Project(*p, m, *got)
			projectPortable(p, m, want)
			restore()
			if !sameBits(want.Data, got.Data) {
				t.Fatalf("%s n=%d d=%d q=%d:\n%v\n%v", path, n, d, q, want.Data, got.Data)
			}
		}
	})
}

// FuzzQuantise takes values and bounds of any finite size from the data.
func FuzzQuantise(f *testing.F) {
	fuzzSeeds(f)
	f.Fuzz(func(t *testing.T, data []byte) {
		n, d, bits, values := fuzzShape(data)
		bits %= MaxFractionBits + 1
		src, lo, hi := make([]float64, n*d), make([]float64, d), make([]float64, d)
		for i, x := range values(n * d) {
			src[i] = float64(x) * 3
		}
		for j, x := range values(d) {
			lo[j], hi[j] = float64(x), max(2*float64(x), float64(x)+1)
		}
		m := NewUnitMap(lo, hi, bits)
		want := make([]float32, n*d)
		outside := quantisePortable(want, src, m)
		for _, path := range supportedPaths()[1:] {
			restore := forcePath(path)
			got := make([]float32, n*d)
			count := Quantise(got, src, m)
			restore()
			if !sameBits(want, got) || count != outside {
				t.Fatalf("%s n=%d d=%d f=%d: %d and %d outside\n%v\n%v", path, n, d, bits, outside, count, want, got)
			}
		}
	})
}

// FuzzExchange takes point losses of any finite size from the data.
func FuzzExchange(f *testing.F) {
	fuzzSeeds(f)
	f.Fuzz(func(t *testing.T, data []byte) {
		n, _, k, values := fuzzShape(data)
		own, near, next, labels, weights := values(n), values(n), values(n), make([]uint16, n), make([]float64, n)
		for i, x := range values(n) {
			own[i], near[i] = own[i]*own[i], near[i]*near[i]
			next[i] = max(near[i], next[i])
			labels[i], weights[i] = uint16(int(math.Float32bits(x))%(k+1)), math.Abs(float64(x))/3
		}
		for _, path := range supportedPaths()[1:] {
			restore := forcePath(path)
			got, root := NewExchanges(k), slices.Clone(own)
			Exchange(own, near, next, labels, weights, got)
			PointLosses(root, true, 1e5)
			restore()
			table, base := make([]float64, (k+1)*weightedChains), [weightedChains]float64{}
			exchangePortable(own, near, next, labels, weights, table, &base)
			same := math.Float64bits(got.Base) == math.Float64bits(tree(&base))
			for j, g := range got.Gains {
				same = same && math.Float64bits(g) == math.Float64bits(tree((*[weightedChains]float64)(table[j*weightedChains:])))
			}
			want := slices.Clone(own)
			pointLossesPortable(want, true, 1e5)
			if !same || !sameBits(want, root) {
				t.Fatalf("%s n=%d k=%d: %v\n%v\n%v", path, n, k, got, root, want)
			}
		}
	})
}

func FuzzArrivals(f *testing.F) {
	f.Add([]byte{3, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18}, uint16(5), 1.0, 0.1)
	f.Add(make([]byte, 16*70), uint16(4096), 1.0, 0.1)
	f.Fuzz(func(t *testing.T, data []byte, m uint16, rate, limit float64) {
		if len(data) == 0 || m == 0 || !(rate > 0 && limit > 0 && float64(m)*rate*limit < 1e4) {
			return
		}
		blocks := make([][16]byte, (len(data)+15)/16)
		for i := range blocks {
			copy(blocks[i][:], data[16*i:])
		}
		key := NewArrivalKey(blocks[0])
		want := registers(int(m))
		arrivalsPortable(key, blocks, -1/(float64(m)*rate), limit, limit, want, nil)
		for _, path := range supportedPaths()[1:] {
			restore, got := forcePath(path), registers(int(m))
			if len(data)%2 == 0 {
				Arrivals(key, blocks, rate, limit, limit, got, nil, new(ArrivalScratch))
			}
			states := make([]ArrivalState, len(blocks))
			kept := Arrivals(key, blocks, rate, limit/4, 2*limit, got, states, new(ArrivalScratch))
			Continue(key, states[:kept], rate, limit, got, new(ArrivalScratch))
			restore()
			if !slices.Equal(want, got) {
				t.Fatalf("%s:\n%x\n%x", path, want, got)
			}
		}
	})
}

func FuzzShareCounts(f *testing.F) {
	f.Add(uint64(1), uint8(3), uint8(20), uint8(2))
	f.Add(uint64(2), uint8(1), uint8(1), uint8(0))
	f.Fuzz(func(t *testing.T, seed uint64, rows, events, size uint8) {
		length := 8 << (size % 4)
		g := newShares(rand.New(rand.NewPCG(seed, 1)), length, int(rows%20)+1, int(events)+1)
		want := slices.Clone(g.shares)
		shareCountsPortable(g.weights, want, length, g.rows, g.sets, g.counts, g.backgrounds)
		sum := sumMaximaPortable(g.counts, g.backgrounds)
		for _, path := range supportedPaths()[1:] {
			restore, got := forcePath(path), slices.Clone(g.shares)
			ShareCounts(g.weights, got, length, g.rows, g.sets, g.counts, g.backgrounds)
			total := SumMaxima(g.counts, g.backgrounds)
			restore()
			if !slices.Equal(got, want) || total != sum {
				t.Fatalf("%s:\n%v\n%v\n%v, %v", path, got, want, total, sum)
			}
		}
	})
}

func FuzzCells(f *testing.F) {
	f.Add(uint64(1), uint16(3), uint8(20), uint8(2))
	f.Add(uint64(2), uint16(1100), uint8(1), uint8(9))
	f.Fuzz(func(t *testing.T, seed uint64, n uint16, d, side uint8) {
		rng, dims := rand.New(rand.NewPCG(seed, 1)), 1+int(d%4)
		k := 1 + int(side)%32
		columns, counts := columnsOf(rng, int(n), dims, k), make([]int64, 2*power(k, dims))
		p := packed(gridRows(rng, int(n), dims, 22), int(n), dims)
		for i, path := range supportedPaths() {
			restore, got := forcePath(path), make([]int64, len(counts))
			CountCells(columns, k, got[:len(got)/2])
			CountGrid(*p, k, got[len(got)/2:])
			restore()
			if i == 0 { // the portable forms
				counts = got
			}
			if !slices.Equal(counts, got) {
				t.Fatalf("%s n=%d d=%d k=%d:\n%v\n%v", path, n, dims, k, counts, got)
			}
		}
	})
}
