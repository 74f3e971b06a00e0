package study

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/cohort-engine/cohort/engine"
	"github.com/cohort-engine/cohort/engine/dataset"
	"github.com/cohort-engine/cohort/engine/method"
	"github.com/cohort-engine/cohort/engine/privacy"
	"github.com/cohort-engine/cohort/engine/protocol"
	"github.com/cohort-engine/cohort/engine/study/bus"
	"github.com/cohort-engine/cohort/engine/study/journal"
	"github.com/cohort-engine/cohort/internal/fault"
	"github.com/cohort-engine/cohort/internal/vary"
)

// Roles of the crash tests are processes: this test binary, told by its environment
// which role it is and where it dies.
const (
	roleVar  = "COHORT_TEST_ROLE"  // "serve", or the number of another role
	placeVar = "COHORT_TEST_PLACE" // folder of all state folders
	crashVar = "COHORT_TEST_CRASH" // POINT:COUNT: kill -9 oneself at the count-th time there
)

func TestMain(m *testing.M) {
	if role := os.Getenv(roleVar); role != "" {
		if err := playRole(role, os.Getenv(placeVar)); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// crashing kills this process at a point that the environment names.
func crashing() func(string) {
	point, count, is := strings.Cut(os.Getenv(crashVar), ":")
	left, err := strconv.Atoi(count)
	if !is || err != nil {
		return func(string) {}
	}
	return func(at string) {
		if at != point {
			return
		}
		if left--; left == 0 {
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
			select {} // not reached
		}
	}
}

// payer is a party that pays from a ledger file of its own.
type payer struct {
	Payment
	crash func(point string)
}

// load reads the party's records and knows them again.
func (p *payer) load(ctx context.Context, s *Study, party int, path string) (dataset.Part, []string, error) {
	var err error
	if p.Salt, err = p.File.Salt(); err != nil {
		return dataset.Part{}, nil, err
	}
	key := p.File.DigestKey(p.Salt)
	r, err := s.Load(ctx, party, path, dataset.ReadOptions{}, &key)
	if err != nil {
		return dataset.Part{}, nil, err
	}
	p.Columns = r.Digests
	return r.Part, r.IDs, nil
}

// charge pays; a process that is killed has written to the ledger file before or after.
func (p *payer) charge(t *Terms, again bool) error {
	p.crash("before sync")
	_, err := t.Pay(p.Payment, again)
	p.crash("between write and sync")
	p.crash("after sync")
	return err
}

// playRole is a process's life.
func playRole(role, place string) error {
	eng, err := engine.New(engine.WithWorkers(1))
	if err != nil {
		return err
	}
	defer eng.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	log := slog.New(slog.NewTextHandler(os.Stderr, nil))
	if role == "serve" {
		return playCoordinator(ctx, place, eng, log)
	}
	token, err := os.ReadFile(filepath.Join(place, "token"+role))
	if err != nil {
		return err
	}
	v, err := ParseToken(string(token))
	if err != nil {
		return err
	}
	with := &payer{crash: crashing()}
	with.File.Path = filepath.Join(place, "ledger"+role)
	_, err = Take(ctx, Join{Invitation: v, State: filepath.Join(place, role), Log: log, Engine: eng, Crash: with.crash,
		Agree:  func(context.Context, *Terms) error { return nil },
		Charge: with.charge,
		Load: func(ctx context.Context, s *Study, party int) (dataset.Part, []string, error) {
			return with.load(ctx, s, party, filepath.Join(place, "data"+role+".csv"))
		},
		Deliver: func(_ *Terms, res *engine.Result) error {
			b, err := json.Marshal(res.Centroids)
			if err != nil {
				return err
			}
			return os.WriteFile(filepath.Join(place, "result"+role), b, 0o600)
		}})
	return err
}

// playCoordinator is a life of the coordinator's, which leaves its invitations in place.
func playCoordinator(ctx context.Context, place string, eng *engine.Engine, log *slog.Logger) error {
	b, err := os.ReadFile(filepath.Join(place, "study.json"))
	if err != nil {
		return err
	}
	s, err := Parse(b)
	if err != nil {
		return err
	}
	c, err := NewCoordinator(Serve{Study: s, State: filepath.Join(place, "serve"),
		Listen: os.Getenv("COHORT_TEST_ADDRESS"), Log: log, Engine: eng, Crash: crashing()})
	if err != nil {
		return err
	}
	defer c.Close()
	for _, v := range c.Invitations() {
		file := filepath.Join(place, fmt.Sprint("token", v.Party))
		if err := os.WriteFile(file+".new", []byte(v.Token()), 0o600); err != nil {
			return err
		}
		if err := os.Rename(file+".new", file); err != nil {
			return err
		}
	}
	_, err = c.Run(ctx)
	return err
}

// stage is a study whose roles are processes.
type stage struct {
	*fixture
	place   string
	address string
	want    []byte                     // the centroids of one process; nil for any that all parties agree on
	wrap    func(role string) []string // what a role's process is started by; may be nil
	killed  atomic.Int32               // lives
}

// newStage writes what the processes need.
func newStage(t *testing.T, f *fixture) *stage {
	t.Helper()
	s := &stage{fixture: f, place: folder(t), address: "127.0.0.1:" + freePort(t)}
	text, err := f.study.Encode()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(s.place, "study.json"), text, 0o600); err != nil {
		t.Fatal(err)
	}
	for p, part := range f.parts {
		var b bytes.Buffer
		row, x, columns := make([]float32, part.Points.D), make([]float64, f.norm.Points.D), f.columns(p)
		for i := range part.Points.N {
			for h, v := range part.Points.Point(i, row) {
				x[columns[h]] = float64(v)
			}
			all := f.norm.Bounds.Denormalise(nil, x)
			for h, at := range columns {
				if h > 0 {
					b.WriteByte(',')
				}
				b.WriteString(strconv.FormatFloat(all[at], 'g', -1, 64))
			}
			b.WriteByte('\n')
		}
		file := filepath.Join(s.place, fmt.Sprintf("data%d.csv", p))
		if err := os.WriteFile(file, b.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
		r, err := f.study.Load(context.Background(), p, file, dataset.ReadOptions{}, nil)
		if err != nil {
			t.Fatal(err)
		}
		f.parts[p] = r.Part // as the text has them
	}
	if s.study.Seed == nil {
		return s
	}
	if s.want, err = json.Marshal(s.alone(t).Centroids); err != nil {
		t.Fatal(err)
	}
	return s
}

// columns are those of the table that a party has.
func (f *fixture) columns(party int) []int {
	if f.study.ByColumns() {
		return f.study.columnsOf(party)
	}
	all := make([]int, f.norm.Points.D)
	for h := range all {
		all[h] = h
	}
	return all
}

// again is the stage of the same study in another place.
func (s *stage) again(place, address string) (*stage, error) {
	files, err := filepath.Glob(filepath.Join(s.place, "*.*"))
	for _, f := range files {
		if err == nil {
			err = os.Link(f, filepath.Join(place, filepath.Base(f)))
		}
	}
	return &stage{fixture: s.fixture, place: place, address: address, want: s.want}, err
}

func freePort(t *testing.T) string {
	t.Helper()
	port, err := anyPort()
	if err != nil {
		t.Fatal(err)
	}
	return port
}

// ports counts those that were given, from anywhere on.
var ports atomic.Uint32

func init() { ports.Store(rand.Uint32()) }

// anyPort is a port of this machine at which nobody listens, another each time. It lies below those that Linux gives to
// connections: one of these could have it while a coordinator that was killed is away.
func anyPort() (string, error) {
	const from, many = 20000, 12000
	for range 100 {
		port := strconv.Itoa(from + int(ports.Add(1)%many))
		if l, err := net.Listen("tcp", "127.0.0.1:"+port); err == nil {
			return port, l.Close()
		}
	}
	return "", errors.New("no free port")
}

// live runs a role until it ends well; a life that was killed is followed by another,
// whose crash next names, empty for none.
func (s *stage) live(ctx context.Context, role string, next func(life int) string) error {
	for life := range 400 {
		args := []string{os.Args[0], "-test.run=^$"}
		if s.wrap != nil {
			args = append(s.wrap(role), args...)
		}
		cmd := exec.CommandContext(ctx, args[0], args[1:]...)
		var log bytes.Buffer
		cmd.Stderr = &log
		cmd.Env = append(os.Environ(), roleVar+"="+role, placeVar+"="+s.place, "COHORT_TEST_ADDRESS="+s.address,
			crashVar+"="+next(life))
		err := cmd.Run()
		var exit *exec.ExitError
		switch {
		case err == nil:
			return nil
		case ctx.Err() != nil:
			return fmt.Errorf("%s: %w: %s", role, ctx.Err(), log.String())
		case errors.As(err, &exit) && exit.Sys().(syscall.WaitStatus).Signaled():
			s.killed.Add(1)
			continue
		case strings.Contains(log.String(), "no such file"): // the coordinator is not up yet
			time.Sleep(50 * time.Millisecond)
			continue
		case strings.Contains(log.String(), "connection refused") ||
			strings.Contains(log.String(), "no servers available"):
			time.Sleep(50 * time.Millisecond)
			continue
		}
		return fmt.Errorf("%s: %w: %s", role, err, log.String())
	}
	return errors.New("no end of lives")
}

// roles are the names of all roles, the coordinator's first.
func (s *stage) roles() []string {
	all := []string{"serve"}
	for _, r := range s.study.roles() {
		all = append(all, strconv.Itoa(int(r)))
	}
	return all
}

// run is play in a test's own goroutine.
func (s *stage) run(t *testing.T, crash func(role string, life int) string) {
	t.Helper()
	if err := s.play(crash); err != nil {
		t.Fatal(err)
	}
}

// play runs all roles and looks at how they end: every party has the bits of one process,
// and has paid once. crash names the crash of a role's life.
func (s *stage) play(crash func(role string, life int) string) error {
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	defer cancel()
	var roles sync.WaitGroup
	all := s.roles()
	errs := make([]error, len(all))
	for i, role := range all {
		roles.Go(func() {
			if errs[i] = s.live(ctx, role, func(life int) string { return crash(role, life) }); errs[i] != nil {
				cancel()
			}
		})
	}
	roles.Wait()
	if err := errors.Join(errs...); err != nil {
		return err
	}
	want := s.want
	for _, role := range all[1 : 1+len(s.parts)] {
		got, err := os.ReadFile(filepath.Join(s.place, "result"+role))
		if want == nil {
			want = got
		}
		if err != nil || !bytes.Equal(got, want) {
			return fmt.Errorf("party %s has %s, not %s: %w", role, got, want, err)
		}
		paid, err := privacy.LedgerFile{Path: filepath.Join(s.place, "ledger"+role)}.State()
		if err != nil || paid == nil || len(paid.Runs) != 1 {
			return fmt.Errorf("the ledger of party %s has %+v, %w", role, paid, err)
		}
	}
	return nil
}

// rounded makes a fixture's records ones that a text file keeps.
func rounded(t *testing.T, f *fixture) *fixture {
	f.study.Deadlines = Deadlines{Step: 100, Message: 100}
	f.study.Threshold = len(f.parts)
	if err := f.study.Complete(); err != nil {
		t.Fatal(err)
	}
	return f
}

// Two hundred kills at random in one study of a hundred rounds, and fifty in one whose results parties ask for again.
func TestRandomKills(t *testing.T) {
	if os.Getenv("COHORT_NETWORK") == "" {
		t.Skip("run make test-network: it kills processes for minutes")
	}
	for _, c := range []struct {
		f           *fixture
		most, syncs int
	}{
		{newFixture(t, "sulloyd", 3, 120,
			method.Settings{"noise": "split", "iterations": "100", "mechanism": "gaussian"}), 200, 60},
		{longSums(t, 20), 50, 20},
	} {
		t.Run(c.f.study.Method, func(t *testing.T) {
			t.Parallel()
			var mu sync.Mutex
			rng, kills := rand.New(rand.NewPCG(3, 4)), 0
			newStage(t, rounded(t, c.f)).run(t, func(string, int) string {
				mu.Lock()
				defer mu.Unlock()
				if kills++; kills > c.most {
					return ""
				}
				return fmt.Sprintf("between write and sync:%d", 1+rng.IntN(c.syncs))
			})
		})
	}
}

// A party whose process is gone for good leaves sums to the others, and one that comes
// back goes on with them: no sum lacks noise, and the result is the same for all.
func TestVanish(t *testing.T) {
	for name, set := range map[string]method.Settings{
		"sulloyd": {"noise": "split", "mechanism": "gaussian", "iterations": "4"},
		"hybrid":  {"branch": "tree"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			vanish(t, newFixture(t, name, 4, 240, set))
		})
	}
}

// vanish runs a study of four parties of which the last is away for some sums.
func vanish(t *testing.T, f *fixture) {
	t.Helper()
	f.study.Threshold, f.study.Deadlines = 3, Deadlines{Step: 2, Message: 20}
	if err := f.study.Complete(); err != nil {
		t.Fatal(err)
	}
	if f.study.Options["survivors"] != "3" {
		t.Fatalf("the noise is not made for three survivors: %v", f.study.Options)
	}
	n := newNetwork(t, f)
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	c := n.coordinator(t)
	defer c.Close()
	all := c.Invitations()
	results, errs := make([]*engine.Result, 5), make([]error, 5)
	var roles sync.WaitGroup
	for p, v := range all {
		j := n.join(t, v)
		roles.Go(func() {
			if p < 3 {
				results[p], errs[p] = Take(ctx, j)
				return
			}
			leaving, leave := context.WithCancel(ctx)
			j.Step = func(round int, _ string) {
				if round >= 1 {
					leave() // while its first message of the sum is on its way
				}
			}
			if _, err := Take(leaving, j); err == nil {
				t.Error("a party that was stopped has a result")
			}
			time.Sleep(3 * time.Second) // the others go on without it
			results[p], errs[p] = Take(ctx, n.join(t, v))
		})
	}
	results[4], errs[4] = c.Run(ctx)
	roles.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	for p := range 4 {
		if !slices.EqualFunc(results[p].Centroids, results[0].Centroids, slices.Equal) {
			t.Errorf("party %d has other centroids than party 1", p+1)
		}
	}
	if status, _ := c.Watch.Status(); status.Parties[3].LateSteps == 0 {
		t.Error("nobody was missed: the test has not tested anything")
	}
}

// Thirty of a hundred parties vanish for good in one study, each at some sync of its
// journal: before, while or after it sends. The others have one result, in whose sums no
// share of the noise is missing. It does not run beside other tests: with these all parties can be late.
func TestThirtyOfAHundred(t *testing.T) {
	if os.Getenv("COHORT_NETWORK") == "" {
		t.Skip("run make test-network: it waits for parties that have vanished")
	}
	const parties, gone = 100, 30
	f := newFixture(t, "sulloyd", parties, 3000, method.Settings{"noise": "split", "mechanism": "gaussian",
		"iterations": "3"})
	f.study.Threshold, f.study.Deadlines = 60, Deadlines{Step: 12, Message: 24}
	if err := f.study.Complete(); err != nil {
		t.Fatal(err)
	}
	n := newNetwork(t, f)
	n.log = slog.New(slog.DiscardHandler)
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	c := n.coordinator(t)
	defer c.Close()
	rng := rand.New(rand.NewPCG(6, 7))
	results, errs := make([]*engine.Result, parties), make([]error, parties)
	var roles sync.WaitGroup
	for p, v := range c.Invitations() {
		j := n.join(t, v)
		alive, die := context.WithCancel(ctx)
		defer die()
		if p < gone {
			var running atomic.Bool
			left := 1 + 9*(p%3) + rng.IntN(3) // points at syncs, after the run has begun
			j.Step = func(int, string) { running.Store(true) }
			j.Crash = func(string) {
				if running.Load() {
					if left--; left <= 0 {
						die()
					}
				}
			}
		}
		roles.Go(func() { results[p], errs[p] = Take(alive, j) })
	}
	_, err := c.Run(ctx)
	cancel()
	roles.Wait()
	if err != nil {
		t.Fatal(err)
	}
	status, _ := c.Watch.Status()
	missed := 0
	for p, r := range results {
		switch {
		case p < gone && r != nil:
			t.Errorf("party %d was to vanish, and has a result", p+1)
		case p < gone && status.Parties[p].LateSteps > 0:
			missed++
		case p >= gone && (errs[p] != nil || !slices.EqualFunc(r.Centroids, results[gone].Centroids, slices.Equal)):
			t.Errorf("party %d has another result: %v", p+1, errs[p])
		}
	}
	if missed < gone*2/3 {
		t.Errorf("%d of %d were missed: the test has not tested anything", missed, gone)
	}
}

// Below the threshold the study ends, and everybody is told.
func TestTooFew(t *testing.T) {
	f := newFixture(t, "sulloyd", 3, 120, method.Settings{"noise": "split", "mechanism": "gaussian", "iterations": "3"})
	f.study.Threshold, f.study.Deadlines = 3, Deadlines{Step: 1, Message: 10}
	delete(f.study.Options, "survivors")
	if err := f.study.Complete(); err != nil {
		t.Fatal(err)
	}
	n := newNetwork(t, f)
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	c := n.coordinator(t)
	defer c.Close()
	errs := make([]error, 4)
	var roles sync.WaitGroup
	for p, v := range c.Invitations() {
		j := n.join(t, v)
		roles.Go(func() {
			leaving, leave := context.WithCancel(ctx)
			defer leave()
			if p == 2 {
				j.Step = func(round int, _ string) {
					if round == 1 {
						leave()
					}
				}
			}
			_, errs[p] = Take(leaving, j)
		})
	}
	_, errs[3] = c.Run(ctx)
	roles.Wait()
	for _, p := range []int{0, 1, 3} {
		if errs[p] == nil || !strings.Contains(errs[p].Error(), "2 of 3 parties") {
			t.Errorf("role %d was told %v", p+1, errs[p])
		}
	}
}

// An operator ends a study before it begins and in its midst: all roles that are there are told so and stop, what they
// would have released is not, and it stays ended when the coordinator comes back.
func TestEndedByItsOperator(t *testing.T) {
	const why = "its operator ended it"
	for name, atRound := range map[string]int{"before it begins": 0, "in round 2": 2} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, "sulloyd", 2, 120, method.Settings{"noise": "split", "mechanism": "gaussian",
				"iterations": "6"})
			n := newNetwork(t, f)
			ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
			defer cancel()
			c := n.coordinator(t)
			parties := c.Invitations()
			if atRound == 0 {
				parties = parties[:1]
			}
			var most atomic.Int32 // round that a party reached
			errs := make([]error, 3)
			var roles sync.WaitGroup
			for p, v := range parties {
				j := n.join(t, v)
				j.Step = func(round int, step string) {
					most.Store(max(most.Load(), int32(round)))
					if p == 0 && round == atRound {
						if err := c.End(why); err != nil {
							t.Error(err)
						}
					}
				}
				roles.Go(func() { _, errs[p] = Take(ctx, j) })
			}
			roles.Go(func() { _, errs[2] = c.Run(ctx) })
			if atRound == 0 {
				status, changed := c.Watch.Status()
				for ; !status.Parties[0].Enrolled; status, changed = c.Watch.Status() {
					<-changed
				}
				if err := c.End(why); err != nil {
					t.Fatal(err)
				}
			}
			roles.Wait()
			c.Close()
			told := map[string]error{"party 1": errs[0], "the coordinator": errs[2]}
			if atRound == 0 {
				again := n.coordinator(t)
				defer again.Close()
				soon, cancel := context.WithTimeout(ctx, time.Second)
				defer cancel()
				_, told["the coordinator that is back"] = again.Run(soon)
			} else {
				told["party 2"] = errs[1]
			}
			for role, err := range told {
				if err == nil || !strings.Contains(err.Error(), why) {
					t.Errorf("%s was told %v", role, err)
				}
			}
			if got := int(most.Load()); got > atRound+1 {
				t.Errorf("a party reached round %d", got)
			}
		})
	}
}

// What fails on the coordinator's machine is told to the parties without the names of its files.
func TestPartiesLearnNoPathOfTheCoordinator(t *testing.T) {
	n := newNetwork(t, newFixture(t, "sulloyd", 2, 40, nil))
	c := n.coordinator(t)
	defer c.Close()
	c.journal.Close()
	a, err := parseAnswer(c.answer(0, encode(request{Version: version, Ask: askDone})))
	if err == nil {
		t.Fatalf("what cannot be kept is accepted: %+v", a)
	}
	_, gone := c.journal.Read(journal.Record{Length: 1})
	damaged := fmt.Errorf("a record: %w", fault.Failed(filepath.Join(c.State, JournalName), "was altered", "", nil))
	for _, text := range []string{err.Error(), c.told(gone), c.told(damaged)} {
		if strings.Contains(text, c.State) || !strings.Contains(text, "its log says how") {
			t.Errorf("the parties are told %q", text)
		}
	}
	if text := c.told(errors.New("too few parties are left")); text != "too few parties are left" {
		t.Errorf("the parties are told %q", text)
	}
}

// enrolled has a party take part until it has a place, and returns what waits for its end.
func enrolled(ctx context.Context, t *testing.T, c *Coordinator, j Join) (wait func() error) {
	t.Helper()
	done := make(chan error, 1)
	go func() {
		_, err := Take(ctx, j)
		done <- err
	}()
	for {
		if status, _ := c.Watch.Status(); status.Parties[j.Invitation.Party].Enrolled {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	return func() error { return <-done }
}

// A key of small order, with which nobody can agree on a secret, is refused before others pay for a study that it ends.
func TestKeyOfSmallOrder(t *testing.T) {
	n := newNetwork(t, newFixture(t, "sulloyd", 2, 60, nil))
	c := n.coordinator(t)
	defer c.Close()
	v := c.Invitations()[0]
	id, err := newIdentity(v.Study, 0)
	if err != nil {
		t.Fatal(err)
	}
	k, err := id.keys()
	if err != nil {
		t.Fatal(err)
	}
	whole, err := k.entry(v.Study)
	if err != nil {
		t.Fatal(err)
	}
	small := whole
	small.Sealing = make([]byte, 32)
	if small.Signature, err = k.signing.Sign(small.statement(v.Study)); err != nil {
		t.Fatal(err)
	}
	for _, e := range []Entry{small, whole} {
		_, err := c.handle(0, &request{Ask: askEnrol, Entry: &e, Proof: proof(v.Secret, v.Study, e.Signing)})
		if none := bytes.Equal(e.Sealing, small.Sealing); none != (err != nil) {
			t.Errorf("a key of small order (%v): %v", none, err)
		}
	}
}

// The coordinator checks the roster once, not at each consent: among many parties that would be all entries for each.
func TestRosterIsCheckedOnce(t *testing.T) {
	n := newNetwork(t, newFixture(t, "sulloyd", 8, 240, nil))
	c := n.coordinator(t)
	defer c.Close()
	var all []*keys
	for p, v := range c.Invitations() {
		id, err := newIdentity(v.Study, protocol.Role(p))
		if err != nil {
			t.Fatal(err)
		}
		k, err := id.keys()
		if err != nil {
			t.Fatal(err)
		}
		e, err := k.entry(v.Study)
		if err == nil {
			_, err = c.handle(k.party, &request{Ask: askEnrol, Entry: &e, Proof: proof(v.Secret, v.Study, e.Signing)})
		}
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, k)
	}
	first, err := c.roster()
	if err != nil {
		t.Fatal(err)
	}
	statement := first.consent()
	for _, k := range append(all, all[0]) { // who asks again is counted once
		signature, err := k.signing.Sign(statement)
		if err == nil {
			_, err = c.handle(k.party, &request{Ask: askAgree, Signature: signature})
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if _, err := c.handle(0, &request{Ask: askAgree, Signature: c.consents[1]}); err == nil {
		t.Error("the signature of another was taken")
	}
	if again, err := c.roster(); again != first || err != nil {
		t.Errorf("the roster is checked at each consent: %v", err)
	}
	if c.agreed != len(all) {
		t.Errorf("%d of %d have agreed", c.agreed, len(all))
	}
}

// identityIn is what a party is known by, from its journal.
func identityIn(t *testing.T, state string) *identity {
	t.Helper()
	j, err := journal.Open(filepath.Join(state, JournalName))
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	id := new(identity)
	b, err := j.Read(j.Records()[0])
	if err != nil || json.Unmarshal(b, id) != nil {
		t.Fatal("the journal has no identity")
	}
	return id
}

// Strangers are refused: another certificate, another key, an invitation that was used, an
// old study, another's place; and what is refused is logged without secrets, and parties by their names.
func TestStrangers(t *testing.T) {
	f := newFixture(t, "sulloyd", 2, 60, method.Settings{"noise": "split", "mechanism": "gaussian"})
	f.study.Parties[0].Name = "North"
	n := newNetwork(t, f)
	var logged bytes.Buffer
	n.log = slog.New(slog.NewTextHandler(&logged, nil))
	c := n.coordinator(t)
	defer c.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	v := c.Invitations()[0]
	refusedBy := func(what, want string, change func(*Join)) {
		t.Helper()
		j := n.join(t, v)
		j.State = folder(t)
		change(&j)
		if _, err := Take(ctx, j); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v lacks %q", what, err, want)
		}
	}
	refusedBy("another certificate", "certificate", func(j *Join) { j.Invitation.Pin[0] ^= 1 })
	refusedBy("another secret", "refused this key or invitation", func(j *Join) { j.Invitation.Secret[0] ^= 1 })
	refusedBy("another party's place", "refused this key or invitation", func(j *Join) { j.Invitation.Party = 1 })
	refusedBy("another study", "refused this key or invitation", func(j *Join) { j.Invitation.Study[0] ^= 1 })

	first := n.join(t, v)
	taking, stop := context.WithCancel(ctx)
	defer stop()
	wait := enrolled(taking, t, c, first)
	refusedBy("a used invitation", "refused this key or invitation", func(*Join) {})
	stop()
	_ = wait()

	id := identityIn(t, first.State)
	keys, err := id.keys()
	if err != nil {
		t.Fatal(err)
	}
	other, err := bus.Dial(ctx, bus.Dialer{Self: 1, Study: v.ID, URL: v.URL, Pin: v.Pin, Key: keys.signing})
	if err == nil {
		other.Close()
		t.Error("party 1's key connected as party 2")
	}
	own, err := bus.Dial(ctx, bus.Dialer{Self: 0, Study: v.ID, URL: v.URL, Pin: v.Pin, Key: keys.signing})
	if err != nil {
		t.Fatal(err)
	}
	defer own.Close()
	if got := strings.Count(logged.String(), "a connection was refused"); got < 5 {
		t.Errorf("%d refusals are in the log", got)
	}
	if who := `"a party has enrolled" party=North`; !strings.Contains(logged.String(), who) {
		t.Errorf("the log lacks %s", who)
	}
	for _, secret := range []string{string(id.Signing), proof(v.Secret, v.Study, "")[:20], v.Token()[20:]} {
		if strings.Contains(logged.String(), secret) {
			t.Errorf("a secret is in the log")
		}
	}
}

// Identities and invitations print as that, in whatever form.
func TestSecretsAreNotPrinted(t *testing.T) {
	c := newNetwork(t, newFixture(t, "sulloyd", 2, 60, nil)).coordinator(t)
	defer c.Close()
	v := c.Invitations()[0]
	id, err := newIdentity(v.Study, protocol.Role(v.Party))
	if err != nil {
		t.Fatal(err)
	}
	for _, verb := range []string{"%v", "%+v", "%#v"} {
		for _, x := range []any{id, *id, &v, v, c.pair, *c.pair} {
			text := fmt.Sprintf(verb, x)
			if !strings.Contains(text, "redacted") {
				t.Errorf("%T prints as %s", x, text)
			}
			for _, secret := range [][]byte{id.Signing, v.Secret[:], c.pair.Key} {
				if strings.Contains(text, string(secret)) || strings.Contains(text, fmt.Sprintf("%x", secret)) ||
					strings.Contains(text, strings.Trim(fmt.Sprint(secret), "[]")) {
					t.Errorf("a secret of %T prints as %s", x, text)
				}
			}
		}
	}
}

// Study files of anybody are refused in one line, never by a panic.
func FuzzParse(f *testing.F) {
	s := newFixture(f, "sulloyd", 2, 60, nil).study
	text, err := s.Encode()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(text)
	f.Fuzz(func(t *testing.T, b []byte) {
		vary.Bytes(b, func(b []byte) {
			if got, err := Parse(b); err == nil {
				if again, err := got.Encode(); err != nil || len(again) == 0 {
					t.Fatal(err)
				}
			}
		})
	})
}

// A token with another letter anywhere, or without its end, is told from one that is whole.
func TestTokenIsWhole(t *testing.T) {
	v := Invitation{URL: "tls://coordinator.example.org:4222", ID: "0011223344556677", Secret: [16]byte{7}}
	token := v.Token()
	if w, err := ParseToken(token + "\n"); err != nil || !reflect.DeepEqual(w, &v) {
		t.Fatal(w, err)
	}
	for i := range token {
		other := byte('A')
		if token[i] == other {
			other = 'B'
		}
		for _, changed := range []string{token[:i], token[:i] + string(other) + token[i+1:]} {
			if w, err := ParseToken(changed); err == nil {
				t.Errorf("%q is taken for an invitation to %s", changed, w.URL)
			} else if !fault.IsRequest(err) {
				t.Error(err)
			}
		}
	}
}

// So are tokens, and requests and answers of anybody.
func FuzzControl(f *testing.F) {
	id, err := newIdentity([32]byte{}, 1)
	if err != nil {
		f.Fatal(err)
	}
	k, err := id.keys()
	if err != nil {
		f.Fatal(err)
	}
	e, err := k.entry([32]byte{})
	if err != nil {
		f.Fatal(err)
	}
	for _, v := range []Invitation{{URL: "tls://127.0.0.1:1", ID: "0011223344556677"},
		{URL: "tls://127.0.0.1:1", ID: "0011223344556677", Party: -2, User: []byte("x")}} {
		token := v.Token()
		b, err := base64.RawURLEncoding.DecodeString(token[len(tokenPrefix):])
		if err != nil {
			f.Fatal(err)
		}
		f.Add([]byte(token))
		f.Add(b[:len(b)-checkBytes])
		f.Add(bytes.Replace(b[:len(b)-checkBytes], []byte(`"b":"eA=="`), []byte(`"b":""`), 1)) // no user
	}
	f.Add(encode(request{Version: version, Ask: askEnrol, Entry: &e, Proof: "x"}))
	f.Add(encode(request{Version: version, Ask: askRoster, Part: 3}))
	f.Add(encode(answer{Version: version, Body: encode([]Entry{e}), More: true}))
	f.Add(encode(answer{Version: version, Wait: true, Here: 1, Parties: 2}))
	f.Fuzz(func(t *testing.T, b []byte) {
		vary.Bytes(b, func(b []byte) {
			_, _ = ParseToken(string(b))
			if v, ok := readInvitation(b); ok {
				if w, err := ParseToken(v.Token()); err != nil || !reflect.DeepEqual(w, v) {
					t.Fatal("a token is not what it was")
				}
			}
			if r, err := parseRequest(b); err == nil && r.Entry != nil {
				_ = r.Entry.check([32]byte{})
			}
			if a, err := parseAnswer(b); err == nil {
				var all []Entry
				if strict(a.Body, &all) == nil && len(all) > 2 {
					_, _ = newRoster([32]byte{}, len(all)-1, 0, all)
				}
			}
		})
	})
}

// A party asks for any part of an answer, also for one whose place no number of bytes can be: it is refused.
func TestPartsOfAnswers(t *testing.T) {
	body := bytes.Repeat([]byte("x"), 2*partBytes+1)
	for part, want := range map[int]int{0: partBytes, 1: partBytes, 2: 1} {
		if a := cut(body, part); len(a.Body) != want || a.More != (part < 2) || a.Refused != "" {
			t.Errorf("part %d: %d bytes, more: %v, %q", part, len(a.Body), a.More, a.Refused)
		}
	}
	if a := cut(nil, 0); a.More || a.Refused != "" {
		t.Errorf("nothing: %+v", a)
	}
	for _, part := range []int{-1, 3, math.MinInt, math.MaxInt, math.MaxInt/partBytes + 1, -math.MinInt / partBytes} {
		if a := cut(body, part); a.Refused == "" {
			t.Errorf("part %d is %d bytes", part, len(a.Body))
		}
	}
}

// An entry of the roster is its owner's: with another's key, place or study it is refused.
func TestEntries(t *testing.T) {
	var owner, other Entry
	for party, e := range map[protocol.Role]*Entry{1: &owner, 2: &other} {
		id, err := newIdentity([32]byte{}, party)
		if err != nil {
			t.Fatal(err)
		}
		k, err := id.keys()
		if err == nil {
			*e, err = k.entry([32]byte{})
		}
		if err == nil {
			err = e.check([32]byte{})
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	for what, change := range map[string]func(*Entry){
		"sealing key": func(e *Entry) { e.Sealing = other.Sealing },
		"signing key": func(e *Entry) { e.Signing = other.Signing },
		"place":       func(e *Entry) { e.Party = other.Party },
		"signature":   func(e *Entry) { e.Signature = other.Signature },
	} {
		e := owner
		if change(&e); e.check([32]byte{}) == nil {
			t.Errorf("an entry with another's %s was taken", what)
		}
	}
	if owner.check([32]byte{1}) == nil {
		t.Error("an entry of another study was taken")
	}
}

// Programs of different versions refuse each other by both numbers, whichever of them is older, and none waits.
func TestOtherVersions(t *testing.T) {
	n := newNetwork(t, newFixture(t, "sulloyd", 2, 60, method.Settings{"noise": "split", "mechanism": "gaussian"}))
	c := n.coordinator(t)
	defer c.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	var roles sync.WaitGroup
	defer roles.Wait()
	defer cancel()
	roles.Go(func() { _, _ = c.Run(ctx) })
	v := c.Invitations()[0]
	id, err := newIdentity(v.Study, 0)
	if err != nil {
		t.Fatal(err)
	}
	k, err := id.keys()
	if err != nil {
		t.Fatal(err)
	}
	public, err := k.signing.PublicKey()
	if err != nil {
		t.Fatal(err)
	}
	conn, err := bus.Dial(ctx, bus.Dialer{Self: 0, Study: v.ID, URL: v.URL, Pin: v.Pin, Key: k.signing,
		Proof: proof(v.Secret, v.Study, public), Frames: func(protocol.Role, []byte) {}})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	said, err := conn.Request(ctx, encode(request{Version: version - 1, Ask: askStudy}))
	if err != nil {
		t.Fatal(err)
	}
	both := fmt.Sprintf("is of version %d, and this program knows version %d", version-1, version)
	if _, err := parseAnswer(said); err == nil || !strings.Contains(err.Error(), both) {
		t.Errorf("an older party is told %v", err)
	}
	if _, err := parseAnswer(encode(answer{Version: version - 1})); err == nil || !strings.Contains(err.Error(), both) {
		t.Errorf("an older coordinator: %v", err)
	}
}

// A study that says something else than what it does is refused.
func TestStudyFile(t *testing.T) {
	f := newFixture(t, "sulloyd", 3, 90, method.Settings{"noise": "split", "mechanism": "gaussian"})
	text, err := f.study.Encode()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Parse(text); err != nil {
		t.Fatal(err)
	}
	for _, change := range [][2]string{
		{`"epsilon":4`, `"epsilon":5`}, {`"cohort_study":4`, `"cohort_study":3`}, {`"k":3`, `"k":4`},
		{`"threshold":2`, `"threshold":1`},
		{`"records":90`, `"records":91`}, {`"method":"sulloyd"`, `"method":"nosuch"`}, {`"step":20`, `"step":0`},
		{`{`, `{"more":1,`},
	} {
		if !bytes.Contains(text, []byte(change[0])) {
			t.Fatalf("%s does not have %s", text, change[0])
		}
		changed := bytes.Replace(text, []byte(change[0]), []byte(change[1]), 1)
		if _, err := Parse(changed); err == nil {
			t.Errorf("%s was taken", change[1])
		} else if strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %q has several lines", change[1], err)
		}
	}
	f.study.Threshold = 1
	if err := f.study.Complete(); !fault.IsRequest(err) {
		t.Errorf("a threshold of one: %v", err)
	}
}
