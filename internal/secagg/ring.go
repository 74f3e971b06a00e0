package secagg

import (
	"fmt"
	"math"

	"github.com/cohort-engine/cohort/internal/fault"
)

// Ring is the set of residues that sums are taken in.
type Ring uint8

const (
	// Ring64 is Z_2^64, the default.
	Ring64 Ring = iota
	// Ring32 is Z_2^32: half the bytes, and sums of at most 2^15 records at 16
	// fraction bits.
	Ring32
)

// ParseRing returns the ring with a number of bits, 64 or 32.
func ParseRing(bits int) (Ring, error) {
	switch bits {
	case 64:
		return Ring64, nil
	case 32:
		return Ring32, nil
	}
	return 0, fault.Range("ring bits", bits, "64 or 32")
}

// Bits returns 64 or 32.
func (r Ring) Bits() int {
	if r == Ring32 {
		return 32
	}
	return 64
}

// Bytes returns the bytes of one encoded element.
func (r Ring) Bytes() int { return r.Bits() / 8 }

// String returns "Z_2^64" or "Z_2^32".
func (r Ring) String() string { return fmt.Sprintf("Z_2^%d", r.Bits()) }

// signed reads a residue as the number of smallest magnitude.
func (r Ring) signed(w uint64) int64 {
	if r == Ring32 {
		return int64(int32(uint32(w)))
	}
	return int64(w)
}

// Capacity states what a sum may reach, in grid units, so that it can be
// checked before the run and put into the ledger (THEOREMS.md T6): Records times
// PerRecord plus Noise has to stay below half the ring.
type Capacity struct {
	Ring      Ring
	Records   int     // records of all clients together
	PerRecord float64 // largest magnitude that one record adds to one coordinate
	Noise     float64 // magnitude that the noise of one coordinate exceeds with negligible probability
}

// total returns the largest magnitude of a sum.
func (c Capacity) total() float64 { return float64(c.Records)*c.PerRecord + c.Noise }

// Check returns a wrong request if the sum may overflow.
func (c Capacity) Check() error {
	if total := c.total(); !(total < math.Ldexp(1, c.Ring.Bits()-1)) {
		do := "use fewer fraction bits or a larger budget"
		if c.Ring == Ring32 {
			do = "use the 64-bit ring, fewer fraction bits or a larger budget"
		}
		return fault.Request("ring "+c.Ring.String(), c.text("is not below")+", so it could overflow", do)
	}
	return nil
}

// String states the check in words, for the ledger.
func (c Capacity) String() string { return "ring " + c.Ring.String() + ": " + c.text("is below") }

func (c Capacity) text(relation string) string {
	return fmt.Sprintf("|sum| <= %d x %.6g + noise %.6g = %.6g %s 2^%d", c.Records, c.PerRecord, c.Noise, c.total(),
		relation, c.Ring.Bits()-1)
}
