package sketch

import (
	"fmt"
	"math"
	"strconv"

	"github.com/cohort-engine/cohort/engine/privacy"
	"github.com/cohort-engine/cohort/internal/fault"
)

// LocalK says how many local clusters each party makes: N if positive, else by
// Rule.
type LocalK struct {
	N    int
	Rule Rule
}

// Rule is a rule for the number of local clusters.
type Rule string

const (
	// RuleAuto takes the largest k' <= 3k whose grid has at most one cell per 15
	// records, and never less than k. It is the default. Where the parties see the result, whose noise is that of a
	// pair's cell, the grid of two of them has at most one per 60. Where the grid of k local clusters of three parties
	// and more has more, or is too large for the joint likelihood, the noise of a pair's cell decides, from 2 upward
	// (see chooseForPairs), or the grid is made smaller (see chooseForMany).
	RuleAuto Rule = "auto"
	// RulePaper is that of Sketch-V, section 5.2.
	RulePaper Rule = "paper"
)

// parseLocalK reads the value of --local-k: a number, "auto" or "paper".
func parseLocalK(s string) (LocalK, error) {
	switch Rule(s) {
	case "", RuleAuto:
		return LocalK{Rule: RuleAuto}, nil
	case RulePaper:
		return LocalK{Rule: RulePaper}, nil
	}
	n, err := strconv.Atoi(s)
	if err != nil || n < 2 {
		return LocalK{}, fault.Request("local-k", fmt.Sprintf("is %q, must be auto, paper or a number of at least 2", s), "")
	}
	return LocalK{N: n}, nil
}

// recordsACell is the least number of records for each cell of a grid that is not fitted to.
const recordsACell = 15

// autoLocalK is RuleAuto. records is the public number of records.
func autoLocalK(k, parties, records int) int {
	best := max(k, 2)
	for c := best + 1; c <= 3*k; c++ {
		if math.Pow(float64(c), float64(parties)) > float64(records)/recordsACell {
			break
		}
		best = c
	}
	return best
}

// A cell of a pair of parties is to hold clearCells times its noise on average, by the most columns of a party, the
// last for more: on many columns few local clusters say too little. As much as its noise is enough as long as a pair
// has fewer cells than there are clusters; and at most fewClusters clusters have a local cluster each where that holds
// clearCluster times the noise.
var clearCells = [...]float64{4.5, 2.8, 1.5, 0.75}

const (
	clearCluster = 3
	fewClusters  = 6
	// Up to mostJoint parties with at most narrowColumns have a joint grid of at most one cell per jointCell records;
	// others, whose keys would be for pairs, have keys for all where a grid has at most one per sparseCell.
	mostJoint, narrowColumns = 4, 2
	jointCell, sparseCell    = 3, 8
	// Parties with a column each have one of at most singleCells cells per two records where a cluster stands less than
	// clearPair times above the noise of a pair's cell, of few clusters clearFew times.
	singleCells, clearPair, clearFew = 3, 70, 18
)

// widest is the most columns of a party.
func (j *Job) widest() int {
	most := 0
	for _, columns := range j.Columns {
		most = max(most, len(columns))
	}
	return most
}

// chooseForMany is RuleAuto where three parties and more would have a grid of k clusters that is too large for the
// joint likelihood or for the records. On one or two columns a handful of local clusters says nearly all, so few
// narrow parties get the most whose grid it can take; so do more with a column each where noise hides much of the
// tables of pairs. Others get keys for each pair. All that decides is public.
func (p *plan) chooseForMany(j *Job) error {
	n := j.PublicRecords()
	if p.parties <= mostJoint && j.widest() <= narrowColumns {
		p.clusters = min(j.mostJoint(p.parties, n/jointCell), n)
		return nil
	}
	noise, err := p.chooseForPairs(j)
	if err != nil {
		return err
	}
	_, small := product(2, p.parties, maxJoint)
	clear := noise * clearPair
	if j.K <= fewClusters {
		clear = noise * clearFew
	}
	if small && j.widest() == 1 && float64(n) < clear*float64(j.K) {
		p.pairKeys, p.clusters = false, min(j.mostJoint(p.parties, singleCells*n/2), n)
	}
	return nil
}

// mostJoint is the most local clusters below k, and at least 2, whose joint grid has at most so many cells and is not
// too large.
func (j *Job) mostJoint(parties, most int) int {
	best := 2
	for c := 3; c < j.K; c++ {
		if cells, ok := product(c, parties, maxJoint); ok && cells <= most {
			best = c
		}
	}
	return best
}

// chooseForPairs is RuleAuto where each pair of parties has keys of its own and a mixture is fitted to the tables
// of pairs: the most local clusters whose cells stand above the noise, from 2 upward. Of many keys, the weight of a
// pair's cell has the deviation a sqrt(2 k') (see enoughSketches), which is returned.
func (p *plan) chooseForPairs(j *Job) (noise float64, err error) {
	mu, err := privacy.DiscreteMu(j.Budget, 0)
	if err != nil {
		return 0, fault.Request("budget", err.Error(), "")
	}
	p.pairKeys = true
	p.chooseShare(j, mu)
	deviation := func() float64 { // with p.clusters
		return p.phantomsAKey(mu*math.Sqrt(p.share)) * math.Sqrt(float64(2*p.clusters))
	}
	n, best, usual := float64(j.PublicRecords()), 2, clearCells[min(j.widest(), len(clearCells))-1]
	for c := 2; c <= min(3*j.K, maxMask); c++ {
		p.clusters = c
		clear, noise := usual, deviation()
		if (c-1)*(c-1) < j.K {
			clear = 1
		}
		if n/float64(c*c) >= clear*noise || c == j.K && c <= fewClusters && n/float64(c) >= clearCluster*noise {
			best = c
		}
	}
	p.clusters = min(best, int(n))
	return deviation(), nil
}

// paperLocalK is RulePaper: k' = max(k0, ceil(k^(1/S))), with k0 the smallest
// integer for which 2 sigma >= n/k0^2, where
//
//	sigma = rho (n - n/k0^2)/sqrt(M) + 8 rho (k0-1) sqrt(ln 1/delta)/eps_2,  rho = 0.649.
func paperLocalK(k, parties, records, sketches int, eps2, delta float64) int {
	const rho = 0.649
	n := float64(records)
	k0 := 1.0
	for {
		cell := n / (k0 * k0)
		sigma := rho*(n-cell)/math.Sqrt(float64(sketches)) + 8*rho*(k0-1)*math.Sqrt(math.Log(1/delta))/eps2
		if 2*sigma >= cell {
			break
		}
		k0++
	}
	root := math.Ceil(math.Pow(float64(k), 1/float64(parties)) - 1e-9)
	return max(int(k0), int(root), 2)
}
