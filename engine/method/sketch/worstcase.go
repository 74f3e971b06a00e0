package sketch

import (
	"encoding/binary"
	"math"

	"github.com/cohort-engine/cohort/engine/privacy"
	"github.com/cohort-engine/cohort/internal/fault"
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
	// Scratch, the digests of the record and, by party, of the cells of the
	// cluster that has it and of the other clusters.
	encoder *Encoder
	record  []Digest
	cells   [][][]Digest
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
	c.encoder = newEncoder(Secret{}, arrivalKeys{}, c.Sketches, c.Clusters)
	c.record = []Digest{c.encoder.hash.record([]byte("record"))}
	if c.Calibration == privacy.Claimed {
		return &c, c.plan.calibrateClaimed(&Job{Sketches: c.Sketches, Gamma: c.Gamma})
	}
	cells, ok := product(c.Clusters, c.Parties, maxDense)
	if !ok {
		return nil, gridTooLarge(c.Parties, c.Clusters, maxDense)
	}
	for l := range c.Parties {
		byCluster := make([][]Digest, c.Clusters)
		for a := range byCluster {
			byCluster[a] = make([]Digest, cells/c.Clusters)
			phantomDigests(c.Clusters, c.Parties, l, a, 0, byCluster[a])
		}
		c.cells = append(c.cells, byCluster)
	}
	n, err := privacy.FMPhantomsPLD(c.Budget, privacy.FM{Gamma: c.Gamma, Parties: c.Parties, Cells: c.Clusters}, c.Sketches)
	c.plan.phantoms = float64(n)
	return &c, err
}

// Phantoms is n_p per sketch or n_c per cell, and Floor is alpha_min.
func (c *WorstCase) Phantoms() (count float64, floor uint16) { return c.plan.phantoms, c.plan.floor }

// Draw returns the sketches of every party, without the record or with it. All
// randomness, the keys too, comes from st; draws one after the other are
// independent.
func (c *WorstCase) Draw(st *privacy.Stream, present bool) []*Sketches {
	e := c.encoder
	var key Digest
	for _, k := range []**kernels.ArrivalKey{&e.records, &e.phantoms} {
		binary.LittleEndian.PutUint64(key[:], st.Uint64())
		binary.LittleEndian.PutUint64(key[8:], st.Uint64())
		*k = kernels.NewArrivalKey(key)
	}
	all := make([]*Sketches, c.Parties)
	for l := range all {
		for a, registers := range e.registers {
			fill(registers, math.Inf(1))
			e.bound[a], e.rate[a] = math.Inf(1), 0
		}
		if c.Calibration == privacy.Claimed {
			e.addOwnPhantoms(st, c.plan.phantoms)
			for a, registers := range e.registers {
				e.bound[a] = latest(registers)
			}
		} else {
			for a, cells := range c.cells[l] {
				e.lower(a, e.phantoms, cells, c.plan.phantoms)
			}
		}
		if present {
			e.lower(0, e.records, c.record, 1)
		}
		all[l] = e.Sketches(c.plan.law, c.plan.floor)
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
