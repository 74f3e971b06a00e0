package catalog

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
	"testing"

	"github.com/cohort-engine/cohort/engine"
	"github.com/cohort-engine/cohort/engine/dataset"
	"github.com/cohort-engine/cohort/engine/enginetest"
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

// weigh gives the first client's records weights.
func weigh(d *protocol.Problem, weights []float64) { d.NoQuality, d.Clients[0].Weights = true, weights }

// badJobs spoil a job of any method.
var badJobs = map[string]func(*protocol.Problem){
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
	"no bounds":         func(d *protocol.Problem) { d.Bounds.Lo = d.Bounds.Lo[:1] },
	"bounds that are NaN": func(d *protocol.Problem) {
		d.Bounds.Hi = []float64{1, math.NaN(), 1, 1}
	},
	"bounds in the wrong order": func(d *protocol.Problem) {
		d.Bounds.Lo, d.Bounds.Hi = d.Bounds.Hi, d.Bounds.Lo
	},
	"fewer than no records":  func(d *protocol.Problem) { with(d, &kernels.Panels{N: -1, D: 4}, 16) },
	"more than memory":       func(d *protocol.Problem) { with(d, &kernels.Panels{N: 1 << 60, D: 16}, 16) },
	"few weights":            func(d *protocol.Problem) { weigh(d, make([]float64, 3)) },
	"no weights":             func(d *protocol.Problem) { weigh(d, []float64{}) },
	"weights that are NaN":   func(d *protocol.Problem) { weigh(d, slices.Repeat([]float64{math.NaN()}, 400)) },
	"negative weights":       func(d *protocol.Problem) { weigh(d, slices.Repeat([]float64{-1}, 400)) },
	"a weight cap of NaN":    func(d *protocol.Problem) { d.WeightCap = math.NaN() },
	"few rows":               func(d *protocol.Problem) { d.Clients[0].Rows = make([]int, 3) },
	"rows beyond the labels": func(d *protocol.Problem) { d.Clients[0].Rows = slices.Repeat([]int{400}, 400) },
	"few ids":                func(d *protocol.Problem) { d.IDs = []string{"a"} },
	"a short start":          func(d *protocol.Problem) { d.Start = make([]float64, 3) },
	"an empty start":         func(d *protocol.Problem) { d.Start = []float64{} },
	"a start that is NaN":    func(d *protocol.Problem) { d.Start = slices.Repeat([]float64{math.NaN()}, 12) },
	"clients that differ": func(d *protocol.Problem) {
		d.Clients = append(d.Clients, dataset.Part{Points: kernels.NewPanels(5, 3), FractionBits: 16})
	},
	"a client without records": func(d *protocol.Problem) {
		d.Clients = append(d.Clients, dataset.Part{FractionBits: 16})
	},
	"no columns":              func(d *protocol.Problem) { d.Columns = [][]int{} },
	"a party without columns": func(d *protocol.Problem) { d.Columns = [][]int{{0, 1, 2, 3}, {}} },
	"a column too many":       func(d *protocol.Problem) { d.Columns = [][]int{{0, 1}, {2, 4}} },
	"a negative column":       func(d *protocol.Problem) { d.Columns = [][]int{{0, -1}, {2, 3}} },
	"a column twice":          func(d *protocol.Problem) { d.Columns = [][]int{{0, 1}, {1, 3}} },
	"a negative public n":     func(d *protocol.Problem) { d.Records = -1 },
	"endless iterations":      func(d *protocol.Problem) { d.Iterations = math.MaxInt },
	"negative colluders":      func(d *protocol.Problem) { d.Colluders = -1 },
	"more survivors":          func(d *protocol.Problem) { d.Survivors = 5 },
	"a strange mechanism":     func(d *protocol.Problem) { d.Mechanism = "strange" },
	"strange noise":           func(d *protocol.Problem) { d.Noise = "strange" },
	"a strange calibration":   func(d *protocol.Problem) { d.Calibration = "strange" },
	"a strange relation":      func(d *protocol.Problem) { d.Neighbours = "strange" },
}

// badBudgets spoil a job of a private method.
var badBudgets = map[string]func(*protocol.Problem){
	"epsilon no number": func(d *protocol.Problem) { d.Budget.Epsilon = math.NaN() },
	"negative epsilon":  func(d *protocol.Problem) { d.Budget.Epsilon = -1 },
	"infinite epsilon":  func(d *protocol.Problem) { d.Budget.Epsilon = math.Inf(1) },
	"delta no number":   func(d *protocol.Problem) { d.Budget.Delta = math.NaN() },
	"delta of one":      func(d *protocol.Problem) { d.Budget.Delta = 1 },
}

// Every method refuses a job that makes no sense, in the usual form: it does not panic,
// and it drops no record silently.
func TestBadJobsAreRefused(t *testing.T) {
	eng := enginetest.New(t, engine.WithWorkers(1))
	for i := range Methods() {
		m := &Methods()[i]
		cases := maps.Clone(badJobs)
		if m.Private {
			maps.Copy(cases, badBudgets)
		}
		for what, spoil := range cases {
			d := small(t, m)
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
	eng := enginetest.New(t, engine.WithWorkers(1))
	const stated = "300" // sizes of clusters that follow it have no place for some of 400
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
			for _, public := range []string{stated, ""} {
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
				o, err := outlineOf(job)
				if err != nil {
					t.Errorf("%s, %d records, public %q: %v", m.Name, n, public, err)
					continue
				}
				o.N = 0
				b, err := json.Marshal(o)
				if err != nil {
					t.Fatal(err)
				}
				if public == "" {
					if m.Private && n == 399 && string(b) == plans[stated] {
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

// Under a public number of records some clients, or all, may hold none: their absence from a refusal, a plan or a
// run would tell how many there are. Clients may have weights, and those without records then have none.
func TestClientsWithoutRecords(t *testing.T) {
	eng := enginetest.New(t, engine.WithWorkers(1))
	several, weighed := 0, 0
	for i := range Methods() {
		m := &Methods()[i]
		if !m.Private || m.Holds != method.Rows || !m.Takes("public-n") {
			continue
		}
		several++
		for _, clients := range []int{5, 1} {
			runsForAnyNumber(t, eng, m, clients, false)
			if m.Weighs && clients > 1 {
				weighed++
				runsForAnyNumber(t, eng, m, clients, true)
			}
		}
	}
	if several < 5 || weighed < 3 {
		t.Errorf("only %d methods have several clients, %d with weights", several, weighed)
	}
}

// runsForAnyNumber fails unless a method has one plan, and runs by it, for any number of records at so many clients
// under a public one. Of records with weights the last client has some at least: what has none at all has no weights.
func runsForAnyNumber(t *testing.T, eng *engine.Engine, m *method.Method, clients int, weights bool) {
	first := ""
	for _, n := range []int{400, 2, 0} {
		d := small(t, m)
		whole := dataset.Normalised{FractionBits: d.Clients[0].FractionBits, Points: new(kernels.Panels)}
		*whole.Points = d.Clients[0].Points.Slice(0, n)
		parts, err := whole.Split(clients, nil, 1)
		if err != nil {
			t.Fatalf("%d records for %d clients: %v", n, clients, err)
		}
		if weights {
			slices.Reverse(parts)
			if n == 0 {
				*whole.Points = d.Clients[0].Points.Slice(0, 1)
				parts[clients-1].Points = whole.Points
			}
			for i, p := range parts {
				if p.Points.N > 0 {
					parts[i].Weights = slices.Repeat([]float64{0.5}, p.Points.N)
				}
			}
		}
		d.Clients, d.NoQuality, d.Labels = parts, true, nil
		job, err := Methods().Job(m.Name, d, method.Settings{"public-n": "300"})
		if err != nil {
			t.Fatal(err)
		}
		o, err := outlineOf(job)
		if err != nil {
			t.Errorf("%s, %d records at %d clients, weights %v: %v", m.Name, n, clients, weights, err)
			continue
		}
		b, err := json.Marshal(o)
		if err != nil {
			t.Fatal(err)
		}
		if first = cmp.Or(first, string(b)); first != string(b) {
			t.Errorf("%s: with %d records at %d clients, weights %v, the plan is %s\nnot %s", m.Name, n, clients, weights, b,
				first)
		}
		if err := attempt(context.Background(), eng, job); err != nil {
			t.Errorf("%s, %d records at %d clients, weights %v: %v", m.Name, n, clients, weights, err)
		}
	}
}

// Under a public number of records nothing in a private result tells one of n records from one of n-1: what
// is the same in all results of either, and another in the other's, has no noise over it.
func TestResultsUnderAPublicNumberOfRecords(t *testing.T) {
	eng := enginetest.New(t, engine.WithWorkers(1))
	const runs = 10 // a field of two values that noise decides is taken for exact once in 2^18
	const reports = "a report of each record: the headline and the ledger say so"
	told := map[string]string{
		"ldp-agg .comm.bytes_sent[0]": reports, "ldp-agg .comm.bytes_sent[1]": reports,
	}
	met := map[string]bool{}
	for i := range Methods() {
		m := &Methods()[i]
		if !m.Private || !m.Takes("public-n") {
			continue
		}
		fixed := func(n int) map[string]string {
			same := map[string]string{}
			for run := range runs {
				d := small(t, m)
				d.NoQuality, d.Labels, d.Seed = true, nil, nil
				p := d.Clients[0].Points.Slice(0, n)
				with(&d, &p, d.Clients[0].FractionBits)
				job, err := Methods().Job(m.Name, d, method.Settings{"public-n": "300"})
				if err != nil {
					t.Fatal(err)
				}
				res, err := eng.Run(context.Background(), job)
				if err != nil {
					t.Fatalf("%s: %v", m.Name, err)
				}
				fields := leaves(t, res)
				if run == 0 {
					same = fields
				}
				maps.DeleteFunc(same, func(path, value string) bool { return fields[path] != value })
			}
			return same
		}
		whole, less := fixed(400), fixed(399)
		if len(whole) < 5 {
			t.Errorf("%s: only %d fields are the same in all runs: the test shows nothing", m.Name, len(whole))
		}
		for path, value := range whole {
			other, is := less[path]
			switch at := m.Name + " " + path; {
			case !is || other == value:
			case told[at] != "":
				met[at] = true
			default:
				t.Errorf("%s: %s with 400 records and %s with 399", at, value, other)
			}
		}
	}
	for at := range told {
		if !met[at] {
			t.Errorf("%s does not tell the number", at)
		}
	}
}

// leaves has the values of a result's JSON by their paths, and the lengths of its lists.
func leaves(t *testing.T, res *engine.Result) map[string]string {
	t.Helper()
	b, err := json.Marshal(res)
	if err != nil {
		t.Fatal(err)
	}
	var all any
	if err := json.Unmarshal(b, &all); err != nil {
		t.Fatal(err)
	}
	fields := map[string]string{}
	var walk func(path string, x any)
	walk = func(path string, x any) {
		switch x := x.(type) {
		case map[string]any:
			for key, value := range x {
				walk(path+"."+key, value)
			}
		case []any:
			fields[path+"#"] = fmt.Sprint(len(x))
			for i, value := range x {
				walk(fmt.Sprintf("%s[%d]", path, i), value)
			}
		default:
			fields[path] = fmt.Sprint(x)
		}
	}
	walk("", all)
	return fields
}

// outlineOf is the outline of a job's plan.
func outlineOf(job engine.Job) (*engine.Outline, error) {
	plan, err := job.Plan()
	if err != nil {
		return nil, err
	}
	return plan.Outline()
}
