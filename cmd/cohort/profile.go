package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"runtime/pprof"
	"runtime/trace"
	"strings"
	"time"

	"github.com/spf13/cobra"

	library "github.com/cohort-engine/cohort"
	"github.com/cohort-engine/cohort/bench"
	"github.com/cohort-engine/cohort/bench/profile"
	"github.com/cohort-engine/cohort/bench/table"
	"github.com/cohort-engine/cohort/engine"
	"github.com/cohort-engine/cohort/engine/method"
	"github.com/cohort-engine/cohort/internal/fault"
	"github.com/cohort-engine/cohort/internal/pages"
)

// profileOptions are the flags that profile has besides those of run.
type profileOptions struct {
	cpuProfile, memProfile, trace, timeline, network string
	study                                            string
	perf                                             bool
}

// A profile without --runs repeats the job until both have been reached, or
// until profileLongest is over.
const (
	profileIterations = 200
	profileDuration   = time.Second
	profileLongest    = 15 * time.Second
)

func newProfileCommand() *cobra.Command {
	o, p := new(options), new(profileOptions)
	cmd := &cobra.Command{
		Use:   "profile",
		Short: "Latency of each phase of each iteration",
		Long: `Run a job several times and show where the time of its iterations goes: each
phase with percentiles, its share, rates against the limits of this machine,
allocations, and a timeline of one iteration across workers. The flags are those
of run; without --runs the job is repeated for about a second.

With --study DIR nothing is run: the coordinator whose folder that is, or its journal when the study
has ended, tells how long its parties took to answer each step of a sum, beside what each network
model says of that step's bytes.`,
		Example: `  cohort profile --data my.csv --k 8 --method fastlloyd --epsilon 1
  cohort profile --method lloyd --cpuprofile cpu.pprof --timeline iteration.json`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if p.study != "" {
				return profileStudy(cmd.Context(), p.study, o.format, cmd.OutOrStdout())
			}
			return profileJob(cmd.Context(), o, p, cmd.OutOrStdout())
		},
	}
	fs := cmd.Flags()
	o.bindSome(fs, func(flag string) bool {
		return flag != "labels-out" && flag != "report" && flag != "private-bounds" && flag != "private-n" &&
			flag != "timings" && !strings.HasPrefix(flag, "ledger")
	})
	fs.StringVar(&p.cpuProfile, "cpuprofile", "",
		"write a CPU profile with labels phase, client and iteration, for go tool pprof")
	fs.StringVar(&p.memProfile, "memprofile", "", "write a profile of heap allocations, for go tool pprof")
	fs.StringVar(&p.trace, "trace", "", "write an execution trace with a region for each phase, for go tool trace")
	fs.StringVar(&p.timeline, "timeline", "",
		"write Chrome trace events (JSON) of one run, for chrome://tracing or Perfetto")
	fs.BoolVar(&p.perf, "perf", false,
		"count page faults, context switches and, where the machine has counters, cycles, instructions and cache misses "+
			"in each phase (Linux)")
	fs.StringVar(&p.network, "network-model", "", "add the cost of a network model, such as lan, wan or fastlloyd")
	fs.StringVar(&p.study, "study", "",
		"folder of a running coordinator: the time of each step of its study's sums beside each network model")
	o.explain(cmd, "study", "cpuprofile", "memprofile", "trace", "timeline", "perf", "network-model")
	return cmd
}

// profiled is the JSON form of a profile: a result with the timings of all runs.
type profiled struct {
	*engine.Result
	Profile *profile.Summary `json:"profile"`
	Network *networkCost     `json:"network,omitempty"`
}

// networkCost is what a network model adds to an iteration.
type networkCost struct {
	Name           string `json:"name"`
	About          string `json:"about"`
	PerIterationNS int64  `json:"per_iteration_ns"`
}

func profileJob(ctx context.Context, o *options, p *profileOptions, out io.Writer) (err error) {
	m, err := o.resolve()
	if err != nil {
		return err
	}
	if o.quality == "" { // a profile is a measurement, not a result to publish
		o.quality = "on"
	}
	var network *bench.Network
	if p.network != "" {
		n, err := bench.FindNetwork(p.network)
		if err != nil {
			return err
		}
		network = &n
	}
	for flag, path := range map[string]string{"cpuprofile": p.cpuProfile, "memprofile": p.memProfile, "trace": p.trace,
		"timeline": p.timeline} {
		if path != "" {
			if info, err := os.Stat(filepath.Dir(path)); err != nil || !info.IsDir() {
				return fault.Request("--"+flag, filepath.Dir(path)+" is not a folder", "name a file in a folder that exists")
			}
			if err := writable("--"+flag, path, o.readFiles()...); err != nil {
				return err
			}
		}
	}
	in, err := load(ctx, o, m, nil)
	if err != nil {
		return err
	}
	d, err := prepareDelivery(o, in, out)
	if err != nil {
		return err
	}
	defer d.close()
	workers := o.workers
	if workers == 0 {
		workers = min(runtime.GOMAXPROCS(0), engine.MaxWorkers)
	}
	s := &profileSession{o: o, m: m, in: in, workers: workers}
	pages.Heap()
	if err := s.measure(ctx, p); err != nil {
		return err
	}
	res := s.runs[0].Result
	res.Timings = make(map[string]engine.Timing)
	for _, ph := range s.summary.Phases {
		res.Timings[ph.Name] = ph.Timing
	}
	if o.private(m) {
		res.Ledger.Note(timesNote)
	}
	if p.timeline != "" {
		run := &s.runs[len(s.runs)/2]
		if err := writeWhole("--timeline", p.timeline,
			func(w io.Writer) error { return profile.WriteChrome(w, run) }); err != nil {
			return err
		}
	}
	if p.memProfile != "" {
		runtime.GC()
		if err := writeWhole("--memprofile", p.memProfile,
			func(w io.Writer) error { return pprof.Lookup("allocs").WriteTo(w, 0) }); err != nil {
			return err
		}
	}
	if d.folder != nil {
		if err := d.folder.write(res,
			library.NewModel(res, in.norm.Bounds, in.table.Columns, in.norm.FractionBits)); err != nil {
			return err
		}
	}
	var cost *networkCost
	if network != nil && res.Iterations > 0 {
		total := network.Cost(res.Comm.Rounds, bench.Traffic(res.Comm))
		cost = &networkCost{network.Name, network.About, int64(total) / int64(res.Iterations)}
	}
	return show(out, o.format, profiled{res, s.summary, cost}, func() error { return s.print(out, d, res, cost) })
}

// profileSession repeats a job under a profiler.
type profileSession struct {
	o       *options
	m       *method.Method
	in      *input
	workers int
	runs    []profile.Run
	summary *profile.Summary
}

// once runs repetition r on an engine.
func (s *profileSession) once(ctx context.Context, eng *engine.Engine, r int) error {
	job, err := s.in.job(s.o.forRun(r), s.m)
	if err != nil {
		return err
	}
	_, err = eng.Run(ctx, job)
	return err
}

// measure warms up, repeats the job, and runs it once more to count allocations,
// which would disturb the times.
func (s *profileSession) measure(ctx context.Context, p *profileOptions) (err error) {
	warm, err := newEngine(s.workers)
	if err != nil {
		return err
	}
	defer warm.Close()
	limits, err := profile.MeasureLimits(ctx, warm.Pool())
	if err != nil {
		return err
	}
	if err := s.once(ctx, warm, 1); err != nil {
		return err
	}
	options := profile.Options{Workers: s.workers, Labels: p.cpuProfile != "", Regions: p.trace != ""}
	profiler := profile.New(options)
	eng, err := newEngine(s.workers, engine.WithObserver(profiler))
	if err != nil {
		return err
	}
	defer eng.Close()
	var counters *profile.Counters
	if p.perf {
		// The engine's threads exist by now: counters belong to threads.
		counters, err = profile.OpenCounters()
		if err != nil {
			return err
		}
		defer counters.Close()
		profiler.Count(counters)
	}
	for _, r := range []struct {
		flag, path string
		start      func(io.Writer) error
		stop       func()
	}{
		{"--cpuprofile", p.cpuProfile, pprof.StartCPUProfile, pprof.StopCPUProfile},
		{"--trace", p.trace, trace.Start, trace.Stop},
	} {
		if r.path == "" {
			continue
		}
		stop, startErr := record(r.flag, r.path, r.start, r.stop)
		if startErr != nil {
			return startErr
		}
		defer func() { err = errors.Join(err, stop(err == nil)) }()
	}
	start := time.Now()
	iterations := 0
	for r := 1; ; r++ {
		if err := s.once(ctx, eng, r); err != nil {
			return err
		}
		runs := profiler.Runs()
		iterations += len(runs[len(runs)-1].Iterations)
		spent := time.Since(start)
		if s.o.given("runs") && r >= s.o.runs {
			break
		}
		if !s.o.given("runs") && (spent > profileLongest || spent > profileDuration && iterations >= profileIterations) {
			break
		}
	}
	s.runs = profiler.Runs()
	var allocations *profile.Run
	if time.Since(start)/time.Duration(len(s.runs)) < profileLongest {
		counter := profile.New(profile.Options{Workers: s.workers, Allocations: true})
		slow, err := newEngine(s.workers, engine.WithObserver(counter))
		if err != nil {
			return err
		}
		defer slow.Close()
		if err := s.once(ctx, slow, 1); err != nil {
			return err
		}
		allocations = &counter.Runs()[0]
	}
	s.summary = profile.Summarise(s.runs, allocations, s.workers, limits, counters)
	return nil
}

// record starts a recorder; the function that it returns stops it and, when keep is true, gives the file its name.
func record(flag, path string, start func(io.Writer) error, stop func()) (func(keep bool) error, error) {
	d, err := destinationOf(flag, path)
	if err != nil {
		return nil, err
	}
	f, done, err := d.begin()
	if err != nil {
		return nil, err
	}
	to := &sink{Writer: f} // recorders tell nobody what they could not write
	if err := start(to); err != nil {
		return nil, done(err)
	}
	return func(keep bool) error {
		stop()
		if !keep {
			_ = done(errUnfinished)
			return nil
		}
		return done(to.err)
	}, nil
}

// errUnfinished ends a recording that is not kept.
var errUnfinished = errors.New("the run has failed")

func (s *profileSession) print(out io.Writer, d *delivery, res *engine.Result, cost *networkCost) error {
	var b strings.Builder
	title := fmt.Sprintf("%s on %s: %s, %s, %s, %s", res.Method, s.in.table.Name, fault.Count(res.N, "point"),
		fault.Count(res.D, "dimension"), fault.Count(res.K, "cluster"),
		fault.Count(res.Parties, "party"))
	width := terminalWidth(out)
	for _, text := range append([]string{title}, uncovered(res, d)...) {
		b.WriteString(table.Paragraph(text, 0, 0, width))
	}
	if err := s.summary.WriteText(&b, width); err != nil {
		return err
	}
	b.WriteString("\n")
	if err := profile.WriteTimeline(&b, s.runs, s.workers); err != nil {
		return err
	}
	b.WriteString("\n")
	printComm(&b, res)
	if cost != nil {
		fmt.Fprintf(&b, "Network %s (%s): adds %s to an iteration, %s in all\n", cost.Name, cost.About,
			duration(cost.PerIterationNS),
			duration(cost.PerIterationNS+s.summary.Iterations.P50NS))
	}
	_, err := io.WriteString(out, fault.Visible(b.String()))
	return err
}
