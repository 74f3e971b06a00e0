package staged

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/cohort-engine/cohort/engine"
	"github.com/cohort-engine/cohort/engine/protocol"
	"github.com/cohort-engine/cohort/engine/synopsis"
	"github.com/cohort-engine/cohort/internal/elementary"
	"github.com/cohort-engine/cohort/kernels"
)

const (
	// marginalCells is the number of cells of a column, marginalZooms that of releases: the
	// second one counts inside the range that the first has found.
	marginalCells, marginalZooms = 32, 2
	// marginalNoise is the noise of a count, as a part of all records, that the share is chosen
	// for, between marginalLeast and MarginalMost of the budget; none is spent where it is
	// above marginalWeak.
	marginalNoise, marginalWeak = 0.004, 0.03
	marginalLeast               = 0.004
	// marginalSure is by how many standard deviations of its noise the number of records
	// beyond a cell stands above zero before they are believed. What looks empty is cut off only
	// where at most marginalKept of a column stays: otherwise little is gained, and few records
	// may be there after all. What is cut off must look empty as a whole, too, within
	// marginalEmpty deviations, or marginalLoose where less than marginalFew stays, by which much is gained.
	marginalSure, marginalEmpty, marginalKept = 2.8, 1.5, 0.64
	marginalLoose, marginalFew                = 2.5, 0.3
	// marginalDenies is by how many standard deviations the columns' own number of records differs from the public one
	// where it is not believed.
	marginalDenies = 2.5
	// marginalSpread is by how many standard deviations of its noise all that is cut off, of all columns, may
	// stand above zero: spread records beside a heavy corner, which no column shows, are seen there. Where columns are
	// halved more than marginalDeep times on average if they are cut at all, but less if all are counted, as such a
	// corner does, marginalEmpty stands in its place.
	marginalSpread, marginalDeep = 2.2, 1.5
	// marginalLeft is by how many standard deviations of its noise the number of records beyond a frame, as the second
	// release has it, stands above zero where the frame is given up, if it is more than marginalMissed of all of them in
	// each column that is cut.
	marginalLeft, marginalMissed = 2.6, 0.03
)

// MarginalMost is the greatest share of the budget that the counts get.
const MarginalMost = 0.06

// Marginals are the planned releases of the counts of each column's cells.
type Marginals struct{ counts []*Release }

// MarginalShare is the share of the budget that counts of the columns' cells are worth,
// from public numbers only: 0 where they would be lost in noise.
func (f *Plan) MarginalShare() float64 {
	most := f.Share.Part(MarginalMost / marginalZooms)
	noise := math.Sqrt(most.Variance(most.scale(f.Bound("marginal counts", 0)))) / float64(f.N)
	if noise > marginalWeak {
		return 0
	}
	excess := noise / marginalNoise
	if f.Share.Gaussian {
		excess *= excess
	}
	return min(max(MarginalMost*excess, marginalLeast), MarginalMost)
}

// AddMarginals plans releases of the counts of the cells of each column with the whole of l.
// A record is in one cell of each column (THEOREMS.md T5).
func (f *Plan) AddMarginals(l Share) *Marginals {
	both := 2.0
	if l.Gaussian {
		both = math.Sqrt2
	}
	m := new(Marginals)
	for z := range marginalZooms {
		what := fmt.Sprintf("column counts %d: the cells of each column", z+1)
		s := f.addRelease("columns", what, f.Bound("marginal counts", 0), l.Part(1./marginalZooms), f.D, both)
		s.Words = f.D * marginalCells
		m.counts = append(m.counts, s)
	}
	return m
}

// Frame is the part of [-1,1]^d that released counts say holds the records.
type Frame struct{ Lo, Hi []float64 }

// wholeFrame is all of the box.
func wholeFrame(d int) *Frame {
	f := &Frame{make([]float64, d), make([]float64, d)}
	for h := range d {
		f.Lo[h], f.Hi[h] = -1, 1
	}
	return f
}

// Whole tells whether that is all of it; nil is.
func (f *Frame) Whole() bool {
	if f == nil {
		return true
	}
	for h := range f.Lo {
		if f.Lo[h] > -1 || f.Hi[h] < 1 {
			return false
		}
	}
	return true
}

// ReleaseFrame releases the counts of the cells of each column, twice, and returns where the
// records are.
func (p *Party) ReleaseFrame(ctx context.Context, m *Marginals) (*Frame, error) {
	frame := wholeFrame(p.D)
	var fine []int64
	var before []float64
	for z, s := range m.counts {
		counts, err := p.ReleaseCounts(ctx, s, p.D*marginalCells, func(words []int64) (err error) {
			if fine == nil {
				fine, err = p.countFine(ctx)
			}
			frame.count(fine, words)
			return err
		})
		if err != nil {
			return nil, err
		}
		frame, err = protocol.Once(p.Party, "columns", z, func() (*Frame, error) {
			noise := math.Sqrt(s.Share.Variance(s.Scale))
			if frame.leaves(counts, float64(p.N), noise) {
				return wholeFrame(p.D), nil
			}
			if !frame.Whole() {
				before = nil // counts of other cells
			}
			return frame.within(counts, before, float64(p.N), noise), nil
		})
		if err != nil {
			return nil, err
		}
		before = counts
	}
	return frame, nil
}

// within is the part of the frame from the first to the last of the cells of each column that
// surely have records, and one more on either side; all of it where too much lies beyond. The cells of a
// column have all records, whose public number is total: what some have is known by the others, too.
// before are counts of the same cells that have denied a frame, nil for none: what lies beyond has to be little by the
// means of both.
func (f *Frame) within(counts, before []float64, total, noise float64) *Frame {
	d := len(f.Lo)
	m, next := len(counts)/d, &Frame{make([]float64, d), make([]float64, d)}
	all, allNoise, missed := counts, noise, 0.0
	if before != nil {
		all, allNoise, missed = slices.Clone(counts), noise/math.Sqrt2, float64(marginalMissed*total)
		for i, n := range before {
			all[i] = (n + all[i]) / 2
		}
	}
	sum, unsure := believed(counts, d, total, noise)
	allSum, allUnsure := believed(all, d, total, allNoise)
	// Of what is cut off in all columns, and by how much it narrows them.
	outside, variance, parts, gain, narrowed := 0.0, 0.0, 0.0, 0.0, 0
	for h := range d {
		first, last := newColumn(counts[h*m:(h+1)*m], sum, unsure, noise).kept()
		c := newColumn(all[h*m:(h+1)*m], allSum, allUnsure, allNoise)
		cut := first + m - 1 - last
		outside, variance = outside+c.beyond(first, last), variance+c.variance(cut)
		parts += float64(cut) / float64(m)
		gain += elementary.Log2(float64(m) / float64(m-cut))
		if cut > 0 {
			narrowed++
		}
		cell := (f.Hi[h] - f.Lo[h]) / float64(m)
		next.Lo[h], next.Hi[h] = f.Lo[h]+float64(float64(first)*cell), f.Lo[h]+float64(float64(last+1)*cell)
	}
	most := marginalSpread
	if gain >= float64(marginalDeep*float64(narrowed)) && gain < float64(marginalDeep*float64(d)) {
		most = marginalEmpty
	}
	if outside > max(float64(most*allNoise)*math.Sqrt(variance+float64(parts*parts*allUnsure)),
		float64(missed*float64(narrowed))) {
		return f
	}
	return next
}

// leaves tells whether the frame leaves out records of the total that there are: the outermost cells of its columns
// also have those that lie beyond it, with the noise of one cell each, and not that of the many that were cut off.
func (f *Frame) leaves(counts []float64, total, noise float64) bool {
	d := len(f.Lo)
	m, sum, sides, narrowed := len(counts)/d, 0.0, 0, 0
	for h := range d {
		before := sides
		if f.Lo[h] > -1 {
			sum, sides = sum+counts[h*m], sides+1
		}
		if f.Hi[h] < 1 {
			sum, sides = sum+counts[(h+1)*m-1], sides+1
		}
		if sides > before {
			narrowed++
		}
	}
	sure := float64(marginalLeft*noise) * math.Sqrt(float64(sides))
	return sum > max(sure, float64(marginalMissed*total)*float64(narrowed))
}

// believed is the sum of the cells of each of d columns, and its variance where that of a cell is 1. It is total, or,
// where the columns deny that, their mean: a public number may be a round one.
func believed(counts []float64, d int, total, noise float64) (sum, unsure float64) {
	for _, n := range counts {
		sum += n / float64(d)
	}
	unsure = float64(len(counts)) / float64(d*d)
	if math.Abs(sum-total) > float64(marginalDenies*noise)*math.Sqrt(unsure) {
		return sum, unsure
	}
	return total, 0
}

// column is the counts of the cells of a column, of which the sum is known with a variance of unsure where that of a
// cell as it was released is 1, and the noise of such a cell.
type column struct {
	counts        []float64
	unsure, noise float64
}

// newColumn takes the noise out of the sum, to equal parts of all cells.
func newColumn(noisy []float64, total, unsure, noise float64) column {
	excess := -total
	for _, n := range noisy {
		excess += n
	}
	c := column{make([]float64, len(noisy)), unsure, noise}
	for i, n := range noisy {
		c.counts[i] = n - excess/float64(len(noisy))
	}
	return c
}

// variance is that of the sum of so many cells where the sum of all is known.
func (c column) variance(cells int) float64 {
	return float64(cells) * (1 - float64(cells)/float64(len(c.counts)))
}

// empty tells whether so many cells have no more records together than noise may have, so many deviations of it.
func (c column) empty(sum float64, cells int, deviations float64) bool {
	part := float64(cells) / float64(len(c.counts))
	return sum <= float64(deviations*c.noise)*math.Sqrt(c.variance(cells)+float64(part*part*c.unsure))
}

// kept are the first and the last cell that are kept.
func (c column) kept() (first, last int) {
	m := len(c.counts)
	first = c.outermost(func(i int) int { return i })
	last = m - 1 - c.outermost(func(i int) int { return m - 1 - i })
	first, last = max(first-1, 0), min(last+1, m-1)
	part := float64(last-first+1) / float64(m)
	most := marginalEmpty
	if part < marginalFew {
		most = marginalLoose
	}
	if part <= 0 || part > marginalKept || !c.empty(c.beyond(first, last), first+m-1-last, most) {
		return 0, m - 1
	}
	return first, last
}

// outermost is how many cells from an end are before the first such that it and all before it surely have records
// together; all where none is.
func (c column) outermost(at func(i int) int) int {
	sum := 0.0
	for i := range c.counts {
		if sum += c.counts[at(i)]; !c.empty(sum, i+1, marginalSure) {
			return i
		}
	}
	return len(c.counts)
}

// beyond is the sum of the cells outside of [first, last].
func (c column) beyond(first, last int) (sum float64) {
	for i, n := range c.counts {
		if i < first || i > last {
			sum += n
		}
	}
	return sum
}

// fineCells are cells of a column of the box that no cell of a frame's column cuts: the first zoom's cells are
// marginalCells of the box, and every other one cuts such a cell, or as many as lie next to each other, in as many.
const fineCells = marginalCells * marginalCells

// countFine counts the party's records in the fine cells of each column.
func (p *Party) countFine(ctx context.Context) ([]int64, error) {
	counts := make([]int64, p.D*fineCells)
	err := p.Pool().Count(ctx, p.Records, counts, func(own []int64, s engine.Shard) {
		const lanes = kernels.Lanes
		for h := range p.D {
			cells := (*[fineCells]int64)(own[h*fineCells:])
			for first := s.Lo; first < s.Hi; first += lanes {
				row := p.Records.Data[first*p.D+h*lanes:][:min(lanes, s.Hi-first)]
				if p.Weights == nil {
					for _, x := range row {
						cells[fineCell(x)]++
					}
					continue
				}
				for lane, x := range row {
					cells[fineCell(x)] += p.Weights.Of(first + lane)
				}
			}
		}
	})
	return counts, err
}

// fineCell is the fine cell of a coordinate. Its sum is exact for coordinates on any grid.
func fineCell(x float32) uint { return min(uint(int32(x*(fineCells/2)+fineCells/2)), fineCells-1) }

// count adds up fine cells to those of each column of the frame, in the outermost of which are those beyond it.
func (f *Frame) count(fine, words []int64) {
	for h, lo := range f.Lo {
		per := marginalCells / (f.Hi[h] - lo)
		for i, n := range fine[h*fineCells : (h+1)*fineCells] {
			// The middle of a fine cell is in its cell, however the product is rounded.
			x := (float64(i)+0.5)*(2./fineCells) - 1
			c := int(math.Floor(float64((x - lo) * per)))
			words[h*marginalCells+min(max(c, 0), marginalCells-1)] += n
		}
	}
}

// Widths are those of the columns.
func (f *Frame) Widths() []float64 {
	w := make([]float64, len(f.Lo))
	for h := range w {
		w[h] = f.Hi[h] - f.Lo[h]
	}
	return w
}

// Image is the map of records from the frame onto [-1,1]^d, for coordinates src of column h: what
// is beyond the frame is clamped. The image of a record is on the grid and a function of that record.
func (f *Frame) Image(fractionBits int) func(h int, dst, src []float32) {
	grid, step := math.Ldexp(1, fractionBits), math.Ldexp(1, -fractionBits)
	return func(h int, dst, src []float32) {
		lo, width := f.Lo[h], f.Hi[h]-f.Lo[h]
		for i, x := range src {
			y := float64(2*((float64(x)-lo)/width)) - 1
			if y < -1 {
				y = -1
			} else if y > 1 {
				y = 1
			}
			dst[i] = float32(float64(int64(y*grid)) * step)
		}
	}
}

// Place takes boxes of [-1,1]^d to where Image has them from, in place.
func (f *Frame) Place(boxes []synopsis.Box) {
	for _, b := range boxes {
		for h := range b.Lo {
			half := (f.Hi[h] - f.Lo[h]) / 2
			b.Lo[h] = f.Lo[h] + float64((b.Lo[h]+1)*half)
			b.Hi[h] = f.Lo[h] + float64((b.Hi[h]+1)*half)
		}
	}
}
