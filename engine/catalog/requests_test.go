package catalog

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"strings"
	"testing"

	"github.com/cohort-engine/cohort/engine"
	"github.com/cohort-engine/cohort/engine/dataset"
	"github.com/cohort-engine/cohort/engine/method"
	"github.com/cohort-engine/cohort/engine/protocol"
	"github.com/cohort-engine/cohort/internal/fault"
	"github.com/cohort-engine/cohort/kernels"
)

// attempt runs a job; a panic is an error that says so.
func attempt(ctx context.Context, eng *engine.Engine, job engine.Job) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("panic: %v", r)
		}
	}()
	_, err = eng.Run(ctx, job)
	return err
}

// with replaces the records of all who hold some.
func with(d *protocol.Problem, points *kernels.Panels, bits int) {
	d.Clients = []dataset.Part{{Points: points, FractionBits: bits}}
}

// spoilt returns the records with a coordinate replaced.
func spoilt(p *kernels.Panels, at int, x float64) *kernels.Panels {
	c := kernels.NewPanels(p.N, p.D)
	copy(c.Data, p.Data)
	row := c.Point(at, nil)
	row[p.D-1] = float32(x)
	c.Set(at, row)
	return c
}

// Every method refuses a job that makes no sense, in the usual form: it does not panic,
// and it drops no record silently.
func TestBadJobsAreRefused(t *testing.T) {
	eng, err := engine.New(engine.WithWorkers(1))
	if err != nil {
		t.Fatal(err)
	}
	defer eng.Close()
	cases := map[string]func(*protocol.Problem){
		"a coordinate that is no number": func(d *protocol.Problem) {
			with(d, spoilt(d.Clients[0].Points, 17, math.NaN()), d.Clients[0].FractionBits)
		},
		"an infinite coordinate": func(d *protocol.Problem) {
			with(d, spoilt(d.Clients[0].Points, 399, math.Inf(1)), d.Clients[0].FractionBits)
		},
		"one that is infinitely low": func(d *protocol.Problem) {
			with(d, spoilt(d.Clients[0].Points, 0, math.Inf(-1)), d.Clients[0].FractionBits)
		},
		"a coordinate beyond the box": func(d *protocol.Problem) {
			with(d, spoilt(d.Clients[0].Points, 200, 1.001),
				d.Clients[0].FractionBits)
		},
		"no records": func(d *protocol.Problem) { with(d, nil, d.Clients[0].FractionBits) },
		"a shape without records": func(d *protocol.Problem) {
			with(d, &kernels.Panels{N: 400, D: 4}, d.Clients[0].FractionBits)
		},
		"fewer coordinates than records": func(d *protocol.Problem) {
			p := *d.Clients[0].Points
			p.Data = p.Data[:len(p.Data)/2]
			with(d, &p, d.Clients[0].FractionBits)
		},
		"zero records": func(d *protocol.Problem) { with(d, &kernels.Panels{D: 4}, d.Clients[0].FractionBits) },
		"zero columns": func(d *protocol.Problem) { with(d, &kernels.Panels{N: 400}, d.Clients[0].FractionBits) },
		"no grid":      func(d *protocol.Problem) { with(d, d.Clients[0].Points, 0) },
		"too fine a grid": func(d *protocol.Problem) {
			with(d, d.Clients[0].Points, dataset.MaxFractionBits+1)
		},
		"nobody":            func(d *protocol.Problem) { d.Clients, d.Columns = nil, nil },
		"no clusters":       func(d *protocol.Problem) { d.K = 0 },
		"negative clusters": func(d *protocol.Problem) { d.K = -1 },
		"more than records": func(d *protocol.Problem) { d.K = 401 },
		"most clusters":     func(d *protocol.Problem) { d.K = math.MaxInt },
		"too few labels":    func(d *protocol.Problem) { d.Labels = d.Labels[:10] },
		"epsilon no number": func(d *protocol.Problem) { d.Budget.Epsilon = math.NaN() },
		"negative epsilon":  func(d *protocol.Problem) { d.Budget.Epsilon = -1 },
		"infinite epsilon":  func(d *protocol.Problem) { d.Budget.Epsilon = math.Inf(1) },
		"delta no number":   func(d *protocol.Problem) { d.Budget.Delta = math.NaN() },
		"delta of one":      func(d *protocol.Problem) { d.Budget.Delta = 1 },
		"no bounds":         func(d *protocol.Problem) { d.Bounds.Lo = d.Bounds.Lo[:1] },
		"bounds that are NaN": func(d *protocol.Problem) {
			d.Bounds.Hi = []float64{1, math.NaN(), 1, 1}
		},
	}
	for i := range Methods() {
		m := &Methods()[i]
		for what, spoil := range cases {
			d := small(t, m)
			if !m.Private && (strings.Contains(what, "epsilon") || strings.Contains(what, "delta")) {
				continue
			}
			spoil(&d)
			job, _ := m.Make(d)
			if err := attempt(context.Background(), eng, job); !fault.IsRequest(err) {
				t.Errorf("%s, %s: %v", m.Name, what, err)
			}
		}
		job, _ := m.Make(small(t, m))
		var none context.Context // as a caller that passes nil
		if err := attempt(none, eng, job); !fault.IsRequest(err) {
			t.Errorf("%s, nil context: %v", m.Name, err)
		}
		if err := attempt(context.Background(), eng,
			reflect.Zero(reflect.TypeOf(job)).Interface().(engine.Job)); !fault.IsRequest(err) {
			t.Errorf("%s, nil job: %v", m.Name, err)
		}
	}
	if err := attempt(context.Background(), eng, nil); !fault.IsRequest(err) {
		t.Errorf("no job: %v", err)
	}
}

// Under a public number of records no parameter follows the data's own: the plan is
// the same, whatever they have, and the run is one of every number.
func TestPublicNumberOfRecords(t *testing.T) {
	eng, err := engine.New(engine.WithWorkers(1))
	if err != nil {
		t.Fatal(err)
	}
	defer eng.Close()
	takes := 0
	for i := range Methods() {
		m := &Methods()[i]
		if !m.Takes("public-n") {
			continue
		}
		takes++
		plans := map[string]string{}
		for _, n := range []int{400, 399, 37, 2} {
			d := small(t, m)
			d.NoQuality, d.Labels = true, nil
			p := d.Clients[0].Points.Slice(0, n)
			with(&d, &p, d.Clients[0].FractionBits)
			for _, public := range []string{"400", ""} {
				set := method.Settings{}
				if public != "" {
					set["public-n"] = public
				}
				job, err := Methods().Job(m.Name, d, set)
				if err != nil {
					t.Fatal(err)
				}
				if public == "" && n < 399 {
					continue
				}
				plan, err := job.Plan()
				if err != nil {
					t.Errorf("%s, %d records, public %q: %v", m.Name, n, public, err)
					continue
				}
				o, err := plan.Outline()
				if err != nil {
					t.Fatal(err)
				}
				o.N, o.UnassignedAtLeast = 0, 0
				b, err := json.Marshal(o)
				if err != nil {
					t.Fatal(err)
				}
				if public == "" {
					if m.Private && n == 399 && string(b) == plans["400"] {
						t.Errorf("%s: the plan of 399 records is that of 400: the test shows nothing", m.Name)
					}
					continue
				}
				if first, known := plans[public]; known && first != string(b) {
					t.Errorf("%s: with %d records the plan is %s\nnot %s", m.Name, n, b, first)
				}
				plans[public] = string(b)
				if err := attempt(context.Background(), eng, job); err != nil {
					t.Errorf("%s, %d records for a public %s: %v", m.Name, n, public, err)
				}
			}
		}
	}
	if takes < 12 {
		t.Errorf("only %d methods take a public number of records", takes)
	}
}
