package virtual

import (
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"time"

	"github.com/cohort-engine/cohort/engine/study/sum"
)

// driver is a group's server and its members, step by step.
type driver interface {
	// steps is how many there are.
	steps() int
	// expected says that the step under way waits for a member, and waiting for how many.
	expected(member int) bool
	waiting() int
	// say makes a member's message of the step: its bytes, and what it cost.
	say(member int) (bytes int, work float64)
	// take gives it to the server.
	take(member int) (work float64)
	// close ends the step: told is how many bytes a member hears.
	close() (told func(member int) int, work float64, err error)
	// missing are the members that are not in the sum, result the bytes of the result.
	missing() int
	result() int
}

// costs are what the steps of a group came to, on average over its members.
type costs struct {
	steps  []stepCosts
	result int
}

// stepCosts are those of one step, work in seconds.
type stepCosts struct {
	say, take, close float64
	sent, told       float64
	said, taken      int
}

// stepsOf is the number of steps of a sum.
func stepsOf(plain bool) int {
	if plain {
		return 1
	}
	return int(sum.Done)
}

// played runs the state machines.
type played struct {
	config  sum.Config
	server  *sum.Server
	members []*sum.Member
	clients []*sum.Client
	heard   [][]byte // what each has been told last
	said    [][]byte // its message
	vectors [][]byte
	on      []bool
	costs   *costs
	step    int
	number  uint32 // of the sum
}

// newPlayed makes a group of parties with keys of their own.
func newPlayed(c sum.Config, words int, k *costs) *played {
	d := &played{config: c, members: make([]*sum.Member, c.Parties), clients: make([]*sum.Client, c.Parties),
		heard: make([][]byte, c.Parties), said: make([][]byte, c.Parties), vectors: make([][]byte, c.Parties),
		on: make([]bool, c.Parties), costs: k}
	k.steps = make([]stepCosts, stepsOf(c.Plain))
	signing := make([]ed25519.PrivateKey, c.Parties)
	for i := range d.members {
		seed := sha256.Sum256(fmt.Append(nil, "virtual party", i))
		signing[i] = ed25519.NewKeyFromSeed(seed[:])
		d.members[i] = &sum.Member{Config: c, Index: i, Root: sha256.Sum256(seed[:]),
			Pair: func(q int) ([32]byte, error) { // agreed on once in a study
				return sha256.Sum256(fmt.Append(nil, "pair", min(i, q), max(i, q))), nil
			},
			Sign: func(b []byte) ([]byte, error) { return ed25519.Sign(signing[i], b), nil },
			Verify: func(q int, b, signature []byte) bool {
				return ed25519.Verify(signing[q].Public().(ed25519.PublicKey), b, signature)
			}}
		d.vectors[i] = make([]byte, words*c.Ring.Bytes())
		binary.LittleEndian.PutUint32(d.vectors[i], uint32(i+1))
		d.on[i] = true
	}
	d.server = c.NewServer(0, d.on)
	return d
}

// warm plays a plain sum that does not count: the first makes buffers that later ones have. Beside the work of sums by
// pairs that is nothing.
func (d *played) warm() {
	for i := range d.members {
		d.say(i)
		d.take(i)
	}
	if _, _, err := d.close(); err != nil {
		panic("virtual: " + err.Error()) // all are there
	}
	*d.costs = costs{steps: make([]stepCosts, 1)}
	d.step, d.number = 0, 1
	for i := range d.on {
		d.on[i] = true
	}
	d.server = d.config.NewServer(d.number, d.on)
}

// clock measures processor time of this process where it can: nothing else runs in it meanwhile.
func clock(f func()) float64 {
	begun := now()
	f()
	return (now() - begun).Seconds()
}

func (d *played) steps() int          { return len(d.costs.steps) }
func (d *played) expected(i int) bool { return d.on[i] }
func (d *played) waiting() int        { return len(d.server.Missing()) }

func (d *played) say(i int) (bytes int, work float64) {
	var err error
	work = clock(func() {
		if d.step == 0 {
			d.clients[i], d.said[i], err = d.members[i].Begin(d.number, d.vectors[i])
		} else {
			d.said[i], _, err = d.clients[i].Take(d.heard[i])
		}
	})
	if err != nil {
		panic("virtual: " + err.Error()) // a server that follows the protocol is not refused
	}
	c := &d.costs.steps[d.step]
	c.say, c.sent, c.said = c.say+work, c.sent+float64(len(d.said[i])), c.said+1
	return len(d.said[i]), work
}

func (d *played) take(i int) (work float64) {
	var err error
	work = clock(func() { _, err = d.server.Take(i, d.said[i]) })
	if err != nil {
		panic("virtual: " + err.Error())
	}
	c := &d.costs.steps[d.step]
	c.take, c.taken = c.take+work, c.taken+1
	return work
}

func (d *played) close() (func(int) int, float64, error) {
	var outs []sum.Out
	var err error
	for i := range d.on {
		d.on[i], d.heard[i] = false, nil
	}
	work := clock(func() { outs, err = d.server.Close() })
	if err != nil {
		return nil, 0, err
	}
	c := &d.costs.steps[d.step]
	for _, o := range outs {
		d.heard[o.To], d.on[o.To] = o.Body, true
		c.told += float64(len(o.Body)) / float64(len(outs))
	}
	c.close = work
	c.say, c.sent, c.take = c.say/float64(c.said), c.sent/float64(c.said), c.take/float64(c.taken)
	if d.step++; d.step == len(d.costs.steps) {
		d.costs.result = d.result()
		err = d.check()
	}
	return func(i int) int { return len(d.heard[i]) }, work, err
}

// check compares the total with the sum of the vectors that are in it.
func (d *played) check() error {
	want := uint64(0)
	for i := range d.members {
		if d.server.Set().Has(i) {
			want += uint64(i + 1)
		}
	}
	total := d.server.Total()
	if got := binary.LittleEndian.Uint64(total); got != want {
		return fmt.Errorf("virtual: the sum is %d where the vectors have %d", got, want)
	}
	return nil
}

func (d *played) missing() int { return len(d.members) - d.server.Set().Count() }

func (d *played) result() int { return len(d.server.Result(d.server.Total())) }

// recalled is a group of which only the course is played.
type recalled struct {
	*costs
	on, in    []bool
	threshold int
	step      int
	left      int // when vectors were taken
}

func newRecalled(k *costs, n, threshold int) *recalled {
	r := &recalled{costs: k, on: make([]bool, n), in: make([]bool, n), threshold: threshold}
	for i := range r.on {
		r.on[i] = true
	}
	return r
}

func (r *recalled) steps() int          { return len(r.costs.steps) }
func (r *recalled) expected(i int) bool { return r.on[i] }

func (r *recalled) waiting() (n int) {
	for i, on := range r.on {
		n += b2i(on && !r.in[i])
	}
	return n
}

func (r *recalled) say(int) (int, float64) {
	c := &r.costs.steps[r.step]
	return int(c.sent), c.say
}

func (r *recalled) take(i int) float64 {
	r.in[i] = true
	return r.costs.steps[r.step].take
}

func (r *recalled) close() (func(int) int, float64, error) {
	answered := 0
	for _, in := range r.in {
		answered += b2i(in)
	}
	if answered < r.threshold {
		return nil, 0, fmt.Errorf("virtual: %d of %d parties are left, and %d must be", answered, len(r.in), r.threshold)
	}
	c := &r.costs.steps[r.step]
	if len(r.costs.steps) == 1 || r.step == int(sum.Vectors) {
		r.left = answered
	}
	r.step++
	r.on, r.in = r.in, make([]bool, len(r.in))
	told := r.on
	return func(i int) int {
		if told[i] {
			return int(c.told)
		}
		return 0
	}, c.close, nil
}

func (r *recalled) missing() int { return len(r.on) - r.left }
func (r *recalled) result() int  { return r.costs.result }

var _ = []driver{(*played)(nil), (*recalled)(nil)}

// epoch is what wall time is counted from where processes have no clock.
var epoch = time.Now()
