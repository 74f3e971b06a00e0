package staged

import (
	"fmt"
	"math"

	"github.com/cohort-engine/cohort/engine"
	"github.com/cohort-engine/cohort/engine/privacy"
	"github.com/cohort-engine/cohort/engine/protocol"
	"github.com/cohort-engine/cohort/engine/step"
	"github.com/cohort-engine/cohort/engine/synopsis"
	"github.com/cohort-engine/cohort/internal/fault"
	"github.com/cohort-engine/cohort/internal/secagg"
)

// Plan is the plan of a run in stages: public values alone.
type Plan struct {
	*protocol.Plan
	// whole is the plan that a part is of, nil of a plan of its own.
	whole   *protocol.Plan
	problem *protocol.Problem
	run     Run
	limit   float64
	Share   Share
	// prefix begins the names of releases, of one party's part in a plan of several.
	prefix string
	// alone says that what the party releases is no sum of several parties'.
	alone bool
	// makers draw the noise, which noise says to the ledger; audience sees releases.
	makers   protocol.Makers
	Audience []string
	noise    *privacy.Noise
	// conditions are those of this run, beside the ones of the theorems.
	conditions []string
	// total is the release of the weight of all records, nil where they have none.
	total *Release
	// quality is nil where it is left out.
	quality *step.Quality
	// searching is how hard searches on released numbers try. What they find is
	// public, so to an audit of the releases a poor solution is as good.
	Searching synopsis.SearchOptions
}

// Make is the Plan method of a job: plan checks it and says what a run does.
func Make[J any, P interface{ finish() (engine.Plan, error) }](j *J, plan func(*J) (P, error)) (engine.Plan, error) {
	if j == nil {
		return nil, protocol.ErrNoJob
	}
	p, err := plan(j)
	if err != nil {
		return nil, err
	}
	return p.finish()
}

// NewPlain begins the plan of a run without privacy, of a problem that has been checked.
func NewPlain(method string, x *protocol.Problem) (*Plan, error) {
	first, n := x.Clients[0], x.PublicRecords()
	f := &Plan{problem: x, makers: protocol.Holder, Audience: []string{privacy.Outsider}}
	f.Plan = &protocol.Plan{Method: method, Calibration: privacy.None, K: x.K, D: first.Points.D, N: n,
		Parties: len(x.Clients), Rounds: 1, FractionBits: first.FractionBits, Coordinated: len(x.Clients) > 1,
		Capacity: capacity(n), Messages: protocol.NoMessages(len(x.Clients)), Seed: x.Seed,
		PublicSeed: protocol.NewPublicSeed(x.Seed)}
	if x.Bounds.FromData {
		f.Notes = append(f.Notes, "the bounds are the data's own minimum and maximum")
	}
	return f, f.Capacity.Check()
}

// capacity is the check of the largest sum: every record at length 2 sqrt d from
// its centroid, in one cluster, on the release grid.
func capacity(n int) secagg.Capacity {
	return secagg.Capacity{Ring: secagg.Ring64, Records: n, PerRecord: math.Ldexp(2, releaseBits),
		Noise: math.Ldexp(1, 61)}
}

// mostPlanned is the most rounds of a plan, which states the release of each.
const mostPlanned = 1000

// New begins the plan of a private run of a problem that has been checked, with a kind of
// noise. coordinates bounds the number of noise values that one record can influence.
func New(method string, x *protocol.Problem, mechanism protocol.Mechanism, coordinates int) (*Plan, error) {
	if x.Iterations > mostPlanned {
		return nil, fault.Range("iterations", x.Iterations,
			fmt.Sprintf("at most %d: each round has a release and noise of its own", mostPlanned))
	}
	f, err := NewPlain(method, x)
	if err != nil {
		return nil, err
	}
	f.Calibration, f.Private, f.Budget = privacy.Proven, true, x.Spends()
	excess, shares := 1.0, 0
	if f.Coordinated {
		stay := f.Parties
		if x.Survivors > 0 {
			stay = x.Survivors
		}
		by, err := protocol.NewDrawers(x.Noise, f.Parties, stay, x.Colluders)
		if err != nil {
			return nil, err
		}
		f.makers, f.Audience, f.noise = by.By.Makers(), []string{privacy.Clients, privacy.Outsider}, by.Known()
		excess, shares = by.Excess(), by.Shares()
		if c := by.Condition(); c != "" {
			f.conditions = append(f.conditions, c)
		}
	}
	if x.Replay != nil {
		f.Searching = synopsis.SearchOptions{Starts: 1, Swaps: -1}
	}
	if x.Records == 0 {
		f.Notes = append(f.Notes, fmt.Sprintf("the number of records, %d, is treated as public", f.N))
	}
	f.Share, err = newShare(f.Budget, mechanism == protocol.Laplace, x.Neighbours, coordinates, shares, excess)
	if err != nil {
		return nil, fault.Request(method, err.Error(), "raise --delta, or give --delta 0 for Laplace noise")
	}
	return f, nil
}

// Within plans a party's own part of another plan by its stages: of its d columns, in k clusters, with Gaussian noise
// of a squared mu, for an audience. The releases are added to the plan.
func Within(whole *protocol.Plan, prefix string, d, k int, mu2 float64, audience []string) *Plan {
	core := *whole
	core.D, core.K = d, k
	return &Plan{Plan: &core, whole: whole, problem: new(protocol.Problem), prefix: prefix, alone: true,
		makers: protocol.Holder, Audience: audience, Share: Share{Gaussian: true, Total: coarse(mu2)}}
}

// Add adds a release to the plan.
func (f *Plan) Add(r *protocol.Release) *protocol.Release {
	if f.whole != nil {
		return f.whole.Add(r)
	}
	return f.Plan.Add(r)
}

// Bound is the line of the table of calibrations for a release of the method,
// stated for adding or removing one record.
func (f *Plan) Bound(release string, radius float64) privacy.Bound {
	b, err := privacy.At(f.Method, privacy.Proven, release, privacy.Shape{D: f.D, K: f.K, Bound: 1, Radius: radius})
	if err != nil {
		panic("staged: " + err.Error()) // the table lacks what the method does
	}
	return b
}

// SNR is the signal to noise ratio of a cluster: n mu / (k sqrt d), with the noise
// that all parties add together.
func (f *Plan) SNR() float64 {
	return float64(f.N) * f.Share.Mu() / (float64(f.K) * math.Sqrt(float64(f.D)*f.Share.spread()))
}

// Signal is n mu: by how many standard deviations of the noise of one count, with the
// noise that all parties add together, all records stand above it.
func (f *Plan) Signal(l Share) float64 { return float64(f.N) * l.Mu() / math.Sqrt(l.spread()) }

// CountNoise is the standard deviation of the noise, of all parties together, of counts that have the whole of l.
func (f *Plan) CountNoise(l Share) float64 {
	if l.pair && l.Gaussian { // see AddCounts
		l.Total *= 2
	}
	return math.Sqrt(l.Variance(l.scale(f.Bound("histogram of distances", 0))))
}

// Release is a planned release with its share of the budget.
type Release struct {
	*protocol.Release
	Purpose string // names the noise stream
	Share   Share
	Scale   float64 // of releases with one scale, in data units
	counts  float64 // the part of an equal round for its counts
}

// AddRelease plans a release of one noise scale: a vector of words, of which one record
// changes so many coordinates.
func (f *Plan) AddRelease(purpose, what, line string, l Share, coordinates, words int) *Release {
	s := f.addRelease(purpose, what, f.Bound(line, 0), l, coordinates, 2)
	s.Words = words
	return s
}

// AddLevel plans the counts of a level of a trie, from 0, whose cells have 2^bits children.
// How many of them open follows from the levels above.
func (f *Plan) AddLevel(purpose, line string, l Share, bits, level int) *Release {
	s := f.AddCounts(purpose, line, l, Cells(bits, level))
	s.AtMost = level > 0
	return s
}

// Cells is the most cells of a level of a trie. No machine holds more than 2^40 of them.
func Cells(bits, level int) int { return 1 << min(bits*(level+1), 40) }

// AddCounts plans a release of counts of disjoint sets of records. Two records change
// two of them by 1, or none. cells is their number.
func (f *Plan) AddCounts(purpose, line string, l Share, cells int) *Release {
	return f.addCounts(purpose, purpose, line, l, cells)
}

// addCounts is AddCounts of other words than the purpose.
func (f *Plan) addCounts(purpose, words, line string, l Share, cells int) *Release {
	both := 2.0
	if l.Gaussian {
		both = math.Sqrt2
	}
	s := f.addRelease(purpose, words+": counts of all cells", f.Bound(line, 0), l, 1, both)
	s.Words = cells
	return s
}

// addRelease plans a release that two records which change together move by `both`
// times what one does, in the norm of the noise.
func (f *Plan) addRelease(purpose, what string, b privacy.Bound, l Share, coordinates int, both float64) *Release {
	one := l
	if l.pair && l.Gaussian { // the share is that of a record of which two move a release twice as far
		one.Total *= 4 / (both * both)
	}
	s := &Release{Purpose: purpose, Share: l, Scale: one.scale(b)}
	f.drawable(what, s.Scale)
	e := f.chargeBoth(l, l.entry(f.prefix+what, f.Audience, s.Scale, b, coordinates), both)
	s.Release = f.Add(&protocol.Release{Name: e.What, Makers: f.makers, Entries: []privacy.Entry{e}})
	return s
}

// drawable is Drawable for a scale in data units.
func (f *Plan) drawable(what string, scale float64) {
	plan := f.Plan
	if f.whole != nil {
		plan = f.whole
	}
	plan.Drawable(f.prefix+what, scale*(1<<releaseBits))
}

// Charge completes an entry, stated for one record. Where the guarantee is for
// replacing a record it costs what two records that change together do
// (THEOREMS.md T7, T8).
func (f *Plan) Charge(l Share, e privacy.Entry) privacy.Entry { return f.chargeBoth(l, e, 2) }

// chargeBoth is Charge for a release that two records move by `both` times what one
// does (THEOREMS.md T2).
func (f *Plan) chargeBoth(l Share, e privacy.Entry, both float64) privacy.Entry {
	e.Conditions = append(append(e.Conditions, e.Bound.Rule.Conditions...), f.conditions...)
	e.Noise = f.noise
	if l.pair {
		e.Neighbours = privacy.ReplaceOne
		e.Bound.Shape.Neighbours = privacy.ReplaceOne
		e.Sensitivity = e.Bound.In(e.Norm)
		if e.Beside != nil {
			e.Beside.Shape.Neighbours = privacy.ReplaceOne
		}
		e.Cost.Scale /= both
		e.Cost.Slack *= 2
		e.Cost.Epsilon *= 2
	}
	return e
}
