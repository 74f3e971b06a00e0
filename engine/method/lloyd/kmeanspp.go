package lloyd

import (
	"context"
	"math"

	"github.com/cohort-engine/cohort/engine/protocol"
	"github.com/cohort-engine/cohort/engine/step/seeding"
)

// kMeansPlusPlus draws k centres from the records of all clients by greedy
// k-means++: what seeding.PlusPlus does with their parts in one place. Public
// randomness names candidates by the potentials that the clients tell each other,
// whoever holds one reveals it, and all tell what it would leave. It shows records,
// so it serves runs without noise only.
func (c *client) kMeansPlusPlus(ctx context.Context) error {
	st := c.party.Public.Stream(everyClient, 0, "start")
	trials := seeding.Trials(c.k)
	own := seeding.NewPart(c.points, trials, func(n int, task func(i int)) {
		// The tasks do not fail, and nothing cancels them.
		_ = c.party.Pool().Run(context.Background(), n, func(_, i int) { task(i) })
	})
	records, err := c.tell(ctx, 0, []float64{float64(c.points.N)})
	if err != nil {
		return err
	}
	potentials := make([]float64, c.m)
	for j := range c.k {
		if c.party.Role == c.First(0) {
			c.party.Pool().Report("k-means++, centres", j, c.k)
		}
		var picks []pick
		if total := sum(potentials); j == 0 || total == 0 { // fewer distinct records than centres
			n := sum(records)
			picks = []pick{locate(records, min(math.Floor(n*st.Float64()), n-1))}
			picks[0].byNumber = true
		} else {
			for range trials {
				picks = append(picks, locate(potentials, float64(st.Float64()*total)))
			}
		}
		rows, err := c.reveal(ctx, 2*j+1, picks, own)
		if err != nil {
			return err
		}
		left, err := c.tell(ctx, 2*j+2, own.Try(rows))
		if err != nil {
			return err
		}
		chosen := best(left, len(picks))
		own.Add(chosen)
		for q := range potentials {
			potentials[q] = left[q*len(picks)+chosen]
		}
		for h, x := range rows[chosen*c.d : (chosen+1)*c.d] {
			c.centroids[j*c.d+h] = float64(x)
		}
	}
	if c.job.Aggregator == Naive && c.party.Role == c.First(0) {
		return c.party.Send(ctx, c.starts, protocol.Server, encodeCentroids(c.centroids))
	}
	return nil
}

// pick is a candidate: the record of a client at which its running sum first
// exceeds at, or that number of its own.
type pick struct {
	whose    int
	at       float64
	byNumber bool
}

// locate finds the client at which the running sum of shares first exceeds x.
func locate(shares []float64, x float64) pick {
	whose := 0
	for q, share := range shares {
		if share == 0 {
			continue
		}
		whose = q
		if x < share {
			break
		}
		x -= share
	}
	return pick{whose: whose, at: x}
}

// best is the candidate that leaves the least, the first of several. left has a row
// for each client.
func best(left []float64, candidates int) int {
	sums := make([]float64, candidates)
	for i, x := range left {
		sums[i%candidates] += x
	}
	least := 0
	for a, x := range sums {
		if x < sums[least] {
			least = a
		}
	}
	return least
}

func sum(x []float64) float64 {
	s := 0.0
	for _, v := range x {
		s += v
	}
	return s
}

// tell gives all clients the numbers of each: a row of them for each client.
func (c *client) tell(ctx context.Context, number int, own []float64) ([]float64, error) {
	all := make([]float64, c.m*len(own))
	private := protocol.NewPrivate(2 * len(all))
	err := private.Fill(func(words []int64) error {
		for i, x := range own {
			at, bits := 2*(int(c.party.Role)*len(own)+i), math.Float64bits(x)
			words[at], words[at+1] = int64(int32(bits>>32)), int64(int32(bits)) // each fits the smaller ring
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	words, err := c.party.Sum(ctx, c.starts, number, []protocol.Group{{Values: private.Len()}}, private)
	if err != nil {
		return nil, err
	}
	for i := range all {
		all[i] = math.Float64frombits(uint64(uint32(words[2*i]))<<32 | uint64(uint32(words[2*i+1])))
	}
	return all, nil
}

// reveal gives all clients the picked records, row by row.
func (c *client) reveal(ctx context.Context, number int, picks []pick, own *seeding.Part) ([]float32, error) {
	private := protocol.NewPrivate(len(picks) * c.d)
	err := private.Fill(func(words []int64) error {
		for i, p := range picks {
			if p.whose != int(c.party.Role) {
				continue
			}
			which := int(p.at)
			if !p.byNumber {
				which = own.Find(p.at)
			}
			for h, x := range own.Record(which, nil) {
				words[i*c.d+h] = c.units(x)
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	words, err := c.party.Sum(ctx, c.starts, number, []protocol.Group{{Values: private.Len()}}, private)
	if err != nil {
		return nil, err
	}
	rows := make([]float32, len(words))
	for i, x := range words {
		rows[i] = float32(float64(x) / c.scale)
	}
	return rows, nil
}
