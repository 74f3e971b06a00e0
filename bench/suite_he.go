package bench

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"slices"
	"time"

	"github.com/cohort-engine/cohort/engine"
	"github.com/cohort-engine/cohort/engine/method/ckks"
	"github.com/cohort-engine/cohort/engine/privacy"
	"github.com/cohort-engine/cohort/kernels"
)

func heSuites() []Suite {
	return []Suite{
		{
			Name: "he", Group: groupPerformance, Title: "k-means on encrypted columns, ten rounds",
			About: "Two parties with one column each, ten rounds with noise: keys, encryption, comparison, sums, noise, " +
				"decryption and the serialisation of every message. Compute is measured here; transfer is modelled for each " +
				"network of CKKS-V Table 1 from the bytes that were really sent. CKKS-V ran on 224 cores and its times include " +
				"the network; ours stand for compute plus transfer. Operations are those of one round. The seconds of 64-bit " +
				"words are those of the revision before 32-bit lanes (e2678cf) on two cores of a Xeon at 2.4 GHz, of s1 on two " +
				"of an EPYC of the third generation: on other processors `make bench-compare BASE=e2678cf SUITES=he` runs both. " +
				"Operations on one core are timed in turns " +
				"with Lattigo's, whose sign is its products, relinearisations and rescalings alone. Two workers stand beside " +
				"two runs of one worker each at once: what the machine gives to two cores that share nothing. The cores of a " +
				"virtual machine may be near each other or far apart, by turns, which the time of a word tells. Memory is the " +
				"peak of the process, data included, and planned what the plan states, without program and data.",
			Source:  ckksSource,
			Needs:   []string{"s1"},
			Figures: []Figure{{Table: "compute", Title: "Ten rounds", X: "size", Y: "compute", LogY: true, Bars: true}},
			Run:     runHE,
		},
	}
}

// heTimed runs a job and returns its result with the wall and CPU seconds.
func heTimed(ctx context.Context, c *Case, job *ckks.Job) (*engine.Result, float64, float64, error) {
	e, err := engine.New(engine.WithWorkers(c.Env.Pool.Workers()))
	if err != nil {
		return nil, 0, 0, err
	}
	defer e.Close()
	runtime.GC()
	cpu, start := processTime(), time.Now()
	res, err := e.Run(ctx, job)
	return res, time.Since(start).Seconds(), (processTime() - cpu).Seconds(), err
}

// wideSeconds are the seconds of the first nine of ckksCells at the revision that
// computed with 64-bit words.
var wideSeconds = [...]float64{2.8, 7.2, 10.8, 2.8, 16.1, 37, 7.6, 64, 166}

// heRoom is the memory that runs of n records and k clusters may take, in MB.
var heRoom = map[[2]int]float64{{100000, 5}: 600, {1000000, 5}: 3000}

// wideS1 are those of s1: the median of three runs in turns with one of 32-bit lanes, which took 5.1 s.
const wideS1 = 40.6

// The machines of wideSeconds and of wideS1.
const (
	wideSource   = "revision e2678cf, two cores of a Xeon at 2.4 GHz"
	wideS1Source = "revision e2678cf, two cores of an EPYC (Zen 3)"
)

// heOperations are the operations of a round on one core beside Lattigo's.
func heOperations(ctx context.Context, e *Env) {
	ops, failure, err := ckks.MeasuredOperations()
	if err != nil {
		e.fail(err)
		return
	}
	for _, op := range ops {
		e.newCase(ctx, "operations, one core", []Label{L("operation", op.Name), L("ISA", kernels.ISA())},
			func(ctx context.Context, c *Case) error {
				if err := c.compare(ctx, []Timed{{Name: "32-bit lanes", Fn: op.Ours},
					{Name: "Lattigo", Fn: op.Lattigo}}); err != nil {
					return err
				}
				ours, theirs := c.Row.Values[0], c.Row.Values[1]
				c.number("ratio", unitPlain, float64(theirs.Median/ours.Median))
				return failure()
			})
	}
}

// heParties are runs in which several key holders decrypt together.
func heParties(ctx context.Context, e *Env) {
	for _, x := range []struct{ parties, threshold int }{{3, 2}, {3, 1}, {5, 4}, {5, 2}} {
		// The computing party holds no share of the key, and a column as the others.
		size := heCell{name: fmt.Sprintf("n=10000 k=5 d=%d, %d parties, %d decrypt", x.parties, x.parties, x.threshold)}
		heSize(ctx, e, size, heSynthetic(10000, x.parties, 5, heRounds, func(job *ckks.Job) {
			job.Mode, job.Threshold, job.Columns = ckks.Multiparty, x.threshold, nil
			for party := range x.parties {
				job.Columns = append(job.Columns, []int{party})
			}
		}))
	}
}

// heWorkers are the speed-ups of two workers: of whole runs, and of their rounds, without keys and encryption; and what
// two runs of one worker each gain by being done at once, which share nothing but the machine.
func heWorkers(ctx context.Context, e *Env) {
	for _, x := range []struct{ n, k int }{{1000, 2}, {10000, 2}, {10000, 5}} {
		e.newCase(ctx, "workers", []Label{L("n", x.n), L("k", x.k)}, func(ctx context.Context, c *Case) error {
			data, err := timeSet(ctx, x.n, 2, x.k)
			if err != nil {
				return err
			}
			once := func(workers int) (*engine.Result, error) {
				eng, err := engine.New(engine.WithWorkers(workers))
				if err != nil {
					return nil, err
				}
				defer eng.Close()
				return eng.Run(ctx, heJob(data, x.k, heRounds, 1, heBudget()))
			}
			least := math.Inf(1)
			run, rounds, apart := [2]float64{least, least}, [2]float64{least, least}, least
			for range c.Env.reps(5, 1) {
				for i := range run {
					runtime.GC() // all runs take the same memory: pages that are new to the process cost milliseconds
					start := time.Now()
					res, err := once(i + 1)
					if err != nil {
						return err
					}
					run[i] = min(run[i], time.Since(start).Seconds())
					all := res.Timings["compare"].TotalNS + res.Timings["sum"].TotalNS + res.Timings["decrypt"].TotalNS
					rounds[i] = min(rounds[i], float64(all)/1e9)
				}
				runtime.GC()
				seconds, err := heAtOnce(func() error { _, err := once(1); return err })
				if err != nil {
					return err
				}
				apart = min(apart, seconds)
			}
			for _, v := range []struct {
				name  string
				least [2]float64
			}{{"run", run}, {"rounds", rounds}} {
				c.number(v.name+", one", "s", v.least[0])
				c.number(v.name+", two", "s", v.least[1])
				c.number(v.name+", ratio", unitPlain, v.least[0]/v.least[1], atLeast(1.8)...)
			}
			c.number("two runs at once, ratio", unitPlain, 2*run[0]/apart)
			return nil
		})
	}
}

// heAtOnce is the wall time of two calls of f at the same time.
func heAtOnce(f func() error) (float64, error) {
	start, other := time.Now(), make(chan error, 1)
	go func() { other <- f() }()
	err := errors.Join(f(), <-other)
	return time.Since(start).Seconds(), err
}

func runHE(ctx context.Context, e *Env) {
	heOperations(ctx, e)
	heSizes(ctx, e)
	heParties(ctx, e)
	heWorkers(ctx, e)
}

// heSynthetic makes runs on records around k centres, which edit changes unless it is nil.
func heSynthetic(n, d, k, rounds int, edit func(*ckks.Job)) func(context.Context) (*ckks.Job, error) {
	return func(ctx context.Context) (*ckks.Job, error) {
		data, err := timeSet(ctx, n, d, k)
		if err != nil {
			return nil, err
		}
		job := heJob(data, k, rounds, 1, heBudget())
		if edit != nil {
			edit(job)
		}
		return job, nil
	}
}

// heSizes are the paper's sizes, s1, and the paper's argmin.
func heSizes(ctx context.Context, e *Env) {
	for _, cell := range []int{0, 1, 3, 4, 2, 5, 6, 7, 8} {
		paper := ckksCells[cell]
		size := heCell{name: fmt.Sprintf("n=%d k=%d", paper.n, paper.k), wide: wideSeconds[cell],
			source: wideSource, gain: 8, room: heRoom[[2]int{paper.n, paper.k}], file: "ckks-table3",
			labels: []Label{L("n", paper.n), L("k", paper.k)}, time: "LAN10000"}
		heSize(ctx, e, size, heSynthetic(paper.n, 2, paper.k, heRounds, nil))
	}
	hePlane(ctx, e)
	heSize(ctx, e, heCell{name: "s1 k=15", file: "ckks-table4", labels: []Label{L("set", "s1"), L("parties", 2)},
		time: "time", wide: wideS1, source: wideS1Source, gain: 7}, func(ctx context.Context) (*ckks.Job, error) {
		s, err := e.set(ctx, "s1")
		if err != nil {
			return nil, err
		}
		return heJob(s.Norm, 15, heRounds, 1, heBudget()), nil
	})
	// The paper's own argmin.
	for _, x := range []struct{ k, rounds int }{{5, e.reps(heRounds, 2)}, {10, e.reps(heRounds, 1)},
		{16, e.reps(heRounds, 1)}, {32, e.reps(3, 1)}} {
		name := fmt.Sprintf("n=1000 k=%d by rank, rounds: %d", x.k, x.rounds)
		heSize(ctx, e, heCell{name: name}, heSynthetic(1000, 2, x.k, x.rounds, func(job *ckks.Job) {
			job.Argmin, job.Calibration = ckks.Rank, privacy.Claimed // no other has a price for ranks
		}))
	}
	if !e.Quick {
		heScale(ctx, e)
	}
}

// heScale are runs of many records, or of many clusters of them, to the end.
func heScale(ctx context.Context, e *Env) {
	for _, x := range []struct{ n, k int }{{1000000, 5}, {100000, 32}} {
		cell := heCell{name: fmt.Sprintf("n=%d k=%d", x.n, x.k), room: heRoom[[2]int{x.n, x.k}]}
		heSize(ctx, e, cell, heSynthetic(x.n, 2, x.k, heRounds, nil))
	}
}

// hePlane is a round of many clusters in the plane, with the chain for the pairs that pruning leaves
// and with that for all.
func hePlane(ctx context.Context, e *Env) {
	const k = 20
	for _, all := range []bool{false, true} {
		name := fmt.Sprintf("n=1000 k=%d, 1 round", k)
		if all {
			name += ", chain for all pairs"
		}
		heSize(ctx, e, heCell{name: name}, heSynthetic(1000, 2, k, 1, func(job *ckks.Job) {
			if all { // a given start takes the chain for all pairs
				job.Start = slices.Concat(job.StartCentroids()...)
			}
		}))
	}
}

// heBudget is the budget of timed runs; the noise is drawn, its scale does not
// matter for time.
func heBudget() privacy.Budget { return privacy.Budget{Epsilon: 5, Delta: 1e-5} }

// heCell is one size, and where CKKS-V prints its bytes and its time: the instance
// of a file, and which of its values is the time in compute's place. wide are the
// seconds with 64-bit words, 0 where unknown, as the source has them, of which the run is to
// take no more than one over gain, and room the MB that it may take, 0 for any.
type heCell struct {
	name, file, time, source string
	labels                   []Label
	wide, gain, room         float64
}

// heRun is the run of one size, which the first row that needs it makes.
type heRun struct {
	heCell
	build             func(context.Context) (*ckks.Job, error)
	res               *engine.Result
	wall, cpu, memory float64 // seconds, seconds and MB; memory is 0 where it is not known
	planned           float64 // MB
}

// heSize measures one run and records it in three tables: compute and bytes,
// operations of a round, and transfer and total on each network.
func heSize(ctx context.Context, e *Env, cell heCell, build func(context.Context) (*ckks.Job, error)) {
	r := &heRun{heCell: cell, build: build}
	labels := []Label{L("size", cell.name)}
	e.newCase(ctx, "compute", labels, r.compute)
	e.newCase(ctx, "operations of a round", labels, r.operations)
	if cell.file != "ckks-table3" {
		return
	}
	for _, name := range ckksNetworks {
		e.newCase(ctx, "networks", append(labels, L("network", name)), r.network)
	}
}

// measure makes the run.
func (r *heRun) measure(ctx context.Context, c *Case) error {
	if r.res != nil {
		return nil
	}
	job, err := r.build(ctx)
	if err != nil {
		return err
	}
	if r.planned, err = hePlanned(job, c.Env.Pool.Workers()); err != nil {
		return err
	}
	known := resetPeakMemory()
	r.res, r.wall, r.cpu, err = heTimed(ctx, c, job)
	if known {
		r.memory = float64(peakMemory()) / 1e6
	}
	return err
}

// hePlanned is the memory that the plan of a job states, in MB.
func hePlanned(job *ckks.Job, workers int) (float64, error) {
	plan, err := job.Plan()
	if err != nil {
		return 0, err
	}
	o, err := plan.Outline()
	if err != nil {
		return 0, err
	}
	return float64(o.Memory.Of(workers)) / 1e6, nil
}

// compute records time, bytes and memory.
func (r *heRun) compute(ctx context.Context, c *Case) error {
	if err := r.measure(ctx, c); err != nil {
		return err
	}
	refs, err := c.Env.printedFor(r.file, r.labels, r.time)
	if err != nil {
		return err
	}
	if r.wide > 0 {
		refs = append(refs, Reference{Name: "64-bit words", Kind: kindPeer, Value: Number(r.wide), Source: r.source})
	}
	byteRefs, err := c.Env.printedFor(r.file, r.labels, "sent")
	if err != nil {
		return err
	}
	c.number("compute", "s", r.wall, refs...)
	if r.wide > 0 {
		c.number("64-bit words over it", unitPlain, r.wide/r.wall, atLeast(r.gain)...)
	}
	c.number("CPU", "s", r.cpu)
	c.number("sent", "MB", heMegabytes(r.res), byteRefs...)
	if r.memory > 0 {
		c.number("memory", "MB", r.memory, atMost(r.room)...)
	}
	c.number("planned", "MB", r.planned)
	for _, phase := range []string{"encrypt", "compare", "sum", "decrypt"} {
		c.number(phase, "s", float64(r.res.Timings[phase].TotalNS)/1e9)
	}
	c.Row.Seeds, c.Row.Note = "1", fmt.Sprintf("log2(QP) %.0f", r.res.Details["log_qp"])
	return nil
}

// operations records what a round does.
func (r *heRun) operations(ctx context.Context, c *Case) error {
	if err := r.measure(ctx, c); err != nil {
		return err
	}
	o := r.res.Details["operations"].(ckks.Operations)
	for _, v := range []struct {
		name string
		n    int
	}{{"signs", o.Signs}, {"products", o.Products}, {"relins", o.Relins}, {"rescales", o.Rescales},
		{"rotations", o.Rotations}, {"plain products", o.Plaintexts}, {"zeros", o.Encryptions},
		{"switches", o.Switches}} {
		c.number(v.name, unitPlain, float64(v.n)/float64(r.res.Iterations))
	}
	return nil
}

// network records the total on the network of the row.
func (r *heRun) network(ctx context.Context, c *Case) error {
	if err := r.measure(ctx, c); err != nil {
		return err
	}
	name := c.Row.label("network")
	refs, err := c.Env.printedFor(r.file, r.labels, name)
	if err != nil {
		return err
	}
	transfer := heTransfer(r.res, name)
	c.number("compute", "s", r.wall)
	c.number("transfer", "s", transfer)
	c.number("total", "s", r.wall+transfer, refs...)
	return nil
}

func heMegabytes(res *engine.Result) float64 {
	return float64(res.Details["bytes_total"].(int64)) / 1e6
}

// heTransfer is the modelled transfer time on a network, in seconds.
func heTransfer(res *engine.Result, network string) float64 {
	for _, t := range res.Details["networks"].([]ckks.NetworkTime) {
		if t.Network == network {
			return t.Seconds
		}
	}
	return 0
}
