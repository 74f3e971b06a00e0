package study

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/cohort-engine/cohort/engine"
	"github.com/cohort-engine/cohort/engine/dataset"
	"github.com/cohort-engine/cohort/engine/method"
	"github.com/cohort-engine/cohort/engine/privacy"
	"github.com/cohort-engine/cohort/engine/protocol"
	"github.com/cohort-engine/cohort/internal/secret"
	"github.com/cohort-engine/cohort/kernels"
)

// tap is what the coordinator's server carries: it keeps every byte, in all lives of all roles.
type tap struct {
	mu  sync.Mutex
	nc  *nats.Conn
	all []*nats.Msg
}

// listen begins to keep what a study's server carries, as its coordinator may: with its key.
func (x *tap) listen(t testing.TB, c *Coordinator) {
	t.Helper()
	if x.nc != nil {
		return // it connects again by itself
	}
	nc, err := nats.Connect("tls://"+c.address(), nats.Secure(&tls.Config{InsecureSkipVerify: true}),
		nats.TLSHandshakeFirst(), nats.Nkey(c.own.Signing, c.keys.signing.Sign), nats.MaxReconnects(-1),
		nats.ReconnectWait(time.Millisecond), nats.ReconnectJitter(0, 0), nats.IgnoreAuthErrorAbort(),
		nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {}))
	if err == nil {
		_, err = nc.Subscribe("c.>", func(m *nats.Msg) {
			x.mu.Lock()
			defer x.mu.Unlock()
			x.all = append(x.all, m)
		})
	}
	if err == nil {
		err = nc.Flush()
	}
	if err != nil {
		t.Fatal(err)
	}
	x.nc = nc
	t.Cleanup(nc.Close)
}

// chunk is the place of a frame's bytes: whose message to whom, its number and the part of it.
type chunk struct {
	subject string
	number  uint64
	part    uint32
}

// chunks are the frames with data (docs/STUDIES.md), each as often as it was carried.
func (x *tap) chunks() map[chunk][][]byte {
	const head, ack = 18, 39
	x.mu.Lock()
	defer x.mu.Unlock()
	all := make(map[chunk][][]byte)
	for _, m := range x.all {
		b := m.Data
		if len(b) > ack && b[0] == 2 && b[1] == 2 {
			b = b[ack:]
		}
		if len(b) > head && b[0] == 2 && b[1] == 1 {
			at := chunk{m.Subject, binary.LittleEndian.Uint64(b[2:]), binary.LittleEndian.Uint32(b[10:])}
			all[at] = append(all[at], b[head:])
		}
	}
	return all
}

// dying runs all roles to the end of a study whose roles die, again and again, each a little later than before, up to
// so many times, counted from where its program begins or, after that, from the beginning.
func (n *network) dying(t testing.TB, x *tap, deaths int) (results []*engine.Result, lives int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	c := n.coordinator(t) // this life is long enough to give invitations
	invitations := c.Invitations()
	x.listen(t, c)
	c.Close()
	others := len(n.study.roles())
	results, errs, died := make([]*engine.Result, others+1), make([]error, others+1), make([]int, others+1)
	live := func(i int) {
		for life, dead := 1, true; dead; life++ {
			alive, die := context.WithCancel(ctx)
			left := 2 * life
			crash := func(string) {
				if left--; left <= 0 && life <= deaths {
					die()
				}
			}
			var res *engine.Result
			if i == others {
				res, errs[i] = n.serveOnce(alive, t, crash)
			} else {
				j := n.join(t, invitations[i])
				j.Crash = crash
				res, errs[i] = Take(alive, j)
			}
			if res != nil {
				results[i] = res
			}
			if dead = alive.Err() != nil && ctx.Err() == nil; dead {
				died[i]++
			} else if errs[i] != nil {
				cancel() // nobody needs to wait for it
			}
			die()
		}
	}
	var parties, server sync.WaitGroup
	server.Go(func() { live(others) })
	for i := range others {
		parties.Go(func() { live(i) })
	}
	parties.Wait()
	x.nc.Close() // the coordinator waits until nobody is connected
	server.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	for i, d := range died {
		if lives += d; d == 0 {
			t.Errorf("role %d has not died", i)
		}
	}
	return results, lives
}

// serveOnce is a life of the coordinator's.
func (n *network) serveOnce(ctx context.Context, t testing.TB, crash func(string)) (*engine.Result, error) {
	c, err := NewCoordinator(Serve{Study: n.study, State: n.dirs[len(n.study.roles())], Listen: n.address, Log: n.log,
		Engine: newEngine(t), Crash: crash})
	if err != nil {
		return nil, err
	}
	defer c.Close()
	c.brief = nil
	return c.Run(ctx)
}

// columnsAttack is the coordinator of a study of holders of columns, which has kept every byte.
type columnsAttack struct {
	*attacker
	tap *tap
}

// without is the parties' table without its last record, or, where each record is a message's part, with another in its
// place.
func (a *columnsAttack) without() []dataset.Part {
	parts := a.norm.Table()
	points := parts[0].Points.Slice(0, parts[0].Points.N-1)
	if a.study.Method == "ldp-agg" {
		points = *kernels.NewPanels(points.N+1, points.D)
		row := make([]float32, points.D)
		for i := range points.N {
			points.Set(i, parts[0].Points.Point(i%(points.N-1), row))
		}
	}
	parts[0].Points = &points
	return parts
}

// again does the study once more in this process, with secrets that are given: its result, and what each party sends
// the coordinator.
func (a *columnsAttack) again(t testing.TB, data []dataset.Part, replay *privacy.Replay,
	secrets func(protocol.Role) protocol.Secrets) (*engine.Result, [][]byte) {
	t.Helper()
	job, err := a.study.jobOf(data, a.norm.Bounds, nil)
	if err != nil {
		t.Fatal(err)
	}
	plan, err := job.Plan()
	if err != nil {
		t.Fatal(err)
	}
	runner := plan.(protocol.Runner)
	runner.Core().PublicSeed = a.study.PublicSeed
	var views protocol.Views
	res, err := runner.Connect(context.Background(), engine.NewRuntime(newEngine(t).Pool()),
		protocol.Options{Replay: replay, Views: &views, Secrets: secrets})
	if err != nil {
		t.Fatal(err)
	}
	seen := make([][]byte, len(a.parts))
	for _, v := range views.Seen {
		if v.Viewer == protocol.Server && !v.Of.Serves() {
			seen[v.Of] = append(seen[v.Of], v.Message...)
		}
	}
	return res, seen
}

// secrets are those that the roles had.
func (a *columnsAttack) secrets(r protocol.Role) protocol.Secrets {
	if r.Serves() {
		return a.study.secrets(r, a.memory(r).keys, secret.Root{})
	}
	return a.study.secrets(r, a.memory(r).keys, a.group)
}

// received are the messages of each party's program that the coordinator was sent, one after the other. Besides them
// there may be nothing but partings; and the parties send each other the group's secret alone, and what may says.
func (a *columnsAttack) received(t testing.TB, may byte) [][]byte {
	t.Helper()
	all := make([][]byte, len(a.parts))
	for p := range a.parts {
		for _, l := range a.memories[len(a.parts)].received {
			if l.from != protocol.Role(p) {
				continue
			}
			switch {
			case l.kind == mailProgram:
				all[p] = append(all[p], l.body...)
			case l.kind != mailLeave || len(l.body) > 0:
				t.Errorf("%v has sent the coordinator %d bytes of kind %q", l.from, len(l.body), l.kind)
			}
		}
		for _, l := range a.memories[p].received {
			if l.from >= 0 && l.kind != mailLeave && l.kind != may && (l.kind != mailGroup || len(l.body) != 32) {
				t.Errorf("%v has sent party %d %d bytes of kind %q", l.from, p+1, len(l.body), l.kind)
			}
		}
	}
	return all
}

// search looks for what may not leave in all that the coordinator received, as it came and as its journal has it: the
// parties' secrets, and values of neighbouring records or columns.
func (a *columnsAttack) search(t testing.TB) {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(a.dirs[len(a.parts)], JournalName))
	if err != nil {
		t.Fatal(err)
	}
	a.tap.mu.Lock()
	seen := [][]byte{raw}
	for _, m := range a.tap.all {
		seen = append(seen, m.Data)
	}
	a.tap.mu.Unlock()
	hidden := map[string][]byte{"the group's secret": nil}
	for i, m := range a.memories[:len(a.parts)] {
		for _, l := range m.received {
			if l.kind == mailGroup {
				hidden["the group's secret"] = l.body
			}
		}
		seed, err := m.keys.signing.Seed()
		if err != nil {
			t.Fatal(err)
		}
		hidden[fmt.Sprint("the root of party ", i+1)] = m.keys.root[:]
		hidden[fmt.Sprint("the sealing key of party ", i+1)] = m.keys.sealing.Bytes()
		hidden[fmt.Sprint("the signing key of party ", i+1)] = seed
		points := a.parts[i].Points
		row := make([]float32, points.D)
		for r := range 8 {
			first, second := points.Point(r, row)[0], float32(0)
			second = points.Point(r+1, row)[0]
			b := binary.LittleEndian.AppendUint32(nil, math.Float32bits(first))
			hidden[fmt.Sprintf("records %d of party %d", r+1, i+1)] = binary.LittleEndian.AppendUint32(b,
				math.Float32bits(second))
			unit := math.Ldexp(1, a.norm.FractionBits)
			b = binary.LittleEndian.AppendUint32(nil, uint32(int32(float64(first)*unit)))
			hidden[fmt.Sprintf("fixed-point records %d of party %d", r+1, i+1)] = binary.LittleEndian.AppendUint32(b,
				uint32(int32(float64(second)*unit)))
		}
	}
	for what, x := range hidden {
		if len(x) < 8 {
			t.Fatalf("%s is %x", what, x)
		}
		if slices.ContainsFunc(seen, func(b []byte) bool { return bytes.Contains(b, x) }) {
			t.Errorf("the coordinator received %s", what)
		}
	}
}

// oneVersion fails the test if two versions of a message were carried, in whatever lives, or if those that are sealed
// for others are not uniform.
func (a *columnsAttack) oneVersion(t testing.TB) {
	t.Helper()
	again, counts := 0, make(map[string]*chart)
	for at, versions := range a.tap.chunks() {
		for _, v := range versions[1:] {
			if again++; !bytes.Equal(v, versions[0]) {
				t.Errorf("there are two versions of part %d of message %d on %s", at.part+1, at.number+1, at.subject)
			}
		}
		c := counts[at.subject]
		if c == nil {
			c = new(chart)
			counts[at.subject] = c
		}
		for _, x := range versions[0] {
			c.counts[x]++
			c.n++
		}
	}
	if again == 0 {
		t.Error("nothing was sent again: the test has not tested anything")
	}
	if len(counts) == 0 {
		t.Error("nothing was carried")
	}
	for subject, c := range counts {
		if x := c.uneven(); c.n > 2560 && x > 10 {
			t.Errorf("what was carried on %s is %.1f deviations from even", subject, x)
		}
	}
}

// A study among holders of columns, with secrets of its own, in which every role dies again and again, is attacked by
// its coordinator, which has kept every byte of all lives. It has received, once, what the method's plan
// releases to it and nothing else: byte for byte what the parties' programs make of their records, their roots and the
// group's secret, none of which it has, nor has it a record's value. The noise is that of the plan,
// and a record moves what is released no more than the ledger says. Secrets that it could guess, its own among them and
// for methods whose parties may collude those of the last, make other messages. No message had two versions. (What is
// right fails with a probability below 1e-6: ten deviations of a chi-square for each stream, six for the noise.)
func TestLiveColumnsAttacked(t *testing.T) {
	for _, c := range []struct {
		method    string
		parties   int
		set       method.Settings
		colluders int
	}{
		{"sketch", 2, method.Settings{"sketches": "256"}, 0},
		{"sketch", 2, method.Settings{"sketches": "256", "return": "noised"}, 0},
		{"sketch-basic", 3, method.Settings{"sketches": "64"}, 0},
		{"ind-lap", 3, nil, 1},
		{"ldp-agg", 3, nil, 1},
	} {
		t.Run(fmt.Sprint(c.method, c.set["return"]), func(t *testing.T) {
			t.Parallel()
			const records = 240
			set := method.Settings{"public-n": fmt.Sprint(records)}
			maps.Copy(set, c.set)
			a, results := attackColumns(t, newFixture(t, c.method, c.parties, records, set), 6)
			got := a.received(t, mailGroup)
			want, made := a.again(t, a.norm.Table(), nil, a.secrets)
			for p := range got {
				if len(got[p]) == 0 || !bytes.Equal(got[p], made[p]) {
					t.Fatalf("the coordinator received %d bytes of party %d, and not the %d that its program makes", len(got[p]),
						p+1, len(made[p]))
				}
			}
			sameCentroids(t, c.method, want, results)
			a.noise(t)
			for who, own := range a.guesses(c.colluders) {
				group := secret.Of([32]byte{1})
				if c.colluders > 0 {
					group = a.group
				}
				_, made := a.again(t, a.norm.Table(), nil, func(r protocol.Role) protocol.Secrets {
					if int(r) >= len(a.parts)-c.colluders {
						return a.secrets(r)
					}
					return protocol.Secrets{Own: own, Group: group}
				})
				if honest := len(a.parts) - c.colluders; slices.EqualFunc(made[:honest], got[:honest], bytes.Equal) {
					t.Errorf("with %s the coordinator makes what the parties have sent itself", who)
				}
			}
		})
	}
}

// So is one under encryption: of that the coordinator receives nothing but what is sealed for others.
func TestLiveCiphertextsAttacked(t *testing.T) {
	if os.Getenv("COHORT_NETWORK") == "" {
		t.Skip("make test-network runs it")
	}
	for _, mode := range []string{"two-party", "multiparty"} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, "ckks", 2, 100, method.Settings{"iterations": "1", "mode": mode})
			a, results := attackColumns(t, f, 3)
			for p, got := range a.received(t, mailProgram) {
				if len(got) > 0 {
					t.Errorf("the coordinator received %d bytes of party %d", len(got), p+1)
				}
			}
			sameCentroids(t, mode, results[0], results[1:])
		})
	}
}

// attackColumns runs a study with secrets of its own, whose roles die so many times, and looks at what left.
func attackColumns(t *testing.T, f *fixture, deaths int) (*columnsAttack, []*engine.Result) {
	t.Helper()
	n := newNetwork(t, f)
	n.study.Seed, n.whole = nil, true
	if err := n.study.Complete(); err != nil {
		t.Fatal(err)
	}
	x := new(tap)
	results, lives := n.dying(t, x, deaths)
	t.Logf("%d lives ended before their time", lives)
	runner, err := n.study.runner(nil)
	if err != nil {
		t.Fatal(err)
	}
	a := &columnsAttack{&attacker{network: n, core: runner.Core()}, x}
	for _, dir := range n.dirs {
		a.memories = append(a.memories, remember(t, dir))
	}
	for _, l := range a.memories[1].received {
		if l.kind == mailGroup {
			a.group = secret.Of([32]byte(l.body))
		}
	}
	a.search(t)
	a.oneVersion(t)
	return a, results
}

// guesses are roots that a party's noise might come from, if its program were wrong, and the attackers would know.
func (a *columnsAttack) guesses(colluders int) map[string]secret.Root {
	all := map[string]secret.Root{"a public root": secret.Of([32]byte{1}),
		"its own root": secret.Of(a.memory(protocol.Server).keys.root).Derive("run")}
	if colluders > 0 {
		last := a.memories[len(a.parts)-1].keys
		all["a colluder's root"] = secret.Of(last.root).Derive("run")
		all["the group's secret"] = a.group.Derive("run")
	}
	return all
}

// noise looks at the noise that the parties drew, and at how far the last record moved what they released.
func (a *columnsAttack) noise(t testing.TB) {
	t.Helper()
	ledger, err := a.core.Ledger(nil)
	if err != nil {
		t.Fatal(err)
	}
	replay := &privacy.Replay{Records: a.norm.Points.N}
	replay.Record()
	a.again(t, a.norm.Table(), replay, a.secrets)
	replay.Replay()
	a.again(t, a.without(), replay, a.secrets)
	squares, gaussian, sizes, laplace := 0.0, 0, 0.0, 0
	replay.Numbers(func(x privacy.Number) {
		z := float64(x.Released-x.First) / x.Scale
		if x.Gaussian {
			squares, gaussian = squares+z*z, gaussian+1
		} else {
			sizes, laplace = sizes+math.Abs(z), laplace+1
		}
	})
	if gaussian+laplace == 0 {
		t.Fatal("nobody drew noise")
	}
	if x := deviations(squares, gaussian); gaussian > 0 && math.Abs(x) > 6 {
		t.Errorf("%d numbers' noise is %.1f deviations from the plan's", gaussian, x)
	}
	if x := deviations(2*sizes, 2*laplace); laplace > 0 && math.Abs(x) > 6 { // twice |z| has two degrees of freedom
		t.Errorf("%d numbers' noise is %.1f deviations from the plan's", laplace, x)
	}
	l, g := replay.Distance()
	total := ledger.TotalFor(privacy.Server)
	if e := l + privacy.EpsilonOfMu(math.Sqrt(g), *total.Delta, 0); l+g == 0 || e > *total.Epsilon*(1+1e-9) {
		t.Errorf("a record moved what left by %g and %g: epsilon %g, the ledger says %g", l, g, e, *total.Epsilon)
	}
}
