package cohort

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"sync"

	"github.com/cohort-engine/cohort/engine"
	"github.com/cohort-engine/cohort/engine/dataset"
	"github.com/cohort-engine/cohort/engine/method"
	"github.com/cohort-engine/cohort/engine/privacy"
	"github.com/cohort-engine/cohort/engine/protocol"
	"github.com/cohort-engine/cohort/internal/fault"
)

// PrepareOptions say how records are read. Zero fields mean the default.
type PrepareOptions struct {
	// Bounds are the public bounds of the columns.
	Bounds Bounds
	// OneScale maps all columns by one scale, that of the widest, so that distances are those of the data's own
	// units. Otherwise each column is scaled by its own bounds.
	OneScale bool
	// Unit scales each record to length 1, which the setting metric=cosine of lloyd asks for; the bounds are [-1,1] then.
	Unit bool
	// FractionBits f puts coordinates on the grid 2^-f of the scaled columns. dataset.MaxFractionBits is the
	// finest, and the default on one scale and with Unit, where columns may be narrow; else it is
	// dataset.DefaultFractionBits.
	FractionBits int
	// Weights has a weight for each record, 0 or more, for methods that take them: plain ones, and private ones within
	// the public cap of their setting weight-cap.
	Weights []float64
	// Account is the ledger file that fits of these records will be charged to.
	Account *Account
	// Cache is a folder that keeps the prepared records, for sets of files beyond memory.
	Cache string
	// Workers is the number of threads that read, all cores by default.
	Workers int
}

// Records are data that are ready to be clustered, as often as wanted and by several goroutines at a time.
type Records struct {
	prepared *dataset.Prepared
	oneScale bool
	account  *Account
	salt     string
	mu       sync.Mutex
	clients  []dataset.Part // of the fit before
	dealt    int            // to so many
}

// Prepare reads records once for many fits. It borrows the data until it returns.
func Prepare(ctx context.Context, data Data, o PrepareOptions) (r *Records, err error) {
	defer func() { err = fault.OfLibrary(err) }()
	noData := fault.Request("data", "is nil", "give records, such as cohort.Rows(points, n, d)")
	switch t, ok := data.(*dataset.Table); {
	case ctx == nil:
		return nil, engine.ErrNoContext
	case data == nil || ok && t == nil:
		return nil, noData
	case o.Workers < 0:
		return nil, fault.Range("workers", o.Workers, "at least 1, or 0 for all cores")
	}
	s, err := data.Source()
	if err != nil {
		return nil, err
	}
	if s == nil {
		return nil, noData
	}
	if o.FractionBits == 0 && o.OneScale {
		o.FractionBits = dataset.MaxFractionBits
	}
	opts := dataset.PrepareOptions{Read: dataset.ReadOptions{Workers: o.Workers}, OneScale: o.OneScale, Unit: o.Unit,
		FractionBits: o.FractionBits, Weights: o.Weights, Cache: o.Cache}
	switch lo, hi := o.Bounds.Lower, o.Bounds.Upper; {
	case len(lo) != len(hi):
		return nil, fault.Request("bounds", fmt.Sprintf("are %d lower and %d upper ones", len(lo), len(hi)),
			"give as many of both: one, or one per column")
	case len(lo) == 1 && len(hi) == 1:
		d := s.Schema().D
		opts.Bounds = &dataset.Bounds{Lo: slices.Repeat(lo, d), Hi: slices.Repeat(hi, d)}
	case len(lo) > 0 || len(hi) > 0:
		opts.Bounds = &dataset.Bounds{Lo: lo, Hi: hi}
	}
	r = &Records{account: o.Account, oneScale: o.OneScale || o.Unit}
	if o.Account != nil {
		if r.salt, err = o.Account.File.Salt(); err != nil {
			return nil, err
		}
		key := o.Account.File.DigestKey(r.salt)
		opts.DigestKey = &key
	}
	if r.prepared, err = dataset.Prepare(ctx, s, opts); err != nil {
		return nil, err
	}
	return r, nil
}

// N is the number of records, 0 once they are closed.
func (r *Records) N() int {
	if !r.held() {
		return 0
	}
	return r.prepared.Points.N
}

// D is the number of columns, 0 once the records are closed.
func (r *Records) D() int {
	if !r.held() {
		return 0
	}
	return r.prepared.Points.D
}

// held tells whether there are records: they were made by Prepare and not closed.
func (r *Records) held() bool { return r != nil && r.prepared != nil && r.prepared.Points != nil }

// Close gives back the memory of the records, once no fit uses them.
func (r *Records) Close() {
	if r.held() {
		r.prepared.Close()
	}
}

// Fit clusters the records.
func (r *Records) Fit(ctx context.Context, o Options) (_ *Model, err error) {
	defer func() { err = fault.OfLibrary(err) }()
	if ctx == nil {
		return nil, engine.ErrNoContext
	}
	if !r.held() {
		return nil, fault.Request("records", "are closed, or were not made by Prepare", "prepare them again")
	}
	m, err := o.method()
	if err != nil {
		return nil, err
	}
	if o.Settings["metric"] == cosine && !r.prepared.Unit {
		return nil, fault.Request("metric", "is cosine for records that were not scaled to length 1",
			"prepare them with Unit")
	}
	job, err := r.job(m, &o)
	if err != nil {
		return nil, err
	}
	pay, err := r.payment(m, &o)
	if err != nil {
		return nil, err
	}
	var watch []engine.Observer
	if o.Engine != nil && o.Observer != nil {
		watch = []engine.Observer{o.Observer}
	}
	eng, end, err := engineOf(o.Engine, o.Workers, o.Observer)
	if err != nil {
		return nil, err
	}
	defer end()
	defer pay.Close()
	paid, err := pay.Start(job)
	if err != nil {
		return nil, err
	}
	res, err := eng.Run(ctx, paid.Job, watch...)
	if err != nil {
		return nil, pay.Lost(paid, err)
	}
	if err := pay.End(paid, res); err != nil {
		return nil, pay.Lost(paid, err)
	}
	model := NewModel(res, r.prepared.Bounds, r.prepared.Table.Columns, r.prepared.FractionBits)
	if model.OneScale = r.oneScale; r.prepared.Unit {
		model.Metric = cosine
	}
	if o.Ordered {
		model.order()
	}
	if res.LossEstimate != nil {
		total := float64(res.N)
		if res.Weight != nil {
			total = *res.Weight
		}
		estimate := total * *res.LossEstimate * model.unit() * model.unit()
		if !math.IsNaN(estimate) && !math.IsInf(estimate, 0) { // as of bounds of 1e300
			model.InertiaEstimate = &estimate
		}
	}
	if !o.NoLabels || !m.Private {
		if err := model.label(ctx, eng.Pool(), &r.prepared.Normalised, m.Private); err != nil {
			return nil, pay.Lost(paid, err)
		}
	}
	return model, pay.Delivered()
}

// job makes the job of a fit.
func (r *Records) job(m *method.Method, o *Options) (engine.Job, error) {
	records := &r.prepared.Normalised
	d := protocol.Problem{Clients: records.Table(), Bounds: records.Bounds, Clamped: records.Clamped,
		Columns: o.Parties, IDs: r.prepared.Table.IDs, K: o.K, Seed: o.Seed, Budget: o.budget(), NoQuality: true}
	var err error
	if m.Holds != method.Columns {
		if d.Clients, err = r.share(o.Clients, m); err != nil {
			return nil, err
		}
	}
	if o.Start != nil {
		start := o.Start
		if records.Unit {
			start = nil
			for _, row := range o.Start {
				row = slices.Clone(row)
				dataset.ToUnit(row)
				start = append(start, row)
			}
		}
		if d.Start, err = records.Bounds.Normalise(start); err != nil {
			return nil, err
		}
	}
	return o.Methods.Job(m.Name, d, o.Settings)
}

// share deals the records to the clients; several files are one client's each.
func (r *Records) share(clients int, m *method.Method) ([]dataset.Part, error) {
	files := r.prepared.Table.Files
	switch {
	case clients < 0:
		return nil, fault.Range("clients", clients, "at least 1")
	case len(files) < 2 || m.Holds == method.Table:
		files, clients = nil, max(clients, 1)
	case clients != 0 && clients != len(files):
		return nil, fault.Request("clients", fmt.Sprintf("is %d for %s", clients, fault.Count(len(files), "file")),
			"leave it out: each file is one client")
	default:
		clients = len(files)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.dealt == clients {
		return r.clients, nil
	}
	var err error
	var parts []dataset.Part
	if files != nil {
		parts, err = r.prepared.SplitFiles(files)
	} else {
		parts, err = r.prepared.Split(clients, nil, 0)
	}
	if err == nil {
		r.clients, r.dealt = parts, clients
	}
	return parts, err
}

// payment prepares to pay for a fit, nil if there is no ledger file.
func (r *Records) payment(m *method.Method, o *Options) (*Payment, error) {
	switch {
	case o.Account == nil:
		return nil, nil
	case o.Account != r.account:
		return nil, fault.Request("account", "is not the one that the records were prepared with",
			"give the same one to both")
	case !m.Private:
		return nil, fault.Request("account", m.Name+" is not private and spends none",
			"choose a private method, or leave the ledger file out")
	case o.Seed != nil:
		return nil, fault.Request("account", "a run with a seed is a simulation, which no budget covers",
			"leave the seed out, or the ledger file")
	}
	calibration := m.Calibrations()[0]
	if c := o.Settings["calibration"]; c != "" {
		calibration = privacy.Calibration(c)
	}
	if calibration != privacy.Proven {
		return nil, fault.Request("account", "a ledger file adds up proven guarantees and the calibration is "+
			string(calibration), "use the calibration proven")
	}
	request, err := json.Marshal([]any{o.Settings, o.Clients, o.Parties, o.Start, r.prepared.Table.IDs,
		r.prepared.Table.Files})
	if err != nil {
		return nil, fault.Request("start", err.Error(), "give finite numbers")
	}
	return o.Account.NewPayment(Charged{Method: m, Settings: o.Settings, K: o.K, Cost: o.budget(),
		Request: string(request),
		Records: &r.prepared.Normalised, Digests: r.prepared.Digests, Salt: r.salt})
}
