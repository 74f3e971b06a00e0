package protocol

import (
	"fmt"
	"math"
	"slices"

	"github.com/cohort-engine/cohort/engine"
	"github.com/cohort-engine/cohort/engine/privacy"
	"github.com/cohort-engine/cohort/internal/fault"
	"github.com/cohort-engine/cohort/internal/secagg"
)

// Makers says who draws the noise of a release, and so who knows it (PRIVACY C7).
type Makers uint8

// The makers.
const (
	// Nobody: the release is exact.
	Nobody Makers = iota
	// Holder: the party whose records the release is about, or the only party of a sum.
	Holder
	// ServerAlone adds the whole noise to masked values.
	ServerAlone
	// EachWhole: every party adds the whole noise.
	EachWhole
	// EachShare: every party adds a share; a planned number of shares make up the
	// whole noise.
	EachShare
	// ServerShares: every one of several servers adds a share to its share of the sum.
	ServerShares
)

// Release is one planned way out of private values: a vector of integers, made at
// most once a round, and what it costs.
type Release struct {
	// Name says what it is, and names the noise streams of an adaptive release.
	Name string
	// Makers draw the noise.
	Makers Makers
	// Entries are its lines of the ledger, all rounds together.
	Entries []privacy.Entry
	// Times is how often it is made at most; 0 means once.
	Times int
	// Words is the length of its vector, 0 where no bound is known or where it leaves in
	// Plan.Messages; AtMost says that it is a bound, as the length follows from other
	// releases.
	Words  int
	AtMost bool
	// Groups is how many noise distributions the vector has at most, 0 meaning 1.
	Groups int
	// Before says that it is made before the first round, and numbered by itself.
	Before bool
	// Uncovered marks figures that no budget covers: the quality of a result. Their
	// messages are not among those that a result counts.
	Uncovered bool

	index int
}

// drawnByParties tells whether parties add noise to what they release.
func (r *Release) drawnByParties() bool {
	return r.Makers == Holder || r.Makers == EachWhole || r.Makers == EachShare
}

// Group is a run of consecutive elements of a release with one noise.
type Group struct {
	// Stream names the noise stream that begins here; empty goes on with the last.
	Stream string
	Values int
	// Shift is log2 of what one unit of the private vector is worth on the release's
	// grid.
	Shift uint
	// Noise is nil for exact values.
	Noise *Distribution
}

// Plan is what a run will do, made once from public values alone, before any
// record is touched. It does not change.
type Plan struct {
	Method      string
	Calibration privacy.Calibration
	// Private says that the run spends Budget.
	Private bool
	Budget  privacy.Budget
	// K, D and N are the clusters, columns and the public number of records that
	// every parameter follows; Parties the number of parties.
	K, D, N, Parties int
	// FractionBits is the grid of the records.
	FractionBits int
	// Rounds is the most rounds that the run has.
	Rounds int
	// Coordinated says that a server adds up what parties send.
	Coordinated bool
	// Ring says that parties add up among themselves: a masked partial sum goes from
	// each to the next. It excludes Coordinated.
	Ring bool
	// Servers, if positive, is the number of servers among which parties add up under
	// additive secret sharing. It excludes Coordinated and Ring.
	Servers int
	// Leaves has, by party, the round from which a simulated failure keeps it away,
	// negative for never; nil if none fails.
	Leaves []int
	// ClusterSizes are the least and the greatest number of records of a cluster at
	// one party, nil without constraints; Unassigned is how many records find no place
	// within them.
	ClusterSizes *[2]int
	Unassigned   int
	// Metric is that of the result where it is not Euclidean.
	Metric string
	// Messages are what the parties send in messages of the method's own, which the releases
	// without Words leave in; nil if none do, or their sizes are not known.
	Messages *engine.Comm
	// Capacity is the check that sums stay inside their ring.
	Capacity secagg.Capacity
	// Releases are all ways out of private values, in order.
	Releases []*Release
	// Doubts say for the headline, one sentence each, why the result is of little use, as
	// far as public values show it.
	Doubts []string
	// Notes are lines of the ledger that say what is not covered.
	Notes []string
	// Unpaid, if not empty, says why no ledger file takes the run.
	Unpaid string
	// Seed makes the run a simulation.
	Seed *uint64
	// PublicSeed is what public randomness follows from.
	PublicSeed PublicSeed

	// ServerNoise is the layout of the noise of the t-th sum, for releases whose
	// noise the server draws. It is set before they are added; nil where layouts
	// follow from other releases, so that a party has to tell them.
	ServerNoise func(t int) []Group

	tellsNoise bool   // party 1 tells the server the layout of each sum
	loud       string // the first release whose noise is too large to be drawn
}

// Add appends a release and returns it.
func (pl *Plan) Add(r *Release) *Release {
	r.index = len(pl.Releases)
	pl.Releases = append(pl.Releases, r)
	pl.tellsNoise = pl.tellsNoise || r.Makers == ServerAlone && pl.ServerNoise == nil
	return r
}

// Drawable notes a release whose noise has a scale, in units of its grid, that no sampler has: a run would end there,
// paid for.
func (pl *Plan) Drawable(what string, scale float64) {
	if scale > privacy.MaxScale && pl.loud == "" {
		pl.loud = what
	}
}

// CheckNoise refuses a plan with such a release.
func (pl *Plan) CheckNoise() error {
	if pl.loud == "" {
		return nil
	}
	return fault.Request("epsilon", fmt.Sprintf("is %.3g, for which the noise of %s is too large to be drawn",
		pl.Budget.Epsilon, pl.loud), "raise it, or delta")
}

// largeDelta is a delta that says little: the default is above it for fewer than 30 records.
const largeDelta = 0.01

// doubts are those of the method and that of a large delta, whose guarantee may fail so often.
func (pl *Plan) doubts() []string {
	all := slices.Clone(pl.Doubts)
	if pl.Private && pl.Budget.Delta > largeDelta {
		all = append(all, fmt.Sprintf("a delta of %.2g says little, for epsilon may fail to hold with this chance: "+
			"give a smaller --delta, or more records", pl.Budget.Delta))
	}
	return all
}

// Again is the plan of the same run as the simulation of another seed.
func (pl *Plan) Again(seed uint64) *Plan {
	c := *pl
	c.Seed, c.PublicSeed = &seed, NewPublicSeed(&seed)
	return &c
}

// Present tells whether a party takes part in a round.
func (pl *Plan) Present(party Role, round int) bool {
	return pl.Leaves == nil || pl.Leaves[party] < 0 || round < pl.Leaves[party]
}

// First is the first party that takes part in a round.
func (pl *Plan) First(round int) Role { return pl.neighbour(Role(pl.Parties-1), round) }

// neighbour is the next party after a role, in the order of the ring, that takes
// part in a round: the role itself if no other does.
func (pl *Plan) neighbour(r Role, round int) Role {
	for i := range pl.Parties {
		if q := (r + 1 + Role(i)) % Role(pl.Parties); pl.Present(q, round) {
			return q
		}
	}
	return r
}

// Ledger prices the plan: what the run will release and what it costs. realised
// has, by release, entries that replace the planned ones; nil for none.
func (pl *Plan) Ledger(realised map[*Release][]privacy.Entry) (*privacy.Ledger, error) {
	l, lines := &privacy.Ledger{}, len(pl.Notes)+1
	for _, r := range pl.Releases {
		lines += len(r.Entries)
	}
	l.Grow(lines)
	if pl.Private {
		l.Delta = pl.Budget.Delta
	}
	for _, r := range pl.Releases {
		entries := r.Entries
		if now := realised[r]; now != nil {
			entries = now
		}
		for _, e := range entries {
			if err := l.Add(e); err != nil {
				return nil, err
			}
		}
	}
	for _, n := range pl.Notes {
		l.Note(n)
	}
	if pl.Private && pl.Seed != nil {
		l.Note("the seed: whoever knows it can subtract the noise, so a run with one is a simulation")
	}
	return l, nil
}

// costsMore tells whether what was released costs more than what was planned.
func costsMore(planned, realised []privacy.Entry) error {
	if len(planned) != len(realised) {
		return fmt.Errorf("protocol: %d ledger entries where %d were planned", len(realised), len(planned))
	}
	for i, e := range realised {
		p := planned[i].Cost
		const rounding = 1 - 0x1p-30
		if e.Cost.Family != p.Family || e.Cost.Scale < p.Scale*rounding || e.Cost.Times() > p.Times() ||
			e.Cost.Epsilon*rounding > p.Epsilon || math.IsNaN(e.Cost.Scale) {
			return fmt.Errorf("protocol: %s costs more than the plan allows", e.What)
		}
	}
	return nil
}
