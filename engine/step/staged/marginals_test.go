package staged_test

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/cohort-engine/cohort/engine/dataset/datasettest"
	"github.com/cohort-engine/cohort/engine/step/staged"
	"github.com/cohort-engine/cohort/engine/step/staged/stagedtest"
	"github.com/cohort-engine/cohort/engine/synopsis"
	"github.com/cohort-engine/cohort/kernels"
)

// TestFrame: the frame holds the records of a column that fills a part of the box, little wider than
// they are, leaves a column alone that fills the box, and the images of records lie where the
// boxes of the frame are.
func TestFrame(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	const n, d = 20000, 3
	p := datasettest.GridPanels(rng, n, d)
	row := make([]float32, d)
	for i := range n {
		row = p.Point(i, row)
		row[0] = staged.OnGrid(0.6+float64(row[0])/100, 16)
		row[1] = staged.OnGrid(-0.5+float64(row[1])/4, 16)
		p.Set(i, row)
	}
	f := stagedtest.Plan(t, p, 2)
	m := f.AddMarginals(staged.Share{Gaussian: true, Total: 0.01})
	stagedtest.OnParty(t, f, p, func(ctx context.Context, p *staged.Party) error {
		frame, err := p.ReleaseFrame(ctx, m)
		if err != nil {
			return err
		}
		if frame.Whole() || frame.Lo[2] != -1 || frame.Hi[2] != 1 {
			t.Errorf("%v", frame)
		}
		for h, want := range [][2]float64{{0.59, 0.61}, {-0.75, -0.25}} {
			wide := want[1] - want[0]
			if frame.Lo[h] > want[0]+0.1*wide || frame.Hi[h] < want[1]-0.1*wide || frame.Hi[h]-frame.Lo[h] > 1.9*wide {
				t.Errorf("column %d is framed by %v to %v, its records lie in %v", h, frame.Lo[h], frame.Hi[h], want)
			}
		}
		checkImage(t, p.Records, frame.Image(p.FractionBits), frame)
		return nil
	})
}

// TestFrameKeepsSpread: columns that records fill evenly are not cut where their counts are as noisy as ever
// they are used, and those that half of the records fill evenly, beside a heavy middle, hardly ever.
func TestFrameKeepsSpread(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 8))
	const n, d = 2000, 60
	p := kernels.NewPanels(n, d)
	row := make([]float32, d)
	for i := range n {
		for h := range row {
			x := 2*rng.Float64() - 1
			if h%2 == 1 && i%2 == 1 {
				x /= 16
			}
			row[h] = staged.OnGrid(x, 16)
		}
		p.Set(i, row)
	}
	f := stagedtest.Plan(t, p, 2)
	const noise = 0.03 * n
	m := f.AddMarginals(staged.Share{Gaussian: true, Total: 2 * 2 * d / (noise * noise)})
	stagedtest.OnParty(t, f, p, func(ctx context.Context, p *staged.Party) error {
		frame, err := p.ReleaseFrame(ctx, m)
		if err != nil {
			return err
		}
		var cut [2]int
		for h, w := range frame.Widths() {
			if w < 1 {
				cut[h%2]++
			}
		}
		if cut[0] > 0 || cut[1] > d/8 {
			t.Errorf("of %d columns of each kind %d are cut to less than half", d/2, cut)
		}
		return nil
	})
}

// checkImage compares the images of records with the boxes that they lie in.
func checkImage(t *testing.T, p *kernels.Panels, image func(int, []float32, []float32), f *staged.Frame) {
	t.Helper()
	const step = 1. / 64
	for i := range p.N {
		x := p.Point(i, nil)
		y := make([]float32, len(x))
		for h := range x {
			image(h, y[h:h+1], x[h:h+1])
		}
		box := synopsis.Box{}
		for _, v := range y {
			if math.Abs(float64(v)) > 1 {
				t.Fatalf("the image of record %d is %v", i, y)
			}
			box.Lo, box.Hi = append(box.Lo, float64(v)-step), append(box.Hi, float64(v)+step)
		}
		f.Place([]synopsis.Box{box})
		for h, v := range x {
			inside := min(max(float64(v), f.Lo[h]), f.Hi[h]) // what is beyond is clamped
			if inside < box.Lo[h] || inside > box.Hi[h] {
				t.Fatalf("record %d: %v lies outside the box %v around its image", i, x, box)
			}
		}
	}
}

// TestMarginalShare: a stronger signal needs a smaller share, and a weak one gets none.
func TestMarginalShare(t *testing.T) {
	p := datasettest.GridPanels(rand.New(rand.NewPCG(1, 1)), 1000, 4)
	f := stagedtest.Plan(t, p, 2)
	for _, gaussian := range []bool{true, false} {
		last := math.Inf(1)
		for _, total := range []float64{0.01, 0.1, 1, 10, 100, 1000} {
			f.Share = staged.Share{Gaussian: gaussian, Total: total}
			share := f.MarginalShare()
			noise := math.Sqrt(2*4/(total*share)) / 1000 // of a count, in parts of all records
			if !gaussian {
				noise = math.Sqrt2 * 2 * 4 / (total * share) / 1000
			}
			if total < 0.1 && share != 0 || total > 50 && share == 0 || share > staged.MarginalMost || share > last ||
				share > 0 && noise > 0.03*(1+1e-9) {
				t.Errorf("Gaussian %t, %v in all: share %v, noise %v", gaussian, total, share, noise)
			}
			if share > 0 {
				last = share
			}
		}
	}
}

// TestFrameKeepsRecordsBesideACorner: a tenth of the records, spread beside a corner that has the others, is no more
// than the noise of each column; all columns together show it. Where nothing is beside the corner it is framed.
func TestFrameKeepsRecordsBesideACorner(t *testing.T) {
	const n, d, tries = 2000, 6, 20
	for _, every := range []int{10, 0} {
		cut := 0
		for try := range uint64(tries) {
			p := cornered(rand.New(rand.NewPCG(try, 9)), n, d, every)
			if frame := framed(t, p, n, 0.012, 1); slices.Min(frame.Widths()) < 1 {
				cut++
			}
		}
		if every > 0 && cut > tries*2/3 || every == 0 && cut < tries*2/3 {
			t.Errorf("one of %d is spread: %d of %d frames are cut", every, cut, tries)
		}
	}
}

// cornered is a set of which one in every records is spread over the box and the others lie in a corner; 0 has them all
// there.
func cornered(rng *rand.Rand, n, d, every int) *kernels.Panels {
	p := kernels.NewPanels(n, d)
	row := make([]float32, d)
	for i := range n {
		for h := range row {
			x := rng.Float64() * 2
			if every == 0 || i%every > 0 {
				x /= 8
			}
			row[h] = staged.OnGrid(x-1, 16)
		}
		p.Set(i, row)
	}
	return p
}

// framed is the frame of records where a count has noise of that part of n, under a public number of records.
func framed(t *testing.T, p *kernels.Panels, public int, noise float64, seed uint64) (frame *staged.Frame) {
	f := stagedtest.Plan(t, p, 2)
	f.N, f.Seed = public, &seed
	m := f.AddMarginals(staged.Share{Gaussian: true, Total: 2 * 2 * float64(p.D) / math.Pow(noise*float64(p.N), 2)})
	stagedtest.OnParty(t, f, p, func(ctx context.Context, p *staged.Party) (err error) {
		frame, err = p.ReleaseFrame(ctx, m)
		return err
	})
	return frame
}

// TestFrameKnowsTheSum: a fifth of the records, spread beside a corner that has the others, is little more than the
// noise on the sum of the cells beyond it, and far more where the number of all records is known. A public number that
// is a tenth too high or too low does not count.
func TestFrameKnowsTheSum(t *testing.T) {
	const n, d, tries = 2000, 6, 30
	for _, c := range []struct {
		every, public int
		noise         float64
		least, most   int // frames that are cut
	}{{5, n, 0.025, 0, 14}, {0, n, 0.025, 27, tries},
		{5, n * 11 / 10, .01, 0, 3}, {0, n * 11 / 10, .01, 20, tries}, {5, n * 9 / 10, .01, 0, 3},
		{0, n * 9 / 10, .01, 20, tries}} {
		cut := 0
		for try := range uint64(tries) {
			frame := framed(t, cornered(rand.New(rand.NewPCG(try, 10)), n, d, c.every), c.public, c.noise, try)
			if slices.Min(frame.Widths()) < 1 {
				cut++
			}
		}
		if cut < c.least || cut > c.most {
			t.Errorf("%+v: %d of %d frames are cut", c, cut, tries)
		}
	}
}

// TestFrameFollowsPublicNumbers: beside what is released a frame follows the public number of records, not their own:
// with the same records and noise it changes with the former, here by less than the counts could deny.
func TestFrameFollowsPublicNumbers(t *testing.T) {
	const n, d = 2000, 2
	changed := false
	for try := range uint64(20) {
		p := cornered(rand.New(rand.NewPCG(try, 11)), n, d, 10)
		a, b := framed(t, p, n, 0.03, try), framed(t, p, n*103/100, 0.03, try)
		changed = changed || !slices.Equal(a.Lo, b.Lo) || !slices.Equal(a.Hi, b.Hi)
	}
	if !changed {
		t.Error("no frame changes with the public number of records")
	}
}

// TestFrameIsGivenUp: records beside a heavy corner that the first release hides in its noise are seen by the second,
// where all that lies beyond the frame is in one cell of each column, or has the noise of two releases.
func TestFrameIsGivenUp(t *testing.T) {
	const n, d, tries = 2000, 4, 60
	cut := 0
	for try := range uint64(tries) {
		p := cornered(rand.New(rand.NewPCG(try, 14)), n, d, 10)
		if slices.Min(framed(t, p, n, 0.03, try).Widths()) < 1 {
			cut++
		}
	}
	if cut > tries/8 {
		t.Errorf("%d of %d frames beside a corner are cut", cut, tries)
	}
}

// TestFrameWeighsDepth: what all columns cut off together must look emptier where few columns are cut deeply, as beside
// a heavy corner, than where all records lie in a middle part of each column.
func TestFrameWeighsDepth(t *testing.T) {
	const n, d, tries = 2000, 16, 40
	cut, narrowed := 0, 0
	for try := range uint64(tries) {
		rng := rand.New(rand.NewPCG(try, 12))
		if slices.Min(framed(t, cornered(rng, n, d, 10), n, 0.04, try).Widths()) < 1 {
			cut++
		}
		middle := kernels.NewPanels(n, d)
		row := make([]float32, d)
		for i := range n {
			for h := range row {
				row[h] = staged.OnGrid(0.13*rng.NormFloat64()+0.2*float64(i%2-1), 16)
			}
			middle.Set(i, row)
		}
		for _, w := range framed(t, middle, n, 0.01, try).Widths() {
			if w < 2 {
				narrowed++
			}
		}
	}
	if cut > tries*7/10 {
		t.Errorf("%d of %d frames beside a corner are cut", cut, tries)
	}
	if narrowed < tries*d*3/10 {
		t.Errorf("%d of %d columns of narrow records are cut", narrowed, tries*d)
	}
}

// TestFrameCutsDeeply: columns of which all records lie in a fiftieth are hardly ever left wide for the noise alone.
func TestFrameCutsDeeply(t *testing.T) {
	const n, d, tries = 2000, 6, 30
	wide, row := 0, make([]float32, d)
	for try := range uint64(tries) {
		p := cornered(rand.New(rand.NewPCG(try, 13)), n, d, 0)
		for i := range n {
			for h, x := range p.Point(i, row) {
				row[h] = staged.OnGrid(float64(x+1)/6+0.3, 16)
			}
			p.Set(i, row)
		}
		for _, w := range framed(t, p, n, 0.01, try).Widths() {
			if w > 0.12 {
				wide++
			}
		}
	}
	if wide > tries*d/12 {
		t.Errorf("%d of %d columns are left wide", wide, tries*d)
	}
}
