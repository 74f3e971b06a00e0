package cohort

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/cohort-engine/cohort/engine"
	"github.com/cohort-engine/cohort/engine/catalog/standard"
	"github.com/cohort-engine/cohort/engine/dataset"
	"github.com/cohort-engine/cohort/engine/enginetest"
	"github.com/cohort-engine/cohort/engine/method"
	"github.com/cohort-engine/cohort/engine/privacy"
	"github.com/cohort-engine/cohort/internal/fault"
	"github.com/cohort-engine/cohort/kernels"
)

func blobs(t *testing.T) *dataset.Table {
	t.Helper()
	table, err := dataset.Generate(context.Background(), "blobs",
		dataset.Generator{N: 3000, D: 3, K: 4, Separation: 30, Seed: 2})
	if err != nil {
		t.Fatal(err)
	}
	return table
}

func TestFitWithoutBudget(t *testing.T) {
	data := blobs(t)
	m, err := Fit(context.Background(), data, Options{K: 4, Settings: map[string]string{"init": "kmeans++"}})
	if err != nil {
		t.Fatal(err)
	}
	sum := 0.0
	for _, s := range m.Sizes {
		sum += s
	}
	if m.Epsilon != nil || !m.FromData || sum != 3000 || len(m.Labels) != 3000 {
		t.Errorf("epsilon %v, from data %v, sizes %v, %d labels", m.Epsilon, m.FromData, m.Sizes, len(m.Labels))
	}
	again, err := m.Predict(data.Rows)
	if err != nil || !slices.Equal(again, m.Labels) {
		t.Errorf("the records are predicted elsewhere than they are labelled, error %v", err)
	}
	score, err := m.Score(data.Rows)
	if err != nil || !(score > 0 && score < 0.1) {
		t.Errorf("score %v, error %v", score, err)
	}
}

// A model is the same after Save and Load, its ledger with totals included, and holds no label.
func TestSaveAndLoad(t *testing.T) {
	data, seed := blobs(t), uint64(5)
	for _, o := range []Options{{Method: "relative"}, {Method: "fastlloyd", Clients: 3}, {},
		{Method: "sketch", Parties: [][]int{{0}, {1, 2}}}} {
		o.K, o.Epsilon, o.Seed, o.Bounds = 4, 2, &seed, Range(-200, 200)
		m, err := Fit(context.Background(), data, o)
		if err != nil {
			t.Fatal(err)
		}
		if (m.Sizes == nil) != (o.Method == "fastlloyd") {
			t.Errorf("%s: sizes %v", m.Method, m.Sizes)
		}
		var first, second bytes.Buffer
		if err := m.Save(&first); err != nil {
			t.Fatal(err)
		}
		text := first.String()
		loaded, err := Load(&first)
		if err != nil {
			t.Fatal(err)
		}
		if err := loaded.Save(&second); err != nil {
			t.Fatal(err)
		}
		if second.String() != text || loaded.Labels != nil || strings.Contains(text, "labels\"") {
			t.Errorf("%s: the model read back is another:\n%s\n%s", m.Method, text, second.String())
		}
		labels, err := loaded.Predict(data.Rows)
		if err != nil || !slices.Equal(labels, m.Labels) {
			t.Errorf("%s: the model read back labels otherwise, error %v", m.Method, err)
		}
	}
}

// A file is fitted as its rows are.
func TestFitAFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.csv")
	if err := os.WriteFile(path, []byte("x,y\n1,2\n3,4\n9,8\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	o := Options{K: 2, Seed: new(uint64)}
	file, err := Fit(context.Background(), File(path), o)
	if err != nil {
		t.Fatal(err)
	}
	rows, err := Fit(context.Background(), Rows([]float64{1, 2, 3, 4, 9, 8}, 3, 2), o)
	if err != nil || !slices.Equal(file.Labels, rows.Labels) || !slices.Equal(file.Columns, []string{"x", "y"}) {
		t.Errorf("labels %v and %v, columns %v, error %v", file.Labels, rows.Labels, file.Columns, err)
	}
}

// Errors name what a program can set, and no flags of the command line.
func TestErrorsOfAProgram(t *testing.T) {
	file := func(text string) Data {
		path := filepath.Join(t.TempDir(), "a.csv")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return File(path)
	}
	account := &Account{File: privacy.LedgerFile{Path: filepath.Join(t.TempDir(), "ledger")}}
	good := "x;y\n1;2\n3;4\n9;8\n"
	for _, c := range []struct {
		text    string
		o       Options
		request bool
		want    string
	}{
		{"x;y\n1;\n", Options{K: 1}, false, "the cell is empty: correct the cell, or leave the column out"},
		{"x;y\n1;2\n1;2,5\n", Options{K: 1}, false, "write numbers with a point, or correct the cell"},
		{good, Options{K: 2, Epsilon: 1, Account: account}, true, "which no budget covers: give public ones"},
		{good, Options{K: 2, Epsilon: 1, Method: "lloyd"}, true, "choose a private method, or leave epsilon out"},
		{good, Options{K: 2, Method: "hybrid"}, true, "hybrid is private and needs a budget, such as epsilon 1"},
	} {
		_, err := Fit(context.Background(), file(c.text), c.o)
		if err == nil || strings.Contains(err.Error(), "--") || !strings.HasSuffix(err.Error(), c.want) ||
			fault.IsRequest(err) != c.request {
			t.Errorf("%q: error %v, not %q", c.text, err, c.want)
		}
	}
}

func TestStartAndPureBudget(t *testing.T) {
	data := blobs(t)
	start := [][]float64{{0, 0, 0}, {9, 9, 9}, {-9, 9, 0}, {9, -9, 0}}
	m, err := Fit(context.Background(), data, Options{K: 4, Start: start, Settings: map[string]string{"iterations": "1"}})
	if err != nil || len(m.Centroids) != 4 {
		t.Fatalf("%v", err)
	}
	m, err = Fit(context.Background(), data, Options{K: 4, Epsilon: 1, Pure: true, Bounds: Range(-200, 200)})
	if err != nil || *m.Ledger.TotalFor("outsider").Delta != 0 {
		t.Errorf("a pure run: %v", err)
	}
}

func TestBadRequests(t *testing.T) {
	good := Rows([]float64{1, 2, 3, 4, 5, 6}, 3, 2)
	nan := &dataset.Table{Name: "data", N: 3, D: 2, Rows: []float64{1, 2, math.NaN(), 4, 5, 6}}
	for _, c := range []struct {
		data Data
		o    Options
		want string
	}{
		{nil, Options{K: 2}, "data"},
		{(*dataset.Table)(nil), Options{K: 2}, "data"},
		{&dataset.Table{Name: "t", N: 2, D: 2, Rows: []float64{1}}, Options{K: 2}, "t"},
		{Rows[float64](nil, 0, 2), Options{K: 2}, "data"},
		{Rows([]float64{1}, 1, 2), Options{K: 1}, "data"},
		{File(""), Options{K: 2}, "data: \"\" lists a file without a name"},
		{nan, Options{K: 2}, "row 2"},
		{good, Options{}, "k"},
		{good, Options{K: 4}, "k"},
		{good, Options{K: 2, Method: "nosuch"}, "method"},
		{good, Options{K: 2, Method: "ckks", Epsilon: 1}, "method"},
		{good, Options{K: 2, Method: "lloyd", Epsilon: 1}, "epsilon"},
		{good, Options{K: 2, Epsilon: math.NaN()}, "epsilon"},
		{good, Options{K: 2, Settings: map[string]string{"branch": "tree"}}, "branch"},
		{good, Options{K: 2, Bounds: Range(3, 1)}, "bounds"},
		{good, Options{K: 2, Bounds: Bounds{Lower: []float64{1}}}, "bounds: are 1 lower and 0 upper"},
		{good, Options{K: 2, Pure: true}, "pure: is given without epsilon"},
		{good, Options{K: 2, Epsilon: 1, Delta: 1e-5, Pure: true}, "delta: is given with pure"},
		{good, Options{K: 2, Start: [][]float64{{1, 2}}}, "start"},
		{good, Options{K: 2, Start: [][]float64{{1, 2}, {1}}}, "point 2"},
		{good, Options{K: 2, Start: [][]float64{{1, 2}, {1, math.Inf(1)}}}, "point 2: has +Inf"},
		{good, Options{K: 2, Method: "vertical-plain"}, "part"},
	} {
		if _, err := Fit(context.Background(), c.data, c.o); err == nil || fault.IsRequest(err) == (c.data == Data(nan)) ||
			!strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v lacks %q", c.o, err, c.want)
		}
	}
	m, err := Fit(context.Background(), good, Options{K: 2})
	if err != nil {
		t.Fatal(err)
	}
	for _, points := range [][]float64{nil, {1}, {1, 2, 3}, {1, math.Inf(1)}} {
		if _, err := m.Predict(points); err == nil {
			t.Errorf("%v is predicted", points)
		}
	}
	many := strings.Repeat("[1],", 1<<16-2) + "[1]"
	for _, text := range []string{"", "{", "{}", "null",
		`{"centroids":[[1]],"lower":[0,0],"upper":[1,1],"fraction_bits":16}`,
		`{"centroids":[[1]],"lower":[0],"upper":[1],"fraction_bits":16,"columns":["a","b"]}`,
		`{"centroids":[[1]],"lower":[0],"upper":[1],"fraction_bits":16,"sizes":[1,2]}`,
		`{"centroids":[` + many + `],"lower":[0],"upper":[1],"fraction_bits":16}`,
	} {
		if _, err := Load(strings.NewReader(text)); err == nil {
			t.Errorf("%.80q is taken for a model", text)
		}
	}
	for what, spoil := range map[string]func(*Model){
		"bounds":    func(m *Model) { m.Upper = nil },
		"grid":      func(m *Model) { m.FractionBits = 99 },
		"centroids": func(m *Model) { m.Centroids = make([][]float64, 1<<16) },
		"a row":     func(m *Model) { m.Centroids = [][]float64{{1}, nil} },
	} {
		spoilt := *m
		spoil(&spoilt)
		if _, err := spoilt.Predict([]float64{1, 2}); err == nil {
			t.Errorf("a model of spoilt %s predicts", what)
		}
	}
}

// A predictor labels as the model did when it was made, whatever happens to the model, also for several at the same
// time, one record or many blocks of them.
func TestPredictorKeepsTheModel(t *testing.T) {
	ctx := context.Background()
	rng := rand.New(rand.NewPCG(1, 2))
	const n, d = 3*predictPoints + 5, 3
	points := make([]float64, n*d)
	for i := range points {
		points[i] = rng.Float64()
	}
	m, err := Fit(ctx, Rows(points, n, d), Options{K: 6})
	if err != nil {
		t.Fatal(err)
	}
	p, err := m.Predictor()
	if err != nil {
		t.Fatal(err)
	}
	want := slices.Clone(m.Labels)
	for j := range m.Centroids {
		m.Centroids[j][0], m.Lower[0], m.Labels[j] = 0, -5, 0
	}
	eng := enginetest.New(t)
	var all sync.WaitGroup
	for g := range 4 {
		all.Go(func() {
			got := make([]int32, n)
			if err := p.Nearest(ctx, eng, &dataset.Matrix[float64]{Data: points, N: n, D: d}, got, nil); err != nil ||
				!slices.Equal(got, want) {
				t.Error("all at once:", err)
			}
			for i := g; i < n; i += 97 {
				one := dataset.Matrix[float64]{Data: points[i*d : (i+1)*d], N: 1, D: d}
				if err := p.Nearest(ctx, eng, &one, got, nil); err != nil || got[0] != want[i] {
					t.Errorf("record %d: %d, not %d (%v)", i, got[0], want[i], err)
				}
			}
		})
	}
	all.Wait()
}

// Nothing, and too little of it, is refused in the usual form: nothing panics, no value is replaced silently.
func TestNothingIsRefused(t *testing.T) {
	var none context.Context // as a caller that passes nil
	ctx, good, empty := context.Background(), Rows([]float64{1, 2, 3, 4, 5, 6}, 3, 2), new(Model)
	m, err := Fit(ctx, good, Options{K: 2})
	if err != nil {
		t.Fatal(err)
	}
	records, err := Prepare(ctx, good, PrepareOptions{})
	if err != nil {
		t.Fatal(err)
	}
	closed, err := Prepare(ctx, good, PrepareOptions{})
	if err != nil {
		t.Fatal(err)
	}
	closed.Close()
	eng := enginetest.New(t)
	two := &dataset.Matrix[float64]{Data: []float64{1, 2, 3, 4}, N: 2, D: 2}
	narrow := &dataset.Normalised{Points: kernels.NewPanels(2, 1), FractionBits: m.FractionBits}
	assign := func(ctx context.Context, m *Model, pool *engine.Pool, records *dataset.Normalised) error {
		_, _, err := m.Assign(ctx, pool, records)
		return err
	}
	p, err := m.Predictor()
	if err != nil {
		t.Fatal(err)
	}
	fit := func(ctx context.Context, data Data, o Options) error { _, err := Fit(ctx, data, o); return err }
	prepare := func(ctx context.Context, o PrepareOptions) error { _, err := Prepare(ctx, good, o); return err }
	for what, try := range map[string]func() error{
		"fit without context":     func() error { return fit(none, good, Options{K: 2}) },
		"no source":               func() error { return fit(ctx, From(nil), Options{K: 2}) },
		"no writer":               func() error { return m.Save(nil) },
		"short rows":              func() error { return fit(ctx, Rows([]float32{1, 2}, 5, 2), Options{K: 2}) },
		"rows without columns":    func() error { return fit(ctx, Rows([]float32{1, 2}, 2, 0), Options{K: 2}) },
		"rows beyond memory":      func() error { return fit(ctx, Rows([]float32{1}, 1<<62, 4), Options{K: 2}) },
		"negative clients":        func() error { return fit(ctx, good, Options{K: 2, Clients: -1}) },
		"delta alone":             func() error { return fit(ctx, good, Options{K: 2, Delta: 0.1}) },
		"negative delta":          func() error { return fit(ctx, good, Options{K: 2, Epsilon: 1, Delta: -1}) },
		"an empty start":          func() error { return fit(ctx, good, Options{K: 2, Start: [][]float64{}}) },
		"a start of nothing":      func() error { return fit(ctx, good, Options{K: 1, Start: [][]float64{nil}}) },
		"prepare without context": func() error { return prepare(none, PrepareOptions{}) },
		"negative workers":        func() error { return prepare(ctx, PrepareOptions{Workers: -1}) },
		"short weights":           func() error { return prepare(ctx, PrepareOptions{Weights: []float64{1}}) },
		"weights that are NaN": func() error {
			return prepare(ctx, PrepareOptions{Weights: []float64{1, math.NaN(), 1}})
		},
		"fit records without context": func() error { _, err := records.Fit(none, Options{K: 2}); return err },
		"predict by nothing":          func() error { _, err := empty.Predict([]float64{1}); return err },
		"predict nothing":             func() error { _, err := m.Predict(nil); return err },
		"predict without context":     func() error { return p.Nearest(none, eng, two, nil, nil) },
		"predict without engine":      func() error { return p.Nearest(ctx, nil, two, nil, nil) },
		"predict no points":           func() error { return p.Nearest(ctx, eng, nil, nil, nil) },
		"predictor of nothing":        func() error { _, err := empty.Predictor(); return err },
		"predict to short labels":     func() error { return p.Nearest(ctx, eng, two, make([]int32, 1), nil) },
		"predict to short distances":  func() error { return p.Nearest(ctx, eng, two, nil, make([]float64, 1)) },
		"load from nothing":           func() error { _, err := Load(nil); return err },
		"fit closed records":          func() error { _, err := closed.Fit(ctx, Options{K: 2}); return err },
		"an engine of nothing":        func() error { return fit(ctx, good, Options{K: 2, Engine: new(engine.Engine)}) },
		"assign without context":      func() error { return assign(none, m, eng.Pool(), &records.prepared.Normalised) },
		"assign without pool":         func() error { return assign(ctx, m, nil, &records.prepared.Normalised) },
		"assign nothing":              func() error { return assign(ctx, m, eng.Pool(), nil) },
		"assign other columns":        func() error { return assign(ctx, m, eng.Pool(), narrow) },
		"assign closed records":       func() error { return assign(ctx, m, eng.Pool(), &closed.prepared.Normalised) },
		"count no clusters":           func() error { return m.Count([]int32{0, 2}) },
		"count below the clusters":    func() error { return m.Count([]int32{-1}) },
		"count nothing":               func() error { return m.CountRecords(ctx, eng.Pool(), nil) },
	} {
		if err := attempt(try); !fault.IsRequest(err) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// Methods of nothing are refused in the usual form, too.
func TestMethodsOfNothingAreRefused(t *testing.T) {
	var (
		noModel     *Model
		noPredictor *Predictor
		noRecords   *Records
		noEngine    *engine.Engine
		noAccount   *Account
	)
	ctx, empty, eng := context.Background(), new(Model), enginetest.New(t)
	closed, err := Prepare(ctx, Rows([]float64{1, 2, 3, 4, 5, 6}, 3, 2), PrepareOptions{})
	if err != nil {
		t.Fatal(err)
	}
	two := &dataset.Matrix[float64]{Data: []float64{1, 2, 3, 4}, N: 2, D: 2}
	for what, try := range map[string]func() error{
		"save no model":             func() error { return noModel.Save(io.Discard) },
		"save an empty model":       func() error { return empty.Save(io.Discard) },
		"save a model of no result": func() error { return NewModel(nil, dataset.Bounds{}, nil, 0).Save(io.Discard) },
		"predict by no model":       func() error { _, err := noModel.Predict([]float64{1}); return err },
		"score by no model":         func() error { _, err := noModel.Score([]float64{1}); return err },
		"predictor of no model":     func() error { _, err := noModel.Predictor(); return err },
		"no predictor":              func() error { return noPredictor.Nearest(ctx, eng, two, nil, nil) },
		"an empty predictor":        func() error { return new(Predictor).Nearest(ctx, eng, two, nil, nil) },
		"count for no model":        func() error { return noModel.Count(nil) },
		"count for an empty model":  func() error { return empty.Count(nil) },
		"assign by no model":        func() error { return noModel.CountRecords(ctx, eng.Pool(), new(dataset.Normalised)) },
		"fit no records":            func() error { _, err := noRecords.Fit(ctx, Options{K: 2}); return err },
		"fit empty records":         func() error { _, err := new(Records).Fit(ctx, Options{K: 2}); return err },
		"run on no engine":          func() error { _, err := noEngine.Run(ctx, nil); return err },
		"pay from no account":       func() error { _, err := noAccount.NewPayment(Charged{}); return err },
		"pay for no method":         func() error { _, err := new(Account).NewPayment(Charged{}); return err },
		"pay for no job":            func() error { _, err := new(Payment).Start(nil); return err },
	} {
		if err := attempt(try); !fault.IsRequest(err) {
			t.Errorf("%s: %v", what, err)
		}
	}
	for what, r := range map[string]*Records{"no": nil, "empty": new(Records), "closed": closed} {
		err := attempt(func() error {
			r.Close()
			if r.N() != 0 || r.D() != 0 {
				return fmt.Errorf("%d records of %d columns", r.N(), r.D())
			}
			return nil
		})
		if err != nil {
			t.Errorf("%s records: %v", what, err)
		}
	}
}

// Save refuses what Load would not take, before it has written anything.
func TestSaveRefusesWhatLoadDoes(t *testing.T) {
	whole, err := Fit(context.Background(), Rows([]float64{1, 2, 3, 4, 5, 6}, 3, 2), Options{K: 2})
	if err != nil {
		t.Fatal(err)
	}
	for what, spoil := range map[string]func(m *Model){
		"a centroid that is short":   func(m *Model) { m.Centroids = [][]float64{{1}, {2, 3}} },
		"a centroid that is NaN":     func(m *Model) { m.Centroids = [][]float64{{1, math.NaN()}, {2, 3}} },
		"a bound too few":            func(m *Model) { m.Upper = []float64{1} },
		"bounds that are turned":     func(m *Model) { m.Lower, m.Upper = m.Upper, m.Lower },
		"no grid":                    func(m *Model) { m.FractionBits = 0 },
		"a name too many":            func(m *Model) { m.Columns = []string{"a", "b", "c"} },
		"a size too few":             func(m *Model) { m.Sizes = []float64{1} },
		"a metric that there is not": func(m *Model) { m.Metric = "taxi" },
	} {
		m := *whole
		spoil(&m)
		var b bytes.Buffer
		if err := attempt(func() error { return m.Save(&b) }); !errors.As(err, new(*fault.Error)) || b.Len() > 0 {
			t.Errorf("%s: %v after %d bytes", what, err, b.Len())
		}
	}
	var b bytes.Buffer
	if err := whole.Save(&b); err != nil {
		t.Fatal(err)
	}
	if _, err := Load(&b); err != nil {
		t.Error(err)
	}
}

// A model file without a ledger has an empty one, which can be read as any other.
func TestLoadWithoutLedger(t *testing.T) {
	whole, err := Fit(context.Background(), Rows([]float64{1, 2, 3, 4, 5, 6}, 3, 2), Options{K: 2})
	if err != nil {
		t.Fatal(err)
	}
	whole.Ledger = nil
	var b bytes.Buffer
	if err := whole.Save(&b); err != nil {
		t.Fatal(err)
	}
	m, err := Load(&b)
	if err != nil {
		t.Fatal(err)
	}
	if err := attempt(func() error { m.Ledger.Totals(); return m.Ledger.Text(io.Discard) }); err != nil {
		t.Error(err)
	}
}

// attempt calls try; a panic is an error that says so.
func attempt(try func() error) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("panic: %v", r)
		}
	}()
	return try()
}

// The package links nothing that a user of the engine alone does not need.
func TestLinksLittle(t *testing.T) {
	out, err := exec.Command("go", "list", "-deps", ".").Output()
	if err != nil {
		t.Fatal(err)
	}
	for _, heavy := range []string{"lattigo", "nats-io", "parquet", "spf13", "progressbar", "gonum.org/v1/plot"} {
		if strings.Contains(string(out), heavy) {
			t.Errorf("package cohort links %s", heavy)
		}
	}
}

// The README's snippet is the body of Example.
func TestReadmeHasTheExample(t *testing.T) {
	example, err := os.ReadFile("example_test.go")
	if err != nil {
		t.Fatal(err)
	}
	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	body := string(example)
	body = body[strings.Index(body, "\tmodel, err :="):]
	body = strings.ReplaceAll(body[:strings.Index(body, "\tfmt.Println")], "\n\t", "\n")[1:]
	if !strings.Contains(string(readme), body) {
		t.Errorf("the README lacks\n%s", body)
	}
}

// Names of columns and sizes survive as they are, and JSON names are stable: other programs read them.
func TestModelFields(t *testing.T) {
	b, err := json.Marshal(&Model{})
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range []string{"version", "method", "centroids", "sizes", "lower", "upper", "bounds_from_data",
		"columns", "fraction_bits", "calibration", "epsilon", "delta", "ledger"} {
		if !strings.Contains(string(b), `"`+f+`":`) {
			t.Errorf("%s lacks %q", b, f)
		}
	}
}

// A model of a seeded run with a budget says in its ledger that it is a simulation, whatever the method.
func TestModelsSayTheirSeed(t *testing.T) {
	data, seed := blobs(t), uint64(5)
	for _, m := range standard.Methods() {
		if !m.Private {
			continue
		}
		o := Options{K: 3, Epsilon: 1, Bounds: Range(-200, 200), Method: m.Name, Seed: &seed, NoLabels: true}
		if m.Holds == method.Columns {
			o.Parties = [][]int{{0}, {1, 2}}
		}
		for _, o.Seed = range []*uint64{&seed, nil} {
			model, err := Fit(context.Background(), data, o)
			if err != nil {
				t.Fatal(m.Name, err)
			}
			said := slices.ContainsFunc(model.Ledger.Entries(), func(e privacy.Entry) bool {
				return e.Kind == privacy.Note && strings.Contains(e.What, "simulation")
			})
			if said != (o.Seed != nil) {
				t.Errorf("%s with seed %v: the ledger says that it is a simulation: %v", m.Name, o.Seed, said)
			}
		}
	}
}
