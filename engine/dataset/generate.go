package dataset

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/cohort-engine/cohort/internal/elementary"
	"github.com/cohort-engine/cohort/internal/fault"
	"github.com/cohort-engine/cohort/kernels"
)

// Generator holds the parameters of a built-in set. Zero fields mean the set's
// own default; a field that a set does not have is refused unless zero.
type Generator struct {
	N, D, K    int
	Separation float64
	Spread     float64 // of cluster sizes, as a share of their mean
	Seed       uint64
}

// Builtin describes a built-in set.
type Builtin struct {
	Name    string
	About   string
	Default Generator // what zero fields stand for; zero here: the set has no such parameter

	make func(ctx context.Context, g Generator) (drawer, error)
}

// maxCells bounds the size of a built-in set (8 GiB of coordinates).
const maxCells = 1 << 30

// Builtins returns the built-in sets in the order of their names.
func Builtins() []Builtin {
	return []Builtin{
		{"birch2", "100 Gaussians along a sine wave (BIRCH DS2: Zhang, Ramakrishnan, Livny 1997)",
			Generator{N: 100000}, makeBirch2},
		{"blobs", "k round Gaussians in d dimensions; separation is the smallest distance of two centres in standard " +
			"deviations", Generator{N: 10000, D: 2, K: 10, Separation: 8}, makeBlobs},
		{"box-blobs", "k round Gaussians of standard deviation 1 with centres uniform in [0, 100]^d (scikit-learn's " +
			"make_blobs)", Generator{N: 100000, D: 100, K: 64}, makeBoxBlobs},
		{"s1-like", "15 overlapping Gaussians in the plane, with the means and covariances of S1 (Fränti and Virmajoki " +
			"2006)", Generator{N: 5000}, makeS1Like},
		{"synth", "k elliptical clusters whose nearest neighbours have separation index J (Qiu and Joe 2006), 0.21 or " +
			"0.7 in FastLloyd's quality sets", Generator{N: 10000, D: 2, K: 10, Separation: 0.7, Spread: 0.25}, makeSynth},
		{"timesynth", "k equal elliptical clusters; separation is their index J (Qiu and Joe 2006), 0.7 as in " +
			"FastLloyd's timing sets", Generator{N: 10000, D: 2, K: 2, Separation: 0.7}, makeTimesynth},
	}
}

// Generate makes a built-in set with its class labels. The same parameters give
// the same bytes on every machine.
func Generate(ctx context.Context, name string, g Generator) (*Table, error) {
	s, err := newGenerated(ctx, name, ReadOptions{Generator: g})
	if err != nil {
		return nil, err
	}
	return readTable(ctx, s, ReadOptions{Workers: 1})
}

// newGenerated prepares a built-in set.
func newGenerated(ctx context.Context, name string, opts ReadOptions) (Source, error) {
	g := opts.Generator
	sets := Builtins()
	i := slices.IndexFunc(sets, func(b Builtin) bool { return b.Name == name })
	if i < 0 {
		names := make([]string, len(sets))
		for i, b := range sets {
			names[i] = b.Name
		}
		return nil, fault.Request(builtinPrefix+name, "there is no such built-in set"+fault.Meant(name, names),
			"choose one of "+strings.Join(names, ", "))
	}
	b := sets[i]
	if err := g.complete(name, b.Default); err != nil {
		return nil, err
	}
	if d := max(g.D, 2); g.N > maxCells/d {
		return nil, fault.Request(builtinPrefix+name, fmt.Sprintf("%d records of %d coordinates are too many", g.N, d),
			fmt.Sprintf("stay at or below %d coordinates", maxCells))
	}
	if g.K > 1<<16 {
		return nil, fault.Range("k", g.K, "at most 65536")
	}
	draw, err := b.make(ctx, g)
	if err != nil {
		return nil, err
	}
	d := 2
	if b.Default.D > 0 {
		d = g.D
	}
	s := &generated{make: func(ctx context.Context) (drawer, error) { return b.make(ctx, g) }, first: draw, d: d}
	if s.columns, err = ChooseColumns(opts.Columns, nil, d); err != nil {
		return nil, err
	}
	s.schema = Schema{Name: builtinPrefix + name, N: g.N, D: len(s.columns),
		Identity: fmt.Sprintf("%s %+v %v", name, g, s.columns)}
	for _, c := range s.columns {
		s.schema.Numbers = append(s.schema.Numbers, c+1)
	}
	return s, nil
}

// complete puts the defaults of a set for fields that are zero, and refuses fields that it does not have.
func (g *Generator) complete(name string, standard Generator) error {
	return cmp.Or(
		parameter(name, "n", &g.N, standard.N),
		parameter(name, "d", &g.D, standard.D),
		parameter(name, "k", &g.K, standard.K),
		parameter(name, "separation", &g.Separation, standard.Separation),
		parameter(name, "spread", &g.Spread, standard.Spread))
}

// parameter is complete for one field.
func parameter[T int | float64](name, field string, value *T, standard T) error {
	switch {
	case *value == 0:
		*value = standard
	case standard == 0:
		return fault.Request(builtinPrefix+name, "it has no parameter "+field, "leave "+field+" out")
	case !(*value > 0) || math.IsInf(float64(*value), 0):
		want := "positive and finite"
		if _, whole := any(*value).(int); whole {
			want = "at least 1"
		}
		return fault.Range(field, *value, want)
	}
	return nil
}

// drawer writes record i to row and returns its class. Records are drawn in order.
type drawer func(i int, row []float64) int32

// generated is a built-in set.
type generated struct {
	make    func(ctx context.Context) (drawer, error)
	first   drawer // of the first pass
	d       int
	columns []int
	schema  Schema
}

func (s *generated) Schema() Schema { return s.schema }

// drawnValues is about how many coordinates are drawn at a time.
const drawnValues = 1 << 13

// Chunks draws the records.
func (s *generated) Chunks(ctx context.Context, yield func(Chunk) error) error {
	draw := s.first
	if s.first = nil; draw == nil {
		var err error
		if draw, err = s.make(ctx); err != nil {
			return err
		}
	}
	free := make(chan *drawn, 64)
	rows := max(drawnValues/s.d/kernels.Lanes, 1) * kernels.Lanes
	for first := 0; first < s.schema.N; first += rows {
		var c *drawn
		select {
		case c = <-free:
		default:
			c = &drawn{source: s, rows: make([]float64, rows*s.d), labels: make([]int32, rows), free: free}
		}
		c.first, c.n = first, min(rows, s.schema.N-first)
		for i := range c.n {
			c.labels[i] = draw(first+i, c.rows[i*s.d:(i+1)*s.d])
		}
		if err := yield(c); err != nil {
			return err
		}
	}
	return nil
}

// drawn is some records of a built-in set.
type drawn struct {
	source   *generated
	first, n int
	rows     []float64
	labels   []int32
	free     chan *drawn
}

// Decode copies the chosen columns.
func (c *drawn) Decode(b *Block) error {
	b.Record = c.first
	dst, d := b.Grow(c.n, c.source.schema.D), c.source.d
	for i := range c.n {
		for j, column := range c.source.columns {
			dst[i*len(c.source.columns)+j] = c.rows[i*d+column]
		}
	}
	b.Labels = append(b.Labels, c.labels[:c.n]...)
	select {
	case c.free <- c:
	default:
	}
	return nil
}

// clusterOf returns the class of record i of n: contiguous runs as equal as
// possible.
func clusterOf(i, n, k int) int { return int(uint64(i) * uint64(k) / uint64(n)) }

// byCluster draws n records in contiguous runs of k classes.
func byCluster(n, k int, draw func(row []float64, c int)) drawer {
	return func(i int, row []float64) int32 {
		c := clusterOf(i, n, k)
		draw(row, c)
		return int32(c)
	}
}

// makeBirch2 is DS2 of Zhang et al. 1997: K = 100 centres (2 pi i, (K/nc)
// sin(2 pi i/(K/nc))) with nc = 4 cycles and radius sqrt(2), that is standard
// deviation 1 per coordinate.
func makeBirch2(ctx context.Context, g Generator) (drawer, error) {
	const k, period = 100, 25
	r := newSource(g.Seed, "birch2")
	return byCluster(g.N, k, func(row []float64, c int) {
		row[0] = float64(2*math.Pi*float64(c)) + r.normal()
		row[1] = float64(period*sine(2*math.Pi*float64(c%period)/period)) + r.normal()
	}), nil
}

// sine is sin(x) for |x| <= 2 pi by its Taylor series, each step rounded, the
// same on every architecture.
func sine(x float64) float64 {
	term, sum := x, x
	for i := 2; i < 48; i += 2 {
		term = -(term * x * x) / float64(i*(i+1))
		sum += term
	}
	return sum
}

// s1Clusters are the sample means, standard deviations and correlations of the
// 15 classes of S1, rounded to the thousand and the hundredth.
var s1Clusters = [15][5]float64{
	{607e3, 573e3, 35e3, 32e3, 0.06}, {803e3, 321e3, 15e3, 33e3, 0.96}, {418e3, 787e3, 30e3, 29e3, 0.26},
	{823e3, 733e3, 26e3, 31e3, -0.28}, {853e3, 157e3, 26e3, 27e3, 0.16}, {338e3, 562e3, 32e3, 20e3, 0.52},
	{167e3, 348e3, 26e3, 30e3, -0.05}, {618e3, 398e3, 35e3, 30e3, 0.03}, {245e3, 848e3, 32e3, 30e3, 0.02},
	{321e3, 162e3, 38e3, 34e3, -0.02}, {141e3, 558e3, 38e3, 27e3, -0.12}, {508e3, 176e3, 28e3, 29e3, 0.43},
	{398e3, 405e3, 30e3, 27e3, 0.15}, {859e3, 547e3, 30e3, 33e3, 0.04}, {671e3, 863e3, 30e3, 32e3, 0.08},
}

func makeS1Like(ctx context.Context, g Generator) (drawer, error) {
	r := newSource(g.Seed, "s1-like")
	return byCluster(g.N, len(s1Clusters), func(row []float64, c int) {
		p := s1Clusters[c]
		u, v := r.normal(), r.normal()
		w := float64(p[4]*u) + float64(math.Sqrt(1-float64(p[4]*p[4]))*v)
		// S1 has integer coordinates in [0, 10^6].
		row[0] = min(max(math.Round(p[0]+float64(p[2]*u)), 0), 1e6)
		row[1] = min(max(math.Round(p[1]+float64(p[3]*w)), 0), 1e6)
	}), nil
}

// makeBlobs places k centres in [0, 1]^d by best candidate (each new centre is
// the farthest of some random ones from those that stand) and draws round
// Gaussians whose standard deviation is the smallest distance of two centres
// divided by the separation.
func makeBlobs(ctx context.Context, g Generator) (drawer, error) {
	const candidates = 10
	r := newSource(g.Seed, "blobs")
	d := g.D
	centres := make([]float64, g.K*d)
	trial := make([]float64, d)
	closest := 1.0
	for c := range g.K {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		best := -1.0
		for range candidates {
			for j := range trial {
				trial[j] = r.uniform()
			}
			nearest := math.Inf(1)
			for o := range c {
				nearest = min(nearest, elementary.SquaredDistance(trial, centres[o*d:]))
			}
			if nearest > best {
				best = nearest
				copy(centres[c*d:(c+1)*d], trial)
			}
		}
		if c > 0 {
			closest = min(closest, math.Sqrt(best))
		}
	}
	sigma := closest / g.Separation
	return byCluster(g.N, g.K, func(row []float64, c int) {
		for j := range row {
			row[j] = centres[c*d+j] + float64(sigma*r.normal())
		}
	}), nil
}

// makeBoxBlobs is make_blobs of scikit-learn with center_box (0, 100): centres
// uniform in the box, standard deviation 1, equal sizes.
func makeBoxBlobs(ctx context.Context, g Generator) (drawer, error) {
	r := newSource(g.Seed, "box-blobs")
	centres := make([]float64, g.K*g.D)
	for i := range centres {
		centres[i] = 100 * r.uniform()
	}
	return byCluster(g.N, g.K, func(row []float64, c int) {
		for j := range row {
			row[j] = centres[c*g.D+j] + r.normal()
		}
	}), nil
}

// makeTimesynth follows genRandomClust of clusterGeneration: cluster c has a
// covariance with variances uniform in [1, 10] along random axes, and
// neighbouring centres are so far apart that the separation index of two of the
// widest clusters is J = (D - 2 z s)/(D + 2 z s), z = 1.96 (the 97.5% quantile).
// The centres stand on a lattice, in a random order.
func makeTimesynth(ctx context.Context, g Generator) (drawer, error) {
	if g.Separation >= 1 {
		return nil, fault.Range("separation", g.Separation, "below 1, it is an index")
	}
	const z, widest = quantile, 10
	d := g.D
	if g.K > maxCells/8/d/d {
		return nil, fault.Request(builtinPrefix+"timesynth",
			fmt.Sprintf("%d covariances of %d x %d are too many", g.K, d, d), "lower k or d")
	}
	r := newSource(g.Seed, "timesynth")
	spacing := float64(2*z*math.Sqrt(widest)) * (1 + g.Separation) / (1 - g.Separation)
	side, cells := 1, 1
	for cells < g.K {
		side++
		cells = 1
		for j := 0; j < d && cells < g.K; j++ {
			cells *= side
		}
	}
	order := inTurn(cells)
	shuffle(r, order)
	centres := make([]float64, g.K*d)
	axes := make([][]float64, g.K)
	for c := range g.K {
		at := order[c]
		for j := range d {
			centres[c*d+j] = spacing * float64(at%side)
			at /= side
		}
		axes[c] = randomAxes(r, d)
		for a := range d {
			sd := math.Sqrt(1 + float64((widest-1)*r.uniform()))
			for j := range d {
				axes[c][a*d+j] *= sd
			}
		}
	}
	z0 := make([]float64, d)
	return byCluster(g.N, g.K, func(row []float64, c int) {
		for a := range z0 {
			z0[a] = r.normal()
		}
		for j := range row {
			v := centres[c*d+j]
			for a, x := range z0 {
				v += float64(x * axes[c][a*d+j])
			}
			row[j] = v
		}
	}), nil
}

// randomAxes returns d orthonormal rows, uniform over rotations and
// reflections: Gram-Schmidt on Gaussian rows.
func randomAxes(r *source, d int) []float64 {
	q := make([]float64, d*d)
	for a := range d {
		row := q[a*d : (a+1)*d]
		for {
			for j := range row {
				row[j] = r.normal()
			}
			before := dot(row, row)
			for b := range a {
				other := q[b*d : (b+1)*d]
				along := dot(row, other)
				for j := range row {
					row[j] -= float64(along * other[j])
				}
			}
			// A row that nearly depends on those before it is drawn again.
			if after := dot(row, row); after > 1e-6*before {
				norm := math.Sqrt(after)
				for j := range row {
					row[j] /= norm
				}
				break
			}
		}
	}
	return q
}

func dot(x, y []float64) float64 {
	sum := 0.0
	for i := range x {
		sum += float64(x[i] * y[i])
	}
	return sum
}
