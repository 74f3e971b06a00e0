package vertical

import (
	"encoding/binary"
	"math"

	"github.com/cohort-engine/cohort/engine/fault"
	"github.com/cohort-engine/cohort/engine/privacy"
	"github.com/cohort-engine/cohort/kernels"
)

// WorstCase is the pair of data sets on which the sketches give most away: no
// record, and one record, which every party puts into its cluster 0
// (THEOREMS.md, T3: any other id would be post-processing). It makes the sketches
// as a run does, with the phantoms of a job's calibration, but for any number
// of keys and clusters, so that an audit can look for failures of small
// probability in many short trials. It serves one goroutine at a time.
type WorstCase struct {
	Calibration privacy.Calibration
	// Budget is that of the sketches of all parties together.
	Budget                      privacy.Budget
	Parties, Clusters, Sketches int
	Gamma                       float64

	plan *plan
	// Scratch, and the digests of the record and of each party's phantoms.
	keys, record   []Digest
	phantoms       [][]Digest
	offsets        []int
	minima, hashes []uint64
}

// NewWorstCase calibrates the phantoms: under claimed each party's sketches get
// (Epsilon/Parties, Delta/Parties), as Theorem 4 of Sketch-V adds them up; under
// proven the joint release gets the whole budget.
func NewWorstCase(c WorstCase) (*WorstCase, error) {
	if c.Parties < 2 || c.Clusters < 2 || c.Sketches < 1 {
		return nil, fault.Request("worst case", "needs at least 2 parties, 2 clusters and 1 sketch", "")
	}
	law, err := NewGeometric(c.Gamma)
	if err != nil {
		return nil, err
	}
	s := float64(c.Parties)
	c.plan = &plan{parties: c.Parties, clusters: c.Clusters, law: law, delta2: c.Budget.Delta / s, eps2: c.Budget.Epsilon / s}
	keys := (c.Sketches + 1) / 2
	c.keys, c.offsets = make([]Digest, keys), make([]int, c.Clusters+1)
	c.minima, c.hashes = make([]uint64, 2*keys*c.Clusters), make([]uint64, 2*keys)
	h := newHasher(Secret{})
	c.record = []Digest{h.digest(domainRecord, []byte("the record"))}
	if c.Calibration == privacy.Claimed {
		return &c, c.plan.calibrateClaimed(&Job{Sketches: c.Sketches, Gamma: c.Gamma})
	}
	cells, ok := product(c.Clusters, c.Parties, maxDense)
	if !ok {
		return nil, gridTooLarge(c.Parties, c.Clusters, maxDense)
	}
	for l := range c.Parties {
		digests := make([]Digest, cells)
		h.phantoms(0, c.Clusters, powInt(c.Clusters, c.Parties-1-l), 0, cells/c.Clusters, digests, c.offsets)
		c.phantoms = append(c.phantoms, digests)
	}
	n, err := privacy.FMPhantoms(c.Budget, privacy.FM{Gamma: c.Gamma, Parties: c.Parties, Cells: c.Clusters}, c.Sketches)
	c.plan.phantoms = float64(n)
	return &c, err
}

// Phantoms is n_p per sketch or n_c per cell, and Floor is alpha_min.
func (c *WorstCase) Phantoms() (count float64, floor uint16) { return c.plan.phantoms, c.plan.floor }

// Draw returns the sketches of every party, without the record or with it. All
// randomness, the keys too, comes from st; draws one after the other are
// independent.
func (c *WorstCase) Draw(st *privacy.Stream, present bool) []*Sketches {
	for i := range c.keys {
		binary.LittleEndian.PutUint64(c.keys[i][:], st.Uint64())
		binary.LittleEndian.PutUint64(c.keys[i][8:], st.Uint64())
	}
	all := make([]*Sketches, c.Parties)
	for l := range all {
		if c.Calibration == privacy.Claimed {
			fillHashes(c.minima, math.MaxUint64)
			addOwnPhantoms(c.minima, st, c.plan.phantoms)
		} else {
			kernels.MinHash(c.keys, c.phantoms[l], c.offsets, c.minima)
			for i, v := range c.minima {
				c.minima[i] = phantomHash(v, c.plan.phantoms)
			}
		}
		if present {
			kernels.MinHash(c.keys, c.record, []int{0, 1}, c.hashes)
			for i, x := range c.hashes {
				at := &c.minima[i*c.Clusters]
				*at = min(*at, x)
			}
		}
		all[l] = heights(c.plan.law, c.minima, c.Sketches, c.Clusters, c.plan.floor)
	}
	return all
}

// EqualHeight is the statistic that tells the pair apart when parties share
// keys but not phantoms: the largest height at which the parties' sketches of
// cluster 0 agree, 0 if they never do. The number of agreements says nothing;
// their height does.
func EqualHeight(sketches []*Sketches) uint16 {
	best := uint16(0)
	for i := range sketches[0].Keys {
		h := sketches[0].Row(i)[0]
		for _, s := range sketches[1:] {
			if s.Row(i)[0] != h {
				h = 0
			}
		}
		best = max(best, h)
	}
	return best
}

// addOwnPhantoms lets a party add its own phantoms to each of its sketches.
func addOwnPhantoms(minima []uint64, st *privacy.Stream, count float64) {
	for i, x := range minima {
		minima[i] = min(x, phantomHash(st.Uint64(), count))
	}
}
