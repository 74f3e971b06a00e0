package cohort

import (
	"bytes"
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/cohort-engine/cohort/engine"
	"github.com/cohort-engine/cohort/engine/dataset"
	"github.com/cohort-engine/cohort/engine/enginetest"
	"github.com/cohort-engine/cohort/engine/privacy"
	"github.com/cohort-engine/cohort/internal/fault"
)

// counted is a job that counts how often it is planned.
type counted struct {
	engine.Job
	plans int
}

func (c *counted) Plan() (engine.Plan, error) {
	c.plans++
	return c.Job.Plan()
}

// What is paid for is planned once: the plan that was paid for is what runs.
func TestPaidPlanRuns(t *testing.T) {
	o := Options{K: 3, Epsilon: 1, Account: &Account{File: privacy.LedgerFile{Path: filepath.Join(t.TempDir(), "ledger")}}}
	records, err := Prepare(t.Context(), blobs(t), PrepareOptions{Bounds: Range(-200, 200), Account: o.Account})
	if err != nil {
		t.Fatal(err)
	}
	defer records.Close()
	m, err := o.method()
	if err != nil {
		t.Fatal(err)
	}
	of, err := records.job(m, &o)
	if err != nil {
		t.Fatal(err)
	}
	pay, err := records.payment(m, &o)
	if err != nil {
		t.Fatal(err)
	}
	defer pay.Close()
	eng := enginetest.New(t)
	job := &counted{Job: of}
	paid, err := pay.Start(job)
	if err == nil {
		_, err = eng.Run(t.Context(), paid.Job)
	}
	if err != nil || job.plans != 1 {
		t.Errorf("planned %d times, %v", job.plans, err)
	}
}

// Records that are prepared once are fitted as often as wanted, by several goroutines on one engine at a time.
func TestPrepareOnce(t *testing.T) {
	ctx, data, seed := context.Background(), blobs(t), uint64(3)
	records, err := Prepare(ctx, data, PrepareOptions{Bounds: Range(-200, 200)})
	if err != nil {
		t.Fatal(err)
	}
	defer records.Close()
	if records.N() != 3000 || records.D() != 3 {
		t.Errorf("%d x %d records", records.N(), records.D())
	}
	eng := enginetest.New(t, engine.WithWorkers(2))
	var g sync.WaitGroup
	for _, o := range []Options{{K: 4}, {K: 7}, {K: 4, Epsilon: 1, Clients: 3, Method: "fastlloyd"}, {K: 3, Epsilon: 2}} {
		g.Go(func() {
			o.Seed = &seed
			alone := o
			alone.Bounds = Range(-200, 200)
			want, err := Fit(ctx, data, alone)
			if err != nil {
				t.Error(err)
				return
			}
			o.Engine = eng
			got, err := records.Fit(ctx, o)
			if err != nil || !slices.EqualFunc(got.Centroids, want.Centroids, slices.Equal[[]float64]) ||
				!slices.Equal(got.Labels, want.Labels) {
				t.Errorf("%+v: centroids %v, want %v, error %v", o, got, want, err)
			}
		})
	}
	g.Wait()
}

// On one scale distances are those of the data's own units, and columns may be constant.
func TestOneScale(t *testing.T) {
	// The first column decides, whatever the others' own ranges: scaled by columns the second would.
	points := []float32{0, 1, 7, 10, 0, 7, 90, 1, 7, 100, 0, 7}
	m, err := Fit(context.Background(), Rows(points, 4, 3),
		Options{K: 2, OneScale: true, Start: [][]float64{{0, 1, 7}, {90, 1, 7}}})
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(m.Labels, []int32{0, 0, 1, 1}) || math.Abs(*m.Inertia-101) > 1e-2 {
		t.Errorf("labels %v, inertia %g, want 101", m.Labels, *m.Inertia)
	}
	for j, want := range []float64{5, 0.5, 7} {
		if got := m.Centroids[0][j]; math.Abs(got-want) > 1e-2 {
			t.Errorf("coordinate %d of the first centroid is %g, want %g", j, got, want)
		}
	}
	same, err := Fit(context.Background(), Rows([]float64{3, 4, 3, 4}, 2, 2), Options{K: 1, OneScale: true})
	if err != nil || *same.Inertia != 0 || same.Centroids[0][1] != 4 {
		t.Errorf("records that are all the same give %+v, error %v", same, err)
	}
}

// The metric cosine clusters directions: old and new records have the labels of theirs, whatever their lengths, and
// the model says so to whoever loads it.
func TestCosine(t *testing.T) {
	points := []float64{1, 0.1, 50, 4, 0.1, -2, 3, -80, 0.01, 0}
	metric := map[string]string{"metric": "cosine"}
	m, err := Fit(context.Background(), Rows(points, 5, 2), Options{K: 2, Start: [][]float64{{9, 0}, {0, -0.1}},
		Settings: metric})
	if err != nil {
		t.Fatal(err)
	}
	if length := math.Hypot(m.Centroids[1][0], m.Centroids[1][1]); math.Abs(length-1) > 1e-6 ||
		!slices.Equal(m.Labels, []int32{0, 0, 1, 1, 0}) {
		t.Errorf("labels %v, centroids %v", m.Labels, m.Centroids)
	}
	var file bytes.Buffer
	if err := m.Save(&file); err != nil {
		t.Fatal(err)
	}
	again, err := Load(&file)
	if err != nil {
		t.Fatal(err)
	}
	labels, distances, err := again.Nearest(context.Background(), []float64{1e-9, -1e-3, 70, 0})
	c := again.Centroids[0]
	if err != nil || !slices.Equal(labels, []int32{1, 0}) || math.Abs(distances[1]-math.Hypot(1-c[0], c[1])) > 1e-5 {
		t.Errorf("labels %v, distances %v, error %v", labels, distances, err)
	}
	if _, err := again.Predict([]float64{1, 1, 0, 0}); err == nil || !strings.Contains(err.Error(), "row 2") {
		t.Errorf("a record of length 0: %v", err)
	}
	whole, err := Prepare(context.Background(), Rows(points, 5, 2), PrepareOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer whole.Close()
	if _, err := whole.Fit(context.Background(), Options{K: 2, Settings: metric}); !fault.IsRequest(err) {
		t.Errorf("records that were not scaled: %v", err)
	}
}

// Records outside the bounds of the fit are nearest to what they are nearest to, not to what their shadow on the
// box is; with a scale for each column they are clamped, as the model says.
func TestPredictOutside(t *testing.T) {
	m := &Model{Centroids: [][]float64{{-9, 9}, {9, -8}, {0, 9.5}}, Lower: []float64{-10, -10}, Upper: []float64{10, 10},
		FractionBits: 16, OneScale: true}
	points := []float64{-1000, 995, 40, -2, 3, 60, 9, -9, 0, 0, 1e300, -1e300}
	labels, _, err := m.Nearest(context.Background(), points)
	if err != nil {
		t.Fatal(err)
	}
	for i, l := range labels {
		best, least := 0, math.Inf(1)
		for j, c := range m.Centroids {
			if x := math.Hypot(points[2*i]-c[0], points[2*i+1]-c[1]); x < least {
				best, least = j, x
			}
		}
		if int(l) != best && i != 5 {
			t.Errorf("record %v is in %d, want %d", points[2*i:2*i+2], l, best)
		}
	}
	m.OneScale = false
	_, distances, err := m.Nearest(context.Background(), []float64{1e9, 1e9})
	if err != nil || distances[0] > 2 {
		t.Errorf("a record that is clamped is %v away, error %v", distances, err)
	}
}

// Holders of rows are clients, each with its own; holders of columns are parties.
func TestHolders(t *testing.T) {
	data, seed := blobs(t), uint64(9)
	var rows []dataset.Borrowed
	for _, cut := range [][2]int{{0, 1000}, {1000, 1700}, {1700, 3000}} {
		rows = append(rows, &dataset.Matrix[float64]{Data: data.Rows[3*cut[0] : 3*cut[1]], N: cut[1] - cut[0], D: 3})
	}
	below, err := dataset.Below("clients", rows)
	if err != nil {
		t.Fatal(err)
	}
	o := Options{K: 4, Epsilon: 4, Method: "fastlloyd", Bounds: Range(-200, 200), Seed: &seed}
	m, err := Fit(context.Background(), From(below), o)
	if err != nil {
		t.Fatal(err)
	}
	if again, err := m.Predict(data.Rows); err != nil || !slices.Equal(again, m.Labels) {
		t.Errorf("labels are not those of the rows in order, error %v", err)
	}
	o.Clients = 2
	if _, err := Fit(context.Background(), From(below), o); !fault.IsRequest(err) ||
		!strings.Contains(err.Error(), "clients") {
		t.Errorf("two clients of three holders: %v", err)
	}
	narrow := make([]float32, 3000)
	for i := range narrow {
		narrow[i] = float32(data.Rows[3*i])
	}
	beside, parties, err := dataset.Beside("parties", []dataset.Borrowed{
		&dataset.Matrix[float32]{Data: narrow, N: 3000, D: 1},
		&dataset.Matrix[float64]{Data: data.Rows, N: 3000, D: 2, Offset: 1, RowStride: 3, ColumnStride: 1}})
	if err != nil {
		t.Fatal(err)
	}
	v, err := Fit(context.Background(), From(beside),
		Options{K: 4, Method: "vertical-plain", Parties: parties, Bounds: Range(-200, 200), Seed: &seed})
	if err != nil {
		t.Fatal(err)
	}
	table := *data
	table.Rows = slices.Clone(data.Rows)
	for i, x := range narrow {
		table.Rows[3*i] = float64(x)
	}
	want, err := Fit(context.Background(), &table,
		Options{K: 4, Method: "vertical-plain", Parties: [][]int{{0}, {1, 2}}, Bounds: Range(-200, 200), Seed: &seed})
	if err != nil || !slices.Equal(v.Labels, want.Labels) {
		t.Errorf("the columns of two holders are clustered otherwise than those of one, error %v", err)
	}
}

func TestHoldersFaults(t *testing.T) {
	parts := []dataset.Borrowed{&dataset.Matrix[float64]{Data: []float64{1, 2, 3}, N: 3, D: 1},
		&dataset.Matrix[float64]{Data: []float64{1, math.NaN(), 3}, N: 3, D: 1}}
	s, err := dataset.Below("data", parts)
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range []Bounds{{}, Range(0, 9)} {
		if _, err := Fit(context.Background(), From(s), Options{K: 1, Bounds: b}); err == nil ||
			!strings.Contains(err.Error(), "data, part 2, row 2,") {
			t.Errorf("the fault of the second holder: %v", err)
		}
	}
}

func TestHoldersDisagree(t *testing.T) {
	of := func(n, d int) *dataset.Matrix[float64] {
		return &dataset.Matrix[float64]{Data: make([]float64, n*d), N: n, D: d}
	}
	named := of(2, 2)
	named.Columns = []string{"a", "b"}
	for _, parts := range [][]dataset.Borrowed{nil, {of(2, 2), of(2, 3)}, {of(2, 2), of(0, 2)}, {of(2, 2), named}} {
		if _, err := dataset.Below("clients", parts); !fault.IsRequest(err) {
			t.Errorf("%d parts below: %v", len(parts), err)
		}
	}
	for _, parts := range [][]dataset.Borrowed{nil, {of(2, 2), of(3, 2)}} {
		if _, _, err := dataset.Beside("parties", parts); !fault.IsRequest(err) {
			t.Errorf("%d parts beside: %v", len(parts), err)
		}
	}
}

// A ledger file pays for fits until it has nothing left, and refuses what it cannot cover.
func TestAccount(t *testing.T) {
	account := &Account{File: privacy.LedgerFile{Path: filepath.Join(t.TempDir(), "a.ledger")},
		Budget: privacy.Budget{Epsilon: 2}}
	ctx, o := context.Background(), Options{K: 4, Epsilon: 1, Bounds: Range(-200, 200), Account: account}
	records, err := Prepare(ctx, blobs(t), PrepareOptions{Bounds: o.Bounds, Account: account})
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		m, err := records.Fit(ctx, o)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(strings.Join(m.Notes, " "), "of the ledger file") {
			t.Errorf("notes %q", m.Notes)
		}
	}
	if _, err := records.Fit(ctx, o); !errors.Is(err, privacy.ErrBudget) {
		t.Errorf("a third fit: %v", err)
	}
	seed := uint64(1)
	for _, change := range []func(*Options){
		func(o *Options) { o.Seed = &seed },
		func(o *Options) { o.Bounds = Bounds{} },
		func(o *Options) { o.Epsilon = 0 },
		func(o *Options) {
			o.Settings = map[string]string{"calibration": "claimed", "noise": "local"}
			o.Method = "fastlloyd"
		},
		func(o *Options) { o.Method, o.Clients = "fastlloyd", 2 }, // dealt by the number of records
	} {
		bad := o
		change(&bad)
		if _, err := Fit(ctx, blobs(t), bad); err == nil || errors.Is(err, privacy.ErrBudget) {
			t.Errorf("%+v: %v", bad, err)
		}
	}
	if state, err := account.File.State(); err != nil || len(state.Runs) != 2 {
		t.Errorf("the file has %v, error %v", state, err)
	}
}

// A fit that is cancelled when its release has been made, and paid for, says so; the same request has it then.
func TestCancelledAfterItsCharge(t *testing.T) {
	account := &Account{File: privacy.LedgerFile{Path: filepath.Join(t.TempDir(), "ledger")}}
	data, o := blobs(t), Options{K: 3, Epsilon: 1, Bounds: Range(-200, 200), Account: account}
	ctx, cancel := context.WithCancel(context.Background())
	o.Observer = atJobEnd(cancel)
	if _, err := Fit(ctx, data, o); !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "was charged to") {
		t.Errorf("the charge is not told: %v", err)
	}
	o.Observer = nil
	if _, err := Fit(context.Background(), data, o); err != nil {
		t.Error(err)
	}
	if s, err := account.File.State(); err != nil || len(s.Runs) != 1 {
		t.Errorf("%+v, error %v", s, err)
	}
}

// A fit whose end cannot be entered in the ledger file says that it was charged; the same request has its result then.
func TestEndThatCannotBeEntered(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ledger")
	account := &Account{File: privacy.LedgerFile{Path: path}}
	data, o := blobs(t), Options{K: 3, Epsilon: 1, Bounds: Range(-200, 200), Account: account}
	move := func(from, to string) {
		if err := os.Rename(from, to); err != nil {
			t.Error(err)
		}
	}
	o.Observer = atJobEnd(func() { move(path, path+".away") })
	if _, err := Fit(context.Background(), data, o); err == nil || !strings.Contains(err.Error(), "was charged to") {
		t.Errorf("the charge is not told: %v", err)
	}
	move(path+".away", path)
	o.Observer = nil
	if _, err := Fit(context.Background(), data, o); err != nil {
		t.Error(err)
	}
	if s, err := account.File.State(); err != nil || len(s.Runs) != 1 {
		t.Errorf("%+v, error %v", s, err)
	}
}

// atJobEnd is an observer that is called when a job has ended.
type atJobEnd func()

func (atJobEnd) JobBegin(engine.JobInfo)       {}
func (atJobEnd) PhaseBegin(engine.Span)        {}
func (atJobEnd) PhaseEnd(engine.Span)          {}
func (atJobEnd) IterationEnd(engine.Iteration) {}

func (f atJobEnd) JobEnd(*engine.Result, error) { f() }

func TestFitIsCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := Fit(ctx, blobs(t), Options{K: 2}); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
}

// Weights move centroids and inertia, private methods count them up to a cap, and others refuse them.
func TestWeights(t *testing.T) {
	points := []float64{0, 0, 2, 0, 10, 0, 13, 0}
	for _, o := range []PrepareOptions{{OneScale: true, Weights: []float64{1, 3, 1, 2}},
		{Bounds: Range(0, 13), Weights: []float64{1, 3, 1, 2}}} {
		records, err := Prepare(context.Background(), Rows(points, 4, 2), o)
		if err != nil {
			t.Fatal(err)
		}
		m, err := records.Fit(context.Background(), Options{K: 2, Ordered: true, Settings: map[string]string{"rest": "1e-9"}})
		if err != nil {
			t.Fatal(err)
		}
		if o.OneScale && !slices.Equal(m.Labels, []int32{0, 0, 1, 1}) {
			t.Errorf("clusters are not in the order of their centroids: %v", m.Labels)
		}
		low, unit := min(m.Centroids[0][0], m.Centroids[1][0]), m.unit()/6.5
		if !o.OneScale {
			unit = 1 / 6.5
		}
		if want := (3 + 6) * unit * unit; math.Abs(low-1.5) > 1e-3 || math.Abs(*m.Inertia-want) > 1e-3*want {
			t.Errorf("centroids %v, inertia %g, want %g", m.Centroids, *m.Inertia, want)
		}
		if _, err := records.Fit(context.Background(), Options{K: 2, Epsilon: 1, Method: "balcan"}); !fault.IsRequest(err) ||
			!strings.Contains(err.Error(), "no theorem for weights") {
			t.Errorf("a private method that counts no weights: %v", err)
		}
		private := Options{K: 2, Epsilon: 1e6, Ordered: true, Settings: map[string]string{"weight-cap": "3"}}
		if m, err = records.Fit(context.Background(), private); err != nil {
			t.Fatal(err)
		}
		if math.Abs(m.Centroids[0][0]-1.5) > 0.1 || math.Abs(m.Sizes[0]-4) > 0.2 || math.Abs(m.Sizes[1]-3) > 0.2 {
			t.Errorf("centroids %v, sizes %v", m.Centroids, m.Sizes)
		}
	}
}

// With fewer distinct records than clusters the order of the records changes nothing.
func TestOrderOfRepeatedClusters(t *testing.T) {
	var want *Model
	for _, points := range [][]float64{{1, 3, 2, 1, 3, 3, 1, 3}, {3, 3, 1, 3, 1, 3, 2, 1}} {
		m, err := Fit(context.Background(), Rows(points, 4, 2), Options{K: 4, Ordered: true, OneScale: true})
		if err != nil {
			t.Fatal(err)
		}
		if want == nil {
			want = m
		}
		if !slices.EqualFunc(m.Centroids, want.Centroids, slices.Equal[[]float64]) || m.Sizes[3] != 0 {
			t.Errorf("centroids %v of sizes %v, want %v", m.Centroids, m.Sizes, want.Centroids)
		}
	}
}

// BenchmarkPrivateFit is the private fit of suite embed: 10^5 x 10 in memory, k = 20, epsilon 1.
func BenchmarkPrivateFit(b *testing.B) {
	const n, d, k = 100000, 10, 20
	rng := rand.New(rand.NewPCG(n, d))
	points := make([]float32, n*d)
	for i := range points {
		blob := float64(i / d % k)
		points[i] = float32(math.Sin(blob*float64(3*(i%d)+1)) + 0.3*rng.NormFloat64())
	}
	eng := enginetest.New(b)
	for b.Loop() {
		if _, err := Fit(context.Background(), Rows(points, n, d),
			Options{K: k, Epsilon: 1, Bounds: Range(-3, 3), Engine: eng}); err != nil {
			b.Fatal(err)
		}
	}
}
