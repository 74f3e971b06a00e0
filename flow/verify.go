package flow

import (
	"fmt"

	"github.com/cohort-engine/cohort/kernels"
)

// Verify checks in one pass over the points that res is the optimal assignment of
// p: the labels have the sizes that res states and those are within bounds; the
// prices prove that no assignment is nearer; and no exchange of equal distance
// lowers the tie hash. The error names the first thing that is wrong.
func Verify(p *Problem, res *Result) error {
	if err := p.check(); err != nil {
		return err
	}
	n, k := p.Points.N, p.k()
	wrong := func(format string, a ...any) error {
		return fmt.Errorf("flow: verify: %s", fmt.Sprintf(format, a...))
	}
	if res == nil {
		return wrong("no result")
	}
	if len(res.Labels) != n || len(res.Units) != len(p.Weights) || len(res.Sizes) != k || len(res.Fillers) != k ||
		len(res.Prices) != k {
		return wrong("%d labels, %d sizes, %d fillers and %d prices for n=%d, k=%d",
			len(res.Labels), len(res.Sizes), len(res.Fillers), len(res.Prices), n, k)
	}
	v := newVerifier(p, res)
	if err := v.sizes(); err != nil {
		return wrong("%v", err)
	}
	extra := res.Extra
	for i := range n {
		own := 0
		for own < len(extra) && int(extra[own].Point) == i {
			own++
		}
		if err := v.point(i, extra[:own]); err != nil {
			return wrong("point %d: %v", i, err)
		}
		extra = extra[own:]
	}
	if len(extra) > 0 {
		return wrong("extra membership of point %d is out of order", extra[0].Point)
	}
	for j, size := range res.Sizes {
		if v.count[j] != size {
			return wrong("cluster %d has %d points, but its size is stated as %d", j, v.count[j], size)
		}
	}
	unassigned := 0
	if v.outside >= 0 {
		unassigned = v.count[v.outside]
	}
	if unassigned != res.Unassigned {
		return wrong("%d points are unassigned, but %d are stated", unassigned, res.Unassigned)
	}
	if v.improvable() {
		return wrong("an exchange of equal distance lowers the tie hash")
	}
	return nil
}

// verifier holds what Verify gathers. Columns are the clusters, "unassigned" and
// "escape"; the last two have price 0.
type verifier struct {
	p         *Problem
	res       *Result
	centroids *kernels.Centroids
	hash      *tieHash
	reach     int64

	outside, escape int   // columns, -1 if the problem has none
	lo, hi, count   []int // of columns: sizes that the prices allow, and units
	cost            []int64
	used, room      []int             // of a point
	moves           map[[2]int]weight // cheapest exchange of equal distance
}

func newVerifier(p *Problem, res *Result) *verifier {
	v := &verifier{p: p, res: res, centroids: kernels.NewCentroids(p.k(), p.Points.D), hash: newTieHash(p),
		reach: p.reach(), moves: make(map[[2]int]weight)}
	v.centroids.Set(p.Centroids)
	var columns int
	columns, v.outside, v.escape = p.columns(false)
	v.cost = make([]int64, columns)
	for _, x := range []*[]int{&v.lo, &v.hi, &v.count, &v.used, &v.room} {
		*x = make([]int, columns)
	}
	for j := p.k(); j < columns; j++ {
		v.hi[j] = int(p.total()) * p.exclusivity()
	}
	if v.outside >= 0 {
		v.cost[v.outside] = p.UnassignedCost()
	}
	return v
}

func (v *verifier) price(column int) int64 {
	if column < len(v.res.Prices) {
		return v.res.Prices[column]
	}
	return 0
}

// sizes checks those that are stated, and sets those that the prices of clusters allow.
func (v *verifier) sizes() error {
	soft, total := v.p.Penalty != nil, v.p.total()
	for j, size := range v.res.Sizes {
		f, price := v.res.Fillers[j], v.res.Prices[j]
		b := v.p.limit(j, total, v.p.Total)
		least, most := b.at(price)
		v.lo[j], v.hi[j] = int(least), int(most)
		switch {
		case !soft && (size < 0 || size > v.p.Hi[j] || size+f < v.p.Lo[j]):
			return fmt.Errorf("cluster %d has %d points and %d fillers, want %d to %d", j, size, f, v.p.Lo[j], v.p.Hi[j])
		case f != 0 && (soft || !v.p.Total || f != v.p.Lo[j]-size):
			return fmt.Errorf("cluster %d has %d fillers beside %d points, minimum %d", j, f, size, v.p.Lo[j])
		case size < v.lo[j] || size > v.hi[j]:
			return fmt.Errorf("cluster %d has %d points, but its price %d allows only %d to %d", j, size, price, least, most)
		case price < -b.under || price > b.over:
			return fmt.Errorf("cluster %d has price %d, but points missing and too many cost %d, %d", j, price, b.under, b.over)
		}
	}
	return nil
}

// point checks that point i uses its cheapest units, counts them, and records the
// exchanges of equal distance it allows.
func (v *verifier) point(i int, extra []Membership) error {
	p, k, e := v.p, v.p.k(), v.p.exclusivity()
	kernels.CostRows(p.Points, i, i+1, v.centroids, p.FractionBits, v.cost[:k])
	weight := int(p.weight(i))
	for j, cost := range v.cost {
		if v.used[j], v.room[j] = 0, weight; j < k && cost > v.reach {
			v.room[j] = 0
		}
	}
	if err := v.use(i, weight, e, extra); err != nil {
		return err
	}
	var d digest
	known := false
	for a, used := range v.used {
		if used > v.room[a] {
			return fmt.Errorf("cluster %d %d times, want at most %d", a, used, v.room[a])
		}
		if used == 0 {
			continue
		}
		v.count[a] += used
		for b, other := range v.used {
			if b == a || other >= v.room[b] {
				continue
			}
			switch gain := v.cost[a] + v.price(a) - v.cost[b] - v.price(b); {
			case gain > 0:
				return fmt.Errorf("in column %d at cost %d and price %d, but column %d is cheaper by %d", a, v.cost[a],
					v.price(a), b, gain)
			case gain == 0:
				if !known {
					d, known = v.hash.digest(p, i), true
				}
				w := v.words(d, b).minus(v.words(d, a))
				if old, ok := v.moves[[2]int{a, b}]; !ok || w.less(old) {
					v.moves[[2]int{a, b}] = w
				}
			}
		}
	}
	label := v.res.Labels[i]
	for _, m := range extra {
		if v.hash.nearer(p, i, int(m.Cluster), int(label)) {
			return fmt.Errorf("label %d is not its nearest cluster", label)
		}
	}
	return nil
}

// use counts in the columns that point i uses, and checks that they are as many as its weight allows.
func (v *verifier) use(i, weight, e int, extra []Membership) error {
	p, k := v.p, v.p.k()
	units := 0
	switch label := int(v.res.Labels[i]); {
	case label < k:
		units = 1
		if p.Weights != nil {
			units = int(v.res.Units[i])
		}
		v.used[label] += units
		for _, m := range extra {
			if int(m.Cluster) >= k || m.Units < 1 {
				return fmt.Errorf("%d times in cluster %d, want at least once in clusters 0 to %d", m.Units, m.Cluster, k-1)
			}
			v.used[m.Cluster] += int(m.Units)
			units += int(m.Units)
		}
	case label > k || v.outside < 0 || len(extra) > 0:
		return fmt.Errorf("label %d with %d more, want clusters 0 to %d", label, len(extra), k-1)
	}
	if units > e*weight {
		return fmt.Errorf("%d clusters, want at most %d", units, e*weight)
	}
	if left := weight - units; left > 0 {
		if v.outside < 0 {
			return fmt.Errorf("%d times in no cluster", left)
		}
		v.used[v.outside] += left
		units = weight
	}
	if v.escape >= 0 {
		v.room[v.escape] = weight * (e - 1)
		v.used[v.escape] = weight*e - units
	}
	return nil
}

func (v *verifier) words(d digest, column int) weight {
	if column >= v.p.k() {
		return weight{}
	}
	h0, h1 := v.hash.words(d, column)
	return weight{hash0: h0, hash1: h1}
}

// improvable looks for a cycle of exchanges that lowers the tie hash (Bellman and
// Ford); the last node is the super-sink, which sizes that the prices leave open reach.
func (v *verifier) improvable() bool {
	columns := len(v.cost)
	type step struct {
		from, to int
		weight   weight
	}
	var steps []step
	for m, w := range v.moves {
		steps = append(steps, step{m[0], m[1], w})
	}
	for j, size := range v.count {
		if size < v.hi[j] {
			steps = append(steps, step{from: j, to: columns})
		}
		if size > v.lo[j] {
			steps = append(steps, step{from: columns, to: j})
		}
	}
	distance := make([]weight, columns+1)
	for range columns + 2 {
		changed := false
		for _, s := range steps {
			if through := distance[s.from].plus(s.weight); through.less(distance[s.to]) {
				distance[s.to], changed = through, true
			}
		}
		if !changed {
			return false
		}
	}
	return true
}
