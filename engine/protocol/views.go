package protocol

import (
	"slices"

	"github.com/cohort-engine/cohort/internal/secagg"
)

// View is one thing that a role holds or sees.
type View struct {
	// Viewer sees it.
	Viewer Role
	// Round counts from 0.
	Round int
	// What names it: "masked local values", or the release.
	What string
	// Of is whose value it is; Server for a sum.
	Of Role
	// Message holds the bytes of a message, masked ones or those of Send, nil for
	// plain values.
	Message []byte
	// Values holds plain values in integer units, nil for messages.
	Values []int64
}

// What a role may see beside releases, which are named in the plan.
const (
	MaskedLocal  = "masked local values"
	MaskedGlobal = "masked global values"
)

// Views records what every role sees, for tests, audits and teaching. Recording
// allocates. It serves the roles of one process that take turns.
type Views struct{ Seen []View }

// message records bytes.
func (v *Views) message(viewer Role, round int, what string, of Role, b []byte) {
	if v != nil {
		v.Seen = append(v.Seen, View{Viewer: viewer, Round: round, What: what, Of: of, Message: slices.Clone(b)})
	}
}

// masked records a masked vector as it crosses.
func (v *Views) masked(viewer Role, round int, what string, of Role, m *secagg.Masked) {
	if v != nil {
		v.Seen = append(v.Seen, View{Viewer: viewer, Round: round, What: what, Of: of, Message: m.AppendSum(nil)})
	}
}

// values records plain values.
func (v *Views) values(viewer Role, round int, what string, of Role, x []int64) {
	if v != nil {
		v.Seen = append(v.Seen, View{Viewer: viewer, Round: round, What: what, Of: of, Values: slices.Clone(x)})
	}
}
