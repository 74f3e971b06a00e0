package privacy

import (
	"fmt"
	"math"
	"slices"
)

// Composition is the rule by which a ledger file adds up runs that are chosen after earlier ones were seen: a
// privacy filter, fixed when the file is made (T11).
type Composition string

const (
	// BasicComposition adds the epsilons and the deltas of runs, each as its own accountants have it. The default.
	BasicComposition Composition = "basic"
	// ZCDPComposition adds rho.
	ZCDPComposition Composition = "zcdp"
	// GDPComposition adds mu^2.
	GDPComposition Composition = "gdp"
	// RDPComposition adds Renyi divergences of one order.
	RDPComposition Composition = "rdp"
)

// ParseComposition reads the value of --ledger-composition; the empty string is BasicComposition.
func ParseComposition(s string) (Composition, error) {
	return parse("composition", s, BasicComposition, ZCDPComposition, GDPComposition, RDPComposition)
}

// Terms are what a ledger file fixes when it is made.
type Terms struct {
	Budget      Budget      `json:"budget"`
	Composition Composition `json:"composition"`
	Neighbours  Neighbours  `json:"neighbours"`
}

// Charge is what a viewer has paid, or may pay: an amount in the file's currency (epsilon, rho, mu^2 or a divergence),
// and what is added to delta.
type Charge struct {
	Amount float64 `json:"amount"`
	Delta  float64 `json:"delta,omitempty"`
}

func (c Charge) plus(d Charge) Charge { return Charge{c.Amount + d.Amount, c.Delta + d.Delta} }

// within reads limits to nine digits: charges are rounded up to ten (see roundUp), and ten of a tenth are one.
func (c Charge) within(limit Charge) bool {
	const rounding = 1 + 1e-9
	return c.Amount <= limit.Amount*rounding && c.Delta <= limit.Delta*rounding
}

// aside is the part of a file's delta for what is added to delta, outside basic composition.
const aside = 1.0 / 16

// validate refuses terms that no file can have.
func (t Terms) validate() error {
	if err := t.Budget.Validate(); err != nil {
		return err
	}
	if _, err := ParseComposition(string(t.Composition)); err != nil {
		return err
	}
	if _, err := ParseNeighbours(string(t.Neighbours)); err != nil {
		return err
	}
	if t.Budget.Delta == 0 && t.Composition != BasicComposition {
		return fmt.Errorf("delta is 0: %w: %s composition needs a positive delta, or take basic", ErrRange, t.Composition)
	}
	return nil
}

// limit is what every viewer may be charged in all.
func (t Terms) limit() Charge {
	left := Charge{Delta: t.Budget.Delta * aside}
	main := Budget{t.Budget.Epsilon, t.Budget.Delta - left.Delta}
	switch t.Composition {
	case ZCDPComposition:
		fits := func(rho float64) bool { return (&ZCDPAccountant{rho: rho}).Delta(main.Epsilon) <= main.Delta }
		lo, hi := 0.0, 1.0
		for fits(hi) {
			lo, hi = hi, 2*hi
		}
		left.Amount, _ = bisect(func(x float64) bool { return !fits(x) }, lo, hi, 1e-7)
	case GDPComposition:
		mu, err := MuOf(main, 0)
		if err != nil { // validate has seen it
			return Charge{}
		}
		left.Amount = mu * mu
	case RDPComposition:
		left.Amount = main.divergence(t.order())
	default:
		return Charge{t.Budget.Epsilon, t.Budget.Delta}
	}
	return left
}

// divergence is the largest Renyi divergence of an order at which the budget holds.
func (b Budget) divergence(alpha float64) float64 {
	return b.Epsilon - renyiEpsilon(alpha, 0, b.Delta)
}

// order is that of RDPComposition: the one at which most Gaussian releases fit.
func (t Terms) order() float64 {
	best, most := 0.0, math.Inf(-1)
	for _, alpha := range newRDPAccountant().orders {
		if rho := t.Budget.divergence(alpha) / alpha; rho > most {
			best, most = alpha, rho
		}
	}
	return best
}

// Epsilon states an amount as the epsilon that it proves at the file's delta.
func (t Terms) Epsilon(amount float64) float64 {
	delta := t.Budget.Delta * (1 - aside)
	switch t.Composition {
	case ZCDPComposition:
		return (&ZCDPAccountant{rho: amount}).Epsilon(delta)
	case GDPComposition:
		return EpsilonOfMu(math.Sqrt(amount), delta, 0)
	case RDPComposition:
		if amount == 0 {
			return 0
		}
		return math.Max(0, renyiEpsilon(t.order(), amount, delta))
	}
	return amount
}

// Prices are what a run costs each of its viewers in the file's currency. What is public costs an Outsider,
// and with it every viewer that the run does not have. It refuses what the file cannot add up: releases
// without a bound, or guarantees for another relation.
func (t Terms) Prices(l *Ledger) (map[string]Charge, error) {
	relation, err := l.relation()
	if err != nil {
		return nil, err
	}
	if relation == ReplaceOne && t.Neighbours == AddRemove {
		return nil, fmt.Errorf("neighbours is %s: %w: the file adds up guarantees for adding or removing a record, of "+
			"which one for replacing a record says nothing: use --neighbours add-remove, or a file made with replace-one",
			relation, ErrRange)
	}
	prices := map[string]Charge{}
	for _, v := range l.Viewers() {
		c, err := t.price(l, v)
		if err != nil {
			return nil, err
		}
		if relation == AddRemove && t.Neighbours == ReplaceOne {
			if c = t.twoSteps(c); math.IsInf(c.Amount, 1) {
				return nil, fmt.Errorf("neighbours is %s: %w: an rdp file made with replace-one takes no other: use "+
					"--neighbours replace-one", relation, ErrRange)
			}
		}
		if c = (Charge{roundUp(c.Amount), roundUp(c.Delta)}); c != (Charge{}) {
			prices[v] = c
		}
	}
	return prices, nil
}

// relation is that of all the ledger's guarantees, AddRemove if none says.
func (l *Ledger) relation() (Neighbours, error) {
	relation := Neighbours("")
	for _, e := range l.entries {
		switch {
		case e.Kind != Release || e.Cost.Family == "" || e.Neighbours == "":
		case relation == "":
			relation = e.Neighbours
		case relation != e.Neighbours:
			return "", fmt.Errorf("the run has guarantees for %s and for %s: %w: a ledger file takes one relation", relation,
				e.Neighbours, ErrRange)
		}
	}
	if relation == "" {
		relation = AddRemove
	}
	return relation, nil
}

// drawnPart is the part of a file's delta for what is added to delta that a release may take which is Gaussian noise on
// what a chance draws: for its drawing more than it is priced for.
const drawnPart = 1.0 / 64

// bounded is the ledger with such releases as Gaussian ones, each but for a probability of at most tail.
func (l *Ledger) bounded(tail float64) *Ledger {
	out := l.At(l.Delta)
	for i := range out.entries {
		e := &out.entries[i]
		e.Cost = e.Cost.bounded(tail)
		if e.True != nil {
			truth := e.True.bounded(tail)
			e.True = &truth
		}
	}
	return out
}

// price is what a run costs one viewer, in its own relation.
func (t Terms) price(l *Ledger, viewer string) (Charge, error) {
	if t.Composition != BasicComposition && t.Composition != "" {
		l = l.bounded(t.Budget.Delta * aside * drawnPart)
	}
	_, _, a := l.compose(viewer, true)
	if a == nil {
		why := "something that has no bound"
		if i := slices.IndexFunc(l.entries, func(e Entry) bool { return e.charged(viewer) && e.exposed(viewer) }); i >= 0 {
			why = l.entries[i].What + ", whose noise it knows: let the clients draw it, with --noise split"
		}
		return Charge{}, fmt.Errorf("the %s would see %s: %w", viewer, why, ErrBudget)
	}
	if t.Composition == BasicComposition || t.Composition == "" {
		epsilon, _ := a.total(l.Delta)
		c := Charge{epsilon, l.Delta}
		if a.failure+a.distance == 0 && a.pure.epsilon <= 1.01*epsilon { // a delta for so little is not worth it
			c = Charge{Amount: a.pure.epsilon}
		}
		return c, t.known(c, viewer)
	}
	c := Charge{Delta: a.failure + slackDelta(t.Budget.Epsilon, a.distance)}
	switch t.Composition {
	case ZCDPComposition:
		c.Amount = a.zcdp.rho
	case GDPComposition:
		c.Amount = a.gdp.mu2
		c.Delta += slackDelta(t.Budget.Epsilon, a.gdp.slack)
	case RDPComposition:
		r := a.rdp()
		c.Amount = r.total[slices.Index(r.orders, t.order())]
	}
	return c, t.known(c, viewer)
}

func (t Terms) known(c Charge, viewer string) error {
	if math.IsInf(c.Amount, 1) || math.IsNaN(c.Amount) {
		return fmt.Errorf("what the %s would see has no price in %s composition: %w: use another file, made with another "+
			"--ledger-composition", viewer, t.Composition, ErrBudget)
	}
	return nil
}

// twoSteps turns a guarantee for adding or removing a record into one for replacing a record (T7 iv, T11).
func (t Terms) twoSteps(c Charge) Charge {
	switch t.Composition {
	case ZCDPComposition, GDPComposition: // mu doubles
		c.Amount *= 4
		c.Delta *= 1 + math.Exp(t.Budget.Epsilon)
	case RDPComposition:
		c.Amount = math.Inf(1) // two orders would be needed
	default:
		c.Delta *= 1 + math.Exp(c.Amount)
		c.Amount *= 2
	}
	return c
}
