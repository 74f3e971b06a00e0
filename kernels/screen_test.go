package kernels

import (
	"math"
	"math/rand/v2"
	"testing"
)

// TestScreenNamesEveryNearerCandidate attacks the bound: points on and beside candidates, on grids from coarse to fine,
// with distances so far that equal those to the candidates or differ in the last bit, at tails of panels and tiles.
func TestScreenNamesEveryNearerCandidate(t *testing.T) {
	withPaths(t, func(t *testing.T) {
		rng := rand.New(rand.NewPCG(31, 1))
		for _, group := range filterGroups() {
			for round, fraction := range []int{4, 8, 13, 16, 20, 22, 16, 16} {
				n, d, q := 1+rng.IntN(100), 16+rng.IntN(90), 1+rng.IntN(13)
				points, rows := closeRows(rng, n, d, q, fraction)
				p := packed(points, n, d)
				if p.addFilter(group, inOrder); p.filter == nil || p.filter.chunk > 1 {
					continue
				}
				room := q + rng.IntN(20)
				s := newScreen(*p, room, inOrder)
				if s == nil {
					t.Fatalf("no screen for d=%d, %d to a word", d, group)
				}
				if room > q { // which fewer candidates leave where they were
					checkScreen(t, rng, s, p, gridRows(rng, room, d, fraction), room)
				}
				checkScreen(t, rng, s, p, rows, q)
				if round > 5 { // longer candidates than the limits were made for, then others again
					for i := range rows {
						rows[i] *= float32(1 - 2*(i&1))
						points[i%len(points)] = rows[i]
					}
					checkScreen(t, rng, s, p, rows, q)
				}
			}
		}
	})
}

// checkScreen compares the pairs of a screen with all pairs.
func checkScreen(t *testing.T, rng *rand.Rand, s *Screen, p *Panels, rows []float32, q int) {
	t.Helper()
	n, d := p.N, p.D
	fits, stale := s.Set(rows)
	if !fits || !stale && s.limits[0] == 0 {
		t.Fatalf("d=%d: fits %v, stale %v", d, fits, stale)
	}
	dots := NewPanels(n, q)
	projectPortable(p, NewMatrix(q, d, rows), dots)
	norms, squares, nearest := make([]float32, n), make([]float32, q), make([]float32, n)
	lengths := func(row []float32) (sum float32) {
		for _, x := range row {
			sum = fma32(x, x, sum)
		}
		return sum
	}
	for a := range squares {
		squares[a] = lengths(rows[a*d : (a+1)*d])
	}
	exact := func(i, a int) float32 { return dotSquare(dots, i, a, norms[i]+squares[a]) }
	for i := range norms {
		norms[i] = lengths(p.Point(i, make([]float32, d)))
		near := exact(i, rng.IntN(q))
		below, above := math.Nextafter32(near, 0), math.Nextafter32(near, 9e9)
		nearest[i] = [5]float32{near, below, above, 0, float32(math.Inf(1))}[rng.IntN(5)]
	}
	s.Limit(0, norms, nearest)
	room, first := new(ScreenRoom), n/2&^(Lanes-1)
	var pairs []ScreenPair
	take := func(pair ScreenPair) { pairs = append(pairs, pair) }
	s.Scan(0, first, norms[:first], room, take)
	s.Scan(first, n, norms[first:], room, take)
	named := make(map[[2]int32]bool)
	for _, pair := range pairs {
		named[[2]int32{pair.Point, pair.Candidate}] = true
		if x := exact(int(pair.Point), int(pair.Candidate)); x < pair.Least || x > pair.Most {
			t.Fatalf("d=%d: the squared distance %g is not between %g and %g", d, x, pair.Least, pair.Most)
		}
	}
	if len(named) != len(pairs) {
		t.Fatalf("d=%d: %d pairs, %d of them different", d, len(pairs), len(named))
	}
	for a := range q {
		var which []int32
		for i := range n {
			if !named[[2]int32{int32(i), int32(a)}] && exact(i, a) < nearest[i] {
				t.Fatalf("d=%d: point %d is %g from candidate %d, has %g, and is not named", d, i, exact(i, a), a, nearest[i])
			}
			if rng.IntN(3) > 0 {
				which = append(which, int32(i))
			}
		}
		products := make([]float32, n)
		s.Products(a, which, products)
		for i, at := range which {
			if want := dots.Data[(int(at)/Lanes*q+a)*Lanes+int(at)%Lanes]; products[i] != want {
				t.Fatalf("d=%d: the product of point %d is %g, want %g", d, at, products[i], want)
			}
		}
	}
}

// TestScreenLeavesFarCandidatesOut: candidates at some distance from what points have are told apart with 16 bits, and
// most are with 8.
func TestScreenLeavesFarCandidatesOut(t *testing.T) {
	withPaths(t, func(t *testing.T) {
		for _, group := range filterGroups() {
			const n, d, q = 320, 64, 8
			rng := rand.New(rand.NewPCG(31, 2))
			p, rows := packed(gridRows(rng, n, d, 16), n, d), gridRows(rng, q, d, 16)
			if p.addFilter(group, inOrder); p.filter == nil || p.filter.chunk > 1 {
				continue
			}
			s := newScreen(*p, q, inOrder)
			s.Set(rows)
			norms, nearest := make([]float32, n), make([]float32, n)
			for i := range norms {
				x := p.Point(i, make([]float32, d))
				norms[i] = float32(length(x) * length(x))
				least := math.Inf(1)
				for a := range q {
					sum := 0.0
					for j, y := range rows[a*d : (a+1)*d] {
						sum += float64(float64(x[j]-y) * float64(x[j]-y))
					}
					least = min(least, sum)
				}
				nearest[i] = float32(least * 0.98)
			}
			s.Limit(0, norms, nearest)
			pairs := 0
			s.Scan(0, n, norms, new(ScreenRoom), func(ScreenPair) { pairs++ })
			if most := map[bool]int{false: n * q / 4, true: 0}[group == 2]; pairs > most {
				t.Errorf("%d to a word: %d pairs of %d points, want at most %d", group, pairs, n, most)
			}
		}
	})
}
