package audit

import (
	"fmt"
	"math"
	"strings"

	"gonum.org/v1/gonum/stat/distuv"

	"github.com/cohort-engine/cohort/engine/privacy"
	"github.com/cohort-engine/cohort/engine/protocol"
)

// noiseSamples gathers what the runs of one way drew, as scores: of a right distribution standard normal, or for
// shares of Laplace noise, whose sum has a distribution that can be tested, their signs.
type noiseSamples struct {
	st       *privacy.Stream
	way      string
	failure  float64
	releases []*noiseRelease
	places   map[string]*noiseRelease
	run      int
}

// noiseRelease is the i-th draw of a role from one stream, in every run that has it.
type noiseRelease struct {
	name      string
	run       int  // the last that had it
	joint     bool // drawn with what other roles know: no test between roles
	scored    bool // by sign alone
	numbers   int
	bins      [noiseBins]float64
	tails     float64
	scales    map[float64]bool
	last, now []float64 // scores of the run before and of this one
	// rows is between coordinates, runs between runs, with with each draw before.
	rows, runs correlation
	with       map[*noiseRelease]*correlation
}

const (
	noiseBins = 20
	tailShare = 1e-3 // on either side
	// nearest is how many draws before it a draw is compared with.
	nearest = 24
)

// correlation sums products of independent standard scores: over its root of the number it is normal.
type correlation struct{ sum, n float64 }

func (c *correlation) add(a, b []float64) {
	for i := range min(len(a), len(b)) {
		if p := a[i] * b[i]; p != 0 {
			c.sum += p
			c.n++
		}
	}
}

// add takes one run.
func (g *noiseSamples) add(draws []protocol.Draw) error {
	g.run++
	var order []*noiseRelease
	for i, d := range append(draws[:len(draws):len(draws)], wholes(draws)...) {
		r := g.place(&d)
		r.joint = d.Chances != nil || i >= len(draws)
		r.scored = d.Noise.Mechanism == protocol.Laplace && d.Noise.Shares > 1
		r.last, r.now = r.now, r.last[:0]
		if r.run != g.run-1 {
			r.last = r.last[:0] // the run before did not have it
		}
		r.run = g.run
		if len(r.scales) < 100 {
			r.scales[d.Noise.Scale] = true
		}
		if err := r.take(&d, g.st); err != nil {
			return err
		}
		if len(r.now) > 1 {
			r.rows.add(r.now[:len(r.now)-1], r.now[1:])
		}
		r.runs.add(r.last, r.now)
		for _, before := range order[max(0, len(order)-nearest):] {
			if r.joint || before.joint {
				continue
			}
			c := r.with[before]
			if c == nil {
				c = new(correlation)
				r.with[before] = c
			}
			c.add(before.now, r.now)
		}
		order = append(order, r)
	}
	return nil
}

// place is where a draw's numbers are gathered: by role, stream, and how often the role drew from it in this run.
func (g *noiseSamples) place(d *protocol.Draw) *noiseRelease {
	if g.places == nil {
		g.places = map[string]*noiseRelease{}
	}
	for again := 1; ; again++ {
		name := fmt.Sprintf("%s, %v, %s %d", g.way, d.Role, d.Stream, again)
		r := g.places[name]
		if r == nil {
			r = &noiseRelease{name: name, scales: map[float64]bool{}, with: map[*noiseRelease]*correlation{}}
			g.places[name], g.releases = r, append(g.releases, r)
		}
		if r.run != g.run {
			return r
		}
	}
}

// take scores a draw.
func (r *noiseRelease) take(d *protocol.Draw, st *privacy.Stream) error {
	n := len(d.Values) + len(d.Reals) + len(d.Chances)
	for i := range n {
		if r.scored {
			r.now = append(r.now, float64(min(max(d.Values[i], -1), 1)))
			continue
		}
		u, err := uniform(d, i, st.Float64Open())
		if err != nil {
			return err
		}
		r.bins[min(int(u*noiseBins), noiseBins-1)]++
		if u < tailShare || u > 1-tailShare {
			r.tails++
		}
		r.now = append(r.now, distuv.UnitNormal.Quantile(min(max(u, 1e-15), 1-1e-15)))
	}
	r.numbers += n
	return nil
}

// wholes are the sums of shares of Laplace noise: as many shares as make up the whole.
func wholes(draws []protocol.Draw) []protocol.Draw {
	type release struct {
		round  int
		stream string
		at     int // which of the release's draws
	}
	shares, seen := map[release][]*protocol.Draw{}, map[protocol.Role]map[release]int{}
	var order []release
	for i := range draws {
		d := &draws[i]
		if d.Noise.Mechanism != protocol.Laplace || d.Noise.Shares < 2 {
			continue
		}
		if seen[d.Role] == nil {
			seen[d.Role] = map[release]int{}
		}
		r := release{round: d.Round, stream: d.Stream}
		seen[d.Role][r]++
		r.at = seen[d.Role][release{round: d.Round, stream: d.Stream}]
		if shares[r] == nil {
			order = append(order, r)
		}
		shares[r] = append(shares[r], d)
	}
	var all []protocol.Draw
	for _, r := range order {
		of := shares[r]
		need := of[0].Noise.Shares
		for from := 0; from+need <= len(of); from++ {
			whole := *of[from]
			whole.Noise.Shares, whole.Values = 1, make([]int64, len(of[from].Values))
			for _, d := range of[from : from+need] {
				for i, z := range d.Values {
					whole.Values[i] += z
				}
			}
			whole.Stream += fmt.Sprintf(", %d shares together", need)
			all = append(all, whole)
		}
	}
	return all
}

// uniform maps the i-th outcome of a draw to (0,1), uniformly if its distribution is the one it should be; v is
// uniform and spreads an outcome's probability.
func uniform(d *protocol.Draw, i int, v float64) (float64, error) {
	scale := d.Noise.Scale / math.Sqrt(float64(max(d.Noise.Shares, 1))) // of Gaussian shares; Laplace ones are added up
	laplace := d.Noise.Mechanism == protocol.Laplace
	var from, to float64 // probabilities of less, and of no more
	switch {
	case d.Chances != nil:
		from, to = d.Chances[i][0], d.Chances[i][1]
	case d.Reals != nil:
		from = below(laplace, d.Reals[i]/scale)
		to = from
	case d.Noise.Rounding == protocol.Nearest || d.Noise.Rounding == protocol.Exact && !laplace && scale >= 100:
		// above that scale the discrete distribution is within 1e-5 of the rounded one (THEOREMS.md T6 iii)
		z := float64(d.Values[i])
		from, to = below(laplace, (z-0.5)/scale), below(laplace, (z+0.5)/scale)
	case d.Noise.Rounding == protocol.TowardZero:
		z := float64(d.Values[i])
		from, to = below(laplace, z/scale), below(laplace, z/scale)
		if z >= 0 {
			to = below(laplace, (z+1)/scale)
		}
		if z <= 0 {
			from = below(laplace, (z-1)/scale)
		}
	default:
		from, to = discrete(laplace, d.Values[i], scale)
	}
	if math.IsNaN(from + to) {
		return 0, fmt.Errorf("audit: noise of scale %v cannot be tested", scale)
	}
	return from + v*(to-from), nil
}

// below is the probability that continuous noise of scale 1 is below x.
func below(laplace bool, x float64) float64 {
	switch {
	case !laplace:
		return math.Erfc(-x/math.Sqrt2) / 2
	case x < 0:
		return math.Exp(x) / 2
	}
	return 1 - math.Exp(-x)/2
}

// discrete has the probabilities that noise on the integers is below z, and at most z.
func discrete(laplace bool, z int64, scale float64) (from, to float64) {
	x := math.Abs(float64(z))
	var beyond, at float64 // probabilities of a magnitude beyond x on one side, and of x
	if laplace {
		r := math.Exp(-1 / scale)
		beyond, at = math.Exp(-(x+1)/scale)/(1+r), -math.Expm1(-1/scale)/(1+r)*math.Exp(-x/scale)
	} else {
		norm := 0.0
		for i := range int(12*scale) + 3 {
			p := math.Exp(-float64(i) * float64(i) / (2 * scale * scale))
			if float64(i) > x {
				beyond += p
			}
			if norm += 2 * p; i == 0 {
				norm -= p
			}
		}
		beyond, at = beyond/norm, math.Exp(-x*x/(2*scale*scale))/norm
	}
	if z > 0 {
		return 1 - beyond - at, 1 - beyond
	}
	return beyond, beyond + at
}

// checks are the tests of distributions and independence, each with its share of the failure probability.
func (g *noiseSamples) checks() []NoiseCheck {
	n := 1 // each has four checks, and one with each draw shortly before
	for _, r := range g.releases {
		n += 4 + len(r.with)
	}
	alpha := g.failure / float64(n)
	chi := distuv.ChiSquared{K: noiseBins - 1}.Quantile(1 - alpha)
	normal := distuv.UnitNormal.Quantile(1 - alpha/2)
	var out []NoiseCheck
	for _, r := range g.releases {
		add := func(check string, n int, statistic, limit float64) {
			out = append(out, NoiseCheck{r.name, check, n, statistic, limit, statistic > limit})
		}
		if r.numbers >= 10*noiseBins && !r.scored {
			statistic, expected := 0.0, float64(r.numbers)/noiseBins
			for _, n := range r.bins {
				statistic += (n - expected) * (n - expected) / expected
			}
			add("distribution", r.numbers, statistic, chi)
		}
		if !r.scored { // the largest number of tail draws that has probability alpha
			most := 0.0
			for b := (distuv.Binomial{N: float64(r.numbers), P: 2 * tailShare}); 1-b.CDF(most) > alpha; most++ {
			}
			add("tail", r.numbers, r.tails, most)
		}
		independent := func(check string, c correlation) {
			if c.n >= 100 { // fewer products are not nearly normal
				add(check, int(c.n), math.Abs(c.sum)/math.Sqrt(c.n), normal)
			}
		}
		independent("independence of coordinates", r.rows)
		independent("independence of runs", r.runs)
		for before, c := range r.with {
			independent("independence of "+before.name, *c)
		}
	}
	return out
}

// planned compares the scales: each that the plan's ledger states is that of some release on some grid of a power of
// two. The scales of sums and counts that are released together follow from what was released before: the plan has
// their price alone, and distance compares that. A scale of 1 in units of the noise says nothing either: the ways of
// such a method state their scales in records.
func (g *noiseSamples) planned(l *privacy.Ledger) []NoiseCheck {
	additive := map[string]bool{"gaussian": true, "laplace": true, "discrete-gaussian": true, "discrete-laplace": true}
	var out []NoiseCheck
	for _, e := range l.Entries() {
		if e.Kind != privacy.Release || e.Scale == 0 || e.Beside != nil || !additive[e.Cost.Family] ||
			strings.HasPrefix(e.Unit, "noise units") {
			continue
		}
		off := math.Inf(1)
		for i := range g.releases {
			for s := range g.releases[i].scales {
				if s == 0 {
					continue // told by chances
				}
				ratio := math.Log2(s / e.Scale)
				off = min(off, math.Abs(ratio-math.Round(ratio)))
			}
		}
		out = append(out, NoiseCheck{g.way + ", " + e.What, "scale", 1, off, 1e-6, !(off <= 1e-6)})
	}
	return out
}
