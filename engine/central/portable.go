package central

import (
	"math"

	"github.com/cohort-engine/cohort/internal/elementary"
)

// Powers and logarithms that decide shares of a budget must have the same bits
// on every architecture, which the math package does not promise.

// pow is x^y for x > 0.
func pow(x, y float64) float64 { return elementary.Exp(float64(y * elementary.Log(x))) }

// log2 is the binary logarithm.
func log2(x float64) float64 { return elementary.Log(x) / math.Ln2 }

// coarse drops the last 20 of the 52 bits of x > 0, in which libraries differ.
func coarse(x float64) float64 {
	return math.Float64frombits(math.Float64bits(x) &^ (1<<20 - 1))
}
