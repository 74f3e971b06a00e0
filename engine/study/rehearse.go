package study

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"path/filepath"
	"sync"

	"github.com/cohort-engine/cohort/engine"
	"github.com/cohort-engine/cohort/engine/catalog"
	"github.com/cohort-engine/cohort/engine/dataset"
	"github.com/cohort-engine/cohort/engine/method"
)

// Trial is a method among some parties, with options.
type Trial struct {
	Method  string
	Parties int
	Options method.Settings
}

// Trials are all methods that studies can have, in each of their forms.
func Trials() []Trial {
	few := method.Settings{"sketches": "256"}
	return []Trial{
		{"lloyd", 3, method.Settings{"init": "sphere"}}, {"clloyd", 3, nil}, {"sulloyd", 3, nil}, {"csulloyd", 3, nil},
		{"fastlloyd", 3, nil},
		{"relative", 3, nil}, {"relative", 3, method.Settings{"aggregator": "ring", "noise": "split"}},
		{"sulloyd", 3, method.Settings{"aggregator": "shares"}},
		{"fastlloyd", 3, method.Settings{"aggregator": "shares", "servers": "3"}},
		{"lloyd", 2, method.Settings{"init": "kmeans++", "aggregator": "naive"}}, {"hybrid", 3, nil},
		{"vertical-plain", 2, nil}, {"ind-lap", 2, nil}, {"ldp-agg", 2, nil}, {"sketch-basic", 2, few}, {"sketch", 2, few},
		{"ckks", 2, method.Settings{"iterations": "1"}},
		{"ckks", 2, method.Settings{"iterations": "1", "mode": "server-aided"}},
		{"ckks", 2, method.Settings{"iterations": "1", "mode": "multiparty"}},
		{"ckks", 4, method.Settings{"iterations": "1", "mode": "multiparty", "threshold": "2", "online": "1,3"}},
	}
}

// Rehearsal is a study whose roles are all in this process, and its parties' records.
type Rehearsal struct {
	Study *Study
	Table *dataset.Normalised
	Parts []dataset.Part
	// Watch, if not nil, follows the coordinator.
	Watch *Watch
}

// Rehearse makes a simulation of a study on records, which parties hold in even parts.
func (t Trial) Rehearse(table *dataset.Normalised, k int) (*Rehearsal, error) {
	m, err := catalog.Methods().Find(t.Method)
	if err != nil {
		return nil, err
	}
	seed, d := uint64(7), table.Points.D
	s := &Study{Method: t.Method, Options: maps.Clone(t.Options), K: k, Records: table.Points.N,
		FractionBits: table.FractionBits, Seed: &seed, Threshold: t.Parties/2 + 1,
		Deadlines: Deadlines{Step: 20, Message: 60}}
	if m.Private {
		s.Epsilon, s.Delta = 4, -1
	}
	if m.Private && !m.Takes("survivors") || t.Options["aggregator"] == "shares" {
		s.Threshold = t.Parties // noise or vectors need the shares of all
	}
	for h := range table.Bounds.Lo {
		s.Bounds = append(s.Bounds, [2]float64{table.Bounds.Lo[h], table.Bounds.Hi[h]})
	}
	r := &Rehearsal{Study: s, Table: table}
	for p := range t.Parties {
		s.Parties = append(s.Parties, Holder{Name: fmt.Sprint("party ", p+1)})
		if m.Holds == method.Columns {
			s.Parties[p].Columns = (p+1)*d/t.Parties - p*d/t.Parties
		}
	}
	if m.Holds == method.Rows {
		r.Parts, err = table.Split(t.Parties, nil, 1)
	} else {
		for p := range t.Parties {
			points := table.Table()[0].Columns(s.columnsOf(p))
			r.Parts = append(r.Parts, dataset.Part{Points: points, FractionBits: table.FractionBits})
		}
	}
	if err != nil {
		return nil, err
	}
	return r, s.Complete()
}

// Together runs the study's method in one place, on all records, as cohort run does.
func (r *Rehearsal) Together(ctx context.Context, eng *engine.Engine) (*engine.Result, error) {
	clients := r.Parts
	if r.Study.ByColumns() {
		clients = r.Table.Table()
	}
	job, err := r.Study.jobOf(clients, r.Table.Bounds, nil)
	if err != nil {
		return nil, err
	}
	return eng.Run(ctx, job)
}

// Roles is how many roles the study has: parties, servers, and the coordinator.
func (r *Rehearsal) Roles() int { return len(r.Study.roles()) + 1 }

// Apart runs every role with a connection of its own over the loopback interface, and state
// folders in dir. It returns what the parties learn, in their order, other servers, and the
// coordinator. engines gives each role an engine.
func (r *Rehearsal) Apart(ctx context.Context, dir string, engines func(role int) *engine.Engine) ([]*engine.Result,
	error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	state := func(p int) string { return filepath.Join(dir, fmt.Sprint("role", p)) }
	n, log := r.Roles()-1, slog.New(slog.DiscardHandler)
	c, err := NewCoordinator(Serve{Study: r.Study, State: state(n), Listen: "127.0.0.1:0", Log: log, Engine: engines(n),
		Watch: r.Watch})
	if err != nil {
		return nil, err
	}
	defer c.Close()
	results, errs := make([]*engine.Result, n+1), make([]error, n+1)
	var roles sync.WaitGroup
	for p, v := range c.Invitations() {
		j := Join{Invitation: &v, State: state(p), Log: log, Engine: engines(p),
			Load: func(_ context.Context, _ *Study, party int) (dataset.Part, []string, error) {
				return r.Parts[party], nil, nil
			},
			Agree: func(context.Context, *Terms) error { return nil }}
		roles.Go(func() {
			if results[p], errs[p] = Take(ctx, j); errs[p] != nil {
				cancel()
			}
		})
	}
	results[n], errs[n] = c.Run(ctx)
	if errs[n] != nil {
		cancel()
	}
	roles.Wait()
	return results, errors.Join(errs...)
}
