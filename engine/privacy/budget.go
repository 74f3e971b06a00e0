package privacy

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/cohort-engine/cohort/internal/elementary"
)

// ErrRange is wrapped by every error that rejects a parameter for its value.
var ErrRange = errors.New("out of range")

// Budget is what a run may spend: (Epsilon, Delta)-differential privacy for the whole run.
// Delta = 0 asks for a pure guarantee.
type Budget struct {
	Epsilon float64 `json:"epsilon"`
	Delta   float64 `json:"delta"`
}

// Validate refuses an Epsilon that is not positive and finite and a Delta outside [0, 1).
func (b Budget) Validate() error {
	if !(b.Epsilon > 0) || math.IsInf(b.Epsilon, 1) {
		return fmt.Errorf("epsilon is %v: %w: must be positive and finite", b.Epsilon, ErrRange)
	}
	if !(b.Delta >= 0 && b.Delta < 1) {
		return fmt.Errorf("delta is %v: %w: must be in [0, 1)", b.Delta, ErrRange)
	}
	return nil
}

// Less is the budget without what a run spends on failures of probability failure in all, and on total variation
// distances of distance in all, whatever the accountant: failure + (1+e^Epsilon) distance (T7 vi). Its Delta may be
// negative.
func (b Budget) Less(failure, distance float64) Budget {
	b.Delta -= failure + slackDelta(b.Epsilon, distance)
	return b
}

// DefaultDelta is 1/(n ln n), the delta used when none is given. It is 0.5 for n < 3, where the
// formula has no meaning.
func DefaultDelta(n int) float64 {
	if n < 3 {
		return 0.5
	}
	return 1 / (float64(n) * elementary.Log(float64(n)))
}

// Calibration says which statement the noise scale of a run is taken from.
type Calibration string

const (
	// Proven uses only what THEOREMS.md proves. It is the default.
	Proven Calibration = "proven"
	// Claimed uses the theorem of the paper that describes the method, right or wrong.
	Claimed Calibration = "claimed"
	// Published uses the noise scale of the code that the paper's authors released.
	Published Calibration = "published"
	// None marks a run without privacy.
	None Calibration = "none"
)

// ParseCalibration reads the value of --calibration; the empty string is Proven.
func ParseCalibration(s string) (Calibration, error) {
	return parse("calibration", s, Proven, Claimed, Published)
}

// parse reads one of some words; the empty string is the first.
func parse[T ~string](what, s string, allowed ...T) (T, error) {
	if s == "" {
		return allowed[0], nil
	}
	if slices.Contains(allowed, T(s)) {
		return T(s), nil
	}
	last := len(allowed) - 1
	return "", fmt.Errorf("%s is %q: %w: must be %s or %s", what, s, ErrRange, join(allowed[:last], ", "), allowed[last])
}

// Neighbours is the relation between data sets that a guarantee speaks of.
type Neighbours string

const (
	// AddRemove relates two data sets if one has exactly one record more. It is the default.
	AddRemove Neighbours = "add-remove"
	// ReplaceOne relates two data sets of the same size that differ in one record.
	ReplaceOne Neighbours = "replace-one"
)

// ParseNeighbours reads the value of --neighbours; the empty string is AddRemove.
func ParseNeighbours(s string) (Neighbours, error) {
	return parse("neighbours", s, AddRemove, ReplaceOne)
}
