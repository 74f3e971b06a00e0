// Package cohort clusters data that several parties hold, privately if a budget
// is given. [Fit] returns a [Model]: centroids, what they cost (the ledger), and
// labels of old and new records. [Prepare] reads records once for many fits. Programs that want phases,
// several jobs on one pool, or methods under homomorphic encryption use package engine.
package cohort

import (
	"context"
	"runtime"

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
func Rows[T float32 | float64](points []T, n, d int) Data {
	return Matrix(dataset.Matrix[T]{Data: points, N: n, D: d})
}

// Matrix is records in memory of any layout. They are read while a model is fitted, and not kept.
func Matrix[T float32 | float64](m dataset.Matrix[T]) Data {
	return source(func() (dataset.Source, error) { return dataset.FromMatrix("data", m) })
}

// File is the records of a file: text, .npy or MNIST idx, also gzip-compressed. Several files with commas
// between them are those of one client each.
func File(path string) Data {
	return source(func() (dataset.Source, error) {
		return dataset.OpenFiles(context.Background(), path, dataset.ReadOptions{})
	})
}

// From is the records of any source, such as batches, a channel, Parquet or Arrow.
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
	// Methods are those that can be named, by default those of engine/catalog/standard; engine/catalog has more,
	// which need a library for homomorphic encryption.
	Methods method.List
	// Bounds are the public bounds of the columns, OneScale maps all by one scale (PrepareOptions). Records.Fit
	// has them already.
	Bounds   Bounds
	OneScale bool
	// Clients is the number of clients that share the rows, for methods over rows: 1 by default, and
	// one for each of several files.
	Clients int
	// Parties has the columns of each party, by index, for methods over columns.
	Parties [][]int
	// Start has K first centroids, in the data's own units, for methods that take them.
	Start [][]float64
	// Account, unless nil, is the ledger file that the run is charged to.
	Account *Account
	// Seed makes the run a simulation: reproducible, hence not private.
	Seed *uint64
	// Ordered numbers clusters by their centroids, coordinate by coordinate, so that the same clusters have the same
	// numbers whatever run has found them.
	Ordered bool
	// NoLabels leaves the records of the fit without labels.
	NoLabels bool
	// Engine runs the fit, for programs with many; else it has an engine of its own with Workers threads, all
	// cores by default, and an Observer that sees its progress.
	Engine   *engine.Engine
	Workers  int
	Observer engine.Observer
}

// Fit clusters the records.
func Fit(ctx context.Context, data Data, o Options) (*Model, error) {
	if _, err := o.method(); err != nil {
		return nil, fault.OfLibrary(err)
	}
	p := PrepareOptions{Bounds: o.Bounds, OneScale: o.OneScale, Unit: o.Settings["metric"] == cosine, Workers: o.Workers,
		Account: o.Account}
	if o.Engine != nil {
		p.Workers = o.Engine.Workers()
	}
	records, err := Prepare(ctx, data, p)
	if err != nil {
		return nil, err
	}
	defer records.Close()
	return records.Fit(ctx, o)
}

// method is the one that is asked for; it fills in the defaults that name it.
func (o *Options) method() (*method.Method, error) {
	if o.Methods == nil {
		o.Methods = standard.Methods()
	}
	if o.Method == "" {
		o.Method = standard.Default(o.Epsilon != 0)
	}
	switch {
	case !(o.Delta >= 0 && o.Delta < 1):
		return nil, fault.Range("delta", o.Delta, "in [0, 1), where 0 stands for 1/(n ln n)")
	case o.Delta > 0 && o.Epsilon == 0:
		return nil, fault.Request("delta", "is given without epsilon", "give both, or leave it out")
	case o.Pure && o.Epsilon == 0:
		return nil, fault.Request("pure", "is given without epsilon", "give both, or leave it out")
	case o.Pure && o.Delta > 0:
		return nil, fault.Request("delta", "is given with pure, which asks for none", "leave one of them out")
	}
	return o.Methods.Find(o.Method)
}

// budget is what the run may spend.
func (o *Options) budget() privacy.Budget {
	if o.Epsilon == 0 {
		return privacy.Budget{}
	}
	b := privacy.Budget{Epsilon: o.Epsilon, Delta: o.Delta}
	if b.Delta == 0 && !o.Pure {
		b.Delta = -1
	}
	return b
}

// engineOf is the engine that a request names, or a new one, and what ends it.
func engineOf(given *engine.Engine, workers int, observer engine.Observer) (*engine.Engine, func(), error) {
	if given != nil {
		return given, func() {}, nil
	}
	if workers == 0 {
		workers = min(runtime.GOMAXPROCS(0), engine.MaxWorkers)
	}
	options := []engine.Option{engine.WithWorkers(workers)}
	if observer != nil {
		options = append(options, engine.WithObserver(observer))
	}
	eng, err := engine.New(options...)
	if err != nil {
		return nil, nil, err
	}
	return eng, func() { eng.Close() }, nil
}
