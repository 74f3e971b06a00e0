package kernels

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// Gathered points are those that were named, and have the labels that they have where
// they come from, by their integer forms too: from a view that does not begin at the
// first panel, into panels that held other points before.
func TestGather(t *testing.T) {
	withPaths(t, func(t *testing.T) {
		rng := rand.New(rand.NewPCG(3, 9))
		for _, group := range append([]int{0}, filterGroups()...) {
			for _, shape := range [][3]int{{200, 16, 7}, {333, 33, 65}, {170, 64, 130}} {
				n, d, k := shape[0], shape[1], shape[2]
				points, rows := closeRows(rng, n, d, k, 16)
				all, c := packed(points, n, d), NewCentroids(k, d)
				if group > 0 {
					filtered(t, group, all, c, rows)
				}
				c.Set(rows)
				view := all.Slice(32, n)
				labels, got := make([]uint16, view.N), make([]uint16, view.N)
				assignPortable(&view, c, labels, nil, nil)
				dst := NewPanels(100, d)
				for _, count := range []int{100, 1, 16, 0, 37} {
					which := make([]int32, count)
					for i := range which {
						which[i] = int32(rng.IntN(view.N))
					}
					some := Gather(dst, &view, which)
					if some.N != count || some.Filters() != (group > 0) || group > 0 && some.filter.group != group {
						t.Fatalf("%d points with %s, want %d with %d to a word", some.N, some.FilterProducts(k), count, group)
					}
					Assign(some, c, got[:count], nil)
					for i, at := range which {
						if !slices.Equal(some.Point(i, nil), view.Point(int(at), nil)) || got[i] != labels[at] {
							t.Fatalf("group %d, %v: point %d is not point %d, or its label %d not %d", group, shape, i, at, got[i],
								labels[at])
						}
					}
				}
			}
		}
	})
}
