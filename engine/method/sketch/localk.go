package sketch

import (
	"fmt"
	"math"
	"slices"
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
	// pair's cell, the grid of two of them has at most one per 60. Where three parties and more have a grid too large
	// for the joint likelihood, the noise of a pair's cell decides, from 2 upward (see chooseForPairs), or the grid is
	// made smaller (see chooseForMany).
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

// autoLocalK is RuleAuto. records is the public number of records.
func autoLocalK(k, parties, records int) int {
	best := max(k, 2)
	for c := best + 1; c <= 3*k; c++ {
		if math.Pow(float64(c), float64(parties)) > float64(records)/15 {
			break
		}
		best = c
	}
	return best
}

// A cell of a pair of parties is to hold clearCell times its noise on average, half of that where a party has more than
// narrowColumns, on which few local clusters say too little; or each of at most fewClusters clusters, for which the
// parties then have a local cluster each, clearCluster times.
const (
	clearCell, clearCluster = 3, 1
	fewClusters             = 6
	narrowColumns           = 2
	// Up to mostJoint narrow parties have a joint grid of at most one cell per jointCell records.
	mostJoint, jointCell = 4, 8
)

// narrow reports whether no party has more than narrowColumns.
func (j *Job) narrow() bool {
	return !slices.ContainsFunc(j.Columns, func(columns []int) bool { return len(columns) > narrowColumns })
}

// chooseForMany is RuleAuto where three parties and more would have a grid of k clusters that is too large for the
// joint likelihood. On one or two columns a handful of local clusters says nearly all, so few narrow parties get the
// most whose grid it can take; others get keys for each pair. All that decides is public.
func (p *plan) chooseForMany(j *Job) error {
	if p.parties > mostJoint || !j.narrow() {
		return p.chooseForPairs(j)
	}
	p.clusters = 2
	for c := 3; c < j.K; c++ {
		if cells, ok := product(c, p.parties, maxJoint); ok && jointCell*cells <= j.PublicRecords() {
			p.clusters = c
		}
	}
	p.clusters = min(p.clusters, j.PublicRecords())
	return nil
}

// chooseForPairs is RuleAuto where each pair of parties has keys of its own and a mixture is fitted to the tables
// of pairs: the most local clusters whose cells stand above the noise, from 2 upward. Of many keys, the weight of a
// pair's cell has the deviation a sqrt(2 k') (see enoughSketches).
func (p *plan) chooseForPairs(j *Job) error {
	mu, err := privacy.DiscreteMu(j.Budget, 0)
	if err != nil {
		return fault.Request("budget", err.Error(), "")
	}
	p.chooseShare(j, mu)
	p.pairKeys = true
	n, best, clear := float64(j.PublicRecords()), 2, float64(clearCell)
	if !j.narrow() {
		clear /= 2
	}
	for c := 2; c <= min(3*j.K, maxMask); c++ {
		p.clusters = c
		cells := float64(c * c)
		noise := p.phantomsAKey(mu*math.Sqrt(p.share)) * math.Sqrt(float64(2*c))
		if n/cells >= clear*noise || c == j.K && c <= fewClusters && n/float64(c) >= clearCluster*noise {
			best = c
		}
	}
	p.clusters = min(best, int(n))
	return nil
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
