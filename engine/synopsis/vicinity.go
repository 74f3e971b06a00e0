package synopsis

import (
	"math"
	"slices"

	"github.com/cohort-engine/cohort/kernels"
)

// vicinity is what a state of the search knows of its clusters, so that states with
// few other centres can leave most points alone: by the triangle inequality, a point
// at most r from its centre does not go to a centre at least 2r from that one.
type vicinity struct {
	members []int32   // the points, cluster by cluster
	begin   []int32   // [k+1], where each cluster's begin
	radius  []float64 // [k], at least the distance of each member from the centre
	moved   []int32   // centres of another state that differ
	points  *kernels.Panels
	labels  []uint16
	dist    []float32
	found   []int32 // points to assign again
}

func (s *descent) newVicinity() *vicinity {
	most := s.n / 2 // more points are better assigned all together
	return &vicinity{members: make([]int32, s.n), begin: make([]int32, s.k+1), radius: make([]float64, s.k),
		points: kernels.NewPanels(most, s.d), labels: make([]uint16, most), dist: make([]float32, most)}
}

// settle prepares a state for swaps: the second nearest distances, and the vicinity.
func (s *descent) settle() {
	s.assign(true)
	if s.near == nil {
		s.near = s.newVicinity()
	}
	s.near.take(s)
}

// slack bounds by how much a squared distance, or the difference of two that are
// compared, may be off: distances are chains of d rounded terms with a relative error
// below (d+3) 2^-24, and from 16 dimensions on they are products, off by that of
// squared lengths of points and centres, which are at most d each.
func (s *descent) slack() float64 { return math.Ldexp(float64(4*s.d*(s.d+8)), -22) }

// take makes v that of s.
func (v *vicinity) take(s *descent) {
	clear(v.begin)
	clear(v.radius)
	for i, j := range s.labels {
		v.begin[j+1]++
		v.radius[j] = max(v.radius[j], float64(s.dist[i]))
	}
	for j := range s.k {
		v.begin[j+1] += v.begin[j]
		v.radius[j] = math.Sqrt(v.radius[j] + s.slack())
	}
	at := slices.Clone(v.begin)
	for i, j := range s.labels {
		v.members[at[j]] = int32(i)
		at[j]++
	}
}

// affected lists, in v.found, the members of clusters of s that the centres of t may
// have changed: those whose own centre differs, and those with a centre that differs
// near. It reports false where they are too many.
func (v *vicinity) affected(s, t *descent) bool {
	d := s.d
	v.moved, v.found = v.moved[:0], v.found[:0]
	for j := range s.k {
		if !slices.Equal(s.centers[j*d:(j+1)*d], t.centers[j*d:(j+1)*d]) {
			v.moved = append(v.moved, int32(j))
		}
	}
	slack := s.slack()
	for j := range s.k {
		near := false
		for _, b := range v.moved {
			if near = int(b) == j; near {
				break
			}
			sum := 0.0
			for h := range d {
				x := float64(s.centers[j*d+h]) - float64(t.centers[int(b)*d+h])
				sum += float64(x * x)
			}
			// A member is at least gap - radius from b: its squares differ by at least
			// gap (gap - 2 radius).
			if gap := math.Sqrt(sum); float64(gap*(gap-2*v.radius[j])) <= slack {
				near = true
				break
			}
		}
		if !near {
			continue
		}
		members := v.members[v.begin[j]:v.begin[j+1]]
		if len(v.found)+len(members) > v.points.N {
			return false
		}
		v.found = append(v.found, members...)
	}
	return true
}

// assignFrom is assign(false) of centres of which most are those of s: only points
// that they may have changed are looked at. The result is the same, bit for bit.
func (t *descent) assignFrom(s *descent) {
	v := s.near
	if !v.affected(s, t) {
		t.assign(false)
		return
	}
	t.prepared.Set(t.centers)
	copy(t.labels, s.labels)
	copy(t.dist, s.dist)
	panel := kernels.Lanes * s.d
	for at, i := range v.found {
		to := v.points.Data[at/kernels.Lanes*panel+at%kernels.Lanes:]
		from := s.panels.Data[int(i)/kernels.Lanes*panel+int(i)%kernels.Lanes:]
		for h := 0; h < panel; h += kernels.Lanes {
			to[h] = from[h]
		}
	}
	n := len(v.found)
	kernels.Assign(v.points.Slice(0, n), t.prepared, v.labels[:n], v.dist[:n])
	for at, i := range v.found {
		t.labels[i], t.dist[i] = v.labels[at], v.dist[at]
	}
	t.acc.Reset()
	kernels.AccumulateWeighted(s.weighted, t.labels, t.dist, t.acc)
	t.loss = t.acc.Cost
}
