package lloyd

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/cohort-engine/cohort/engine"
	"github.com/cohort-engine/cohort/engine/privacy"
	"github.com/cohort-engine/cohort/internal/elementary"
	"github.com/cohort-engine/cohort/internal/fault"
	"github.com/cohort-engine/cohort/kernels"
)

// What plain k-means has for large sets: fewer records to train on, and rounds on
// batches of them (Sculley, Web-scale k-means clustering, WWW 2010).

const (
	// batchPasses is how often rounds on batches go over the records.
	batchPasses = 2
	// mostBatches bounds the rounds on batches of a start where no number is given.
	mostBatches = 100_000
)

// checkLarge refuses what only plain k-means takes.
func (j *Job) checkLarge() error {
	for _, f := range []struct {
		name  string
		given bool
	}{
		{"metric", j.Metric == Cosine},
		{"max-points-per-centroid", j.MaxPoints > 0},
		{"batch-size", j.Batch > 0},
	} {
		if f.given && !j.asksPlain() {
			return fault.Request(f.name, "is for plain k-means, and this is "+string(j.Method)+" in the papers' form",
				"use lloyd with --init kmeans++, kmeans|| or records, or leave it out")
		}
	}
	if j.Batch > 0 && j.WCSSChange > 0 {
		return fault.Request("wcss-change", "no round on a batch sees the sum of squares of all records",
			"leave it or batch-size out")
	}
	if j.Metric != Cosine || j.Start == nil {
		return nil
	}
	for i := range j.K {
		if elementary.SquaredLength(j.Start[i*j.D():(i+1)*j.D()]) == 0 {
			return fault.Request("start", fmt.Sprintf("row %d has length 0, so no direction", i+1),
				"give centroids other than 0 for the metric cosine")
		}
	}
	return nil
}

// trained is the number of records that rounds go over, of all clients.
func (j *Job) trained() int {
	n := j.PublicRecords()
	if j.MaxPoints > 0 {
		return min(n, j.MaxPoints*j.K)
	}
	return n
}

// batch is the number of records of a round on a batch, 0 if every round goes over all.
func (j *Job) batch() int {
	if j.Batch < j.trained() {
		return j.Batch
	}
	return 0
}

// quota is client q's part of so many of the records of all clients, at least one.
func (p *Plan) quota(of, q int) int {
	before := 0
	for _, c := range p.job.Clients[:q] {
		before += c.Points.N
	}
	after, all := before+p.job.Clients[q].Points.N, p.job.Own()
	return max(1, after*of/all-before*of/all)
}

// sample leaves the client as many of its records as it trains on, drawn at random, in
// their order.
func (c *client) sample() {
	if c.trained == c.n {
		return
	}
	n, want := c.points.N, c.quota(c.trained, int(c.party.Role))
	st, which := c.party.Streams().Stream(int(c.party.Role), 0, "training"), make([]int32, 0, want)
	for i := range n {
		if st.IntN(n-i) < want-len(which) {
			which = append(which, int32(i))
		}
	}
	c.points = kernels.Gather(kernels.NewPanels(want, c.d), &c.points, which)
	if c.weights == nil {
		return
	}
	all := c.weights
	c.weights = make([]float64, want)
	for i, at := range which {
		c.weights[i] = all[at]
	}
}

// running adds up the batches of a start: a centroid is the mean of all records that
// came to its cluster so far, so that it moves by a share of 1 over their number.
type running struct{ sums, counts []float64 }

func newRunning(k, d int) *running {
	return &running{sums: make([]float64, k*d), counts: make([]float64, k)}
}

// add adds what a batch has of cluster a and returns its sums and count so far.
func (r *running) add(a int, sums []float64, count float64) (allSums []float64, all float64) {
	allSums = r.sums[a*len(sums) : (a+1)*len(sums)]
	for h, x := range sums {
		allSums[h] += x
	}
	r.counts[a] += count
	return allSums, r.counts[a]
}

// batches adds up a batch of the client's records in each round. Records are drawn
// without repetition until there are fewer left than a batch.
type batches struct {
	c       *client
	size    int
	order   []int32 // a permutation, of which those from next on have not been drawn
	next    int
	stream  *privacy.Stream
	workers []batchWorker
}

// batchWorker is one worker's memory.
type batchWorker struct {
	points *kernels.Panels
	units  []int64
	labels []uint16
	acc    *kernels.Accumulator
}

// batchPiece is the number of records that a worker takes at a time: a whole number of
// groups of the candidate filter.
const batchPiece = 6 * 48

func newBatches(c *client) *batches {
	b := &batches{c: c, size: min(c.quota(c.batch, int(c.party.Role)), c.points.N), order: make([]int32, c.points.N),
		stream: c.party.Streams().Stream(int(c.party.Role), 0, "batches")}
	for i := range b.order {
		b.order[i] = int32(i)
	}
	for range c.party.Pool().Workers() {
		b.workers = append(b.workers, batchWorker{points: kernels.NewPanels(batchPiece, c.d),
			units: make([]int64, batchPiece), labels: make([]uint16, batchPiece),
			acc: kernels.NewAccumulator(c.k, c.d, c.fraction)})
	}
	return b
}

// draw returns the records of the next batch, in their order.
func (b *batches) draw() []int32 {
	if b.next+b.size > len(b.order) {
		b.next = 0
	}
	from := b.next
	for b.next = from; b.next < from+b.size; b.next++ {
		at := b.next + b.stream.IntN(len(b.order)-b.next)
		b.order[b.next], b.order[at] = b.order[at], b.order[b.next]
	}
	slices.Sort(b.order[from:b.next])
	return b.order[from:b.next]
}

func (b *batches) assign(ctx context.Context, t int) error {
	span := b.c.party.Begin(engine.PhaseAssign, t)
	defer b.c.party.End(span)
	which := b.draw()
	for w := range b.workers {
		b.workers[w].acc.Reset()
	}
	err := b.c.party.Pool().Run(ctx, (len(which)+batchPiece-1)/batchPiece, func(worker, i int) {
		b.workers[worker].add(b.c, which[i*batchPiece:min((i+1)*batchPiece, len(which))])
	})
	b.c.acc.Reset()
	for w := range b.workers {
		b.c.acc.Merge(b.workers[w].acc)
	}
	return err
}

// add assigns records and adds them up.
func (w *batchWorker) add(c *client, which []int32) {
	points := kernels.Gather(w.points, &c.points, which)
	if !c.weighted {
		kernels.AssignAccumulate(points, c.centres, nil, w.acc)
		return
	}
	for i, at := range which {
		w.units[i] = c.weightUnits(c.weights[at])
	}
	kernels.Assign(points, c.centres, w.labels[:len(which)], nil)
	c.addWeighted(points, w.labels[:len(which)], w.units[:len(which)], w.acc)
}

// train makes the rounds of a start from round t on, and returns the next one.
func (s *search) train(ctx context.Context, t int) (int, error) {
	if s.batch == 0 {
		return s.iterate(ctx, t, t+s.perStart, s.after)
	}
	whole := s.steps
	s.steps, s.running = s.onBatches, newRunning(s.k, s.d)
	t, err := s.iterate(ctx, t, t+s.perStart-1, func(context.Context) (bool, error) {
		s.measure()
		return s.rests(math.Inf(-1)), nil
	})
	s.steps, s.running = whole, nil
	if err != nil {
		return t, err
	}
	return s.iterate(ctx, t, t+1, func(context.Context) (bool, error) {
		s.measure()
		return true, nil
	})
}
