package vertical

import (
	"context"

	"github.com/cohort-engine/cohort/engine/fault"
	"github.com/cohort-engine/cohort/engine/privacy"
)

// WorstCase is the pair of data sets on which the sketches give most away: no
// record, and one record, which every party puts into its cluster 0
// (THEOREMS.md, T3: any other id would be post-processing). It makes the sketches
// as a run does, with the phantoms of a job's calibration, but for any number
// of keys and clusters, so that an audit can look for small failures of
// probability in many short trials.
type WorstCase struct {
	Calibration privacy.Calibration
	// Budget is that of the sketches of all parties together.
	Budget                      privacy.Budget
	Parties, Clusters, Sketches int
	Gamma                       float64

	plan *plan
}

// NewWorstCase calibrates the phantoms: under claimed each party's sketches get
// (Epsilon/Parties, Delta/Parties), as Theorem 4 of Sketch-V adds them up; under
// proven the joint release gets the whole budget.
func NewWorstCase(c WorstCase) (*WorstCase, error) {
	if c.Parties < 2 || c.Clusters < 2 || c.Sketches < 1 {
		return nil, fault.Request("worst case", "needs at least 2 parties, 2 clusters and 1 sketch", "")
	}
	law, err := NewGeometric(c.Gamma)
	if err != nil {
		return nil, err
	}
	s := float64(c.Parties)
	c.plan = &plan{parties: c.Parties, clusters: c.Clusters, law: law, delta2: c.Budget.Delta / s, eps2: c.Budget.Epsilon / s}
	if c.Calibration == privacy.Claimed {
		return &c, c.plan.calibrateClaimed(&Job{Sketches: c.Sketches})
	}
	n, err := privacy.FMPhantoms(c.Budget, privacy.FM{Gamma: c.Gamma, Parties: c.Parties, Cells: c.Clusters}, c.Sketches)
	c.plan.phantoms = float64(n)
	return &c, err
}

// Phantoms is n_p per sketch or n_c per cell, and Floor is alpha_min.
func (c *WorstCase) Phantoms() (count float64, floor uint16) { return c.plan.phantoms, c.plan.floor }

// Draw returns the sketches of every party, without the record or with it.
// Trials are independent if their streams are.
func (c *WorstCase) Draw(ctx context.Context, streams *privacy.Streams, present bool) ([]*Sketches, error) {
	records := 0
	if present {
		records = 1
	}
	var secret Secret
	if _, err := streams.Stream(-1, 0, "shared secret").Read(secret[:]); err != nil {
		return nil, err
	}
	sk, err := newSketcher(ctx, inline{}, secret, records, rowID)
	if err != nil {
		return nil, err
	}
	keys := sk.keys(0, c.Sketches)
	labels := make([]uint16, records)
	var all []*Sketches
	for l := range c.Parties {
		minima, err := sk.minima(ctx, keys, labels, c.Clusters)
		if err != nil {
			return nil, err
		}
		if c.Calibration == privacy.Claimed {
			addOwnPhantoms(minima, streams.Stream(l, 0, "phantoms"), c.plan.phantoms)
		} else {
			phantoms, err := sk.phantomMinima(ctx, keys, 0, c.Parties, c.Clusters, l, c.plan.phantoms)
			if err != nil {
				return nil, err
			}
			minUint64(minima, phantoms)
		}
		all = append(all, heights(c.plan.law, minima, c.Sketches, c.Clusters, c.plan.floor))
	}
	return all, nil
}

// EqualHeight is the statistic that tells the pair apart when parties share
// keys but not phantoms: the largest height at which the parties' sketches of
// cluster 0 agree, 0 if they never do. The number of agreements says nothing;
// their height does.
func EqualHeight(sketches []*Sketches) uint16 {
	best := uint16(0)
	for i := range sketches[0].Keys {
		h := sketches[0].Row(i)[0]
		for _, s := range sketches[1:] {
			if s.Row(i)[0] != h {
				h = 0
			}
		}
		best = max(best, h)
	}
	return best
}

// addOwnPhantoms lets a party add its own phantoms to each of its sketches.
func addOwnPhantoms(minima []uint64, st *privacy.Stream, count float64) {
	for i, x := range minima {
		minima[i] = min(x, phantomHash(st.Uint64(), count))
	}
}

// inline runs everything in the calling goroutine.
type inline struct{}

func (inline) Workers() int { return 1 }

func (inline) Run(ctx context.Context, n int, fn func(worker, index int)) error {
	for i := range n {
		if err := ctx.Err(); err != nil {
			return err
		}
		fn(0, i)
	}
	return nil
}
