package sketch

import (
	"context"
	"math"

	"github.com/cohort-engine/cohort/engine/synopsis"
)

// View is what the server holds of a set of parties whose sketches share their
// keys. It carries no secret: everything in it was released or is public.
type View struct {
	Distribution *Geometric
	// Sketches has one entry per party, all of one shape.
	Sketches []*Sketches
	// Phantoms is the number of phantoms: per grid cell of these parties if
	// Shared, else per party and cluster.
	Phantoms float64
	// Shared says that phantoms belong to grid cells and are hashed alike by
	// all parties (THEOREMS.md T3, the fix), not drawn by each party for each
	// of its clusters (Sketch-V, Algorithm 3).
	Shared bool
	// Floor is alpha_min, the height below which no sketch goes; 0 for none.
	Floor uint16
}

func (v *View) parties() int  { return len(v.Sketches) }
func (v *View) clusters() int { return v.Sketches[0].Clusters }
func (v *View) keys() int     { return v.Sketches[0].Keys }

// inSketch is the number of phantoms in one sketch.
func (v *View) inSketch() float64 {
	if !v.Shared {
		return v.Phantoms
	}
	return v.Phantoms * math.Pow(float64(v.clusters()), float64(v.parties()-1))
}

// inUnion is the number of phantoms in the union of the complements of a
// cell's clusters.
func (v *View) inUnion() float64 {
	k, s := float64(v.clusters()), float64(v.parties())
	if !v.Shared {
		return v.Phantoms * s * (k - 1)
	}
	return v.Phantoms * (math.Pow(k, s) - 1)
}

// inCell is the number of phantoms that all sketches of a cell share.
func (v *View) inCell() float64 {
	if v.Shared {
		return v.Phantoms
	}
	return 0
}

// Release is everything the server gets in the sketch protocols besides the
// local centres: sketches under one set of keys for all parties, or under one
// set for each pair of parties, and the sizes.
type Release struct {
	Parties, Clusters int
	// Joint has the sketches of all parties under shared keys; nil if each pair
	// of parties has keys of its own.
	Joint *View
	// Pairs has a view for each pair in the order (0,1), (0,2), ..., (1,2), ...;
	// nil if Joint is set.
	Pairs []*View
	// Records is the estimate of the number of records.
	Records float64
	// Margins are the noisy sizes of the local clusters, by party, scaled to
	// Records; nil if they were not released.
	Margins [][]float64
	// SizeVariance is the variance of a released size's noise; 0 has the margins kept to exactly.
	SizeVariance float64
	// Mixture says that a mixture stands for the weights of the grid whatever its size. It has at most so many Classes.
	Mixture bool
	Classes int

	// refit says that a mixture is fitted to the joint likelihood.
	refit bool
	// search finds clusters of a grid's cells, which are tuples of the parties' centers of their columns; nil where
	// these are not at hand.
	search  func(ctx context.Context, g *Grid, starts int) (*synopsis.Solution, error)
	centers [][]float32
	columns [][]int
	// doubts are about what has been estimated from the release.
	doubts []string
}

// pairIndex numbers the pairs l1 < l2 of parties.
func pairIndex(parties, l1, l2 int) int {
	return l1*parties - l1*(l1+1)/2 + l2 - l1 - 1
}

// pair returns the view of parties l1 < l2.
func (r *Release) pair(l1, l2 int) *View {
	if r.Joint == nil {
		return r.Pairs[pairIndex(r.Parties, l1, l2)]
	}
	v := *r.Joint
	v.Sketches = []*Sketches{r.Joint.Sketches[l1], r.Joint.Sketches[l2]}
	if v.Shared {
		v.Phantoms *= math.Pow(float64(r.Clusters), float64(r.Parties-2))
	}
	return &v
}

// single returns a sketch set of party l, to estimate the sizes of its clusters.
func (r *Release) single(l int) (*View, *Sketches) {
	if r.Joint != nil {
		return r.Joint, r.Joint.Sketches[l]
	}
	if l == 0 {
		v := r.pair(0, 1)
		return v, v.Sketches[0]
	}
	v := r.pair(0, l)
	return v, v.Sketches[1]
}
