package seeding

import "math"

// Pick is a candidate: the record of a party at which its running sum of potentials, or
// of weights, first exceeds At.
type Pick struct {
	Party    int
	At       float64
	ByWeight bool
}

// Picked returns the record that a pick of this party names.
func (p *Part) Picked(k Pick) []float32 {
	which := p.atWeight
	if !k.ByWeight {
		which = p.find
	}
	return p.recordAt(which(k.At), nil)
}

// Picks names the candidates of a step by the potentials of the parties: as many as
// trials or, where all potentials are 0, as they are before the first centre and where
// there are fewer distinct records than centres, one by their weights.
func Picks(potentials, weights []float64, whole bool, trials int, uniform func() float64) []Pick {
	total := Sum(potentials)
	if total == 0 {
		return []Pick{AnyRecord(weights, whole, uniform())}
	}
	picks := make([]Pick, trials)
	for a := range picks {
		picks[a] = Locate(potentials, float64(uniform()*total))
	}
	return picks
}

// AnyRecord names the record at a share u of the weights of all parties. whole says that
// all records weigh 1, so that weights count them.
func AnyRecord(weights []float64, whole bool, u float64) Pick {
	n := Sum(weights)
	at := float64(n * u)
	if whole {
		at = min(math.Floor(at), n-1)
	}
	p := Locate(weights, at)
	p.ByWeight = true
	return p
}

// Locate finds the party at which the running sum of potentials first exceeds x.
func Locate(potentials []float64, x float64) Pick {
	whose := 0
	for q, share := range potentials {
		if share == 0 {
			continue
		}
		whose = q
		if x < share {
			break
		}
		x -= share
	}
	return Pick{Party: whose, At: x}
}

// Best is the candidate that leaves the least, the first of several, and what it leaves
// to each party becomes the party's potential. left has a row for each party.
func Best(left, potentials []float64) int {
	candidates := len(left) / len(potentials)
	sums := make([]float64, candidates)
	for i, x := range left {
		sums[i%candidates] += x
	}
	least := 0
	for a, x := range sums {
		if x < sums[least] {
			least = a
		}
	}
	for q := range potentials {
		potentials[q] = left[q*candidates+least]
	}
	return least
}

// Sum adds numbers up in their order.
func Sum(x []float64) float64 {
	s := 0.0
	for _, v := range x {
		s += v
	}
	return s
}
