package bench

import (
	"context"
	"os"
	"runtime"
	"slices"
	"time"

	"github.com/cohort-engine/cohort/engine/study"
	"github.com/cohort-engine/cohort/engine/study/virtual"
)

func networkSuites() []Suite {
	return []Suite{{
		Name: "network", Group: groupPerformance,
		Title: "Sums of parties on machines of their own, over the loopback interface",
		About: "A coordinator in a process of its own and its parties in another, each with a TLS connection, links and a " +
			"journal of its own, all on this machine's cores. A round is from the coordinator's readiness to the sum on its " +
			"way to every party; beside it stand the processor time of either process in a round, the most memory that the " +
			"coordinator's had, and what it could add up if its parties' work were done elsewhere. " +
			"Plain sums have the group's masks alone; those by pairs are the whole protocol of Bonawitz et al. 2017 (keys, " +
			"shares, signatures), with a hundred neighbours above 200 parties (Bell et al. 2020). Journals are in memory " +
			"where the machine has /dev/shm, so that figures are of the network and the processor; a disk adds the time of " +
			"its syncs. Beside a measured round stands what simulations give for it, the mean of one before it and one after " +
			"it. What a message costs them was measured right then with 50, 250 or 800 parties, whatever is next to its own " +
			"number, and plain sums of its own length (by pairs: of two), in processor time: on a machine that does something " +
			"else, a round takes longer than that. " +
			"Both ratios are printed, and beside them the share of the " +
			"round's core time that its roles had: where that is 1 the two are the same, and where it is not, cores did " +
			"other work or waited for it, which no simulation of the roles could tell; --simulate N " +
			"prints sums of N parties under each network's model, in a tree of servers above 1,000. Every method, and ckks in " +
			"each of its modes, runs as a study, too, with all roles behind connections of " +
			"their own, and has the bits of one process, or its row fails; its time begins when all roles are there.",
		Run: runNetwork,
	}}
}

// networkCase is one measurement.
type networkCase struct {
	parties, words, rounds int
	plain, quick           bool
}

var networkCases = []networkCase{
	{3, 45, 300, true, true}, {3, 45, 60, false, true}, {100, 45, 200, true, true}, {100, 45, 6, false, true},
	{1000, 45, 60, true, true}, {1000, 7850, 40, true, false}, {1000, 45, 4, false, false},
}

func runNetwork(ctx context.Context, e *Env) {
	if e.Simulated != nil {
		calibration := newCalibration(transportSizes[:], transportWords[:])
		for range 2 {
			if err := calibration.pass(ctx, e.coordinator); err != nil {
				e.fail(err)
				return
			}
		}
		t, err := calibration.transport(ctx)
		if err != nil {
			e.fail(err)
			return
		}
		e.simulate(ctx, t)
		return
	}
	for _, n := range networkCases {
		if e.Quick && !n.quick {
			continue
		}
		sums := "by pairs"
		if n.plain {
			sums = "plain"
		}
		labels := []Label{L("parties", n.parties), L("bytes", 8*n.words), L("sums", sums)}
		e.newCase(ctx, "rounds", labels, n.measure)
	}
	e.studies(ctx)
}

// measureRounds measures the rounds, but for the first eighth, which make keys and buffers.
func (n networkCase) measureRounds(ctx context.Context, command []string) (*sumsMeasured, error) {
	dir, err := memoryDir()
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	m, err := measureSums(ctx, &study.Sums{Parties: n.parties, Words: n.words, Rounds: n.rounds, Plain: n.plain, Dir: dir},
		command)
	if err != nil {
		return nil, err
	}
	first := 1
	if len(m.rounds) > 4 {
		first = max(2, len(m.rounds)/8)
	}
	for _, x := range []*[]time.Duration{&m.rounds, &m.work, &m.parties} {
		*x = (*x)[min(first, max(len(*x)-1, 0)):]
	}
	return m, nil
}

// memoryDir makes a folder in memory, where the machine has a place for such.
func memoryDir() (string, error) {
	if dir, err := os.MkdirTemp("/dev/shm", "cohort-bench"); err == nil {
		return dir, nil
	}
	return os.MkdirTemp("", "cohort-bench")
}

// middle is the median.
func middle(took []time.Duration) time.Duration {
	sorted := slices.Sorted(slices.Values(took))
	return sorted[len(sorted)/2]
}

// each are durations as samples.
func each(took []time.Duration) []float64 {
	samples := make([]float64, len(took))
	for i, d := range took {
		samples[i] = float64(d)
	}
	return samples
}

func (n networkCase) measure(ctx context.Context, c *Case) error {
	simulated := n.parties >= 100 // of few parties a round waits for wake-ups more than for work
	var before time.Duration
	var err error
	if simulated {
		if before, err = n.simulated(ctx, c.Env.coordinator); err != nil {
			return err
		}
	}
	m, err := n.measureRounds(ctx, c.Env.coordinator)
	if err != nil {
		return err
	}
	c.durations("round", each(m.rounds))
	round := middle(m.rounds)
	c.number("aggregated", "/s", float64(8*n.words*n.parties)/round.Seconds())
	if len(m.work) > 0 {
		work := middle(m.work)
		c.number("coordinator's work", unitNanoseconds, float64(work))
		c.number("parties' work", unitNanoseconds, float64(middle(m.parties)))
		c.number("coordinator's memory", unitBytes, float64(m.memory))
		c.number("aggregated by its work alone", "/s",
			float64(8*n.words*n.parties*runtime.GOMAXPROCS(0))/work.Seconds())
	}
	if !simulated {
		return nil
	}
	after, err := n.simulated(ctx, c.Env.coordinator)
	if err != nil {
		return err
	}
	mean := (before + after) / 2
	c.number("simulated", unitNanoseconds, float64(mean))
	c.number("simulated to measured", "", float64(mean)/float64(round))
	c.number("simulated to processor time", "", float64(mean)/float64(m.round()))
	c.number("cores at work on it", "", m.share())
	return nil
}

// simulated is what a simulation gives for a round, by what messages and machines cost right now.
func (n networkCase) simulated(ctx context.Context, command []string) (time.Duration, error) {
	calibration := n.calibration()
	if err := calibration.pass(ctx, command); err != nil {
		return 0, err
	}
	t, err := calibration.transport(ctx)
	if err != nil {
		return 0, err
	}
	r, err := n.simulation(t).Run(ctx)
	if err != nil {
		return 0, err
	}
	return r.Round, nil
}

// simulation is the same sum under virtual time, all roles on the cores of this machine.
func (n networkCase) simulation(t virtual.Transport) *virtual.Simulation {
	return &virtual.Simulation{Parties: n.parties, Words: n.words, Plain: n.plain, Threshold: 1, Fan: n.parties,
		Transport: t, Cores: runtime.GOMAXPROCS(0), Shared: true, Slow: 1, Deadline: time.Hour, Play: n.parties, Seed: 1}
}

// busy is the processor time of all roles in each round, or that which cores had while it lasted
// where both processes are one.
func (m *sumsMeasured) busy() []time.Duration {
	all := make([]time.Duration, len(m.rounds))
	for i := range all {
		all[i] = m.rounds[i] * time.Duration(runtime.GOMAXPROCS(0))
		if len(m.work) > 0 {
			all[i] = m.work[i] + m.parties[i]
		}
	}
	return all
}

// share is the part of all rounds' core time that all roles had.
func (m *sumsMeasured) share() float64 {
	var had, all time.Duration
	for i, busy := range m.busy() {
		had, all = had+busy, all+m.rounds[i]*time.Duration(runtime.GOMAXPROCS(0))
	}
	return float64(had) / float64(all)
}

// round is what a round takes on cores that do nothing else.
func (m *sumsMeasured) round() time.Duration {
	return middle(m.busy()) / time.Duration(runtime.GOMAXPROCS(0))
}

// transportSizes are the numbers of parties with which the cost of a message is measured, the last
// near what one server of a simulation has; transportWords are the lengths of vectors.
var transportSizes, transportWords = [...]int{50, 250, 800}, [...]int{45, 7850}

// calibration measures what an end of a message costs its processor, by the number of connections: rounds of plain sums
// of two lengths, less the work of the state machines. A simulation with one of its own runs before what is compared
// with it and another after that, since what a processor gets done in a second differs from minute to minute on a
// machine that is shared.
type calibration struct {
	sizes, words []int
	work         map[[2]int][]time.Duration // of all processors in a round, by the number of parties and of words
}

func newCalibration(sizes, words []int) *calibration {
	return &calibration{slices.Clone(sizes), words, make(map[[2]int][]time.Duration)}
}

// calibration is that of a sum: the sizes around its own, or the nearest, and for a plain one its own length.
func (n networkCase) calibration() *calibration {
	from, to := 0, len(transportSizes)
	for from+1 < to && transportSizes[from+1] <= n.parties {
		from++
	}
	for to-2 >= from && transportSizes[to-2] >= n.parties {
		to--
	}
	if n.plain {
		return newCalibration(transportSizes[from:to], []int{n.words})
	}
	return newCalibration(transportSizes[from:to], transportWords[:])
}

// pass measures each once, in the opposite order of the last time.
func (k *calibration) pass(ctx context.Context, command []string) error {
	slices.Reverse(k.sizes)
	for _, parties := range k.sizes {
		for _, words := range k.words {
			// Of short rounds there are more.
			n := networkCase{parties: parties, words: words, plain: true, rounds: 40 + 300_000/(parties*(45+words/16))}
			m, err := n.measureRounds(ctx, command)
			if err != nil {
				return err
			}
			at := [2]int{parties, words}
			k.work[at] = append(k.work[at], m.busy()...)
		}
	}
	return nil
}

// transport is what was measured.
func (k *calibration) transport(ctx context.Context) (virtual.Transport, error) {
	var t virtual.Transport
	for _, parties := range slices.Sorted(slices.Values(k.sizes)) {
		cost := make([]float64, len(k.words)) // of an end, in seconds
		for i, words := range k.words {
			machines, err := networkCase{parties: parties, words: words, plain: true}.simulation(nil).Run(ctx)
			if err != nil {
				return nil, err
			}
			own := machines.Round.Seconds() * float64(runtime.GOMAXPROCS(0))
			// A vector and a result have two ends each.
			cost[i] = max(0, middle(k.work[[2]int{parties, words}]).Seconds()-own) / float64(4*parties)
		}
		x := virtual.Measured{Connections: float64(parties)}
		if len(cost) > 1 {
			x.End.Byte = max(0, cost[1]-cost[0]) / float64(8*(k.words[1]-k.words[0]))
		}
		x.End.Message = max(0, cost[0]-x.End.Byte*float64(8*k.words[0]))
		t = append(t, x)
	}
	return t, nil
}

// Simulated says what is simulated: sums of Parties, of whom a share vanishes in each sum
// and another is ten times as slow.
type Simulated struct {
	Parties             int
	DropOut, Stragglers float64
	// Deadline is how long a step waits for those who have vanished.
	Deadline time.Duration
}

// fan is the most parties that one server of a simulation sums.
const fan = 1000

// simulate prints sums under each network's model.
func (e *Env) simulate(ctx context.Context, t virtual.Transport) {
	known := make(virtual.Known)
	for _, plain := range []bool{true, false} {
		for _, net := range Networks() {
			sums := "by pairs"
			if plain {
				sums = "plain"
			}
			o := e.Simulated
			labels := []Label{L("parties", o.Parties), L("bytes", 8*45), L("sums", sums), L("network", net.Name),
				L("vanish", o.DropOut), L("slow", o.Stragglers), L("deadline", o.Deadline)}
			s := virtual.Simulation{Parties: o.Parties, Words: 45, Plain: plain, Threshold: 0.6, Fan: fan,
				Transport: t, Cores: 2,
				Link:    virtual.Link{RoundTrip: net.RoundTrip, PerSend: net.PerSend, Bandwidth: net.Bandwidth},
				DropOut: o.DropOut, Stragglers: o.Stragglers, Slow: 10, Deadline: o.Deadline, Play: fan, Known: known, Seed: 1}
			if e.Quick {
				s.Play, s.Fan = fan/10, fan/10
			}
			e.newCase(ctx, "simulated", labels, func(ctx context.Context, c *Case) error { return c.simulated(ctx, &s) })
		}
	}
}

func (c *Case) simulated(ctx context.Context, s *virtual.Simulation) error {
	r, err := s.Run(ctx)
	if err != nil {
		return err
	}
	c.number("round", unitNanoseconds, float64(r.Round))
	c.number("of it waiting for who vanished", unitNanoseconds, float64(r.Waited))
	c.number("party sends", unitBytes, r.PartySent)
	c.number("party receives", unitBytes, r.PartyReceived)
	c.number("busiest server", unitBytes, r.ServerBytes)
	c.number("its work", unitNanoseconds, float64(r.Most))
	c.number("all servers' work", unitNanoseconds, float64(r.Work))
	c.number("servers", "", float64(r.Servers))
	c.number("levels", "", float64(r.Levels))
	c.number("not in the sum", "", float64(r.Missing))
	c.number("machines run", "", float64(r.Played))
	return nil
}
