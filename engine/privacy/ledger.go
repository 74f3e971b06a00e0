package privacy

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
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
	// Total is the sum of what a viewer saw; Ledger computes it.
	Total Kind = "total"
)

// Spec names a mechanism with its parameters, so that a reader of a ledger can account for it again.
type Spec struct {
	// Family is gaussian, laplace, discrete-gaussian, discrete-laplace, pure (permute-and-flip, anything
	// of a known epsilon), exponential (the exponential mechanism), randomized-response, fm, or
	// empty: no bound is known.
	Family string `json:"family"`
	// Scale is the noise scale over the sensitivity (gaussian, laplace and their discrete forms).
	Scale float64 `json:"scale,omitempty"`
	// Epsilon is the epsilon of a pure release.
	Epsilon float64 `json:"epsilon,omitempty"`
	// Slack is the discretisation slack per round of a discrete Gaussian (GaussianSlack).
	Slack float64 `json:"slack,omitempty"`
	// P is the probability of a uniform draw, Buckets the number of answers (randomized-response).
	P       float64 `json:"p,omitempty"`
	Buckets int     `json:"buckets,omitempty"`
	// Gamma, Phantoms, Parties and Cells describe one key of the FM sketches (fm; T3): phantoms per
	// cell, parties S and clusters per party k'.
	Gamma    float64 `json:"gamma,omitempty"`
	Phantoms int     `json:"phantoms,omitempty"`
	Parties  int     `json:"parties,omitempty"`
	Cells    int     `json:"cells,omitempty"`
	// Rounds is how often it is released, adaptively; 0 means 1.
	Rounds int `json:"rounds,omitempty"`
	// Group, if not empty, joins entries of one ledger that read disjoint records (T7): together
	// they cost a viewer as much as the dearest.
	Group string `json:"group,omitempty"`
}

// Times is Rounds, at least 1.
func (s Spec) Times() int { return max(1, s.Rounds) }

// Mechanism checks the parameters and returns the mechanism of one round.
func (s Spec) Mechanism() (Mechanism, error) {
	positive := func(name string, x float64) error {
		if !(x > 0) || math.IsInf(x, 1) {
			return fmt.Errorf("%s: %s is %v: %w: must be positive and finite", s.Family, name, x, ErrRange)
		}
		return nil
	}
	if s.Rounds < 0 {
		return nil, fmt.Errorf("%s: rounds is %d: %w: must be at least 1", s.Family, s.Rounds, ErrRange)
	}
	switch s.Family {
	case "gaussian":
		return Gaussian{s.Scale, s.Slack}, positive("scale", s.Scale)
	case "discrete-gaussian":
		if s.Slack == 0 { // its distance to the continuous law is not known: zCDP and RDP only
			return Gaussian{s.Scale, 1}, positive("scale", s.Scale)
		}
		return Gaussian{s.Scale, s.Slack}, positive("scale", s.Scale)
	case "laplace":
		return Laplace{s.Scale}, positive("scale", s.Scale)
	case "discrete-laplace": // coarse ones are no better than any mechanism of their epsilon
		return PureDP{1 / s.Scale}, positive("scale", s.Scale)
	case "pure":
		return PureDP{s.Epsilon}, positive("epsilon", s.Epsilon)
	case "exponential":
		return Bounded{s.Epsilon}, positive("epsilon", s.Epsilon)
	case "randomized-response":
		if !(s.P > 0 && s.P <= 1) {
			return nil, fmt.Errorf("randomized-response: p is %v: %w: must be in (0, 1]", s.P, ErrRange)
		}
		if s.Buckets < 2 {
			return nil, fmt.Errorf("randomized-response: buckets is %d: %w: must be at least 2", s.Buckets, ErrRange)
		}
		return RandomizedResponse{s.P, s.Buckets}, nil
	case "fm":
		m := FM{Gamma: s.Gamma, Phantoms: s.Phantoms, Parties: s.Parties, Cells: s.Cells}
		return m, m.validate()
	}
	return nil, fmt.Errorf("mechanism is %q: %w: must be gaussian, laplace, discrete-gaussian, discrete-laplace, randomized-response, fm, exponential or pure", s.Family, ErrRange)
}

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

// Ledger is everything a run released, in order. The zero value is an empty ledger at delta 0.
type Ledger struct {
	// Delta is the delta at which entries and totals are stated.
	Delta   float64
	Entries []Entry
}

// Add appends an entry, filling in its epsilon, rho and mu from its Cost.
func (l *Ledger) Add(e Entry) error {
	if e.Kind == "" {
		e.Kind = Release
	}
	if e.Cost.Family != "" {
		eps, acc, err := l.price(e.Cost)
		if err != nil {
			return fmt.Errorf("ledger entry %q: %w", e.What, err)
		}
		e.Epsilon, e.Delta = finite(roundUp(eps)), finite(l.Delta)
		if acc.pure.epsilon <= eps {
			e.Delta = new(float64)
		}
		e.Rho = finite(acc.zcdp.rho)
		if acc.gdp.mu2 > 0 {
			e.Mu = finite(math.Sqrt(acc.gdp.mu2))
		}
		e.Unbounded = e.Unbounded || e.Epsilon == nil
	}
	if e.True != nil {
		eps, _, err := l.price(*e.True)
		if err != nil {
			return fmt.Errorf("ledger entry %q: %w", e.What, err)
		}
		e.TrueEpsilon = finite(roundUp(eps))
	}
	l.Entries = append(l.Entries, e)
	return nil
}

// Note appends a line that says what is not covered.
func (l *Ledger) Note(what string) {
	l.Entries = append(l.Entries, Entry{Kind: Note, What: what})
}

// roundUp raises x >= 0 to 33 bits: accountants use exp, log and erf of the math
// package, whose last bits differ between architectures. An excess of up to 2^-44
// over a number of 33 bits is the rounding of those sums and is dropped, so that
// a budget of 1 that was spent whole reads 1.
func roundUp(x float64) float64 {
	const low = 1<<20 - 1
	if x == 0 || math.IsInf(x, 1) || math.IsNaN(x) {
		return x
	}
	y := x * (1 - 0x1p-44)
	return math.Float64frombits((math.Float64bits(y) + low) &^ low)
}

func finite(x float64) *float64 {
	if math.IsInf(x, 0) || math.IsNaN(x) {
		return nil
	}
	return &x
}

// accounts is one accountant of each kind but pld, for which it keeps what was composed.
type accounts struct {
	pure PureAccountant
	zcdp ZCDPAccountant
	rdp  *RDPAccountant
	gdp  GDPAccountant

	normal Gaussian // all Gaussian releases as one: 1/Scale^2 is the sum
	others []repeated
}

func newAccounts() *accounts {
	return &accounts{rdp: NewRDPAccountant(), normal: Gaussian{Scale: math.Inf(1)}}
}

func (a *accounts) all() []Accountant { return []Accountant{&a.pure, &a.gdp, &a.zcdp, a.rdp} }

func (a *accounts) compose(m Mechanism, rounds int) {
	for _, x := range a.all() {
		x.Compose(m, rounds)
	}
	switch x := m.(type) {
	case zero:
	case Gaussian:
		a.join(x.Mu(), x.Discretised, rounds)
	case parallel:
		if mu := x.Mu(); !math.IsInf(mu, 1) && x.normal() {
			a.join(mu, x.Slack(), rounds)
			return
		}
		a.others = append(a.others, repeated{m, float64(rounds)})
	default:
		a.others = append(a.others, repeated{m, float64(rounds)})
	}
}

// join adds rounds Gaussian releases of parameter mu.
func (a *accounts) join(mu, slack float64, rounds int) {
	own := a.normal.Mu()
	a.normal.Scale = 1 / math.Sqrt(own*own+times(rounds, mu*mu))
	a.normal.Discretised += times(rounds, slack)
}

// normal tells whether all of it are Gaussian releases.
func (p parallel) normal() bool {
	for _, m := range p {
		if r, ok := m.(repeated); ok {
			m = r.m
		}
		if _, ok := m.(Gaussian); !ok {
			return false
		}
	}
	return true
}

// epsilon is the best of the accountants' bounds, pld apart.
func (a *accounts) epsilon(delta float64) (best float64, by string) {
	best = math.Inf(1)
	for _, x := range a.all() {
		if e := x.Epsilon(delta); e < best {
			best, by = e, x.Name()
		}
	}
	return best, by
}

const (
	// pldPoints bounds the work of the pld accountant for a total: grid points times convolutions, some
	// 100 ms of it.
	pldPoints = 1 << 20
	// pldMantissa is how many bits of what it says are kept, rounded up: it searches for epsilon to
	// 1e-7, and its sums differ between architectures.
	pldMantissa = 18
)

// total is epsilon with the pld accountant, where it knows the losses and is quick. For Gaussian
// releases alone gdp is exact.
func (a *accounts) total(delta float64) (float64, string) {
	best, by := a.epsilon(delta)
	if len(a.others) == 0 || delta <= 0 || a.normal.Discretised >= delta {
		return best, by
	}
	acc, rounds := &PLDAccountant{}, 1.0
	if a.normal.Mu() > 0 {
		acc.Compose(a.normal, 1)
	}
	for _, r := range a.others {
		acc.Compose(r.m, int(r.n))
		rounds += r.n
	}
	// the grid has some 22 points per standard deviation of one of the rounds, and 20 deviations of all
	points := math.Max(1<<14, 444*math.Sqrt(rounds)) * float64(2+len(acc.parts)) * float64(acc.orders())
	if acc.unknown || points > pldPoints {
		return best, by
	}
	if e := ceilMantissa(acc.Epsilon(delta), pldMantissa); e < best {
		return e, acc.Name()
	}
	return best, by
}

// ceilMantissa rounds x >= 0 up to so many bits.
func ceilMantissa(x float64, bits int) float64 {
	if x == 0 || math.IsInf(x, 1) || math.IsNaN(x) {
		return x
	}
	frac, exp := math.Frexp(x)
	return math.Ldexp(math.Ceil(math.Ldexp(frac, bits)), exp-bits)
}

func (l *Ledger) price(s Spec) (float64, *accounts, error) {
	m, err := s.Mechanism()
	if err != nil {
		return 0, nil, err
	}
	a := newAccounts()
	a.compose(m, s.Times())
	eps, _ := a.epsilon(l.Delta)
	return eps, a, nil
}

// Viewers lists the viewers of the ledger's releases in order of appearance.
func (l *Ledger) Viewers() []string {
	var vs []string
	for _, e := range l.Entries {
		for _, v := range e.Viewers {
			if e.Kind == Release && !slices.Contains(vs, v) {
				vs = append(vs, v)
			}
		}
	}
	return vs
}

// TotalFor composes what a viewer saw: an entry of kind Total with the best epsilon that the
// accountants can prove at l.Delta, by Cost and, where some entry has a True or is Unbounded, by that.
func (l *Ledger) TotalFor(viewer string) Entry {
	claimed, differs, a := l.compose(viewer, false)
	t := Entry{Kind: Total, What: "everything that the " + viewer + " sees", Viewers: []string{viewer}, Calibration: claimed, Delta: finite(l.Delta)}
	state := func(a *accounts) (*float64, string) {
		if a == nil {
			return nil, ""
		}
		epsilon, by := a.total(l.Delta)
		if epsilon == 0 {
			by = "" // nothing was seen
		}
		return finite(roundUp(epsilon)), by
	}
	t.Epsilon, t.Accountant = state(a)
	t.Unbounded = t.Epsilon == nil
	if differs {
		_, _, a = l.compose(viewer, true)
		t.TrueEpsilon, _ = state(a)
		t.Unbounded = t.TrueEpsilon == nil
	}
	return t
}

// Totals is TotalFor of every viewer. Viewers who see the same releases are computed once.
func (l *Ledger) Totals() []Entry {
	var out []Entry
	done := map[string]Entry{}
	for _, v := range l.Viewers() {
		seen := make([]byte, len(l.Entries))
		for i, e := range l.Entries {
			if slices.Contains(e.Viewers, v) {
				seen[i] = 1
			}
		}
		t, ok := done[string(seen)]
		if ok {
			t.What, t.Viewers = "everything that the "+v+" sees", []string{v}
		} else {
			t = l.TotalFor(v)
			done[string(seen)] = t
		}
		out = append(out, t)
	}
	return out
}

// compose adds up a viewer's entries, nil if one of them has no bound; differs tells whether the true
// cost is another.
func (l *Ledger) compose(viewer string, truth bool) (c Calibration, differs bool, a *accounts) {
	a = newAccounts()
	groups := map[string][]Mechanism{}
	var order []string
	for _, e := range l.Entries {
		if e.Kind != Release || !slices.Contains(e.Viewers, viewer) {
			continue
		}
		c = e.Calibration
		s := e.Cost
		differs = differs || e.True != nil || e.Unbounded
		if truth && e.Unbounded || !truth && s.Family == "" && e.Mechanism == "none" {
			return c, differs, nil
		}
		if truth && e.True != nil {
			s = *e.True
		}
		if s.Family == "" {
			continue
		}
		m, err := s.Mechanism()
		if err != nil { // Add has checked it
			return c, differs, nil
		}
		if s.Group == "" {
			a.compose(m, s.Times())
			continue
		}
		if groups[s.Group] == nil {
			order = append(order, s.Group)
		}
		groups[s.Group] = append(groups[s.Group], repeated{m, float64(s.Times())})
	}
	for _, g := range order {
		a.compose(Parallel(groups[g]...), 1)
	}
	return c, differs, a
}

// repeated is a mechanism released several times.
type repeated struct {
	m Mechanism
	n float64
}

func (r repeated) Pure() float64             { return r.n * r.m.Pure() }
func (r repeated) Rho() float64              { return r.n * r.m.Rho() }
func (r repeated) RDP(alpha float64) float64 { return r.n * r.m.RDP(alpha) }
func (r repeated) Mu() float64               { return math.Sqrt(r.n) * r.m.Mu() }
func (r repeated) Slack() float64            { return r.n * r.m.Slack() }

// MarshalJSON writes the entries and, after them, one total per viewer, as one array.
func (l *Ledger) MarshalJSON() ([]byte, error) {
	out := make([]Entry, 0, len(l.Entries)+4)
	out = append(out, l.Entries...)
	return json.Marshal(append(out, l.Totals()...))
}

// Text writes the ledger for people, in lines of at most 80 columns: every release with its cost,
// the totals of each viewer, what is not covered, the conditions.
func (l *Ledger) Text(w io.Writer) error {
	var b strings.Builder
	for _, e := range l.Entries {
		if e.Kind == Release {
			e.text(&b)
		}
	}
	for _, t := range l.Totals() {
		paragraph(&b, "  ", "total for "+t.Viewers[0]+": "+t.price())
	}
	seen := map[string]bool{}
	line := func(s string) {
		if s != "" && !seen[s] {
			seen[s] = true
			paragraph(&b, "  ", s)
		}
	}
	for _, e := range l.Entries {
		if e.Kind == Note {
			line("not covered: " + e.What)
		}
	}
	for _, e := range l.Entries {
		for _, c := range e.Conditions {
			line("condition: " + c)
		}
		if e.Kind != Note {
			line(e.Remark)
		}
	}
	if _, err := io.WriteString(w, b.String()); err != nil {
		return fmt.Errorf("ledger: write: %w", err)
	}
	return nil
}

// text writes a release: what and its price, then how it was made and who sees it.
func (e Entry) text(b *strings.Builder) {
	head := e.What + ": " + e.price()
	if e.Theorem != "" {
		head += " [" + e.Theorem + "]"
	}
	paragraph(b, "  ", head)
	how := e.Mechanism
	if e.Norm != "" {
		how += fmt.Sprintf(", %s sensitivity %.4g", e.Norm, e.Sensitivity)
	}
	if e.Scale != 0 {
		how += strings.TrimRight(fmt.Sprintf(", scale %.4g %s", e.Scale, e.Unit), " ")
	}
	paragraph(b, "      ", how+"; seen by "+strings.Join(e.Viewers, ", "))
}

// paragraph writes s in lines of at most 80 columns, the first with the indent and the others with
// two columns more.
func paragraph(b *strings.Builder, indent, s string) {
	line := indent
	empty := true
	for _, word := range strings.Fields(s) {
		if !empty && len([]rune(line))+1+len([]rune(word)) > 80 {
			b.WriteString(line + "\n")
			line, empty = indent+"  ", true
		}
		if !empty {
			line += " "
		}
		line += word
		empty = false
	}
	b.WriteString(line + "\n")
}

// price is the cost of an entry in words.
func (e Entry) price() string {
	if e.Cost.Family == "" && e.Kind == Release && e.Epsilon == nil {
		return "no cost"
	}
	s := "epsilon unbounded"
	if e.Epsilon != nil {
		s = fmt.Sprintf("epsilon %.4g", *e.Epsilon)
		if e.Delta != nil && *e.Delta > 0 {
			s += fmt.Sprintf(" at delta %.3g", *e.Delta)
		}
		if e.Accountant != "" {
			s += " by " + e.Accountant
		}
	}
	switch {
	case e.TrueEpsilon != nil:
		s += fmt.Sprintf(" (true: %.4g)", *e.TrueEpsilon)
	case e.Unbounded && e.Epsilon != nil:
		s += " (true: unbounded)"
	}
	return s
}
