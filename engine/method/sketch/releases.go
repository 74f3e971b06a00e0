package sketch

import (
	"math"

	"github.com/cohort-engine/cohort/engine/privacy"
	"github.com/cohort-engine/cohort/engine/protocol"
	"github.com/cohort-engine/cohort/engine/step/staged"
	"github.com/cohort-engine/cohort/engine/synopsis"
	"github.com/cohort-engine/cohort/internal/elementary"
)

// release is a planned release of one party with one noise scale, in data units.
type release struct {
	*protocol.Release
	mechanism protocol.Mechanism
	scale     float64
}

// deviation is the noise's standard deviation.
func (r *release) deviation() float64 {
	if r.mechanism == protocol.Laplace {
		return math.Sqrt2 * r.scale
	}
	return r.scale
}

// partyReleases are what one party may release.
type partyReleases struct {
	exact      *protocol.Release // centres, and with them memberships
	tree       *treeRelease
	forest     *forestRelease
	refinement *refinementRelease
	sizes      *release
	records    *release
	sketches   *protocol.Release
	reports    *protocol.Release
}

// treeRelease is a midpoint tree: the counts of so many levels of so many halvings.
type treeRelease struct {
	bits, levels int
	counts       release
}

// forestRelease is an LSH forest: counts of each level, sums of the leaves.
type forestRelease struct {
	levels       int
	counts, sums release
}

// refinementRelease is a histogram of distances and rounds of relative sums and counts; mean is nil where centres start
// elsewhere.
type refinementRelease struct {
	part            *staged.Plan
	mean, distances *staged.Release
	rounds          *staged.EqualRounds
}

// The releases of a tree and of a forest, as the table of calibrations names them.
const (
	treeCounts   = "counts of the local tree"
	forestCounts = "counts of the forest"
	forestSums   = "sums of the forest's leaves"
)

// add plans a release of party l, made so many times. Of its values one record
// changes so many.
func (r *run) add(l int, m protocol.Mechanism, b privacy.Bound, scale float64, unit string, values,
	rounds int) release {
	family, norm, grid := "discrete-laplace", "L1", 0
	switch {
	case m == protocol.Gaussian:
		family, norm, grid = "discrete-gaussian", "L2", releaseBits
	case unit == "": // the data's
		grid = r.bits
	}
	e := b.Entry(partyName(l)+": "+b.Rule.Release, family, norm)
	r.Drawable(e.What, math.Ldexp(scale, grid))
	e.Scale, e.Unit, e.Cost = scale, unit, privacy.Spec{Family: family, Scale: scale / e.Sensitivity}
	if m == protocol.Gaussian {
		e.Cost.Slack = privacy.GaussianSlack(scale*(1<<releaseBits), values)
	}
	if rounds > 1 {
		e.Cost.Rounds = rounds
	}
	if r.job.Method == LocalReports && r.job.Calibration == privacy.Claimed {
		truth := e.Cost // to data sets of one size; the claim is for adding or removing a record
		truth.Scale /= 2
		e.True = &truth
	}
	return release{r.addEntry(e, protocol.Holder, rounds), m, scale}
}

// addEntry plans a release to the server.
func (r *run) addEntry(e privacy.Entry, makers protocol.Makers, times int) *protocol.Release {
	e.Viewers = r.viewers()
	if e.Bound != nil {
		e.Conditions, e.Remark = append(e.Conditions, e.Bound.Rule.Conditions...), joinRemarks(e.Remark, e.Bound.Rule.Worth)
	}
	return r.Add(&protocol.Release{Name: e.What, Makers: makers, Times: times, Entries: []privacy.Entry{e}})
}

func joinRemarks(own, rule string) string {
	if own != "" {
		return own
	}
	return rule
}

// addExact plans a release without noise.
func (r *run) addExact(what string) *protocol.Release {
	return r.addEntry(privacy.Entry{What: what, Mechanism: "none", Calibration: privacy.None, Unbounded: true},
		protocol.Nobody, 1)
}

// planParty plans what party l releases.
func (r *run) planParty(l int) partyReleases {
	j, d := r.job, len(r.job.Columns[l])
	var out partyReleases
	switch {
	case j.Method == Plain:
		out.exact = r.addExact(partyName(l) + ": exact local centres and memberships")
		return out
	case j.ExactCenters:
		out.exact = r.addExact(partyName(l) + ": exact local centres")
	case j.Calibration == privacy.Proven && j.Method.sketches():
		r.planCenters(l, d, &out)
	default:
		out.forest = r.laplaceForest(l, d, paperLevels, r.plan.eps1)
	}
	switch j.Method {
	case Independent:
		b := r.bound(d, "sizes of the local clusters")
		sizes := r.add(l, protocol.Laplace, b, gaussianScale(b.L1(), r.plan.eps2), "records", 1, 1)
		out.sizes = &sizes
	case LocalReports:
		e := r.bound(d, "memberships under local privacy").Entry(partyName(l)+": memberships under local privacy",
			"randomized-response", "L1")
		e.Scale, e.Cost = r.plan.eps2, privacy.Spec{Family: "pure", Epsilon: r.plan.eps2}
		out.reports = r.addEntry(e, protocol.Holder, 1)
	default:
		if j.Calibration == privacy.Proven {
			b := r.bound(d, "sizes of the local clusters")
			sizes := r.add(l, protocol.Gaussian, b, gaussianScale(b.L2(), r.plan.localMu*math.Sqrt(sizeShare)), "records", 1, 1)
			out.sizes = &sizes
		}
	}
	return out
}

// planCenters plans local centres under the proven calibration of the sketches: where they start, a histogram of the
// records' distances from there, whose quantile is the reach of the rounds that follow.
func (r *run) planCenters(l, d int, out *partyReleases) {
	mu, first := r.plan.localMu, len(r.Releases)
	f := staged.Within(r.Plan, partyName(l)+": ", d, r.plan.clusters, mu*mu, r.viewers())
	o := &refinementRelease{part: f}
	rounds, left, start := treeRounds, 1-sizeShare-reachShare, mu*math.Sqrt(startShare)
	switch r.localStart(d, start) {
	case StartTree:
		out.tree = r.gaussianTree(l, d, start)
		left -= startShare
	case StartForest:
		out.forest = r.gaussianForest(l, d, forestLevels, start)
		left -= startShare
	default:
		o.mean, rounds = f.AddMean(f.Share.Part(meanShare)), f.ManyRounds()
		left -= meanShare
	}
	o.distances = f.AddDistances("the first centres", f.Share.Part(reachShare))
	o.rounds = f.AddEqualRounds(f.Share.Part(left), rounds, r.plan.clusters, false)
	out.refinement = o
	for _, x := range r.Releases[first:] { // nothing is sent but the party's message
		x.Words, x.Groups = 0, 0
	}
}

// viewers see what the parties release.
func (r *run) viewers() []string {
	if r.plan.returned != nil { // the result has it
		return []string{privacy.Server, privacy.Clients, privacy.Outsider}
	}
	return []string{privacy.Server}
}

// localStart is how a party with d columns starts; mu is the budget of that.
func (r *run) localStart(d int, mu float64) LocalStart {
	switch s := r.job.LocalStart; {
	case s != StartAuto:
		return s
	case d <= fewColumns, elementary.Log2(float64(r.job.PublicRecords())*mu) >= treeHalvings*float64(d):
		return StartTree
	}
	return StartRounds
}

// gaussianTree spends all of mu on the counts of the levels. Few columns have no use for more than mostLeaves, which
// the search looks at.
func (r *run) gaussianTree(l, d int, mu float64) *treeRelease {
	n := r.job.PublicRecords()
	if d <= fewColumns {
		n = int(min(float64(n), mostLeaves/mu))
	}
	bits, levels := synopsis.TreeShape(n, d, r.plan.clusters, mu, r.bits)
	b := r.bound(d, treeCounts)
	return &treeRelease{bits, levels,
		r.add(l, protocol.Gaussian, b, gaussianScale(math.Sqrt(float64(levels))*b.L2(), mu), "records", 1, levels)}
}

// gaussianForest spends half of the squared mu on counts, half on sums.
func (r *run) gaussianForest(l, d, levels int, mu float64) *forestRelease {
	half := mu / math.Sqrt2
	counts, sums := r.bound(d, forestCounts), r.bound(d, forestSums)
	return &forestRelease{levels,
		r.add(l, protocol.Gaussian, counts, gaussianScale(math.Sqrt(float64(levels))*counts.L2(), half),
			"records", 1, levels),
		r.add(l, protocol.Gaussian, sums, gaussianScale(sums.L2(), half), "", d, 1)}
}

// laplaceForest spends half of epsilon on counts, half on sums (Sketch-V,
// section 3.5: the form for data in [-1,1]^d).
func (r *run) laplaceForest(l, d, levels int, epsilon float64) *forestRelease {
	half := epsilon / 2
	counts, sums := r.bound(d, forestCounts), r.bound(d, forestSums)
	return &forestRelease{levels,
		r.add(l, protocol.Laplace, counts, gaussianScale(float64(levels)*counts.L1(), half), "records", 1, levels),
		r.add(l, protocol.Laplace, sums, gaussianScale(sums.L1(), half), "", d, 1)}
}

// planRecords plans the published estimate of n: one party's count with Laplace
// noise under eps_0.
func (r *run) planRecords() *release {
	b := r.bound(len(r.job.Columns[0]), "number of records")
	n := r.add(0, protocol.Laplace, b, gaussianScale(b.L1(), r.plan.eps0), "records", 1, 1)
	return &n
}
