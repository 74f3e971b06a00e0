package vertical

import (
	"context"
	"math"
	"math/rand/v2"
	"testing"
)

// serial is a Runner of one worker.
type serial struct{}

func (serial) Workers() int { return 1 }

func (serial) Run(ctx context.Context, n int, fn func(worker, index int)) error {
	for i := range n {
		fn(0, i)
	}
	return ctx.Err()
}

// drawSketches draws sketches by their law, without ids: per key and cell the
// first arrival of truth[cell] + phantoms ids, per sketch the first of its cells.
func drawSketches(rng *rand.Rand, g *Geometric, parties, clusters, keys int, truth []float64, phantoms float64) *View {
	v := &View{Law: g, Phantoms: phantoms, Shared: true}
	for range parties {
		v.Sketches = append(v.Sketches, NewSketches(keys, clusters))
	}
	grid, err := newDenseGrid(parties, clusters)
	if err != nil {
		panic(err)
	}
	for i := range keys {
		for c := range grid.Len() {
			rate := truth[c] + phantoms
			if rate <= 0 {
				continue
			}
			u := -math.Expm1(-rng.ExpFloat64() / rate)
			h := g.Height(uint64(u * 0x1p64))
			for l, a := range grid.Cell(c) {
				row := v.Sketches[l].Row(i)
				row[a] = max(row[a], h)
			}
		}
	}
	return v
}

func relativeError(w, truth []float64, n float64) float64 {
	sum := 0.0
	for i := range truth {
		sum += math.Abs(w[i] - truth[i])
	}
	return sum / n
}

func denseWeights(g *Grid) []float64 {
	w := make([]float64, powInt(g.Clusters, g.Parties))
	for i, x := range g.Weights {
		w[dense(g.Cell(i), g.Clusters)] = x
	}
	return w
}

func TestProbe(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, c := range []struct {
		s, k int
		nc   float64
	}{{2, 5, 180}, {4, 5, 44}, {4, 8, 25}} {
		for _, gamma := range []float64{1, 1.0 / 1024} {
			g, err := NewGeometric(gamma)
			if err != nil {
				t.Fatal(err)
			}
			cells := powInt(c.k, c.s)
			truth := make([]float64, cells)
			for range 20000 {
				if rng.IntN(20) == 0 {
					truth[rng.IntN(cells)]++
				} else {
					truth[(rng.IntN(5)*7919)%cells]++
				}
			}
			margins := make([][]float64, c.s)
			for l := range margins {
				margins[l] = make([]float64, c.k)
			}
			grid, _ := newDenseGrid(c.s, c.k)
			for i := range truth {
				for l, a := range grid.Cell(i) {
					margins[l][a] += truth[i]
				}
			}
			v := drawSketches(rng, g, c.s, c.k, 4096, truth, c.nc)
			r := &Release{Parties: c.s, Clusters: c.k, Joint: v, Records: 20000}
			ctx := context.Background()
			b, err := BasicEstimate(v, 20000)
			if err != nil {
				t.Fatal(err)
			}
			t.Log(c, gamma, "max", g.Max(), "basic", relativeError(denseWeights(b), truth, 20000))
			b, err = TwoPartyEstimate(r)
			t.Log("2pest", relativeError(denseWeights(b), truth, 20000))
			b, err = PairEstimate(ctx, serial{}, r)
			t.Log("pairmle", relativeError(denseWeights(b), truth, 20000))
			if gamma < .1 {
				b, err = JointEstimate(ctx, serial{}, v, 20000, margins)
				t.Log("em", relativeError(denseWeights(b), truth, 20000), b.Len())
				b, err = JointEstimate(ctx, serial{}, v, 20000, nil)
				t.Log("em no margins", relativeError(denseWeights(b), truth, 20000), b.Len())
			}
		}
	}
}

func BenchmarkEstimate(b *testing.B) {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, c := range []struct{ s, k int }{{2, 5}, {4, 8}} {
		for _, gamma := range []float64{1, 1.0 / 1024} {
			g, _ := NewGeometric(gamma)
			cells := powInt(c.k, c.s)
			truth := make([]float64, cells)
			for range 20000 {
				truth[(rng.IntN(5)*7919)%cells]++
			}
			v := drawSketches(rng, g, c.s, c.k, 4096, truth, 25)
			r := &Release{Parties: c.s, Clusters: c.k, Joint: v, Records: 20000}
			ctx := context.Background()
			name := string(rune('0'+c.s)) + map[bool]string{true: "g1", false: "gs"}[gamma == 1]
			b.Run("basic"+name, func(b *testing.B) {
				for b.Loop() {
					BasicEstimate(v, 20000)
				}
			})
			b.Run("2p"+name, func(b *testing.B) {
				for b.Loop() {
					TwoPartyEstimate(r)
				}
			})
			b.Run("pair"+name, func(b *testing.B) {
				for b.Loop() {
					PairEstimate(ctx, serial{}, r)
				}
			})
			if gamma < .1 {
				b.Run("em"+name, func(b *testing.B) {
					for b.Loop() {
						JointEstimate(ctx, serial{}, v, 20000, nil)
					}
				})
			}
		}
	}
}
