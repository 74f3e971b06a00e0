package study

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cohort-engine/cohort/engine"
	"github.com/cohort-engine/cohort/engine/catalog"
	"github.com/cohort-engine/cohort/engine/dataset"
	"github.com/cohort-engine/cohort/engine/enginetest"
	"github.com/cohort-engine/cohort/engine/method"
	"github.com/cohort-engine/cohort/engine/protocol"
)

// folder is one for journals: in memory where there is such a place, since tests sync
// thousands of times.
func folder(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "cohort")
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

// blobs are records of four columns in three clusters.
func blobs(t testing.TB, n int) *dataset.Normalised {
	t.Helper()
	table, err := dataset.Generate(context.Background(), "blobs",
		dataset.Generator{N: n, D: 4, K: 3, Separation: 6, Seed: 5})
	if err != nil {
		t.Fatal(err)
	}
	bounds, err := dataset.BoundsFromData(table)
	if err != nil {
		t.Fatal(err)
	}
	bounds.FromData = false
	norm, err := dataset.Normalise(table, bounds, dataset.DefaultFractionBits)
	if err != nil {
		t.Fatal(err)
	}
	return norm
}

// fixture is a study and the records of its parties.
type fixture struct {
	study *Study
	norm  *dataset.Normalised
	parts []dataset.Part
	ids   []string // of the records of norm, if they have any
}

// newFixture makes a study of a method among parties.
func newFixture(t testing.TB, name string, parties, n int, set method.Settings) *fixture {
	t.Helper()
	r, err := Trial{name, parties, set}.Rehearse(blobs(t, n), 3)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return &fixture{study: r.Study, norm: r.Table, parts: r.Parts}
}

// alone is what the run in one process gives.
func (f *fixture) alone(t testing.TB) *engine.Result {
	t.Helper()
	clients := f.parts
	if f.study.ByColumns() {
		clients = f.norm.Table()
	}
	job, err := f.study.jobOf(clients, f.norm.Bounds, f.ids)
	if err != nil {
		t.Fatal(err)
	}
	return enginetest.RunOn(t, 2, job)
}

func newEngine(t testing.TB) *engine.Engine { return enginetest.New(t, engine.WithWorkers(2)) }

// network runs a study over the loopback interface.
type network struct {
	*fixture
	dirs    []string // of the parties, then of other servers, then of the coordinator
	address string
	log     *slog.Logger
	change  func(*Join)
	watch   *Watch // may be nil
	whole   bool   // journals have the vectors of the sums and their results, too
}

func newNetwork(t testing.TB, f *fixture) *network {
	n := &network{fixture: f, address: "127.0.0.1:0", log: slog.New(slog.DiscardHandler)}
	if testing.Verbose() {
		n.log = slog.New(slog.NewTextHandler(os.Stderr, nil))
	}
	for range len(f.study.roles()) + 1 {
		n.dirs = append(n.dirs, folder(t))
	}
	return n
}

// address is where the coordinator listens, empty with a cluster.
func (o *Coordinator) address() string {
	if o.server == nil {
		return ""
	}
	return o.server.Address()
}

// coordinator starts a coordinator.
func (n *network) coordinator(t testing.TB) *Coordinator {
	t.Helper()
	c, err := NewCoordinator(Serve{Study: n.study, State: n.dirs[len(n.study.roles())], Listen: n.address, Log: n.log,
		Engine: newEngine(t), Watch: n.watch})
	if err != nil {
		t.Fatal(err)
	}
	if n.address = c.address(); n.whole {
		c.brief = nil
	}
	return c
}

// join is what a party takes part with.
func (n *network) join(t testing.TB, v Invitation) Join {
	j := Join{Invitation: &v, State: n.dirs[n.study.index(protocol.Role(v.Party))], Log: n.log, Engine: newEngine(t),
		Load: func(context.Context, *Study, int) (dataset.Part, []string, error) {
			return n.parts[v.Party], nil, nil
		},
		Agree: func(context.Context, *Terms) error { return nil }, whole: n.whole}
	if n.change != nil {
		n.change(&j)
	}
	return j
}

// run runs all roles to the end and returns what each ended with, the coordinator last.
func (n *network) run(t testing.TB) ([]*engine.Result, []error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 8*time.Minute) // what hangs does for ever
	defer cancel()
	c := n.coordinator(t)
	defer c.Close()
	others := len(n.study.roles())
	results, errs := make([]*engine.Result, others+1), make([]error, others+1)
	var roles sync.WaitGroup
	for p, v := range c.Invitations() {
		roles.Go(func() { results[p], errs[p] = Take(ctx, n.join(t, v)) })
	}
	results[others], errs[others] = c.Run(ctx)
	roles.Wait()
	return results, errs
}

// sameCentroids fails unless the roles that learn the result have the bits of want.
func sameCentroids(t testing.TB, name string, want *engine.Result, results []*engine.Result) {
	t.Helper()
	seen := 0
	for p, r := range results {
		if r == nil || r.Centroids == nil {
			continue
		}
		seen++
		if !slices.EqualFunc(r.Centroids, want.Centroids, slices.Equal) {
			t.Errorf("%s: role %d has %v, one process %v", name, p+1, r.Centroids, want.Centroids)
		}
	}
	if seen == 0 {
		t.Errorf("%s: nobody has a result", name)
	}
}

// Servers among which sums are shared are roles of the study: as many as the method's plan
// has, each with a name, an invitation and a place of its own; they have no records, pay
// nothing and learn no result. What such a sum cannot have is refused.
func TestServersOfShares(t *testing.T) {
	shares := method.Settings{"aggregator": "shares", "servers": "3"}
	f := newFixture(t, "sulloyd", 3, 60, shares)
	s := f.study
	if len(s.Servers) != 2 || s.Name(protocol.ServerAt(2)) != "server 3" || s.index(protocol.ServerAt(3)) >= 0 ||
		s.index(protocol.Server) >= 0 || s.index(protocol.Role(3)) >= 0 {
		t.Errorf("the servers are %+v", s.Servers)
	}
	for i, r := range s.roles() {
		if s.index(r) != i || place(r, 3) != i+1 {
			t.Errorf("%v is at %d, not %d", r, s.index(r), i)
		}
	}
	for want, change := range map[string]func(*Study){
		"--at-least":     func(s *Study) { s.Threshold = 2 },
		"--plain-sums":   func(s *Study) { s.PlainSums = true },
		"--server-names": func(s *Study) { s.Servers = make([]Holder, 3) },
	} {
		other := newFixture(t, "sulloyd", 3, 60, method.Settings{"aggregator": "shares"}).study
		change(other)
		if err := other.Complete(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v lacks %s", err, want)
		}
	}
	n := newNetwork(t, f)
	n.change = func(j *Join) {
		role, load := protocol.Role(j.Invitation.Party), j.Load
		j.Load = func(ctx context.Context, s *Study, party int) (dataset.Part, []string, error) {
			if role.Serves() {
				t.Errorf("%v was asked for records", role)
			}
			return load(ctx, s, party)
		}
		j.Charge = func(terms *Terms, _ bool) error {
			if terms.Role.Serves() {
				t.Errorf("%v pays", terms.Role)
			}
			return nil
		}
	}
	n.watch = NewWatch(s)
	results, errs := n.run(t)
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	sameCentroids(t, "shares", f.alone(t), results)
	status, _ := n.watch.Status()
	for i, p := range status.Parties {
		if p.Away {
			t.Errorf("%s is away from a study that is done", p.Name)
		}
		if p.Server != (i >= 3) || p.Sent == 0 || p.Received == 0 || p.Server != (len(p.Steps) == 0) {
			t.Errorf("the operator sees of %s %+v", p.Name, p)
		}
	}
	for i, r := range results[3:] {
		if r.Centroids != nil {
			t.Errorf("server %d has a result", i+1)
		}
	}
}

// Every method, with each role behind a connection of its own, gives the bits of the
// run in one process with the same seed.
func TestEveryMethod(t *testing.T) {
	tried := make(map[string]bool)
	for _, c := range Trials() {
		tried[c.Method] = true
		if c.Method == "ckks" && testing.Short() {
			continue // a luxury: seconds of encryption, which TestRolesApart has too
		}
		f := newFixture(t, c.Method, c.Parties, 240, c.Options)
		results, errs := newNetwork(t, f).run(t)
		if err := errors.Join(errs...); err != nil {
			t.Errorf("%s: %v", c.Method, err)
			continue
		}
		sameCentroids(t, c.Method, f.alone(t), results)
	}
	for _, m := range catalog.Methods() {
		if m.Holds != method.Table && !tried[m.Name] {
			t.Errorf("%s was not tried", m.Name)
		}
	}
}

// Messages of ciphertexts are long, those of sums and shares of a few centroids are not, and
// those of many centroids are.
func TestLongMessages(t *testing.T) {
	for _, x := range []struct {
		method  string
		k, d    int
		columns bool
		long    bool
	}{{"lloyd", 3, 4, false, false}, {"lloyd", 100, 50, false, true}, {"fastlloyd", 3, 4, false, false},
		{"ckks", 3, 4, true, true}, {"ind-lap", 3, 4, true, false}} {
		s := &Study{Method: x.method, K: x.k, Records: 5000, FractionBits: 16, Threshold: 2,
			Parties: []Holder{{Name: "one"}, {Name: "two"}}, Deadlines: Deadlines{Step: 20, Message: 60}}
		if x.method != "lloyd" {
			s.Epsilon, s.Delta = 4, -1
		} else {
			s.Options = method.Settings{"init": "sphere"}
		}
		for range x.d {
			s.Bounds = append(s.Bounds, [2]float64{0, 1})
		}
		if x.columns {
			s.Parties[0].Columns, s.Parties[1].Columns = x.d/2, x.d-x.d/2
		}
		if err := s.Complete(); err != nil {
			t.Fatalf("%s: %v", x.method, err)
		}
		if long, err := s.long(); err != nil || long != x.long {
			t.Errorf("%s of %d clusters and %d columns: long is %v, %v", x.method, x.k, x.d, long, err)
		}
	}
}

// With so many parties that not all are neighbours, a party's ledger says what a coordinator that breaks the protocol
// may have.
func TestManyParties(t *testing.T) {
	for _, x := range []struct {
		parties int
		columns bool
		want    bool
	}{{200, false, false}, {201, false, true}, {201, true, false}} {
		s := &Study{Method: "hybrid", Threshold: 150, Parties: make([]Holder, x.parties)}
		if x.columns {
			s.Method = "ckks"
		}
		said := slices.ContainsFunc(s.seen(), func(note string) bool {
			return strings.Contains(note, "fewer than 150") && strings.Contains(note, "less noise")
		})
		if said != x.want {
			t.Errorf("%+v: %q", x, s.seen())
		}
	}
}
