// Package method is how a method of clustering describes itself: what it is, who
// holds what, whether and against whom it is private, when to choose it, which
// options it takes with their allowed values and defaults, and how to make its
// job. Each package of methods exports such descriptions; engine/catalog lists
// them, and everything that offers methods by name reads that list.
package method

import (
	"slices"
	"strings"

	"github.com/cohort-engine/cohort/engine"
	"github.com/cohort-engine/cohort/engine/dataset"
	"github.com/cohort-engine/cohort/engine/privacy"
	"github.com/cohort-engine/cohort/engine/protocol"
	"github.com/cohort-engine/cohort/internal/fault"
)

// Holding is who holds what.
type Holding string

// The holdings.
const (
	// Rows are shared by clients, each of which has all columns of its own rows.
	Rows Holding = "rows"
	// Columns are shared by parties, each of which has its own columns of all rows.
	Columns Holding = "columns"
	// Table is held by one party.
	Table Holding = "one table"
)

// Method describes a method.
type Method struct {
	// Name is what --method and results call it.
	Name string `json:"name"`
	// About says in a line what it is.
	About string `json:"about"`
	// Holds says who holds what.
	Holds Holding `json:"holds"`
	// Private methods spend a budget; Against says who learns no more than it allows, or what a
	// method without noise shows to whom.
	Private bool   `json:"private"`
	Against string `json:"against"`
	// When says when to choose it, Cost what a run takes.
	When string `json:"when"`
	Cost string `json:"cost"`
	// Quiet says that a private method also runs without noise, by calibration none.
	Quiet bool `json:"quiet,omitempty"`
	// Starts says that the method takes given first centroids (Problem.Start).
	Starts bool `json:"starts"`
	// Weighs says that the method takes records with weights (Part.Weights).
	Weighs bool `json:"weighs"`
	// Unweighed says why it does not.
	Unweighed string `json:"unweighed,omitempty"`
	// Make returns a job on the problem and the options that write to it, in the order in which
	// they are set. With the zero Problem the job is good for nothing but its options.
	Make func(protocol.Problem) (engine.Job, Options) `json:"-"`
}

// Options lists the method's options.
func (m *Method) Options() Options {
	_, options := m.Make(protocol.Problem{})
	return options
}

// Takes reports whether the method has the option.
func (m *Method) Takes(option string) bool {
	return slices.ContainsFunc(m.Options(), func(o Option) bool { return o.Name == option })
}

// Neighbours is what neighbouring data sets are to a run with such settings.
func (m *Method) Neighbours(set Settings) privacy.Neighbours {
	if n := set["neighbours"]; n != "" {
		return privacy.Neighbours(n)
	}
	for _, option := range m.Options() {
		if option.Name == "neighbours" {
			return privacy.Neighbours(option.Default)
		}
	}
	return privacy.AddRemove
}

// Calibrations are those that the method has, the default first; none without noise.
func (m *Method) Calibrations() []privacy.Calibration { return privacy.Calibrations(m.Name) }

// With is the method as it is under such settings: one that runs without noise is not private.
func (m *Method) With(set Settings) *Method {
	if !m.Quiet || set["calibration"] != string(privacy.None) {
		return m
	}
	quiet := *m
	quiet.Private = false
	return &quiet
}

// Settings are the values of options, by name.
type Settings map[string]string

// List is a list of methods.
type List []Method

// Names lists the names.
func (l List) Names() []string {
	names := make([]string, len(l))
	for i := range l {
		names[i] = l[i].Name
	}
	return names
}

// Find returns the method called name.
func (l List) Find(name string) (*Method, error) {
	for i := range l {
		if l[i].Name == name {
			return &l[i], nil
		}
	}
	return nil, fault.Unknown("method", name, l.Names())
}

// Takers lists the methods that do what the condition says.
func (l List) Takers(takes func(*Method) bool) []string {
	var names []string
	for i := range l {
		if takes(&l[i]) {
			names = append(names, l[i].Name)
		}
	}
	return names
}

// Job makes the named method's job. It refuses options and data that the method does not take,
// and says which methods take them; what it cannot see without records is left to the job's
// Plan, so that without Clients it checks a request before any data are read.
func (l List) Job(name string, p protocol.Problem, set Settings) (engine.Job, error) {
	m, err := l.Find(name)
	if err != nil {
		return nil, err
	}
	m = m.With(set)
	if err := l.check(m, &p, set); err != nil {
		return nil, err
	}
	job, options := m.Make(p)
	for _, o := range options {
		text, given := set[o.Name]
		if !given {
			continue
		}
		if err := o.Set(text); err != nil {
			return nil, o.refuse(text, err)
		}
	}
	return job, nil
}

func (l List) check(m *Method, p *protocol.Problem, set Settings) error {
	for option := range set {
		if !m.Takes(option) {
			return l.Foreign(m, option, func(m *Method) bool { return m.Takes(option) })
		}
	}
	switch {
	case p.Start != nil && !m.Starts:
		return l.Foreign(m, "start", func(m *Method) bool { return m.Starts })
	case !m.Weighs && slices.ContainsFunc(p.Clients, func(c dataset.Part) bool { return c.Weights != nil }):
		return l.Foreign(m, "weights", func(m *Method) bool { return m.Weighs })
	case p.Start != nil && set["init"] != "":
		return fault.Request("init", "is given together with start", "give one of them")
	case m.Quiet && !m.Private && p.Budget.Epsilon != 0:
		return fault.Request("epsilon", "is given with calibration none, which adds no noise", "leave one of them out")
	case !m.Private && p.Budget.Epsilon != 0:
		return fault.Request("epsilon", m.Name+" is not private and spends none",
			"choose a private method, or leave --epsilon out")
	case m.Private && p.Budget.Epsilon == 0:
		return fault.Request("epsilon", "is not given", m.Name+" is private and needs a budget, such as --epsilon 1")
	case set["mechanism"] == "gaussian" && p.Budget.Delta == 0:
		return fault.Request("mechanism", "gaussian noise needs a positive --delta", "give a delta, or --mechanism laplace")
	}
	return nil
}

// Foreign is the refusal of an option that the method does not take, with the methods that do.
func (l List) Foreign(m *Method, option string, takes func(*Method) bool) error {
	why := m.Name + " does not take it"
	if strings.TrimLeft(option, "-") == "weights" {
		why = m.Name + " does not take them, as " + m.Unweighed
	}
	takers := l.Takers(takes)
	if len(takers) == 0 {
		return fault.Request(option, "no method has such an option", "leave it out, or look for its name in cohort methods")
	}
	return fault.Request(option, why, "leave it out, or choose "+strings.Join(takers, ", "))
}
