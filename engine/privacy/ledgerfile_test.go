package privacy

import (
	"errors"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
)

// planned is a run of one public release, or of one to the viewers named, on the columns named.
func planned(t *testing.T, s Spec, delta float64, viewers ...string) PlannedRun {
	t.Helper()
	if len(viewers) == 0 {
		viewers = []string{Outsider}
	}
	l := &Ledger{Delta: delta}
	if err := l.Add(Entry{What: "sums", Viewers: viewers, Cost: s, Calibration: Proven,
		Neighbours: AddRemove}); err != nil {
		t.Fatal(err)
	}
	return PlannedRun{What: "run", Columns: []string{"a", "b"}, Salt: "salt", Ledger: l}
}

// pureRun costs everybody so much.
func pureRun(t *testing.T, epsilon float64) PlannedRun {
	return planned(t, Spec{Family: "pure", Epsilon: epsilon}, 0)
}

var pureTerms = Terms{Budget{1, 1e-5}, BasicComposition, AddRemove}

func newFile(t *testing.T) LedgerFile { return LedgerFile{Path: filepath.Join(t.TempDir(), "ledger")} }

func TestLedgerFileSpendsOneBudget(t *testing.T) {
	f := newFile(t)
	for i := range 4 {
		run, err := f.Start(pureTerms, pureRun(t, 0.25))
		if err != nil || run != i+1 {
			t.Fatalf("run %d: number %d, error %v", i+1, run, err)
		}
		if err := f.End(run, pureRun(t, 0.25).Ledger); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := f.Start(Terms{}, pureRun(t, 0.25)); !errors.Is(err, ErrBudget) ||
		!strings.Contains(err.Error(), "0.25 is missing") {
		t.Errorf("fifth run: error %v, want a shortfall of 0.25", err)
	}
	if _, err := f.Start(Terms{Budget: Budget{2, 1e-5}}, pureRun(t, 0.01)); !errors.Is(err, ErrRange) {
		t.Errorf("another total: error %v", err)
	}
	if _, err := f.Start(Terms{Composition: GDPComposition}, pureRun(t, 0.01)); !errors.Is(err, ErrRange) {
		t.Errorf("another composition: error %v", err)
	}
	state, err := f.State()
	if err != nil || len(state.Runs) != 4 || !state.Runs[3].Ended || state.Spent[Outsider] != (Charge{Amount: 1}) ||
		state.Left("anybody") != (Charge{Delta: 1e-5}) {
		t.Errorf("state %+v, %v", state, err)
	}
	// what a run released beyond its plan is charged
	g := newFile(t)
	if _, err := g.Start(pureTerms, pureRun(t, 0.25)); err != nil {
		t.Fatal(err)
	}
	if err := g.End(1, pureRun(t, 0.5).Ledger); err != nil {
		t.Fatal(err)
	}
	if state, err = g.State(); err != nil || state.Spent[Outsider].Amount != 0.5 {
		t.Errorf("a run that released more than planned: %+v, %v", state, err)
	}
}

// Runs with different audiences: what is public is charged to everybody, also to those who saw another run alone.
func TestLedgerFileChargesEveryViewer(t *testing.T) {
	f := newFile(t)
	terms := Terms{Budget{2, 0}, BasicComposition, AddRemove}
	toServer, public := planned(t, Spec{Family: "pure", Epsilon: 0.5}, 0, Server),
		planned(t, Spec{Family: "pure", Epsilon: 0.5}, 0, Clients, Outsider)
	runs := 0
	for _, p := range []PlannedRun{toServer, public, toServer, public, toServer, public, toServer} {
		if _, err := f.Start(terms, p); err != nil {
			if !errors.Is(err, ErrBudget) || !strings.Contains(err.Error(), Server) {
				t.Fatal(err)
			}
			break
		}
		runs++
	}
	// the server sees all four runs of 0.5; that others saw only two does not help it
	state, err := f.State()
	if err != nil || runs != 4 || state.Spent[Server].Amount != 2 || state.Spent[Outsider].Amount != 1 ||
		state.Left("party 1").Amount != 1 {
		t.Errorf("%d runs, %+v, %v", runs, state, err)
	}
	// who draws the noise of what is public, or sees something exact, has no bound
	drawn := planned(t, Spec{Family: "pure", Epsilon: 0.1}, 0)
	drawn.Ledger.Entries()[0].Noise = DrawnBy(Server)
	if _, err := f.Start(terms, drawn); !errors.Is(err, ErrBudget) || !strings.Contains(err.Error(), "--noise split") {
		t.Errorf("a server that knows the noise: %v", err)
	}
	exact := PlannedRun{What: "exact", Columns: []string{"a"}, Salt: "salt",
		Ledger: &Ledger{entries: []Entry{{Kind: Release, What: "exact sums", Viewers: []string{Server}, Mechanism: "none",
			Unbounded: true}}}}
	if _, err := f.Start(terms, exact); !errors.Is(err, ErrBudget) {
		t.Errorf("an exact release: %v", err)
	}
}

// One relation: a guarantee for adding or removing a record is charged as two of them where records are
// replaced, one for replacing says nothing where they are added or removed.
func TestLedgerFileHasOneRelation(t *testing.T) {
	replacing := pureRun(t, 0.1)
	replacing.Ledger.Entries()[0].Neighbours = ReplaceOne
	if _, err := newFile(t).Start(pureTerms, replacing); !errors.Is(err, ErrRange) ||
		!strings.Contains(err.Error(), "says nothing") {
		t.Errorf("a guarantee for replacing: %v", err)
	}
	const delta = 1e-6
	for _, c := range []struct {
		composition Composition
		spec        Spec
		amount      float64
		delta       float64
	}{
		{BasicComposition, Spec{Family: "pure", Epsilon: 0.25}, 0.5, 0},
		{BasicComposition, Spec{Family: "pure", Epsilon: 0.25, Failure: delta}, 0.5, delta * (1 + math.Exp(0.25))},
		{ZCDPComposition, Spec{Family: "gaussian", Scale: 10}, 4 * 0.005, 0},
		{GDPComposition, Spec{Family: "gaussian", Scale: 10, Failure: 1e-7}, 4 * 0.01, 1e-7 * (1 + math.E)},
	} {
		f := newFile(t)
		if _, err := f.Start(Terms{Budget{1, 1e-5}, c.composition, ReplaceOne}, planned(t, c.spec, delta)); err != nil {
			t.Errorf("%s: %v", c.composition, err)
			continue
		}
		state, err := f.State()
		if err != nil {
			t.Fatal(err)
		}
		got := state.Spent[Outsider]
		near(t, string(c.composition)+" amount", got.Amount, c.amount, 1e-8)
		near(t, string(c.composition)+" delta", got.Delta, c.delta, 1e-8)
		if _, err := f.Start(Terms{}, replacing); c.composition == BasicComposition && err != nil {
			t.Errorf("a guarantee for replacing in a file of them: %v", err)
		}
	}
}

// Each composition adds up its own currency and ends where the budget does: as many Gaussian releases fit
// as its accountant says.
func TestLedgerFileFilters(t *testing.T) {
	for _, c := range []struct {
		composition Composition
		spec        Spec
		fit         func(n int) bool // by the accountant, at the file's delta but for what is set aside
	}{
		{ZCDPComposition, Spec{Family: "gaussian", Scale: 20}, func(n int) bool {
			a := &ZCDPAccountant{}
			a.Compose(Gaussian{Scale: 20}, n)
			return a.Epsilon(1e-5*15/16) <= 1
		}},
		{GDPComposition, Spec{Family: "discrete-gaussian", Scale: 20, Slack: 1e-12}, func(n int) bool {
			return EpsilonOfMu(math.Sqrt(float64(n))/20, 1e-5*15/16, 0) <= 1
		}},
		{RDPComposition, Spec{Family: "fm", Gamma: 1, Phantoms: 400, Parties: 2, Cells: 5, Rounds: 256}, nil},
	} {
		f := newFile(t)
		terms := Terms{Budget{1, 1e-5}, c.composition, AddRemove}
		n := 0
		for ; n < 1000; n++ {
			if _, err := f.Start(terms, planned(t, c.spec, 1e-6)); err != nil {
				if !errors.Is(err, ErrBudget) {
					t.Fatal(err)
				}
				break
			}
		}
		state, err := f.State()
		if err != nil {
			t.Fatal(err)
		}
		if e := state.Epsilon(state.Spent[Outsider].Amount); e > 1+1e-9 || e < 0.8 {
			t.Errorf("%s: %d runs spend epsilon %v of 1", c.composition, n, e)
		}
		if c.fit != nil && (!c.fit(n) || c.fit(n+1)) {
			t.Errorf("%s: %d runs fit, by the accountant %v and %v more", c.composition, n, c.fit(n), c.fit(n+1))
		}
		if c.fit == nil && n < 20 {
			t.Errorf("%s: only %d runs fit", c.composition, n)
		}
	}
	// failures are added up beside, in their own share of delta
	f := newFile(t)
	terms := Terms{Budget{1, 1e-5}, GDPComposition, AddRemove}
	failing := planned(t, Spec{Family: "gaussian", Scale: 1e6, Failure: 1e-5 / 32}, 1e-6)
	for i := range 3 {
		if _, err := f.Start(terms, failing); (err == nil) != (i < 2) || err != nil &&
			(!errors.Is(err, ErrBudget) || !strings.Contains(err.Error(), "delta")) {
			t.Errorf("failing run %d: %v", i+1, err)
		}
	}
	// what the currency cannot price is refused, and so is a composition without a delta
	if _, err := newFile(t).Start(terms, planned(t, Spec{Family: "fm", Gamma: 1, Phantoms: 400, Parties: 2, Cells: 5},
		1e-6)); !errors.Is(err, ErrBudget) || !strings.Contains(err.Error(), "no price") {
		t.Errorf("sketches in a gdp file: %v", err)
	}
	if _, err := newFile(t).Start(Terms{Budget{1, 0}, GDPComposition, AddRemove},
		pureRun(t, 0.1)); !errors.Is(err, ErrRange) {
		t.Errorf("gdp without a delta: %v", err)
	}
}

// Columns that are shared are the same people, in whatever order and company.
func TestLedgerFileKnowsItsPeople(t *testing.T) {
	f := newFile(t)
	with := func(columns ...string) PlannedRun {
		p := pureRun(t, 0.01)
		p.Columns = columns
		return p
	}
	for _, c := range []struct {
		columns []string
		ok      bool
	}{{[]string{"a", "b"}, true}, {[]string{"b", "a"}, true}, {[]string{"c"}, false}, {[]string{"b", "c"}, true},
		{[]string{"c"}, true}, {[]string{"d", "e"}, false}} {
		if _, err := f.Start(pureTerms, with(c.columns...)); (err == nil) != c.ok || err != nil &&
			!errors.Is(err, ErrDataset) {
			t.Errorf("columns %v: %v", c.columns, err)
		}
	}
	late := with("a")
	late.Salt = "that of a file which was not there yet"
	_, err := f.Start(pureTerms, late)
	if err == nil || errors.Is(err, ErrDataset) || !strings.Contains(err.Error(), "another run made it meanwhile: give") {
		t.Errorf("a file that another run made meanwhile: %v", err)
	}
	// digests of two files do not agree, nor do those under another key
	salt, err := f.Salt()
	if err != nil || salt != "salt" {
		t.Errorf("salt %q, %v", salt, err)
	}
	keyed := f
	keyed.Key = []byte("a key")
	fresh, err := newFile(t).Salt()
	if err != nil || len(fresh) != 32 || f.DigestKey(salt) == f.DigestKey(fresh) ||
		f.DigestKey(salt) == keyed.DigestKey(salt) {
		t.Errorf("salt %q, %v", fresh, err)
	}
}

// A key makes the chain one that only who has it can write; an anchor shows lines that were cut off whole.
func TestLedgerFileKeyAndAnchor(t *testing.T) {
	f := newFile(t)
	f.Key = []byte("0123456789abcdef")
	var anchors []string
	for range 3 {
		if _, err := f.Start(pureTerms, pureRun(t, 0.1)); err != nil {
			t.Fatal(err)
		}
		state, err := f.State()
		if err != nil || !state.Keyed {
			t.Fatal(state, err)
		}
		anchors = append(anchors, state.Anchor)
	}
	for name, other := range map[string]LedgerFile{"no key": {Path: f.Path},
		"another key": {Path: f.Path, Key: []byte("another key")}} {
		if _, err := other.State(); !errors.Is(err, ErrCorrupt) || !strings.Contains(err.Error(), "key") {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, a := range anchors { // of an earlier state too: the file has only grown
		g := f
		g.Anchor = a
		if _, err := g.State(); err != nil {
			t.Errorf("anchor %s: %v", a, err)
		}
	}
	whole, err := os.ReadFile(f.Path)
	if err != nil {
		t.Fatal(err)
	}
	f.Anchor = anchors[2]
	lines := strings.SplitAfter(string(whole), "\n")
	if err := os.WriteFile(f.Path, []byte(strings.Join(lines[:3], "")), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := f.State(); !errors.Is(err, ErrCorrupt) || !strings.Contains(err.Error(), "cut off") {
		t.Errorf("a file that lost its last line: %v", err)
	}
	// the line of the anchor, by another run
	g := f
	g.Anchor = ""
	if _, err := g.Start(Terms{}, pureRun(t, 0.2)); err != nil {
		t.Fatal(err)
	}
	if _, err := f.State(); !errors.Is(err, ErrCorrupt) || !strings.Contains(err.Error(), "anchor") {
		t.Errorf("a file with another last line: %v", err)
	}
	if err := os.Remove(f.Path); err != nil {
		t.Fatal(err)
	}
	if _, err := f.State(); !errors.Is(err, ErrCorrupt) {
		t.Errorf("a file that is gone: %v", err)
	}
	f.Anchor = "three"
	if _, err := f.State(); err == nil {
		t.Error("an anchor that is none is taken")
	}
}

// What a run of which only its budget is known costs is its budget.
func TestWholeRunCostsItsBudget(t *testing.T) {
	l, err := WholeRun("run", Budget{0.7, 1e-6}, AddRemove)
	if err != nil {
		t.Fatal(err)
	}
	prices, err := pureTerms.Prices(l)
	if err != nil || len(prices) != 1 || math.Abs(prices[Outsider].Amount-0.7) > 1e-9 || prices[Outsider].Delta < 1e-6 ||
		prices[Outsider].Delta > 1e-6*(1+1e-9) {
		t.Errorf("prices %v, %v", prices, err)
	}
	prices, err = Terms{Budget{1, 1e-4}, GDPComposition, AddRemove}.Prices(l)
	mu := PureDP{Epsilon: 0.7}.Mu()
	if err != nil || math.Abs(prices[Outsider].Amount/(mu*mu)-1) > 1e-8 {
		t.Errorf("gdp prices %v, %v, want %v", prices, err, mu*mu)
	}
	if !slices.Equal(l.Viewers(), []string{Outsider}) {
		t.Errorf("viewers %v", l.Viewers())
	}
}

func TestLedgerFileDetectsDamage(t *testing.T) {
	f := newFile(t)
	for range 3 {
		if _, err := f.Start(Terms{Budget{9, 1e-5}, BasicComposition, AddRemove}, pureRun(t, 1)); err != nil {
			t.Fatal(err)
		}
	}
	whole, err := os.ReadFile(f.Path)
	if err != nil {
		t.Fatal(err)
	}
	// any cut inside the last line is torn, and the advice mends it
	last := strings.LastIndex(strings.TrimSuffix(string(whole), "\n"), "\n") + 1
	for cut := last + 1; cut < len(whole); cut += 7 {
		if err := os.WriteFile(f.Path, whole[:cut], 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := f.Start(Terms{}, pureRun(t, 1))
		if !errors.Is(err, ErrCorrupt) || !strings.Contains(err.Error(), "truncate -s") {
			t.Fatalf("cut at %d: error %v", cut, err)
		}
	}
	// so is a file whose first line was cut short
	for cut := 1; cut < strings.Index(string(whole), "\n"); cut += 5 {
		if err := os.WriteFile(f.Path, whole[:cut], 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := f.Start(pureTerms, pureRun(t, 1)); !errors.Is(err, ErrCorrupt) ||
			!strings.Contains(err.Error(), "truncate -s 0 ") {
			t.Fatalf("first line cut at %d: error %v", cut, err)
		}
	}
	if err := os.WriteFile(f.Path, whole, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(f.Path, int64(last)); err != nil {
		t.Fatal(err)
	}
	if run, err := f.Start(Terms{}, pureRun(t, 1)); err != nil || run != 3 {
		t.Errorf("after mending: run %d, error %v", run, err)
	}
	// a changed byte, or a line taken out, in the middle
	altered := strings.Replace(string(whole), `"run":1`, `"run":2`, 1)
	lines := strings.SplitAfter(string(whole), "\n")
	for name, text := range map[string]string{"altered": altered, "removed": lines[0] + lines[2] + lines[3],
		"removed, and the next is the last": lines[0] + lines[2],
		"charge altered":                    strings.Replace(string(whole), `"amount":1`, `"amount":0`, 1),
		"altered at the end":                strings.Replace(string(whole), `"run":3`, `"run":2`, 1),
		"another text":                      "x,y\n1,2\n",
		"another text in one line":          "x,y", "other bytes": "\x1f\x8b\x00\n\x01"} {
		if err := os.WriteFile(f.Path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := f.Start(Terms{}, pureRun(t, 1)); !errors.Is(err, ErrCorrupt) ||
			strings.Contains(err.Error(), "truncate") {
			t.Errorf("%s: error %v", name, err)
		}
	}
}

func TestLedgerFileLeavesNothingBehindOnRefusal(t *testing.T) {
	f := newFile(t)
	if _, err := f.Start(Terms{Budget{0.5, 0}, BasicComposition, AddRemove}, pureRun(t, 1)); !errors.Is(err, ErrBudget) {
		t.Errorf("error %v, want a refusal", err)
	}
	if _, err := os.Stat(f.Path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a file was left behind: %v", err)
	}
}

// Several processes race for a budget of ten runs; exactly ten win.
func TestLedgerFileProcessesCannotOverspend(t *testing.T) {
	if path := os.Getenv("COHORT_TEST_LEDGER"); path != "" {
		won := 0
		for range 6 {
			if _, err := (LedgerFile{Path: path}).Start(Terms{Budget{1, 0}, BasicComposition, AddRemove},
				pureRun(t, 0.1)); err == nil {
				won++
			} else if !errors.Is(err, ErrBudget) {
				t.Fatal(err)
			}
		}
		os.Stdout.WriteString(strings.Repeat("won\n", won))
		return
	}
	path := filepath.Join(t.TempDir(), "ledger")
	outs := make(chan string)
	for range 4 {
		go func() {
			cmd := exec.Command(os.Args[0], "-test.run=^TestLedgerFileProcessesCannotOverspend$")
			cmd.Env = append(os.Environ(), "COHORT_TEST_LEDGER="+path)
			b, err := cmd.Output()
			if err != nil {
				b = append(b, "failed: "+err.Error()...)
			}
			outs <- string(b)
		}()
	}
	won := 0
	for range 4 {
		out := <-outs
		if strings.Contains(out, "failed") {
			t.Error(out)
		}
		won += strings.Count(out, "won")
	}
	if won != 10 {
		t.Errorf("%d runs were paid for, want 10", won)
	}
}

// A ledger file is a regular one: a device may have no end, and one without bytes was removed as a file is that could
// not be begun.
func TestLedgerFileIsRegular(t *testing.T) {
	paths := []string{t.TempDir()}
	if runtime.GOOS != "windows" { // its null device is no file that a link could name
		info, err := os.Stat(os.DevNull)
		if err != nil || info.Mode().IsRegular() {
			t.Fatalf("%s is no device on this machine (%v, %v): make it one again", os.DevNull, info, err)
		}
		device := filepath.Join(t.TempDir(), "device")
		if err := os.Symlink(os.DevNull, device); err != nil {
			t.Fatal(err)
		}
		paths = append(paths, device)
	}
	for _, path := range paths {
		f := LedgerFile{Path: path}
		if _, err := f.State(); err == nil || !strings.Contains(err.Error(), "no regular file") {
			t.Errorf("%s: %v", path, err)
		}
		if _, err := f.Start(pureTerms, pureRun(t, 0.1)); err == nil {
			t.Errorf("%s was begun", path)
		}
		if _, err := os.Lstat(path); err != nil {
			t.Error(err)
		}
	}
}

// A key has 16 bytes to 1 MiB: a device of random bytes, which are others the next time, has no end.
func TestReadKey(t *testing.T) {
	path := filepath.Join(t.TempDir(), "key")
	for _, c := range []struct {
		bytes int
		want  string
	}{
		{15, "key: " + path + " holds 15 bytes: give a file of at least 16 random bytes"}, {16, ""}, {1 << 20, ""},
		{1<<20 + 1, "key: " + path + " holds more than 1048576 bytes: give a file that keeps its bytes"},
	} {
		if err := os.WriteFile(path, make([]byte, c.bytes), 0o600); err != nil {
			t.Fatal(err)
		}
		key, err := ReadKey("key", path)
		switch {
		case c.want == "" && (err != nil || len(key) != c.bytes):
			t.Errorf("%d bytes: %d, %v", c.bytes, len(key), err)
		case c.want != "" && (err == nil || !strings.HasPrefix(err.Error(), c.want)):
			t.Errorf("%d bytes: %v, want %s", c.bytes, err, c.want)
		}
	}
	if _, err := ReadKey("key", path+"s"); err == nil || !strings.Contains(err.Error(), "name a file that can be read") {
		t.Error(err)
	}
}

// A file whose line ends another program has taken is not told to be cut off at its beginning: runs were paid for.
func TestLedgerFileOfOtherLineEnds(t *testing.T) {
	f := newFile(t)
	if _, err := f.Start(pureTerms, pureRun(t, 0.25)); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(f.Path)
	if err != nil {
		t.Fatal(err)
	}
	for _, ends := range []string{"\r", "\r\n", " ", ""} {
		if err := os.WriteFile(f.Path, []byte(strings.ReplaceAll(string(text), "\n", ends)), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := f.State()
		if !errors.Is(err, ErrCorrupt) || !strings.HasSuffix(err.Error(), "restore the file from a copy") {
			t.Errorf("lines that end in %q: %v", ends, err)
		}
	}
}
