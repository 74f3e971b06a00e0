package privacy

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"sync"
)

// Ledger is everything a run released, in order. The zero value is an empty ledger at delta 0.
type Ledger struct {
	// Delta is the delta at which entries and totals are stated.
	Delta float64

	reading sync.Mutex // of entries that are not priced yet: the accountants take longer than a short run
	entries []Entry
	priced  int // so many entries have their prices
}

// Grow makes room for so many more entries.
func (l *Ledger) Grow(entries int) { l.entries = slices.Grow(l.entries, entries) }

// Add appends an entry. Its epsilon, rho and mu follow from its Cost, when the ledger is read.
func (l *Ledger) Add(e Entry) error {
	if e.Kind == "" {
		e.Kind = Release
	}
	if err := e.check(); err != nil {
		return fmt.Errorf("ledger entry %q: %w", e.What, err)
	}
	l.entries = append(l.entries, e)
	return nil
}

// Entries are those of the ledger, with their prices. They are not to be changed.
func (l *Ledger) Entries() []Entry {
	l.reading.Lock()
	defer l.reading.Unlock()
	for ; l.priced < len(l.entries); l.priced++ {
		l.entries[l.priced].charge(l.Delta)
	}
	return l.entries
}

// After is the ledger of what another one has and then of this one, stated at this one's delta.
func (l *Ledger) After(before *Ledger) *Ledger {
	return &Ledger{Delta: l.Delta, entries: append(slices.Clone(before.Entries()), l.Entries()...)}
}

// At is a copy of the ledger with totals at another delta; the prices of its entries stay.
func (l *Ledger) At(delta float64) *Ledger {
	entries := slices.Clone(l.Entries())
	return &Ledger{Delta: delta, entries: entries, priced: len(entries)}
}

// check tells whether the mechanisms of an entry have prices.
func (e *Entry) check() (err error) {
	if e.Cost.Family != "" {
		_, err = e.Cost.Mechanism()
	}
	if err == nil && e.True != nil {
		_, err = e.True.Mechanism()
	}
	return err
}

// charge fills in the price at a delta, of mechanisms that have been checked.
func (e *Entry) charge(delta float64) {
	if e.Cost.Family != "" {
		eps, acc := e.Cost.price(delta)
		e.Epsilon, e.Delta = finite(roundUp(eps)), finite(delta)
		if acc.pure.epsilon <= eps && acc.failure+acc.distance == 0 {
			e.Delta = new(float64)
		}
		e.Rho = finite(acc.zcdp.rho)
		if acc.gdp.mu2 > 0 {
			e.Mu = finite(math.Sqrt(acc.gdp.mu2))
		}
		e.Unbounded = e.Unbounded || e.Epsilon == nil
	}
	if e.True != nil {
		eps, _ := e.True.price(delta)
		e.TrueEpsilon = finite(roundUp(eps))
	}
}

// Note appends a line that says what is not covered.
func (l *Ledger) Note(what string) {
	l.entries = append(l.entries, Entry{Kind: Note, What: what})
}

// price is the least epsilon of a mechanism at a delta that is proven without the pld accountant.
func (s Spec) price(delta float64) (float64, *accounts) {
	a := newAccounts()
	if m, err := s.Mechanism(); err == nil {
		a.compose(m, s.Times())
	}
	a.stray(s)
	eps, _ := a.epsilon(delta)
	return eps, a
}

// Viewers lists the roles that see something, in order of appearance: those in an audience and, where
// something is public, those who know noise.
func (l *Ledger) Viewers() []string {
	var vs []string
	for i := range l.entries {
		e := &l.entries[i]
		if e.Kind != Release {
			continue
		}
		roles := slices.Clone(e.Viewers)
		if e.Noise != nil {
			roles = append(roles, slices.Sorted(maps.Keys(e.Noise.Known))...)
		}
		for _, v := range roles {
			if e.SeenBy(v) && !slices.Contains(vs, v) {
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
	t := Entry{Kind: totalKind, What: "everything that the " + viewer + " may see", Viewers: []string{viewer},
		Calibration: claimed, Delta: finite(l.Delta)}
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
		seen := make([]byte, len(l.entries))
		for i := range l.entries {
			switch e := &l.entries[i]; {
			case !e.charged(v):
			case e.exposed(v):
				seen[i] = 2
			default:
				seen[i] = 1
			}
		}
		t, ok := done[string(seen)]
		if ok {
			t.What, t.Viewers = "everything that the "+v+" may see", []string{v}
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
	bounded := true
	entries := l.Entries()
	for i := range entries {
		e := &entries[i]
		if !e.charged(viewer) {
			continue
		}
		c = e.Calibration
		if c != Proven { // what is proven is true
			differs = differs || e.True != nil || e.Unbounded || e.exposed(viewer)
		}
		s, ok := e.cost(viewer, truth)
		if bounded = bounded && ok; !bounded {
			continue
		}
		a.stray(s)
		if s.Family == "" {
			continue
		}
		m, err := s.Mechanism()
		if err != nil { // Add has checked it
			bounded = false
			continue
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
	if !bounded {
		return c, differs, nil
	}
	for _, g := range order {
		a.compose(inParallel(groups[g]...), 1)
	}
	return c, differs, a
}

// MarshalJSON writes the entries and, after them, one total per viewer, as one array.
func (l *Ledger) MarshalJSON() ([]byte, error) {
	return json.Marshal(append(append([]Entry{}, l.Entries()...), l.Totals()...))
}

// UnmarshalJSON reads what MarshalJSON writes; totals are computed anew from the entries.
func (l *Ledger) UnmarshalJSON(b []byte) error {
	var all []Entry
	if err := json.Unmarshal(b, &all); err != nil {
		return fmt.Errorf("ledger: %w", err)
	}
	l.Delta, l.entries = 0, nil
	for _, e := range all {
		if e.Kind != totalKind {
			l.entries = append(l.entries, e)
		}
		if e.Delta != nil {
			l.Delta = max(l.Delta, *e.Delta)
		}
	}
	l.priced = len(l.entries)
	return nil
}
