package lloyd

import (
	"context"
	"fmt"
	"math"

	"github.com/cohort-engine/cohort/engine/privacy"
	"github.com/cohort-engine/cohort/engine/protocol"
	"github.com/cohort-engine/cohort/engine/step/seeding"
	"github.com/cohort-engine/cohort/kernels"
)

// seeder draws records of all clients as first centroids by greedy k-means++: what
// seeding.PlusPlus does with their parts in one place. Public randomness names
// candidates by the potentials that the clients tell each other, whoever holds one
// reveals it, and all tell what it would leave. It shows records, so it serves runs
// without noise only.
type seeder struct {
	*client
	trials     int
	own        *seeding.Part
	weights    []float64 // of the records, by client
	potentials []float64 // by client
	sums       int       // so far
}

// newSeeder meets the other clients.
func (c *client) newSeeder(ctx context.Context) (*seeder, error) {
	s := &seeder{client: c, trials: seeding.Trials(c.k)}
	s.own = seeding.NewPart(c.points, s.trials, c.each)
	s.own.Weigh(c.weights)
	if c.m == 1 {
		s.own.Expect(c.k)
	}
	var err error
	s.weights, err = s.tell(ctx, []float64{s.own.Weight()})
	return s, err
}

// each runs tasks on the workers.
func (c *client) each(n int, task func(i int)) {
	// The tasks do not fail, and nothing cancels them.
	_ = c.party.Pool().Run(context.Background(), n, func(_, i int) { task(i) })
}

// draw sets all centroids.
func (s *seeder) draw(ctx context.Context, start int) error {
	switch st := s.party.Public.Stream(everyClient, start, "start"); s.job.Init {
	case SomeRecords:
		return s.drawAny(ctx, st)
	case Oversampled:
		return s.oversample(ctx, st, start)
	}
	s.own.Forget()
	s.potentials = make([]float64, s.m)
	all := make([]int, s.k)
	for j := range all {
		all[j] = j
	}
	return s.fill(ctx, all, s.party.Public.Stream(everyClient, start, "start"), start)
}

// drawAny sets all centroids to records, each as likely as its weight, different ones as
// far as there are enough.
func (s *seeder) drawAny(ctx context.Context, st *privacy.Stream) error {
	n := seeding.Sum(s.weights)
	seen := make(map[seeding.Pick]bool, s.k)
	picks := make([]seeding.Pick, 0, s.k)
	for len(picks) < s.k {
		p := seeding.AnyRecord(s.weights, !s.weighted, st.Float64())
		if !seen[p] || float64(len(seen)) >= n { // fewer records than centres
			seen[p] = true
			picks = append(picks, p)
		}
	}
	rows, err := s.reveal(ctx, picks)
	for i, x := range rows {
		s.centroids[i] = float64(x)
	}
	return err
}

// replace sets the given centroids anew, beside those that stay. It returns how many
// it has set: there may be too few distinct records for more.
func (s *seeder) replace(ctx context.Context, which []int, stay *kernels.Centroids, start int) (int, error) {
	s.own.Begin(stay)
	var err error
	if s.potentials, err = s.tell(ctx, []float64{s.own.Potential()}); err != nil || seeding.Sum(s.potentials) == 0 {
		return 0, err
	}
	return len(which), s.fill(ctx, which, s.party.Public.Stream(everyClient, s.sums, "replace"), start)
}

// fill draws the given centroids, one after the other.
func (s *seeder) fill(ctx context.Context, which []int, st *privacy.Stream, start int) error {
	label := "k-means++, centres"
	if start < s.starts && s.starts > 1 {
		label = fmt.Sprintf("%s of start %d of %d", label, start+1, s.starts)
	}
	for done, j := range which {
		if s.party.Role == s.First(0) {
			s.party.Pool().Report(label, done, len(which))
		}
		var picks []seeding.Pick
		try := s.own.Try
		if s.m == 1 {
			picks, try = s.own.Candidates(st.Float64), s.own.Least
		} else {
			picks = seeding.Picks(s.potentials, s.weights, !s.weighted, s.trials, st.Float64)
		}
		rows, err := s.reveal(ctx, picks)
		if err != nil {
			return err
		}
		left, err := s.tell(ctx, try(rows))
		if err != nil {
			return err
		}
		chosen := seeding.Best(left, s.potentials)
		s.own.Add(chosen)
		for h, x := range rows[chosen*s.d : (chosen+1)*s.d] {
			s.centroids[j*s.d+h] = float64(x)
		}
	}
	return nil
}

// seedSums is how many sums the seeders make at most.
func (p *Plan) seedSums() int {
	if !p.plain && p.job.Init == SomeRecords {
		return 2
	}
	if !p.plain {
		return 1 + 2*p.k
	}
	sums := 2 // the numbers of records and the squares
	if p.job.Start == nil {
		sums += max(2*p.k, 2*seeding.Passes+3) * p.starts
	}
	sums += p.exchanges * (1 + 2*p.k)
	return sums + 3*p.k*(p.starts+p.exchanges) // each replacement is told of and has two
}

// tell gives all clients the numbers of each: a row of them for each client.
func (s *seeder) tell(ctx context.Context, own []float64) ([]float64, error) {
	all := make([]float64, s.m*len(own))
	words, err := s.sum(ctx, 2*len(all), func(words []int64) error {
		for i, x := range own {
			at, bits := 2*(int(s.party.Role)*len(own)+i), math.Float64bits(x)
			words[at], words[at+1] = int64(int32(bits>>32)), int64(int32(bits)) // each fits the smaller ring
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	for i := range all {
		all[i] = math.Float64frombits(uint64(uint32(words[2*i]))<<32 | uint64(uint32(words[2*i+1])))
	}
	return all, nil
}

// sum makes the seeder's next sum, of vectors of n words that own fills in.
func (s *seeder) sum(ctx context.Context, n int, own func(words []int64) error) ([]int64, error) {
	private := protocol.NewPrivate(n)
	if err := private.Fill(own); err != nil {
		return nil, err
	}
	s.sums++
	return s.party.Sum(ctx, s.seeds, s.sums-1, []protocol.Group{{Values: n}}, private)
}

// reveal gives all clients the picked records, row by row.
func (s *seeder) reveal(ctx context.Context, picks []seeding.Pick) ([]float32, error) {
	words, err := s.sum(ctx, len(picks)*s.d, func(words []int64) error {
		for i, p := range picks {
			if p.Party != int(s.party.Role) {
				continue
			}
			for h, x := range s.own.Picked(p) {
				words[i*s.d+h] = s.units(x)
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	rows := make([]float32, len(words))
	for i, x := range words {
		rows[i] = float32(float64(x) / s.scale)
	}
	return rows, nil
}
