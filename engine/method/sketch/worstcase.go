package sketch

import (
	"context"
	"slices"

	"github.com/cohort-engine/cohort/engine"
	"github.com/cohort-engine/cohort/engine/privacy"
	"github.com/cohort-engine/cohort/engine/protocol"
	"github.com/cohort-engine/cohort/internal/fault"
	"github.com/cohort-engine/cohort/kernels"
)

// WorstCase is the pair of data sets on which the sketches give most away: no
// record, and one record, which every party puts into its cluster 0
// (THEOREMS.md, T3: any other id would be post-processing). The parties of the protocol
// make and send their sketches, and its server reads them, with the phantoms of a
// job's calibration, but for any number of keys and clusters, so that an audit can look
// for failures of small probability in many short trials. It serves one goroutine at a
// time.
type WorstCase struct {
	Calibration privacy.Calibration
	// Budget is that of the sketches of all parties together.
	Budget                      privacy.Budget
	Parties, Clusters, Sketches int
	Gamma                       float64
	// PairKeys gives each pair of parties keys of its own, under the proven calibration.
	PairKeys bool
	// Returned plans what holders of the keys see, as Noised has it, under the proven calibration: it has the whole
	// budget. A cell has one phantom, fewer than sketches need against the server, so that a record draws many keys.
	Returned bool

	run    *run
	labels [2][]uint16 // without the record and with it
}

// NewWorstCase calibrates the phantoms: under claimed each party's sketches get
// (Epsilon/Parties, Delta/Parties), as Theorem 4 of Sketch-V adds them up; under
// proven the joint release gets the whole budget.
func NewWorstCase(c WorstCase) (*WorstCase, error) {
	if c.Parties < 2 || c.Clusters < 2 || c.Sketches < 1 {
		return nil, fault.Request("worst case", "needs at least 2 parties, 2 clusters and 1 sketch", "")
	}
	distribution, err := newGeometric(c.Gamma)
	if err != nil {
		return nil, err
	}
	s := float64(c.Parties)
	j := &Job{Method: Sketch, Problem: protocol.Problem{Calibration: c.Calibration,
		Columns: slices.Repeat([][]int{{0}}, c.Parties)}, Sketches: c.Sketches, Gamma: c.Gamma}
	p := &plan{parties: c.Parties, clusters: c.Clusters, sketches: c.Sketches, distribution: distribution,
		delta2: c.Budget.Delta / s,
		eps2:   c.Budget.Epsilon / s}
	if c.Calibration == privacy.Claimed {
		err = p.calibrateClaimed(j)
	} else {
		if _, ok := product(c.Clusters, c.Parties, maxDense); !ok {
			return nil, gridTooLarge(c.Parties, c.Clusters)
		}
		keys, of := c.Sketches, c.Parties
		if p.pairKeys = c.PairKeys; c.PairKeys { // a record is in one value of every pair and key
			keys, of = keys*c.Parties*(c.Parties-1)/2, 2
		}
		var n int
		n, err = privacy.FMPhantomsPLD(c.Budget, privacy.FM{Gamma: c.Gamma, Parties: of, Cells: c.Clusters}, keys)
		p.phantoms = float64(n)
	}
	if err != nil {
		return nil, err
	}
	c.labels = [2][]uint16{{}, {0}}
	c.run = &run{job: j, plan: p, Plan: &protocol.Plan{Method: string(j.Method), Calibration: c.Calibration,
		Private: true, Budget: c.Budget,
		K: c.Clusters, D: 1, N: 1, Parties: c.Parties, Rounds: 1}}
	for range c.Parties {
		c.run.parties = append(c.run.parties,
			partyReleases{sketches: c.run.Add(&protocol.Release{Name: "sketches", Makers: protocol.Holder})})
	}
	if c.Returned {
		j.Budget, p.phantoms = c.Budget, 1
		p.returned = &returned{pairs: p.pairs(), sets: 1}
		if p.pairKeys {
			p.returned.pairs, p.returned.sets = 1, p.pairs()
		}
		if err := p.noiseOfDraws(j, c.Sketches, p.phantoms, 0); err != nil {
			return nil, err
		}
		c.run.planReturned()
	}
	c.run.message = c.run.Add(&protocol.Release{Name: "message"})
	return &c, nil
}

// Draw returns the sketches of every party that the server reads, without the record
// or with it. All randomness, the keys too, comes from the next seed of st; draws one
// after the other are independent.
func (c *WorstCase) Draw(ctx context.Context, rt *engine.Runtime, st *privacy.Stream,
	present bool) ([]*Sketches, error) {
	labels := c.labels[0]
	if present {
		labels = c.labels[1]
	}
	views, err := c.Put(ctx, rt, st, slices.Repeat([][]uint16{labels}, c.Parties))
	if err != nil {
		return nil, err
	}
	return views[0].Sketches, nil
}

// DrawReturned is Draw for who holds the keys: the log ratio of how likely what is returned is with the record and
// without, and the square of how far the record moves it, in deviations of the noise. Keys and phantoms are
// known to the viewer, so that it knows which counts would be without noise on either side.
func (c *WorstCase) DrawReturned(ctx context.Context, rt *engine.Runtime, st *privacy.Stream, present bool) (
	ratio, square float64, err error) {
	seed := st.Uint64()
	var exact [2][]int64
	var released []int64
	var unit int
	for side := range exact {
		v, err := c.gathered(ctx, rt, seed, slices.Repeat([][]uint16{c.labels[side]}, c.Parties),
			func(v *server, r *Release) (err error) {
				if present == (side == 1) {
					released, unit, err = v.noisyDraws(r)
				}
				return err
			})
		if err != nil {
			return 0, 0, err
		}
		exact[side] = make([]int64, v.plan.pairs()*c.Clusters*c.Clusters)
		v.receive(v.messages).draws(exact[side])
	}
	for i, y := range floats(released, unit) {
		scale := c.run.returned.scale
		without, with := (y-float64(exact[0][i]))/scale, (y-float64(exact[1][i]))/scale
		ratio += (without*without - with*with) / 2
		square += (without - with) * (without - with)
	}
	return ratio, square, nil
}

// ReturnedEntry is the ledger's line for what DrawReturned looks at.
func (c *WorstCase) ReturnedEntry() privacy.Entry { return c.run.returned.Entries[0] }

// Put is Draw for records of which labels has the clusters, by party. It returns what the server reads under each set
// of keys: one set for all parties, or one for each pair in the order of Release.Pairs.
func (c *WorstCase) Put(ctx context.Context, rt *engine.Runtime, st *privacy.Stream, labels [][]uint16) (
	[]*View, error) {
	v, err := c.gathered(ctx, rt, st.Uint64(), labels, nil)
	if err != nil {
		return nil, err
	}
	r := v.receive(v.messages)
	if r.Joint == nil {
		return r.Pairs, nil
	}
	return []*View{r.Joint}, nil
}

// gathered is the server once the parties have sent what they make of labels, with all randomness from a seed, and
// after it has done what else is given.
func (c *WorstCase) gathered(ctx context.Context, rt *engine.Runtime, seed uint64, labels [][]uint16,
	then func(v *server, r *Release) error) (*server, error) {
	c.run.Plan = c.run.Plan.Again(seed)
	var programs []protocol.Program
	for l := range c.Parties {
		p := &party{run: c.run, index: l, releases: c.run.parties[l], points: kernels.NewPanels(len(labels[l]), 1),
			centers: make([]float32, c.Clusters), labels: labels[l]}
		programs = append(programs, func(ctx context.Context, q *protocol.Party) (*protocol.Outcome, error) {
			p.Party = q
			var m message
			if err := p.releaseSketches(ctx, &m); err != nil {
				return nil, err
			}
			return nil, p.sendMessage(ctx, &m)
		})
	}
	v := &server{run: c.run}
	gather := func(ctx context.Context, p *protocol.Party) (*protocol.Outcome, error) {
		v.Party = p
		if err := v.gather(ctx); err != nil || then == nil {
			return nil, err
		}
		return nil, then(v, v.receive(v.messages))
	}
	return v, protocol.Start(rt, c.run.Plan, programs, gather, protocol.Options{}).Run(ctx)
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
