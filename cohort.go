// Package cohort clusters data that several parties hold, privately if a budget
// is given. [Fit] returns a [Model]: centroids, what they cost (the ledger), and
// labels of old and new records. Programs that want phases, several jobs on one
// pool, or methods under homomorphic encryption use package engine.
package cohort

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"runtime"
	"slices"

	"github.com/cohort-engine/cohort/engine"
	"github.com/cohort-engine/cohort/engine/catalog/standard"
	"github.com/cohort-engine/cohort/engine/dataset"
	"github.com/cohort-engine/cohort/engine/method"
	"github.com/cohort-engine/cohort/engine/privacy"
	"github.com/cohort-engine/cohort/internal/fault"
)

// Data are records: Rows, File, From, or a table of package dataset.
type Data interface {
	Source() (dataset.Source, error)
}

// Rows is n records of d numbers each, row-major. They are read while a model is fitted, and not kept.
func Rows(points []float64, n, d int) Data {
	return source(func() (dataset.Source, error) {
		return dataset.FromMatrix("data", dataset.Matrix[float64]{Data: points, N: n, D: d})
	})
}

// File is the records of a file: text, .npy or MNIST idx, also gzip-compressed.
func File(path string) Data {
	return source(func() (dataset.Source, error) {
		return dataset.OpenSource(context.Background(), path, dataset.ReadOptions{})
	})
}

// From is the records of any source, such as a matrix with strides, batches, a channel, Parquet or Arrow.
func From(s dataset.Source) Data {
	return source(func() (dataset.Source, error) { return s, nil })
}

type source func() (dataset.Source, error)

func (s source) Source() (dataset.Source, error) { return s() }

// Bounds are the public limits of the columns: lower and upper ones, or one pair for all columns. The
// zero value takes them from the data, which no budget covers.
type Bounds struct{ Lower, Upper []float64 }

// Range bounds every column by the same two numbers.
func Range(lower, upper float64) Bounds { return Bounds{[]float64{lower}, []float64{upper}} }

// Options say how to cluster. K is required; zero fields mean the default.
type Options struct {
	// K is the number of clusters.
	K int
	// Epsilon is the privacy budget of the whole run, 0 for none. Delta defaults to 1/(n ln n)
	// where noise needs one; Pure asks for noise that needs none.
	Epsilon, Delta float64
	Pure           bool
	// Method is the name of a method (cohort methods), "hybrid" with a budget and "lloyd" without
	// by default. Settings are its options by name, such as "eta-max-alpha": "2".
	Method   string
	Settings map[string]string
	// Bounds are the public bounds of the columns.
	Bounds Bounds
	// Clients is the number of clients that share the rows, for methods over rows, 1 by default.
	Clients int
	// Parties has the columns of each party, by index, for methods over columns.
	Parties [][]int
	// Start has K first centroids, in the data's own units, for methods that take them.
	Start [][]float64
	// Seed makes the run a simulation: reproducible, hence not private.
	Seed *uint64
	// Workers is the number of threads, all cores by default.
	Workers int
	// Observer sees the progress of the run.
	Observer engine.Observer
}

// Model is what a fit has learned. All but Labels is what its method releases.
type Model struct {
	Version string `json:"version"`
	Method  string `json:"method"`
	// Centroids has K rows in the data's own units.
	Centroids [][]float64 `json:"centroids"`
	// Sizes are those of the clusters: exact ones without a budget, else the noisy ones that the method
	// has released on its way; nil if it releases none.
	Sizes []float64 `json:"sizes"`
	// Lower and Upper bound the columns, which are mapped to [-1,1] and clamped before distances are
	// taken; FromData says that they were computed from the records.
	Lower    []float64 `json:"lower"`
	Upper    []float64 `json:"upper"`
	FromData bool      `json:"bounds_from_data"`
	// Columns are the names of the columns, nil if they have none.
	Columns      []string        `json:"columns"`
	FractionBits int             `json:"fraction_bits"`
	Calibration  string          `json:"calibration"`
	Epsilon      *float64        `json:"epsilon"`
	Delta        *float64        `json:"delta"`
	Ledger       *privacy.Ledger `json:"ledger"`
	// Labels has the cluster of each record of the fit, from 0. They stay with who holds the records:
	// the ledger does not cover them, and Save leaves them out.
	Labels []int `json:"-"`
}

// Fit clusters the records.
func Fit(ctx context.Context, data Data, o Options) (*Model, error) {
	methods := standard.Methods()
	if o.Method == "" {
		o.Method = standard.Default(o.Epsilon != 0)
	}
	m, err := methods.Find(o.Method)
	if err != nil {
		return nil, err
	}
	p, err := prepare(ctx, data, o)
	if err != nil {
		return nil, err
	}
	records, table := &p.Normalised, p.Table
	d := method.Data{Records: records, Parties: o.Parties, IDs: table.IDs, K: o.K, Seed: o.Seed, NoQuality: true}
	if o.Epsilon != 0 {
		d.Budget = privacy.Budget{Epsilon: o.Epsilon, Delta: o.Delta}
		if o.Delta == 0 && !o.Pure {
			d.Budget.Delta = -1
		}
	}
	if m.Holds != method.Columns {
		if d.Clients, err = records.Split(max(o.Clients, 1), nil, 0); err != nil {
			return nil, err
		}
	}
	if o.Start != nil {
		if d.Start, err = records.Bounds.Normalise(o.Start); err != nil {
			return nil, err
		}
	}
	job, err := methods.Job(o.Method, d, o.Settings)
	if err != nil {
		return nil, err
	}
	eng, err := newEngine(o)
	if err != nil {
		return nil, err
	}
	defer eng.Close()
	res, err := eng.Run(ctx, job)
	if err != nil {
		return nil, err
	}
	model := NewModel(res, records.Bounds, table.Columns, records.FractionBits)
	if model.Labels, _, err = model.Assign(ctx, eng.Pool(), records); err != nil {
		return nil, err
	}
	if !m.Private {
		model.Count(model.Labels)
	}
	return model, nil
}

func newEngine(o Options) (*engine.Engine, error) {
	if o.Workers == 0 {
		o.Workers = min(runtime.GOMAXPROCS(0), engine.MaxWorkers)
	}
	options := []engine.Option{engine.WithWorkers(o.Workers)}
	if o.Observer != nil {
		options = append(options, engine.WithObserver(o.Observer))
	}
	return engine.New(options...)
}

// NewModel is the model of a result of package engine.
func NewModel(r *engine.Result, bounds dataset.Bounds, columns []string, fractionBits int) *Model {
	return &Model{Version: r.Version, Method: r.Method, Centroids: r.Centroids, Sizes: r.Sizes, Lower: bounds.Lo, Upper: bounds.Hi, FromData: bounds.FromData,
		Columns: columns, FractionBits: fractionBits, Calibration: r.Calibration, Epsilon: r.Epsilon, Delta: r.Delta, Ledger: r.Ledger}
}

// Count sets Sizes to the numbers of the labels: what a model without a budget may show.
func (m *Model) Count(labels []int) {
	m.Sizes = make([]float64, len(m.Centroids))
	for _, l := range labels {
		m.Sizes[l]++
	}
}

// CountRecords sets the sizes of the clusters by records that are on the model's grid already.
func (m *Model) CountRecords(ctx context.Context, pool *engine.Pool, records *dataset.Normalised) error {
	centroids, err := m.bounds().Normalise(m.Centroids)
	if err == nil {
		m.Sizes, err = engine.Sizes(ctx, pool, records.Points, records.FractionBits, centroids, len(m.Centroids))
	}
	return err
}

// Predict returns the cluster of each record, from 0. Points are row-major in the data's own units.
func (m *Model) Predict(points []float64) ([]int, error) {
	labels, _, err := m.Nearest(context.Background(), points)
	return labels, err
}

// Score is the mean squared distance of the records to their nearest centroids, with each column
// scaled from its bounds to [-1,1]. It is computed from the records: no budget covers it.
func (m *Model) Score(points []float64) (float64, error) {
	_, distances, err := m.Nearest(context.Background(), points)
	sum := 0.0
	for _, x := range distances {
		sum += float64(x * x)
	}
	return sum / float64(len(distances)), err
}

// Nearest is Predict with the distances to the nearest centroids, with each column scaled from its
// bounds to [-1,1].
func (m *Model) Nearest(ctx context.Context, points []float64) (labels []int, distances []float64, err error) {
	d := len(m.Lower)
	if len(points) == 0 || len(points)%d != 0 {
		return nil, nil, fault.Request("points", fmt.Sprintf("are %d numbers for records of %d columns", len(points), d), "give whole rows")
	}
	bounds := m.bounds()
	s, err := Rows(points, len(points)/d, d).Source()
	if err != nil {
		return nil, nil, err
	}
	p, err := dataset.Prepare(ctx, s, dataset.PrepareOptions{Bounds: &bounds, FractionBits: m.FractionBits})
	if err != nil {
		return nil, nil, err
	}
	eng, err := newEngine(Options{})
	if err != nil {
		return nil, nil, err
	}
	defer eng.Close()
	return m.Assign(ctx, eng.Pool(), &p.Normalised)
}

// Assign is Nearest for records that are on the model's grid already.
func (m *Model) Assign(ctx context.Context, pool *engine.Pool, records *dataset.Normalised) (labels []int, distances []float64, err error) {
	n := records.Points.N
	labels, distances = make([]int, n), make([]float64, n)
	centroids, err := m.bounds().Normalise(m.Centroids)
	if err == nil {
		err = engine.Nearest(ctx, pool, records.Points, records.FractionBits, centroids, len(m.Centroids), labels, distances)
	}
	for i, x := range distances {
		distances[i] = math.Sqrt(x)
	}
	return labels, distances, err
}

func (m *Model) bounds() dataset.Bounds {
	return dataset.Bounds{Lo: m.Lower, Hi: m.Upper, FromData: m.FromData}
}

// Save writes the model as JSON.
func (m *Model) Save(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(m)
}

// Load reads what Save has written.
func Load(r io.Reader) (*Model, error) {
	m := new(Model)
	if err := json.NewDecoder(r).Decode(m); err != nil {
		return nil, fault.Failed("model", "cannot be read ("+err.Error()+")", "give what Save has written", err)
	}
	if err := m.bounds().Validate("model"); err != nil {
		return nil, err
	}
	if len(m.Lower) == 0 || len(m.Centroids) == 0 || m.FractionBits < 1 || m.FractionBits > dataset.MaxFractionBits {
		return nil, fault.Failed("model", "lacks bounds, centroids or its grid", "give what Save has written", nil)
	}
	_, err := m.bounds().Normalise(m.Centroids)
	return m, err
}

// prepare reads the records and puts them on the grid.
func prepare(ctx context.Context, data Data, o Options) (*dataset.Prepared, error) {
	if t, ok := data.(*dataset.Table); data == nil || ok && t == nil {
		return nil, fault.Request("data", "is nil", "give records, such as cohort.Rows(points, n, d)")
	}
	s, err := data.Source()
	if err != nil {
		return nil, err
	}
	opts := dataset.PrepareOptions{Read: dataset.ReadOptions{Workers: o.Workers}}
	switch lo, hi := o.Bounds.Lower, o.Bounds.Upper; {
	case len(lo) == 1 && len(hi) == 1:
		d := s.Schema().D
		opts.Bounds = &dataset.Bounds{Lo: slices.Repeat(lo, d), Hi: slices.Repeat(hi, d)}
	case len(lo) > 0 || len(hi) > 0:
		opts.Bounds = &dataset.Bounds{Lo: lo, Hi: hi}
	}
	return dataset.Prepare(ctx, s, opts)
}
