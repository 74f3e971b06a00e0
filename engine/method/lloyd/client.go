package lloyd

import (
	"context"
	"errors"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/cohort-engine/cohort/engine"
	"github.com/cohort-engine/cohort/engine/dataset"
	"github.com/cohort-engine/cohort/engine/privacy"
	"github.com/cohort-engine/cohort/engine/protocol"
	"github.com/cohort-engine/cohort/engine/step"
	"github.com/cohort-engine/cohort/flow"
	"github.com/cohort-engine/cohort/internal/elementary"
	"github.com/cohort-engine/cohort/internal/fault"
	"github.com/cohort-engine/cohort/kernels"
)

// client is one party: its records and what it keeps from round to round. It has
// no part in any other's memory.
type client struct {
	*Plan
	model
	own     step.Records
	points  kernels.Panels // those it trains on
	weights []float64      // of them, nil if all weigh the same
	party   *protocol.Party
	centres *kernels.Centroids   // the model's, in a form of the client's own where its points compare such
	acc     *kernels.Accumulator // of the round's release
	labels  []uint16
	private *protocol.Private
	next    func() (any, error) // updates the model by sum, that of round t
	t       int
	sum     []int64
	steps   assigner
	// onBatches makes the rounds on batches, nil without such.
	onBatches assigner
	squares   float64 // sum of the records' squares, once loss has asked for it
	seeder    *seeder // nil where first centroids are no records
}

// newClient makes a client. acc and private are its own memory for what a round releases.
func newClient(p *Plan, own step.Records, acc *kernels.Accumulator, private *protocol.Private) *client {
	c := &client{Plan: p, model: model{plan: p, limit: p.limit()}, own: own, points: *own.Part.Points,
		weights: own.Part.Weights, acc: acc, private: private}
	c.next = func() (any, error) {
		span := c.party.Follow(engine.PhasePostprocess, c.t) // the unmasking
		c.update(c.t, c.sum)
		c.rests = !c.plain && c.still()
		c.party.End(span)
		return c.public, nil
	}
	return c
}

// apart tells whether the client has a model of its own: centroids also move otherwise than by the sums.
func (c *client) apart() bool { return c.plain || c.job.Aggregator == Naive }

// use makes m what the client's model shows.
func (c *client) use(m *public) {
	if c.public, c.centres = m, m.centres; !c.apart() && c.m > 1 && c.points.FilterProducts(c.k) != "" {
		c.centres = kernels.NewCentroids(c.k, c.d)
		c.centres.Set(c.grid)
	}
}

// run is the client's program.
func (c *client) run(ctx context.Context, party *protocol.Party) (*protocol.Outcome, error) {
	c.party = party
	if !c.Present(party.Role, 0) {
		return nil, nil
	}
	if err := c.begin(ctx); err != nil {
		return nil, err
	}
	if err := party.Ready(ctx, c.Plan.release); err != nil {
		return nil, err
	}
	var t int
	var err error
	if c.plain {
		t, err = c.kMeans(ctx)
	} else {
		t, err = c.iterate(ctx, 0, c.rounds, nil)
	}
	if err != nil || t < 0 {
		return nil, err
	}
	if t < c.rounds { // it ended early
		released, err := party.Same("entries", t, func() (any, error) { return c.entries(t), nil })
		if err == nil {
			err = party.Book(c.Plan.release, released.([]privacy.Entry)...)
		}
		if err != nil {
			return nil, err
		}
	}
	out := &protocol.Outcome{Centroids: c.centroids, Iterations: t}
	if c.Private && len(c.parts) > 1 {
		out.Sizes = c.counts
		if c.weighted {
			out.Sizes = slices.Clone(c.counts)
			for j := range out.Sizes {
				out.Sizes[j] *= c.job.MostWeight()
			}
		}
	}
	if c.quality != nil {
		if out.Quality, err = c.quality.Measure(ctx, party, t-1, c.own, c.centroids); err != nil {
			return nil, err
		}
	}
	if a, ok := c.steps.(*constrained); ok {
		party.Pool().KeepSolver(a.solver)
	}
	return out, nil
}

// loss is the sum of squared distances of the records to the centroids before the last
// update, which its sums and counts give: |x|^2 - 2 c.x + |c|^2 over each cluster. It is
// NaN where nobody watches, where a client does not know all records, and under privacy.
func (c *client) loss() float64 {
	if c.Private || c.weighted || c.running != nil || c.m > 1 || c.job.Release == Centroid || c.job.NonExclusive ||
		c.job.Aggregator == Naive || !c.party.Observed() {
		return math.NaN()
	}
	if c.squares == 0 {
		const run = 1 << 12
		sums := make([]float64, (c.points.N+run-1)/run)
		c.each(len(sums), func(i int) {
			row := make([]float32, c.d)
			for r := i * run; r < min((i+1)*run, c.points.N); r++ {
				sums[i] += elementary.SquaredLength(c.points.Point(r, row))
			}
		})
		for _, x := range sums {
			c.squares += x
		}
	}
	return max(c.squares+c.withoutSquares(), 0)
}

// left is the round after which a client is gone.
const left = -1

// iterate makes the rounds from t on until the centroids rest, at most up to round
// end, and returns the next one, or left. After each round further, if not nil, may
// change the centroids and tell that they do or do not rest.
func (c *client) iterate(ctx context.Context, t, end int,
	further func(ctx context.Context) (rest bool, err error)) (int, error) {
	for rest := false; t < end && !rest; t++ {
		if !c.Present(c.party.Role, t) {
			return left, nil
		}
		c.noteFailures(t)
		if err := c.steps.assign(ctx, t); err != nil {
			return t, err
		}
		var err error
		if c.job.Aggregator == Naive {
			err = c.report(ctx, t)
		} else {
			err = c.release(ctx, t)
		}
		if err != nil {
			return t, err
		}
		c.party.Show(c.Plan.release, c.centroids, c.loss())
		total := c.rounds
		if rest = c.rests; further != nil {
			total = 0 // not known
			if rest, err = further(ctx); err != nil {
				return t, err
			}
		}
		if err := c.party.EndRound(ctx, t, total); err != nil {
			return t, err
		}
	}
	return t, nil
}

// begin checks the records and sets the first centroids.
func (c *client) begin(ctx context.Context) error {
	if c.subtracts() {
		c.party.Note(subtracts)
	}
	if err := step.CheckRecords(ctx, c.party.Pool(), c.own.Part, clientName(int(c.party.Role))); err != nil {
		return err
	}
	c.sample()
	if c.rounds >= 3 && !c.job.Method.Constrained() && !c.weighted {
		// Integer forms of the points let kernels rank centroids faster, and cost about half a round.
		c.points.PrepareFilter(c.k, c.each)
	}
	if err := c.setFirst(ctx); err != nil {
		return err
	}
	switch {
	case c.job.NonExclusive:
		c.steps = newNonExclusive(c)
	case c.job.Method.Constrained():
		c.steps = newConstrained(c)
	case c.weighted:
		c.steps = newWeighted(c)
	default:
		c.steps = newNearest(c)
	}
	if c.batch > 0 {
		c.onBatches = newBatches(c)
	}
	return nil
}

// setFirst sets the first centroids.
func (c *client) setFirst(ctx context.Context) (err error) {
	if c.seeds != nil || c.drawn != nil {
		c.public = newPublic(c.k, c.d)
	}
	switch {
	case c.seeds != nil:
		err = c.seed(ctx)
	case c.drawn != nil:
		err = c.receiveStart(ctx)
	}
	if err != nil {
		return err
	}
	first := func() (*public, error) {
		if c.public == nil {
			c.public = newPublic(c.k, c.d)
			copy(c.centroids, c.Plan.first(c.party))
		}
		c.setGrid()
		return c.public, nil
	}
	var m *public
	if c.apart() {
		m, err = first()
	} else {
		m, err = protocol.Once(c.party, "first model", 0, first)
	}
	if err == nil {
		c.use(m)
	}
	return err
}

// receiveStart takes the server's first centroids, which have to lie in the box.
func (c *client) receiveStart(ctx context.Context) error {
	message, err := c.party.Receive(ctx, protocol.Server)
	if err != nil {
		return err
	}
	if err := c.take(message); err != nil {
		return err
	}
	for _, x := range c.centroids {
		if !(math.Abs(x) <= boxBound) {
			return fault.Failed("first centroids", "those of the server are not in the box", "ask who runs it", nil)
		}
	}
	return nil
}

// serveStart is the server's program where it draws the first centroids.
func (p *Plan) serveStart(ctx context.Context, party *protocol.Party) (*protocol.Outcome, error) {
	if _, err := p.sendStart(ctx, party); err != nil {
		return nil, err
	}
	return protocol.Serve(ctx, party)
}

// sendStart lets the server draw the first centroids and send them.
func (p *Plan) sendStart(ctx context.Context, party *protocol.Party) ([]float64, error) {
	centroids := p.drawFirst(party.Streams().Stream(int(protocol.Server), 0, "start"))
	message := encodeCentroids(centroids)
	for q := range protocol.Role(p.m) {
		if p.Present(q, 0) {
			if err := party.Send(ctx, p.drawn, q, message); err != nil {
				return nil, err
			}
		}
	}
	return centroids, nil
}

// seed draws the first centroids from the records, unless they are given.
func (c *client) seed(ctx context.Context) (err error) {
	if c.seeder, err = c.newSeeder(ctx); err != nil {
		return err
	}
	if c.job.Start != nil {
		copy(c.centroids, c.job.Start)
		for j := 0; c.job.Metric == Cosine && j < c.k; j++ {
			dataset.ToUnit(c.centroids[j*c.d : (j+1)*c.d])
		}
		return nil
	}
	if err := c.seeder.draw(ctx, 0); err != nil {
		return err
	}
	if c.job.Aggregator == Naive && c.party.Role == c.First(0) {
		return c.party.Send(ctx, c.seeds, protocol.Server, encodeCentroids(c.centroids))
	}
	return nil
}

// release makes the round's release and moves the centroids by it.
func (c *client) release(ctx context.Context, t int) error {
	if err := c.private.Fill(c.write); err != nil {
		return err
	}
	sum, err := c.party.Sum(ctx, c.Plan.release, t, c.layout(t), c.private)
	if err != nil {
		return err
	}
	c.t, c.sum = t, sum
	if c.apart() {
		_, err = c.next()
	} else {
		_, err = c.party.Same("model", t, c.next)
	}
	if c.centres != c.public.centres {
		span := c.party.Begin(engine.PhasePostprocess, t)
		c.centres.Set(c.grid)
		c.party.End(span)
	}
	return err
}

// write puts the client's sums, or means, into a message.
func (c *client) write(words []int64) error {
	if c.job.Release == Centroid {
		c.writeMeans(words)
	} else {
		copy(words[copy(words, c.acc.Sums):], c.acc.Counts)
	}
	return nil
}

// writeMeans writes the client's means divided by the number of clients, in grid
// units truncated toward zero: one integer division (Thesis-H §5.4). An empty
// cluster stands for its old centroid.
func (c *client) writeMeans(words []int64) {
	for a := range c.k {
		count := c.acc.Counts[a] * int64(c.m)
		for h := a * c.d; h < (a+1)*c.d; h++ {
			if count == 0 {
				words[h] = int64(float64(c.grid[h])*c.scale) / int64(c.m)
				continue
			}
			words[h] = c.acc.Sums[h] / count
		}
	}
}

// noteFailures tells the reader who fails in round t.
func (c *client) noteFailures(t int) {
	for q, from := range c.Leaves {
		if from == t {
			c.party.Note("Client %d failed in round %d of %d; the survivors unmasked with the masks of those "+
				"present and the run went on.", q+1, t+1, c.rounds)
		}
	}
}

// assigner fills the accumulator of a client with the sums and counts of its
// clusters for round t.
type assigner interface {
	assign(ctx context.Context, t int) error
}

// everyClient is the party of streams that all clients share.
const everyClient = -2

// infeasible turns a solver's refusal into a wrong request that names the client.
// That of a private method leaves out which clusters fall short and by how many
// records: the ledger has that a run may end so, not their counts.
func infeasible(c protocol.Role, err error, private bool) error {
	if private && errors.Is(err, flow.ErrInfeasible) {
		return &fault.Error{What: clientName(int(c)), Why: "a round has no assignment with the sizes that were asked for",
			Do:    "widen the radius, lower the minimum sizes, or use --calibration proven, which leaves records out",
			Wrong: true, Err: flow.ErrInfeasible}
	}
	return &fault.Error{What: clientName(int(c)), Why: strings.TrimPrefix(err.Error(), "flow: "), Wrong: true, Err: err}
}

// clientName is what people call client i: they count from 1.
func clientName(i int) string { return "client " + strconv.Itoa(i+1) }

var _ flow.Runner = (*engine.Pool)(nil)
