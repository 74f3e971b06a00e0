package study

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"path/filepath"
	"slices"
	"testing"

	"github.com/cohort-engine/cohort/engine"
	"github.com/cohort-engine/cohort/engine/dataset"
	"github.com/cohort-engine/cohort/engine/method"
	"github.com/cohort-engine/cohort/engine/privacy"
	"github.com/cohort-engine/cohort/engine/protocol"
	"github.com/cohort-engine/cohort/engine/study/journal"
	"github.com/cohort-engine/cohort/engine/study/sum"
	"github.com/cohort-engine/cohort/internal/secagg"
	"github.com/cohort-engine/cohort/internal/secret"
)

// letter is a message that a role was sent.
type letter struct {
	from protocol.Role
	kind byte
	body []byte
}

// memory is what a role's journal has: its keys, and all that it was sent.
type memory struct {
	keys     *keys
	received []letter
}

// remember reads the journal of a role.
func remember(t testing.TB, dir string) *memory {
	t.Helper()
	j, err := journal.Open(filepath.Join(dir, JournalName))
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	m := new(memory)
	for _, r := range j.Records() {
		b, err := j.Read(r)
		switch {
		case err != nil:
		case r.Kind == recordIdentity:
			var id identity
			if err = json.Unmarshal(b, &id); err == nil {
				m.keys, err = id.keys()
			}
		case r.Kind == 'r': // as package link writes them: the sender, a number, the message
			from := protocol.Role(int32(binary.LittleEndian.Uint32(b)))
			m.received = append(m.received, letter{from, b[12], b[13:]})
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return m
}

// attacker is the coordinator of a study that has run, which has kept every byte, and the last parties, which
// give it theirs; where sums are shared among servers, the last server, too. What the others had is there for the test
// alone, to judge what it finds.
type attacker struct {
	*network
	colluders int // parties
	core      *protocol.Plan
	memories  []*memory // of the parties, then of other servers, then the coordinator's
	group     secret.Root
	opener    *secagg.Client
	vectors   []map[int][]byte // by sum and party
	released  []int64          // all sums, one after the other, as the attacker reads them
}

// newAttacker looks at a study after its end.
func newAttacker(t testing.TB, n *network, colluders int) *attacker {
	t.Helper()
	runner, err := n.study.runner(nil)
	if err != nil {
		t.Fatal(err)
	}
	a := &attacker{network: n, colluders: colluders, core: runner.Core()}
	for _, dir := range n.dirs {
		a.memories = append(a.memories, remember(t, dir))
	}
	mine := a.memories[a.honest()]
	for _, l := range mine.received {
		if l.kind == mailGroup && l.from == 0 && len(l.body) == 32 {
			a.group = secret.Of([32]byte(l.body))
		}
	}
	if a.core.Servers > 0 {
		a.addShares(t)
		return a
	}
	results := make(map[uint32][]byte) // the last that is said of a sum
	last := uint32(0)
	for _, l := range mine.received {
		if l.kind != mailSum {
			continue
		}
		number, err := sum.Number(l.body)
		if err != nil {
			t.Fatal(err)
		}
		last = max(last, number)
		results[number] = l.body[len(sum.VectorHead(number)):]
	}
	for number := range last + 1 {
		a.open(t, int(number), results[number])
	}
	return a
}

// honest is the number of parties that do not collude: the first ones.
func (a *attacker) honest() int { return len(a.parts) - a.colluders }

// end is a colluder's end of masks of vectors of a length.
func (a *attacker) end(length int) (*secagg.Client, error) {
	key, err := secagg.NewKey(a.group.Derive("masks"), a.core.Capacity.Ring, length)
	if err != nil {
		return nil, err
	}
	return key.Client(a.honest(), len(a.parts))
}

// ours tells whether a role is one of the attackers'.
func (a *attacker) ours(r protocol.Role) bool {
	if r.Serves() {
		return r == protocol.Server || r == protocol.ServerAt(a.core.Servers-1)
	}
	return int(r) >= a.honest()
}

// memory is that of a role.
func (a *attacker) memory(r protocol.Role) *memory {
	if r == protocol.Server {
		return a.memories[len(a.memories)-1]
	}
	return a.memories[a.study.index(r)]
}

// words are those of a share.
func (a *attacker) words(b []byte) []int64 {
	words := make([]int64, len(b)/a.core.Capacity.Ring.Bytes())
	secagg.ReadWords(words, a.core.Capacity.Ring, b)
	return words
}

// sent are the messages of the method's program that a role was sent by another, in order. Besides them
// there may be nothing but partings and the group's secret.
func (a *attacker) sent(t testing.TB, to, from protocol.Role) (messages [][]byte) {
	t.Helper()
	for _, l := range a.memory(to).received {
		switch {
		case l.from != from || l.kind == mailLeave || l.kind == mailGroup && !to.Serves():
		case l.kind == mailProgram:
			messages = append(messages, l.body)
		default:
			t.Errorf("%v has sent %v %d bytes of kind %q", from, to, len(l.body), l.kind)
		}
	}
	return messages
}

// addShares adds the servers' shares of each sum up, as parties do.
func (a *attacker) addShares(t testing.TB) {
	t.Helper()
	var sums [][]int64
	for s := range a.core.Servers {
		for i, b := range a.sent(t, protocol.Role(a.honest()), protocol.ServerAt(s)) {
			words := a.words(b)
			if s == 0 {
				sums = append(sums, make([]int64, len(words)))
			}
			for j, w := range words {
				sums[i][j] += w
			}
		}
	}
	for _, sum := range sums {
		for _, w := range sum {
			if a.core.Capacity.Ring == secagg.Ring32 {
				w = int64(int32(w))
			}
			a.released = append(a.released, w)
		}
	}
}

// evenShares are the chi-square statistics, in deviations, of the bytes of a party's shares that the attackers' servers
// were sent, and of what they add up to.
func (a *attacker) evenShares(t testing.TB, party protocol.Role) []float64 {
	t.Helper()
	var all [][]int64 // of each server of theirs, all sums one after the other, and then what they add up to
	total := make([]int64, len(a.released))
	for s := range a.core.Servers {
		if !a.ours(protocol.ServerAt(s)) {
			continue
		}
		var words []int64
		for _, b := range a.sent(t, protocol.ServerAt(s), party) {
			words = append(words, a.words(b)...)
		}
		if len(words) != len(total) {
			t.Fatalf("%v has sent %v %d words of sums of %d", party, protocol.ServerAt(s), len(words), len(total))
		}
		for i, w := range words {
			total[i] += w
		}
		all = append(all, words)
	}
	var chis []float64
	for _, words := range append(all, total) {
		var c chart
		c.count(words, a.core.Capacity.Ring)
		chis = append(chis, c.uneven())
	}
	return chis
}

// chart counts bytes.
type chart struct {
	counts [256]float64
	n      float64
}

func (c *chart) count(words []int64, ring secagg.Ring) {
	for _, w := range words {
		for i := range ring.Bytes() {
			c.counts[byte(w>>(8*i))]++
			c.n++
		}
	}
}

// uneven is their chi-square statistic, in deviations.
func (c *chart) uneven() float64 {
	chi := 0.0
	for _, k := range c.counts {
		chi += (k - c.n/256) * (k - c.n/256) / (c.n / 256)
	}
	return (chi - 255) / math.Sqrt(2*255)
}

// open unmasks a sum as its parties do.
func (a *attacker) open(t testing.TB, number int, wire []byte) {
	t.Helper()
	ring, parties := a.core.Capacity.Ring, len(a.parts)
	words := make([]int64, len(wire)/ring.Bytes())
	masked := secagg.NewMasked(ring, parties, len(words))
	err := masked.ReadSum(wire, number)
	if err == nil {
		a.opener, err = a.end(len(words))
	}
	if err == nil {
		err = a.opener.Unmask(words, masked)
	}
	if err != nil {
		t.Fatal(err)
	}
	a.released = append(a.released, words...)
	a.vectors = append(a.vectors, make(map[int][]byte))
}

// listen takes the vectors out of what the coordinator was sent. Besides them there may be nothing but messages of
// the sums, whose lengths follow from the number of parties, and partings.
func (a *attacker) listen(t testing.TB) {
	t.Helper()
	others := len(a.parts) - 1
	head := len(sum.VectorHead(0))
	fixed := []int{head + 32 + 64, head + others*(2+80), head + 64, head + (others+1)*(2+1+32)}
	for _, l := range a.memories[len(a.parts)].received {
		switch {
		case l.kind == mailLeave && len(l.body) == 0:
			continue
		case l.kind != mailSum:
			t.Errorf("%v has sent the coordinator %d bytes of kind %q", l.from, len(l.body), l.kind)
			continue
		}
		number, err := sum.Number(l.body)
		if err != nil || int(number) >= len(a.vectors) {
			t.Fatalf("%v has sent a message of sum %d of %d, %v", l.from, number+1, len(a.vectors), err)
		}
		at, is := sum.IsVector(l.body)
		switch {
		case is && a.vectors[number][int(l.from)] == nil:
			a.vectors[number][int(l.from)] = l.body[at:]
		case is || !slices.Contains(fixed, len(l.body)):
			t.Errorf("%v has sent %d more bytes of sum %d", l.from, len(l.body), number+1)
		}
	}
	for i := range a.memories[:a.honest()] {
		for _, l := range a.memories[i].received {
			if l.from >= 0 && l.kind != mailLeave && (l.kind != mailGroup || len(l.body) != 32) {
				t.Errorf("%v has sent party %d %d bytes of kind %q", l.from, i+1, len(l.body), l.kind)
			}
		}
	}
}

// again does the study once more in this process, on records of the parties, with the secrets that its roles had.
func (a *attacker) again(t testing.TB, parts []dataset.Part, replay *privacy.Replay) []protocol.Draw {
	t.Helper()
	job, err := a.study.jobOf(parts, a.norm.Bounds, nil)
	if err != nil {
		t.Fatal(err)
	}
	plan, err := job.Plan()
	if err != nil {
		t.Fatal(err)
	}
	runner := plan.(protocol.Runner)
	runner.Core().PublicSeed = a.study.PublicSeed
	var draws protocol.Draws
	_, err = runner.Connect(context.Background(), engine.NewRuntime(newEngine(t).Pool()), protocol.Options{Replay: replay,
		Draws: &draws, Secrets: func(r protocol.Role) protocol.Secrets {
			if r.Serves() {
				return a.study.secrets(r, a.memory(r).keys, secret.Root{})
			}
			return a.study.secrets(r, a.memory(r).keys, a.group)
		}})
	if err != nil {
		t.Fatal(err)
	}
	return draws.Seen
}

// evenness is the chi-square statistic, in deviations, of the bytes of a party's vectors, from which the attacker
// takes the group's masks.
func (a *attacker) evenness(t testing.TB, party int) float64 {
	t.Helper()
	var c chart
	ring := a.core.Capacity.Ring
	for number, of := range a.vectors {
		words := make([]int64, len(of[party])/ring.Bytes())
		masked := secagg.NewMasked(ring, len(a.parts), len(words))
		opener, err := a.end(len(words))
		if err == nil {
			err = masked.ReadFrom(of[party], number, party)
		}
		if err == nil {
			err = opener.Unmask(words, masked)
		}
		if err != nil {
			t.Fatalf("the vector of party %d in sum %d: %v", party+1, number+1, err)
		}
		c.count(words, ring)
	}
	return c.uneven()
}

// deviations tells how far the sum of the squares of n standard normal numbers is from what it should be, in
// standard deviations (Wilson and Hilferty).
func deviations(squares float64, n int) float64 {
	v := 2 / (9 * float64(n))
	return (math.Cbrt(squares/float64(n)) - (1 - v)) / math.Sqrt(v)
}

// findings are what comes of an attack on the sums.
type findings struct {
	numbers int // that left in sums
	other   int // of them that are not what the parties released
	// noise is how far the noise that the attacker does not know is from what the plan says, in deviations.
	noise float64
	// loss is the log of how much likelier a record of party 1 made what left, and distance by how much that record
	// moved it, in deviations of the whole noise.
	loss, distance float64
}

// attack takes off what left all that it knows: its own noise, and the exact sums of all records. What is left is the
// noise of the other parties, which has to hide the last record of party 1.
func (a *attacker) attack(t testing.TB) findings {
	t.Helper()
	replay := &privacy.Replay{Records: a.norm.Points.N}
	replay.Record()
	draws := a.again(t, a.parts, replay)
	without := slices.Clone(a.parts)
	points := without[0].Points.Slice(0, without[0].Points.N-1)
	without[0].Points = &points
	if rows := without[0].Rows; rows != nil {
		without[0].Rows = rows[:points.N]
	}
	replay.Replay()
	a.again(t, without, replay)
	own, drawn := make([]int64, len(a.released)), make(map[protocol.Role]int)
	for _, d := range draws {
		for _, z := range d.Values {
			if at := drawn[d.Role]; a.ours(d.Role) && at < len(own) {
				own[at] += z
			}
			drawn[d.Role]++
		}
	}
	if len(drawn) == 0 {
		t.Fatal("nobody drew noise")
	}
	f, others := findings{numbers: len(own)}, 0.0
	for r, n := range drawn {
		if n != len(own) {
			t.Fatalf("%v drew %d numbers, and %d left in sums", r, n, len(own))
		}
		if !a.ours(r) {
			others++
		}
	}
	// more shares than make up the whole noise may be left: sums have to hide records with fewer parties, too
	more := math.Sqrt(others / float64(draws[0].Noise.Shares))
	squares, i := 0.0, 0
	replay.Numbers(func(x privacy.Number) {
		if i++; i > len(own) {
			return
		}
		left := a.released[i-1]
		if left != x.Released {
			f.other++
		}
		moved := float64(x.Second-x.First) / x.Scale
		f.distance += moved * moved
		rest := float64(left-x.First-own[i-1]) / (more * x.Scale)
		squares += rest * rest
		f.loss += ((rest-moved/more)*(rest-moved/more) - rest*rest) / 2
	})
	if i != len(own) {
		t.Fatalf("%d numbers were released, and %d left in sums", i, len(own))
	}
	f.noise, f.distance = deviations(squares, i), math.Sqrt(f.distance)
	return f
}

// unhurried are deadlines that no role misses where many at once have few processors, or are stopped for a while.
var unhurried = Deadlines{Step: 3600, Message: 3600}

// A study over the loopback interface, with secrets of its own, is attacked by its coordinator, which has kept every
// byte, and as many parties as the plan says may collude: from their journals alone they open all sums. Nothing else
// left than the sums that the plan has, under masks; they are what the parties released, number by number; the noise
// in them that the attackers do not know is that of the plan; and it hides a record as well as the ledger says. Sums
// without the masks of pairs are found out. (What is right fails with a probability below 1e-6 together: ten
// deviations of a chi-square for each party, six for the noise, and twice 1e-7 for the loss.)
func TestLiveStudyAttacked(t *testing.T) {
	split := method.Settings{"noise": "split", "mechanism": "gaussian", "iterations": "8"}
	for _, c := range []struct {
		method             string
		parties, colluders int
		set                method.Settings
		plain              bool
	}{
		{"sulloyd", 5, 2, split, false},
		{"sulloyd", 4, 1, split, true},
		{"relative", 4, 1, split, false},
		{"fastlloyd", 4, 1, split, false},
		{"hybrid", 4, 2, nil, false},
	} {
		t.Run(fmt.Sprintf("%s plain=%v", c.method, c.plain), func(t *testing.T) {
			t.Parallel()
			const records = 240
			set := method.Settings{"public-n": fmt.Sprint(records), "colluders": fmt.Sprint(c.colluders)}
			maps.Copy(set, c.set)
			n := newNetwork(t, newFixture(t, c.method, c.parties, records, set))
			n.study.Seed, n.study.PlainSums, n.whole = nil, c.plain, true
			n.study.Deadlines = unhurried
			if err := n.study.Complete(); err != nil {
				t.Fatal(err)
			}
			results, errs := n.run(t)
			if err := errors.Join(errs...); err != nil {
				t.Fatal(err)
			}
			a := newAttacker(t, n, c.colluders)
			a.listen(t)
			for p := range a.honest() {
				if x := a.evenness(t, p); (x > 10) != c.plain {
					t.Errorf("the vectors of party %d are %.1f deviations from even", p+1, x)
				}
			}
			a.judge(t, results[0])
		})
	}
}

// Where sums are shared among servers the coordinator, the last server, which has what is left of each vector, and as
// many parties as may collude do not open a vector, either: their shares of it are uniform, and so is what these add up
// to. What they open together is as above, and so is the noise that they do not know, be it that of the server left or
// of the parties.
func TestLiveSharesAttacked(t *testing.T) {
	for _, c := range []struct {
		method             string
		parties, colluders int
		set                method.Settings
	}{
		{"sulloyd", 3, 1, method.Settings{"noise": "servers", "servers": "3", "colluders": "2"}},
		{"relative", 4, 2, method.Settings{"noise": "split", "servers": "3", "colluders": "2"}},
		{"fastlloyd", 3, 1, method.Settings{"noise": "servers", "servers": "3", "colluders": "2"}},
	} {
		t.Run(fmt.Sprintf("%s noise=%s", c.method, c.set["noise"]), func(t *testing.T) {
			t.Parallel()
			const records = 240
			set := method.Settings{"public-n": fmt.Sprint(records), "aggregator": "shares", "mechanism": "gaussian",
				"iterations": "8"}
			maps.Copy(set, c.set)
			n := newNetwork(t, newFixture(t, c.method, c.parties, records, set))
			n.study.Seed, n.study.Deadlines = nil, unhurried
			if err := n.study.Complete(); err != nil {
				t.Fatal(err)
			}
			results, errs := n.run(t)
			if err := errors.Join(errs...); err != nil {
				t.Fatal(err)
			}
			a := newAttacker(t, n, c.colluders)
			for p := range a.honest() {
				for _, x := range a.evenShares(t, protocol.Role(p)) {
					if x > 10 {
						t.Errorf("shares of party %d are %.1f deviations from even", p+1, x)
					}
				}
			}
			a.judge(t, results[0])
		})
	}
}

// judge compares what an attack finds with the plan and its ledger.
func (a *attacker) judge(t *testing.T, res *engine.Result) {
	t.Helper()
	ledger, err := a.core.Ledger(nil)
	if err != nil {
		t.Fatal(err)
	}
	planned := 0
	for _, r := range a.core.Releases {
		planned += max(r.Times, 1) * r.Words
	}
	f := a.attack(t)
	if f.numbers == 0 || f.numbers > planned {
		t.Errorf("%d numbers left in sums, and the plan has %d", f.numbers, planned)
	}
	if f.other > 0 {
		t.Errorf("%d of %d numbers that left are not what the parties released", f.other, f.numbers)
	}
	if math.Abs(f.noise) > 6 {
		t.Errorf("the noise that the attackers do not know is %.1f deviations from the plan's", f.noise)
	}
	total := ledger.TotalFor(privacy.Outsider)
	if e := privacy.EpsilonOfMu(f.distance, *total.Delta, 0); f.distance == 0 || e > *total.Epsilon*(1+1e-9) {
		t.Errorf("a record moved what left by %g deviations: epsilon %g, the ledger says %g", f.distance, e, *total.Epsilon)
	}
	const rare = 1e-7
	at := ledger.At(rare)
	if most := *at.TotalFor(privacy.Outsider).Epsilon + math.Ln2; f.loss > most {
		t.Errorf("what left is e^%.2f times as likely with a record as without it, the ledger says e^%.2f", f.loss, most)
	}
	if e := *res.Ledger.TotalFor(privacy.Outsider).Epsilon; !(e > 0 && e <= *total.Epsilon*(1+1e-9)) ||
		len(res.Ledger.Entries()) != len(ledger.Entries()) {
		t.Errorf("the result says epsilon %g in %d lines, its plan %g in %d", e, len(res.Ledger.Entries()), *total.Epsilon,
			len(ledger.Entries()))
	}
}
