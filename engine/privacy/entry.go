package privacy

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Kind is what a ledger entry is about.
type Kind string

const (
	// Release is something computed from records that leaves a party.
	Release Kind = "release"
	// Note is something that epsilon does not cover, or a choice the reader must know.
	Note Kind = "note"
	// totalKind is the sum of what a viewer saw; Ledger computes it.
	totalKind Kind = "total"
)

// The roles that most ledgers have. A plural stands for each of its members.
const (
	Server   = "server"
	Clients  = "clients"
	Outsider = "outsider"
)

// Noise says who drew the noise of a release. A viewer's bound counts only the noise that it does not know
// (T10): the release costs a viewer its Cost as long as Needed of the Shares are unknown to it, and has no
// bound for it otherwise.
type Noise struct {
	// Shares is the number of independent draws that the release carries, Needed how many of them make up
	// the noise of Cost. The others are more noise on top.
	Shares int `json:"shares"`
	Needed int `json:"needed"`
	// Known says how many shares a role knows: those that it drew, and those of the roles that may collude
	// with it. A role that is not listed knows none.
	Known map[string]int `json:"known,omitempty"`
}

// DrawnBy is noise that the roles named know all of.
func DrawnBy(roles ...string) *Noise { return Shared(1, 1, 1, roles...) }

// Shared is noise in shares of which needed make up the whole, while any of the roles named knows as many as colluders
// of them.
func Shared(shares, needed, colluders int, roles ...string) *Noise {
	n := &Noise{Shares: shares, Needed: needed, Known: map[string]int{}}
	for _, r := range roles {
		n.Known[r] = colluders
	}
	return n
}

// hides tells whether enough of the noise is unknown to a viewer.
func (n *Noise) hides(viewer string) bool {
	return n == nil || n.Shares-n.Known[viewer] >= n.Needed
}

// String says who drew it.
func (n *Noise) String() string {
	if n == nil {
		return ""
	}
	names := slices.Sorted(maps.Keys(n.Known))
	if n.Shares == 1 {
		return "drawn by " + strings.Join(names, ", ")
	}
	s := fmt.Sprintf("in %d shares, any %d of which are the whole", n.Shares, n.Needed)
	if n.Needed == 1 {
		s = fmt.Sprintf("in %d shares, each of which is the whole", n.Shares)
	}
	who := map[int][]string{} // by how many they know
	for _, r := range names {
		who[n.Known[r]] = append(who[n.Known[r]], r)
	}
	delete(who, 0)
	for _, known := range slices.Sorted(maps.Keys(who)) {
		s += fmt.Sprintf("; known to %s: %d", strings.Join(who[known], ", "), known)
	}
	return s
}

// Entry is one line of a ledger. Fields that do not apply stay empty.
type Entry struct {
	Kind Kind `json:"kind"`
	// What is released, in words: "sums of each cluster, 7 rounds".
	What string `json:"what"`
	// Viewers are its audience, the roles that see it: "server", "clients", "client 2", "outsider", ... What
	// an outsider sees is public: every role of the ledger sees it. A party that holds all records is in
	// no audience.
	Viewers []string `json:"viewers,omitempty"`
	// Noise says who drew the noise and so knows it; nil if no viewer knows any.
	Noise *Noise `json:"noise,omitempty"`
	// Derived are the roles to whom the release is a function of other releases of the ledger, which it is charged for,
	// and of what it drew itself: it costs them nothing more (T10, T16).
	Derived []string `json:"derived,omitempty"`
	// Mechanism is the name of the noise ("discrete-gaussian"), or "none".
	Mechanism string `json:"mechanism,omitempty"`
	// Sensitivity and Norm ("L1", "L2") bound the change by one record, in the unit of Scale, the
	// noise scale (sigma or b): data units unless Unit says otherwise.
	Sensitivity float64 `json:"sensitivity,omitempty"`
	Norm        string  `json:"norm,omitempty"`
	Scale       float64 `json:"scale,omitempty"`
	Unit        string  `json:"unit,omitempty"`
	// Cost is the mechanism as the calibration sees it: what totals are computed from.
	Cost Spec `json:"cost,omitzero"`
	// True is the mechanism as it is, where that is known to differ from Cost; Unbounded says that it
	// has no bound at all.
	True      *Spec `json:"true,omitempty"`
	Unbounded bool  `json:"unbounded,omitempty"`
	// Epsilon and Delta are what all rounds cost by Cost, Rho and Mu the same in other currencies,
	// TrueEpsilon by True at the same Delta. Ledger.Add fills them in from Cost and True.
	Epsilon     *float64 `json:"epsilon,omitempty"`
	Delta       *float64 `json:"delta,omitempty"`
	Rho         *float64 `json:"rho,omitempty"`
	Mu          *float64 `json:"mu,omitempty"`
	TrueEpsilon *float64 `json:"true_epsilon,omitempty"`
	// Accountant is the one whose bound Epsilon is (totals): pure, zcdp, rdp, gdp or pld.
	Accountant string `json:"accountant,omitempty"`
	// Theorem is the name in THEOREMS.md ("T2"), or of the paper's theorem under claimed.
	Theorem     string      `json:"theorem,omitempty"`
	Conditions  []string    `json:"conditions,omitempty"`
	Calibration Calibration `json:"calibration,omitempty"`
	Neighbours  Neighbours  `json:"neighbours,omitempty"`
	// Remark says in words what the entry is worth.
	Remark string `json:"remark,omitempty"`
	// Bound is the line of the table of calibrations that Sensitivity is from, and Beside that of what is
	// released jointly with it; nil for a release without noise.
	Bound  *Bound `json:"-"`
	Beside *Bound `json:"-"`
}

// SeenBy tells whether a role sees the release: it is in the audience, or the release is public.
func (e *Entry) SeenBy(viewer string) bool {
	return e.Kind == Release && (slices.Contains(e.Viewers, viewer) || slices.Contains(e.Viewers, Outsider))
}

// charged tells whether a role that sees the release pays for it.
func (e *Entry) charged(viewer string) bool {
	return e.SeenBy(viewer) && !slices.Contains(e.Derived, viewer)
}

// exposed tells whether a role that sees the release knows too much of its noise.
func (e *Entry) exposed(viewer string) bool { return e.Cost.Family != "" && !e.Noise.hides(viewer) }

// cost is what the release costs a role that sees it, as it claims or in truth; bounded is false if nothing
// bounds it. What is proven claims nothing that is not true.
func (e *Entry) cost(viewer string, truth bool) (s Spec, bounded bool) {
	switch {
	case (truth || e.Calibration == Proven) && (e.Unbounded || e.exposed(viewer)):
		return s, false
	case !truth && e.Cost.Family == "" && e.Mechanism == "none":
		return s, false
	case truth && e.True != nil:
		return *e.True, true
	}
	return e.Cost, true
}
