package privacy

// Kind is what a ledger entry is about.
type Kind string

const (
	// Release is something computed from records that leaves a party.
	Release Kind = "release"
	// Note is something that epsilon does not cover, or a choice the reader must know.
	Note Kind = "note"
	// Total is the sum of what a viewer saw; Ledger computes it.
	Total Kind = "total"
)

// Entry is one line of a ledger. Fields that do not apply stay empty.
type Entry struct {
	Kind Kind `json:"kind"`
	// What is released, in words: "sums of each cluster, 7 rounds".
	What string `json:"what"`
	// Viewers are the parties that see it: "server", "clients", "client 2", "outsider", ... A release
	// for all of them lists all.
	Viewers []string `json:"viewers,omitempty"`
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

