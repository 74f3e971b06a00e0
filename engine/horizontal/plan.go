package horizontal

import (
	"math"

	"github.com/cohort-engine/cohort/engine/privacy"
	"github.com/cohort-engine/cohort/engine/secagg"
)

// prepared is a job with its defaults, its sizes and its noise.
type prepared struct {
	job        *Job
	n, d, k, m int
	fraction   int
	scale      float64 // 2^fraction
	rounds     int
	// exclusivity is the number of clusters that the calibration lets a record
	// contribute to: all of them under the papers' nonexclusive assignment.
	exclusivity int
	lo, hi      int       // sizes of a cluster at one client
	radius      []float64 // R_t of relative, or the largest distance of constrained assignment, by round; nil for none
	parts       []part    // what a round releases, in the order of the message
	length      int       // words of a message
	needed      int       // shares that make up the noise; 0 if one draw is the noise
	givenDelta  float64   // what the caller asked for, before defaults
}

// part is one vector of a round's release.
type part struct {
	name           string
	offset, length int
	unit           float64      // what one integer unit is worth
	scales         []noiseScale // by round; empty without noise
	laws           []*law       // by round
	rule           privacy.Rule // what the scales come from
}

// sensitivity bounds what one record can change of a part, in real units.
type sensitivity struct {
	joint bool   // the other part's entry covers it
	norm  string // "L1" or "L2"
	value float64
}

// prepare works out the rounds and the noise of a checked job with defaults.
func prepare(j *Job) (*prepared, error) {
	p := &prepared{job: j, n: j.records(), d: j.dimension(), k: j.K, m: len(j.Clients), fraction: j.Clients[0].FractionBits}
	p.scale = math.Ldexp(1, p.fraction)
	p.lo, p.hi = j.sizes()
	p.exclusivity = j.Exclusivity
	if j.NonExclusive && j.Calibration != privacy.Proven {
		p.exclusivity = j.K
	}
	if err := p.countRounds(); err != nil {
		return nil, err
	}
	if j.Schedule != "" || j.Radius > 0 {
		p.radius = make([]float64, p.rounds)
		for t := range p.radius {
			p.radius[t] = j.Radius
			if j.Schedule != "" {
				p.radius[t] = j.Schedule.radius(t, p.k, p.d)
			}
		}
	}
	kd := p.k * p.d
	if j.Release == Centroid {
		p.parts = []part{{name: "centroids", length: kd, unit: 1 / p.scale}}
	} else {
		p.parts = []part{{name: "sums", length: kd, unit: 1 / p.scale}, {name: "counts", offset: kd, length: p.k, unit: 1}}
		if j.Algorithm == Relative {
			p.parts[0].name, p.parts[1].name = "relative sums", "relative counts"
		}
		if j.Algorithm.Private() && j.Mechanism == Gaussian && j.Calibration == privacy.Proven {
			// Counts on the fine grid make the slack of discretisation vanish.
			p.parts[1].unit = 1 / p.scale
		}
	}
	last := p.parts[len(p.parts)-1]
	p.length = last.offset + last.length
	if j.Algorithm.Private() {
		if j.Noise == Split {
			p.needed = p.m - j.Colluders
		}
		if err := p.addNoise(); err != nil {
			return nil, err
		}
	}
	return p, p.checkRing()
}

// countRounds applies the method's rule.
func (p *prepared) countRounds() error {
	j := p.job
	p.rounds = j.Iterations
	switch {
	case p.rounds > 0:
	case !j.Algorithm.Private():
		p.rounds = maxIterations
	case j.Algorithm == Relative && j.Schedule == LaterCode && j.Mechanism == Gaussian:
		mu, err := privacy.MuOf(j.Budget, 0)
		if err != nil {
			return unpayable(err)
		}
		p.rounds = iterationsLater(1/mu, p.n, p.d, p.k)
	case j.Algorithm == Relative && j.Schedule == LaterCode:
		p.rounds = iterationsSumCount(j.Budget.Epsilon, p.n, p.d, p.k, 1)
	case j.Algorithm == Relative:
		p.rounds = maxIterations
	case j.Release == Centroid && j.Algorithm == SuLloyd:
		p.rounds = iterationsCentroid(j.Budget.Epsilon, p.d, p.k, 1, 1) // a cluster may be one record
	case j.Release == Centroid:
		p.rounds = iterationsCentroid(j.Budget.Epsilon, p.d, p.k, p.exclusivity, p.m*p.lo)
	default:
		p.rounds = iterationsSumCount(j.Budget.Epsilon, p.n, p.d, p.k, p.exclusivity)
	}
	return nil
}

// checkRing refuses a run whose largest value might leave the ring.
func (p *prepared) checkRing() error {
	ring, err := secagg.ParseRing(p.job.RingBits)
	if err != nil {
		return err
	}
	return secagg.Capacity{Ring: ring, Records: p.n, PerRecord: p.perRecord(), Noise: p.noiseReach()}.Check()
}
