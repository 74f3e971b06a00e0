package horizontal

import (
	"context"
	"fmt"
	"math"
	"strings"

	"github.com/cohort-engine/cohort/engine"
	"github.com/cohort-engine/cohort/engine/fault"
	"github.com/cohort-engine/cohort/engine/privacy"
	"github.com/cohort-engine/cohort/flow"
	"github.com/cohort-engine/cohort/kernels"
)

// Session is a job under way: the state of every client and of the server. It
// is for code that drives a protocol round by round; Job.Run does the whole.
type Session struct {
	*prepared
	rt      *engine.Runtime
	streams *privacy.Streams
	stream  privacy.Stream

	round   int
	stopped bool // by the centroid shift

	clients []*client
	present int

	centroids []float64 // k x d, after post-processing
	previous  []float64
	grid      []float32 // what enters the distances
	centres   *kernels.Centroids
	limit     float64 // of a coordinate that enters a distance

	assigner assigner
	channel  *channel

	words  []int64 // the unmasked sum of a round
	noise  []int64
	sums   []float64
	counts []float64

	comm  engine.Comm
	notes []string
}

// client is one party: its records, its state, its message.
type client struct {
	index  int
	points kernels.Panels
	acc    *kernels.Accumulator
	labels []uint16
	dist   []float32 // where the assignment gives no distance of its own
	words  []int64
	noise  []int64
	stream privacy.Stream
	gone   bool
}

// NewSession checks the job and sets up every party.
func NewSession(job *Job, rt *engine.Runtime) (*Session, error) {
	p, err := job.check()
	if err != nil {
		return nil, err
	}
	return newSession(p, rt)
}

func newSession(p *prepared, rt *engine.Runtime) (*Session, error) {
	j := p.job
	s := &Session{prepared: p, rt: rt, streams: privacy.NewStreams(j.Seed), present: p.m}
	kd := p.k * p.d
	s.centroids, s.previous, s.grid = make([]float64, kd), make([]float64, kd), make([]float32, kd)
	s.centres = kernels.NewCentroids(p.k, p.d)
	s.words, s.noise = make([]int64, p.length), make([]int64, p.length)
	s.sums, s.counts = make([]float64, kd), make([]float64, p.k)
	// Beyond 2^(24-f) a float32 leaves the grid; constrained assignment works
	// inside the box.
	s.limit = math.Ldexp(1, 24-p.fraction)
	if j.Algorithm.Constrained() {
		s.limit = boxBound
	}
	for i, part := range j.Clients {
		c := &client{index: i, points: *part.Points, acc: kernels.NewAccumulator(p.k, p.d, p.fraction),
			words: make([]int64, p.length), noise: make([]int64, p.length)}
		if j.Algorithm == Relative {
			c.labels = newLabels(part.Points.N)
		}
		if j.Algorithm == Relative && p.d >= chainDims {
			c.dist = make([]float32, part.Points.N)
		}
		s.clients = append(s.clients, c)
	}
	s.comm = engine.Comm{BytesSent: make([]int64, p.m), BytesReceived: make([]int64, p.m)}
	var err error
	if s.channel, err = newChannel(s); err != nil {
		return nil, err
	}
	s.assigner = newAssigner(s)
	if err := s.start(); err != nil {
		return nil, err
	}
	rt.Reserve(p.rounds * (p.m + 1))
	return s, nil
}

// start sets the first centroids, the same at every client: they share a seed.
func (s *Session) start() error {
	st := s.streams.Stream(everyClient, 0, "start")
	if s.job.Start != nil {
		copy(s.centroids, s.job.Start)
		s.setGrid()
		return nil
	}
	switch s.job.Init {
	case Random:
		copy(s.centroids, RandomCentres(s.k, s.d, st))
	case KMeansPlusPlus:
		copy(s.centroids, s.kMeansPlusPlus(st))
	default:
		copy(s.centroids, SpherePacking(s.k, s.d, st))
	}
	s.setGrid()
	return nil
}

// setGrid truncates the centroids toward zero onto the grid, as they enter
// distances.
func (s *Session) setGrid() {
	for i, x := range s.centroids {
		x = math.Trunc(min(max(x, -s.limit), s.limit)*s.scale) / s.scale
		if x == 0 {
			x = 0 // not -0
		}
		if !s.job.Algorithm.Constrained() {
			s.centroids[i] = x
		}
		s.grid[i] = float32(x)
	}
	s.centres.Set(s.grid)
}

// Rounds is the number of rounds planned.
func (s *Session) Rounds() int { return s.rounds }

// Done reports whether the run has ended.
func (s *Session) Done() bool { return s.stopped || s.round >= s.rounds }

// Restart begins the job again with another seed, as a session of its own would
// run, but without working out the noise again: for many trials of one job.
func (s *Session) Restart(seed *uint64) error {
	job := *s.job
	job.Seed = seed
	s.job = &job
	s.streams = privacy.NewStreams(seed)
	s.round, s.stopped, s.present = 0, false, s.m
	for _, c := range s.clients {
		c.gone = false
	}
	s.comm = engine.Comm{BytesSent: make([]int64, s.m), BytesReceived: make([]int64, s.m)}
	s.notes = nil
	s.assigner.restart()
	var err error
	if s.channel, err = newChannel(s); err != nil {
		return err
	}
	if s.needed > 0 && len(job.Drops) > 0 {
		if err := s.spread(); err != nil {
			return err
		}
	}
	return s.start()
}

// Rewind makes the next Step round 0 again, from the current centroids. Noise
// and masks repeat, so it serves measurements only.
func (s *Session) Rewind() {
	s.round, s.stopped = 0, false
	s.assigner.rewind()
}

// Step runs one round: assign and sum at every client, encode, mask, aggregate,
// perturb, unmask, post-process. In the steady state it allocates nothing. It
// panics when the run is done.
func (s *Session) Step(ctx context.Context) error {
	if s.Done() {
		panic("horizontal: Step after the last round")
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	t := s.round
	if err := s.lose(t); err != nil {
		return err
	}
	if err := s.assigner.assign(ctx, t); err != nil {
		return err
	}
	s.encode(t)
	if err := s.channel.exchange(t); err != nil {
		return err
	}
	s.update(t)
	s.round++
	s.rt.IterationEnd(t, s.rounds)
	return nil
}

// lose takes the clients away that fail in round t.
func (s *Session) lose(t int) error {
	for _, d := range s.job.Drops {
		c := s.clients[d.Client]
		if d.Iteration != t || c.gone {
			continue
		}
		c.gone = true
		s.present--
		if s.job.Algorithm.Private() && s.job.Noise == Split {
			if err := s.spread(); err != nil {
				return err
			}
		}
		s.notes = append(s.notes, fmt.Sprintf("Client %d failed in round %d of %d; the survivors unmasked with the masks of those present and the run went on.", d.Client+1, t+1, s.rounds))
	}
	return nil
}

// spread divides the noise anew among the clients that are left. The shares of
// the round in which a client fails are drawn after the failure is known: a sum
// that lacks shares is never unmasked.
func (s *Session) spread() error {
	s.needed = s.present - s.job.Colluders
	return s.makeLaws()
}

// encode writes each client's message in ring words, and its own noise where
// clients add it.
func (s *Session) encode(t int) {
	for _, c := range s.clients {
		if c.gone {
			continue
		}
		span := s.rt.Begin(engine.PhaseEncode, t, c.index)
		if s.job.Release == Centroid {
			s.encodeMeans(c)
		} else {
			kd := copy(c.words, c.acc.Sums)
			shift := s.countShift()
			for i, x := range c.acc.Counts {
				c.words[kd+i] = x << shift
			}
		}
		s.rt.End(span)
		if s.job.Algorithm.Private() && s.job.Noise != ByTheServer {
			span := s.rt.Begin(engine.PhaseNoise, t, c.index)
			s.draw(&c.stream, c.index, t, c.noise)
			for i, x := range c.noise {
				c.words[i] += x
			}
			s.rt.End(span)
		}
	}
}

// encodeMeans writes the client's means divided by the number of clients, in
// grid units truncated toward zero: one integer division (Thesis-H §5.4). An
// empty cluster stands for its old centroid.
func (s *Session) encodeMeans(c *client) {
	for a := range s.k {
		count := c.acc.Counts[a] * int64(s.m)
		for h := a * s.d; h < (a+1)*s.d; h++ {
			if count == 0 {
				c.words[h] = int64(float64(s.grid[h])*s.scale) / int64(s.m)
				continue
			}
			c.words[h] = c.acc.Sums[h] / count
		}
	}
}

// countShift is log2 of a record in units of the count part.
func (s *Session) countShift() int { return int(math.Round(-math.Log2(s.parts[1].unit))) }

// draw fills dst with the noise of round t of one party.
func (s *Session) draw(st *privacy.Stream, party, t int, dst []int64) {
	for i := range s.parts {
		part := &s.parts[i]
		s.streams.Reset(st, party, t, part.name)
		part.laws[t].fill(st, dst[part.offset:part.offset+part.length])
	}
}

// update turns the unmasked sum of the round into the next centroids.
func (s *Session) update(t int) {
	span := s.rt.Begin(engine.PhasePostprocess, t, engine.Server)
	copy(s.previous, s.centroids)
	if s.job.Release == Centroid {
		// After a drop-out the sum of means over m is short of an average.
		up := float64(s.m) / float64(s.present) / s.scale
		for i := range s.centroids {
			s.centroids[i] = s.job.Post.apply(float64(s.words[i])*up, -boxBound, boxBound)
		}
	} else {
		s.divide(t)
	}
	s.setGrid()
	if s.job.Aggregator == Naive {
		s.channel.broadcast(t)
	}
	s.rt.End(span)
	if !s.job.Algorithm.Private() && s.shift() <= s.job.Tolerance {
		s.stopped = true
	}
}

// divide computes centroids from the noisy sums and counts in s.words.
func (s *Session) divide(t int) {
	j := s.job
	kd := s.k * s.d
	most := float64(s.m * s.hi)
	least := float64(s.m * s.lo)
	if j.Calibration == privacy.Published {
		// The released code treats the sums and counts of all clients with the
		// sizes that a cluster has at one.
		most, least = float64(s.hi), float64(s.lo)
	}
	reach := boxBound
	switch j.Algorithm {
	case Lloyd, SuLloyd, Relative:
		most, least = float64(s.n), 0
	}
	if j.Algorithm == Relative {
		reach = min(s.radius[t], 2*boxBound)
	}
	for i := range kd {
		s.sums[i] = j.PostSum.apply(float64(s.words[i])*s.parts[0].unit, -reach*most, reach*most)
	}
	for a := range s.k {
		s.counts[a] = j.PostCount.apply(float64(s.words[kd+a])*s.parts[1].unit, least, most)
	}
	for a := range s.k {
		row := s.centroids[a*s.d : (a+1)*s.d]
		sums := s.sums[a*s.d : (a+1)*s.d]
		if j.Algorithm == Relative {
			s.move(row, sums, s.counts[a], s.radius[t])
		} else {
			s.mean(row, sums, s.counts[a])
		}
		for h, x := range row {
			row[h] = j.Post.apply(x, -boxBound, boxBound)
		}
	}
}

// mean sets row to sums/count. Without noise an empty cluster keeps its
// centroid. The papers' calibrations divide by whatever the noisy count is, as
// the released code does, also without noise (Published), where an empty cluster
// goes to the origin; Proven takes it to be at least one record.
func (s *Session) mean(row, sums []float64, count float64) {
	switch {
	case !s.job.Algorithm.Private() && s.job.Calibration != privacy.Published:
		if count == 0 {
			return
		}
	case s.job.Calibration == privacy.Proven:
		count = max(count, 1)
	default:
		count += 1e-6
	}
	for h, x := range sums {
		row[h] = x / count
	}
}

// move adds sums/count to row, cut to length r.
func (s *Session) move(row, sums []float64, count, r float64) {
	if s.job.Calibration == privacy.Proven {
		count = max(count, 1)
	} else {
		count += 1e-9
	}
	length := 0.0
	for h, x := range sums {
		sums[h] = x / count
		length += float64(sums[h] * sums[h])
	}
	cut := 1.0
	if length > r*r {
		cut = r / math.Sqrt(length)
	}
	for h, x := range sums {
		row[h] += float64(x * cut)
	}
}

// shift is the largest distance that a centroid moved in the last round.
func (s *Session) shift() float64 {
	most := 0.0
	for a := range s.k {
		sum := 0.0
		for h := a * s.d; h < (a+1)*s.d; h++ {
			t := s.centroids[h] - s.previous[h]
			sum += float64(t * t)
		}
		most = max(most, sum)
	}
	return math.Sqrt(most)
}

// everyClient is the party of streams that all clients share.
const everyClient = -2

// infeasible turns a solver's refusal into a wrong request that names the client.
func infeasible(c int, err error) error {
	return &fault.Error{What: clientName(c), Why: strings.TrimPrefix(err.Error(), "flow: "), Wrong: true, Err: err}
}

var _ flow.Runner = (*engine.Pool)(nil)
