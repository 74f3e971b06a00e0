package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	library "github.com/cohort-engine/cohort"
	"github.com/cohort-engine/cohort/engine"
	"github.com/cohort-engine/cohort/engine/bounds"
	"github.com/cohort-engine/cohort/engine/catalog"
	"github.com/cohort-engine/cohort/engine/dataset"
	"github.com/cohort-engine/cohort/engine/method"
	"github.com/cohort-engine/cohort/engine/method/sketch"
	"github.com/cohort-engine/cohort/engine/privacy"
	"github.com/cohort-engine/cohort/engine/protocol"
	"github.com/cohort-engine/cohort/internal/fault"
)

// input is a data set that has been read and put on the grid.
type input struct {
	table *dataset.Table
	norm  *dataset.Normalised
	// apart says that clients have files of their own although the table does not list them.
	apart bool
	// k is the number of clusters asked for, or what a built-in set was made with.
	k int
	// digests identify the columns in a ledger file under its salt; empty if there is none.
	digests []string
	salt    string
	// split and joined are set if each party's columns came from a file of their
	// own (--id).
	split  sketch.Split
	joined *sketch.JoinReport
	ids    []string
	// trace keeps the iterations of a run for its page and its folder.
	trace engine.Trace
	// found has the result of the run that found bounds, nil without; it was paid for by pay as boundsPaid, if there
	// is a ledger file.
	found      *engine.Result
	pay        *library.Payment
	boundsPaid *library.Paid
	// countedBy is the run that found a number of records, nil without, and counted the number that parameters follow.
	countedBy *engine.Result
	counted   int
	// ready is the job whose plan was made when the number was found, nil without.
	ready engine.Job
	// start has the first centroids of --start in the normalised box, nil without.
	start []float64
}

// load reads the data that the options name, straight onto the grid.
func load(ctx context.Context, o *options, m *method.Method, p *progress) (*input, error) {
	return loadAfter(ctx, o, m, p, func(*input) error { return nil })
}

// loadAfter is load that calls probe before anything is released or paid for: the input has its shape then, as far as
// it is known.
func loadAfter(ctx context.Context, o *options, m *method.Method, p *progress,
	probe func(*input) error) (*input, error) {
	read, err := o.read(o.workers)
	if err != nil {
		return nil, err
	}
	if p != nil {
		read.Progress = p.reading
	}
	read.MayLack = !o.ownNumber()
	in := &input{}
	var source dataset.Source
	if o.id != "" {
		source, err = in.join(ctx, o, read)
	} else {
		source, err = o.open(ctx, read)
	}
	if err != nil {
		return nil, err
	}
	prepare, err := in.preparation(ctx, o, m, source.Schema().D)
	if err != nil {
		return nil, err
	}
	prepare.Read = read
	if o.given("private-bounds") && !o.planned {
		if source, err = dataset.Again(ctx, source, read); err != nil {
			return nil, err
		}
		if err := in.findBounds(ctx, o, m, source, &prepare, probe); err != nil {
			return nil, err
		}
		probe = func(*input) error { return nil }
	}
	err = in.prepare(ctx, o, m, source, prepare)
	if err == nil {
		err = probe(in)
	}
	if err != nil {
		in.pay.Close()
	}
	return in, in.lost(err)
}

// lost says in the error of a run that was not paid for that its bounds were.
func (in *input) lost(err error) error {
	if err == nil || in.boundsPaid == nil || isLost(err) {
		return err
	}
	return in.pay.Lost(in.boundsPaid, err)
}

// isLost tells whether an error is that of a run which ended after it was paid for.
func isLost(err error) bool {
	f := (*fault.Error)(nil)
	return errors.As(err, &f) && f.What == library.LostRun
}

// preparation says how records of d columns are put on the grid.
func (in *input) preparation(ctx context.Context, o *options, m *method.Method,
	d int) (p dataset.PrepareOptions, err error) {
	p = dataset.PrepareOptions{Cache: o.cache, FractionBits: o.fractionBits, Unit: o.scalesToUnit(),
		NoLabels: o.given("k") && !o.showsQuality(m)}
	if o.ledger != "" {
		f, err := o.ledgerFile()
		if err != nil {
			return p, err
		}
		if in.salt, err = f.Salt(); err != nil {
			return p, err
		}
		key := f.DigestKey(in.salt)
		p.DigestKey = &key
	}
	if p.Bounds, err = o.publicBounds(ctx, d); err != nil {
		return p, err
	}
	if p.MaxMemory, err = o.memory(); err != nil {
		return p, err
	}
	p.Weights, err = o.readWeights(ctx)
	return p, err
}

// readWeights reads what the records weigh, nil if no file says so.
func (o *options) readWeights(ctx context.Context) ([]float64, error) {
	if o.weights == "" {
		return nil, nil
	}
	t, err := dataset.Open(ctx, o.weights, dataset.ReadOptions{Text: o.text, Workers: o.workers, Formats: fileFormats,
		MayLack: !o.ownNumber()})
	if err != nil {
		return nil, err
	}
	if t.D != 1 {
		return nil, fault.Failed(o.weights, "has "+fault.Count(t.D, "column"), "give one with a weight in each row",
			nil)
	}
	if len(t.Rows) == 0 {
		return []float64{}, nil // weights of no records, which is not no weights
	}
	return t.Rows, nil
}

// shapeOf is what is known of n records without looking at them: that they have weights, too, if they do.
func (o *options) shapeOf(n int, b dataset.Bounds) *dataset.Normalised {
	norm := dataset.Shape(n, b, o.fractionBits)
	if o.weights != "" {
		norm.Weights = slices.Repeat([]float64{1}, n)
	}
	return norm
}

// prepare puts the records on the grid.
func (in *input) prepare(ctx context.Context, o *options, m *method.Method, source dataset.Source,
	p dataset.PrepareOptions) error {
	got, err := dataset.Prepare(ctx, source, p)
	if err != nil {
		return err
	}
	in.norm, in.digests = &got.Normalised, got.Digests
	if in.table = got.Table; in.ids != nil {
		in.table.IDs = in.ids
	}
	in.k = o.k
	if !o.given("k") {
		in.k = classes(in.table.Labels)
	}
	if err := in.fileClients(o, m); err != nil {
		return err
	}
	return in.readStart(ctx, o.start)
}

// open opens the source of the data.
func (o *options) open(ctx context.Context, read dataset.ReadOptions) (dataset.Source, error) {
	if err := refuseZero(o.set, "positive", "n", "d", "separation"); err != nil {
		return nil, err
	}
	read.Generator = dataset.Generator{N: o.genN, D: o.genD, Separation: o.genSeparation, Seed: o.dataSeed}
	for _, b := range dataset.Builtins() {
		if "builtin:"+b.Name == o.data && b.Default.K > 0 {
			read.Generator.K = o.k // a set that can be made with any number of clusters
		}
	}
	if !strings.HasPrefix(o.data, "builtin:") {
		for _, flag := range []string{"n", "d", "separation", "data-seed"} {
			if o.given(flag) {
				return nil, fault.Request("--"+flag, "belongs to the built-in generators and "+o.data+" is a file",
					"leave it out or use --data builtin:NAME")
			}
		}
	}
	return dataset.OpenSource(ctx, o.data, read)
}

// fileClients makes each of several files a client of a method that holds rows.
func (in *input) fileClients(o *options, m *method.Method) error {
	files := len(in.table.Files)
	if files == 0 || m.Holds == method.Columns {
		return nil
	}
	if o.given("clients") && o.clients != files {
		return fault.Request("--clients", fmt.Sprintf("is %d for %s", o.clients, fault.Count(files, "file")),
			"leave it out: each file is one client")
	}
	if o.proportions != "" {
		return fault.Request("--proportions", "is given and each file is one client", "leave it out")
	}
	o.clients = files
	return nil
}

// publicBounds are those that were given for d columns, or nil.
func (o *options) publicBounds(ctx context.Context, d int) (*dataset.Bounds, error) {
	var b dataset.Bounds
	var err error
	switch {
	case o.bounds != "":
		b, err = dataset.ParseBounds(o.bounds, d)
	case o.boundsFile != "":
		b, err = dataset.OpenBounds(ctx, o.boundsFile, d)
	case o.planned && o.given("private-bounds"):
		b = dataset.SameBounds(d, -1, 1) // of no meaning: a plan finds none
	default:
		return nil, nil
	}
	return &b, err
}

// shape sets what is known of the records of a source before they are prepared, in bounds of no meaning; n is their
// number, or what is known of it.
func (in *input) shape(o *options, m *method.Method, s dataset.Schema, n int) error {
	b := dataset.SameBounds(s.D, -1, 1)
	in.table = &dataset.Table{Name: s.Name, N: n, D: s.D, Columns: s.Columns}
	if s.Files > 1 {
		in.table.Files = make([]int, s.Files)
	}
	for _, set := range dataset.Builtins() {
		if "builtin:"+set.Name == o.data {
			in.k = set.Default.K
		}
	}
	if o.given("k") {
		in.k = o.k
	}
	in.norm = o.shapeOf(n, b)
	return in.fileClients(o, m)
}

// findBounds finds the bounds of the columns for a share of epsilon, and pays for them if there is a ledger file that
// can pay for the run as well. Each file of rows is a party's own, and so are the columns of parties that hold such.
func (in *input) findBounds(ctx context.Context, o *options, m *method.Method, source dataset.Source,
	p *dataset.PrepareOptions, probe func(*input) error) error {
	err := in.shape(o, m, source.Schema(), max(source.Schema().N, 1))
	if err != nil {
		return err
	}
	if err := probe(in); err != nil {
		return err
	}
	job, err := in.boundsJob(o, m, []dataset.Source{source})
	if err != nil {
		return err
	}
	job.Read = p.Read
	if job.Split == nil {
		job.Parties = dataset.ByFile(source)
	}
	var run engine.Job = job
	if o.ledger != "" {
		if in.boundsPaid, err = in.payForBounds(ctx, o, m, source, job, *p.DigestKey); err != nil {
			in.pay.Close()
			return err
		}
		run = in.boundsPaid.Job
	}
	eng, err := engine.New(engine.WithWorkers(1))
	if err != nil {
		return err
	}
	defer eng.Close()
	if in.found, err = eng.Run(ctx, run); err == nil {
		found := bounds.Of(in.found)
		p.Bounds = &found
		err = in.pay.Ended(in.boundsPaid, in.found.Ledger)
	}
	if err != nil {
		in.pay.Close()
	}
	return in.lost(err)
}

// boundsJob finds the bounds of the records of parties with rows, or of the columns of those that hold such.
func (in *input) boundsJob(o *options, m *method.Method, parties []dataset.Source) (*bounds.Job, error) {
	job := &bounds.Job{Parties: parties, Epsilon: o.epsilon * o.boundsShare, Seed: o.seedPointer(),
		Neighbours: m.Neighbours(method.Settings{"neighbours": o.setting("neighbours")})}
	if m.Holds == method.Columns {
		split, err := in.parties(o)
		job.Split = split
		return job, err
	}
	job.Noise = protocol.NoiseBy(o.setting("noise"))
	job.Colluders, _ = strconv.Atoi(o.setting("colluders"))
	return job, nil
}

// planBounds puts the planned search for bounds before what is planned.
func (in *input) planBounds(o *options, m *method.Method, outline *engine.Outline) error {
	if !o.given("private-bounds") {
		return nil
	}
	none, err := dataset.FromBatches(in.table.Name, in.table.D, nil, false,
		func(func(dataset.Matrix[float64], error) bool) {})
	if err != nil {
		return err
	}
	job, err := in.boundsJob(o, m, slices.Repeat([]dataset.Source{none}, max(len(in.table.Files), 1)))
	if err != nil {
		return err
	}
	return o.planBefore(job, outline)
}

// payForBounds pays for the bounds from the ledger file, if it has enough for the run on them, too.
func (in *input) payForBounds(ctx context.Context, o *options, m *method.Method, source dataset.Source, job *bounds.Job,
	key [16]byte) (*library.Paid, error) {
	account, err := o.account()
	if err != nil {
		return nil, err
	}
	schema := source.Schema()
	digests, n, err := dataset.Digests(ctx, source, job.Read, key)
	if err != nil {
		return nil, err
	}
	if err := in.shape(o, m, schema, n); err != nil {
		return nil, err
	}
	whole := o.budget()
	whole.Epsilon = o.epsilon
	request := fmt.Sprintf("bounds, neighbours=%s noise=%s colluders=%d split=%v columns=%q files=%d missing=%s",
		job.Neighbours, job.Noise, job.Colluders, job.Split, schema.Columns, len(job.Parties), o.missing)
	in.pay, err = account.NewPayment(library.Charged{Method: m, Settings: o.settings(),
		What: fmt.Sprintf("bounds of %s", fault.Count(schema.D, "column")), Request: request, N: n, Digests: digests,
		Salt: in.salt,
		Cost: privacy.Budget{Epsilon: job.Epsilon}, Whole: whole})
	if err != nil {
		return nil, err
	}
	later, err := in.later(o, m, n)
	if err != nil {
		return nil, err
	}
	return in.pay.Start(job, later...)
}

// later is what a run on n records costs once its bounds are paid for. Where a noisy number of records comes next, n
// is not looked at: a refusal would tell it.
func (in *input) later(o *options, m *method.Method, n int) ([]*privacy.Ledger, error) {
	if !o.given("private-n") {
		l, err := in.foresee(o, m, n)
		return []*privacy.Ledger{l}, err
	}
	shape := in.shaped(in.k)
	if err := shape.follow(o, m, 0); err != nil {
		return nil, err
	}
	count, err := privacy.WholeRun("number of records", privacy.Budget{Epsilon: o.epsilon * o.countShare},
		privacy.AddRemove)
	if err != nil {
		return nil, err
	}
	run, err := afterCount(o, in.pay)
	return append(run, count), err
}

// shaped is the input with n records of which nothing but that is known, and whether each client has a file of its own.
func (in *input) shaped(n int) *input {
	shape := *in
	shape.apart = len(in.table.Files) > 0
	shape.table = &dataset.Table{Name: in.table.Name, N: n, D: in.table.D, Columns: in.table.Columns}
	return &shape
}

// foresee is the ledger of a run on the data, planned from its shape alone.
func (in *input) foresee(o *options, m *method.Method, n int) (*privacy.Ledger, error) {
	plan, err := in.shaped(n).plan(o, m)
	if err != nil {
		return nil, err
	}
	outline, err := plan.Outline()
	if err != nil {
		return nil, err
	}
	return outline.Ledger, nil
}

// addBounds puts what the bounds have cost into the ledger of a run on them.
func (in *input) addBounds(o *options, r *engine.Result) {
	if in.found == nil {
		return
	}
	r.Ledger, r.Epsilon = r.Ledger.After(in.found.Ledger), &o.epsilon
	r.Comm.Add(&in.found.Comm)
	b, said := bounds.Of(in.found), []string(nil)
	for h := range b.Lo[:min(len(b.Lo), textColumns)] {
		said = append(said, fmt.Sprintf("%s %.4g to %.4g", columnName(in.table.Columns, h), b.Lo[h], b.Hi[h]))
	}
	if len(b.Lo) > textColumns {
		said = append(said, "...")
	}
	if guessed := bounds.Guessed(in.found); len(guessed) > 0 {
		var names []string
		for _, h := range guessed[:min(len(guessed), textColumns)] {
			names = append(names, columnName(in.table.Columns, h))
		}
		if len(guessed) > textColumns {
			names = append(names, "...")
		}
		r.Doubts = append(r.Doubts, fmt.Sprintf("the bounds of %s (%s) are a guess, as no magnitude stands out of the "+
			"noise: spend a larger share on them, or state --bounds", fault.Count(len(guessed), "column"),
			strings.Join(names, ", ")))
	}
	unseen := bounds.Unseen(in.found)
	r.Notes = append(r.Notes, fmt.Sprintf("bounds found for %g of epsilon: %s", o.boundsShare,
		strings.Join(said, ", ")), fmt.Sprintf("beyond these bounds the noise may hide as many as %d records of about one "+
		"value in a column (within a factor of 1.4): values beyond bounds are moved to the nearest one", unseen))
	if r.K > 0 && unseen >= int64(r.N/r.K) {
		r.Doubts = append(r.Doubts, fmt.Sprintf("the search for bounds may leave out groups of up to %d records, and a "+
			"cluster has about %d of %d: spend a larger share on them, or state --bounds", unseen, r.N/r.K, r.N))
	}
}

// notes says what was done to the records while they were read. Without quality the
// numbers, which depend on the records, are left out.
func (in *input) notes(o *options, quality bool) []string {
	notes := in.table.Report.Notes()
	if !quality && o.missing != dataset.RefuseMissing.String() {
		notes = []string{"missing values were treated by the rule " + o.missing}
	}
	switch {
	case in.joined == nil:
		return notes
	case quality:
		return append([]string{in.joined.String()}, notes...)
	}
	return append([]string{"joined by id: records that a party lacks, or has more than once, are left out"}, notes...)
}

// warnings are for the person who holds the records.
func (in *input) warnings() []string {
	var w []string
	for _, c := range in.table.Report.IDLike {
		w = append(w, fmt.Sprintf("column %s of %s has distinct increasing integers, as ids do: leave it out with "+
			"--columns if it is one", c, in.table.Name))
	}
	if in.table.Report.Counts {
		w = append(w, "the first row of "+in.table.Name+" counts upwards, as names of columns may: "+
			"give --header yes if it is names, --header no if it is a record")
	}
	return w
}

// readStart reads first centroids: those of a model, or rows of any data file. Where they and the data have names of
// columns, these say which is which.
func (in *input) readStart(ctx context.Context, path string) error {
	if path == "" {
		return nil
	}
	var t *dataset.Table
	if filepath.Ext(path) == ".json" {
		m, err := openModel(path)
		if err != nil {
			return err
		}
		t = &dataset.Table{N: len(m.Centroids), D: len(m.Lower), Columns: m.Columns, Rows: slices.Concat(m.Centroids...)}
	} else {
		var err error
		if t, err = dataset.Open(ctx, path, dataset.ReadOptions{Named: in.table.Columns}); err != nil {
			return err
		}
	}
	if t.N != in.k {
		return fault.Request("--start", fmt.Sprintf("%s has %s for %s", path, fault.Count(t.N, "centroid"),
			fault.Count(in.k, "cluster")),
			"give one row per cluster")
	}
	numbers, err := columns{"data", in.table.Columns, in.table.D}.of("--start", t)
	if err != nil {
		return err
	}
	rows := slices.Collect(slices.Chunk(numbers, in.table.D))
	for i := 0; in.norm.Unit && i < len(rows); i++ {
		dataset.ToUnit(rows[i])
	}
	in.start, err = in.norm.Bounds.Normalise(rows)
	return err
}

// openModel reads a model.json.
func openModel(path string) (*library.Model, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fault.File(path, "check the path", err)
	}
	defer f.Close()
	return library.Load(f)
}

// job makes a job of the method on the data.
func (in *input) job(o *options, m *method.Method) (engine.Job, error) {
	d := protocol.Problem{Clients: in.norm.Table(), Bounds: in.norm.Bounds, Clamped: in.norm.Clamped,
		Labels: in.table.Labels, IDs: in.table.IDs, K: in.k, Records: in.counted, Budget: o.budget(),
		Seed: o.seedPointer(), NoQuality: !o.showsQuality(m), Start: in.start}
	var err error
	if m.Holds == method.Columns {
		d.Columns, err = in.parties(o)
	} else {
		d.Clients, err = in.shares(o)
	}
	if err != nil {
		return nil, err
	}
	return catalog.Methods().Job(m.Name, d, o.settings())
}

// parties deals the columns to the parties.
func (in *input) parties(o *options) (sketch.Split, error) {
	switch {
	case in.split != nil:
		return in.split, nil
	case in.table.Files != nil:
		return nil, fault.Request("--data", fmt.Sprintf("lists %s, whose rows cannot be matched",
			fault.Count(len(in.table.Files), "file")), "name the id column with --id, or give one file")
	}
	parties := o.parties
	if o.split != "" && !o.given("parties") && !sketch.IsPreset(o.split) {
		parties = 0 // the split says how many
	}
	return sketch.ParseSplit(o.split, parties, in.table.D, in.table.Columns)
}

// shares deals the rows to the clients.
func (in *input) shares(o *options) ([]dataset.Part, error) {
	if in.table.Files != nil {
		return in.norm.SplitFiles(in.table.Files)
	}
	proportions, err := o.proportionList()
	if err != nil {
		return nil, err
	}
	parts, err := in.norm.Split(o.clients, proportions, o.seed)
	for i := range parts {
		parts[i].Dealt = parts[i].Dealt && !in.apart
	}
	return parts, err
}

// classes is the number of distinct labels; every built-in set has some.
func classes(labels []int32) int {
	seen := make(map[int32]bool)
	for _, l := range labels {
		seen[l] = true
	}
	return len(seen)
}

// join reads one file per party and matches their records by id.
func (in *input) join(ctx context.Context, o *options, read dataset.ReadOptions) (dataset.Source, error) {
	for _, flag := range []string{"labels", "label-column", "columns", "split", "parties"} {
		if o.given(flag) {
			return nil, fault.Request("--"+flag, "is given together with --id",
				"leave it out: each file has one party's columns")
		}
	}
	paths := strings.Split(o.data, ",")
	if len(paths) < 2 {
		return nil, fault.Request("--id", "needs one file per party", "list at least two files in --data")
	}
	var tables []*dataset.Table
	for _, path := range paths {
		t, err := dataset.OpenIDs(ctx, strings.TrimSpace(path), o.id, read)
		if err != nil {
			return nil, err
		}
		tables = append(tables, t)
	}
	streams := privacy.NewStreams(nil)
	if seed := o.seedPointer(); seed != nil { // the order of a study's records
		streams = privacy.StreamsOf(protocol.SimulatedSecrets(*seed, 0).Group)
	}
	secret := sketch.NewSecret(streams)
	table, split, report, err := sketch.JoinTables(secret, tables, o.join == "inner")
	if err != nil {
		return nil, err
	}
	in.split, in.joined, in.ids = split, &report, table.IDs
	return table.Source()
}
