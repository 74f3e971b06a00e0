package sketch

import (
	"math"

	"github.com/cohort-engine/cohort/engine/privacy"
)

// heightChances are the chances of a party's heights, for an audit: the greatest of n
// ids' heights is at most h with probability F(h)^n, where n counts the phantoms that
// the plan has (Sketch-V, section 4.2; THEOREMS.md T3).
func (p *party) heightChances(sets []*Sketches) [][2]float64 {
	members := make([]float64, p.plan.clusters)
	for _, a := range p.labels {
		members[a]++
	}
	parties := p.plan.parties
	if p.plan.pairKeys {
		parties = 2
	}
	phantoms := p.plan.phantoms // of each sketch
	if p.job.Calibration == privacy.Proven {
		phantoms *= float64(powInt(p.plan.clusters, parties-1)) // of each cell
	}
	atMost := func(h int, n float64) float64 {
		if h <= 0 {
			return 0
		}
		return math.Exp(n * p.plan.distribution.logCDF[h])
	}
	var all [][2]float64
	for _, s := range sets {
		for i := range s.Keys {
			for a, height := range s.Row(i) {
				n, below := members[a]+phantoms, int(height)-1
				if height <= p.plan.floor {
					below = 0
				}
				all = append(all, [2]float64{atMost(below, n), atMost(int(height), n)})
			}
		}
	}
	return all
}

// reportChances are those of reports under local privacy: the truth comes first.
func (p *party) reportChances(f *frequency, reports []uint8) [][2]float64 {
	all := make([][2]float64, len(reports))
	truth := f.truth()
	for i, r := range reports {
		all[i] = [2]float64{truth, 1}
		if int(r) == f.value(p.index, i, int(p.labels[i])) {
			all[i] = [2]float64{0, truth}
		}
	}
	return all
}
