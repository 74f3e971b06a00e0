package profile

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/cohort-engine/cohort/engine"
)

// Summary says where the time of the iterations of some runs went.
type Summary struct {
	Runs    int `json:"runs"`
	Workers int `json:"workers"`
	// Iterations are whole iterations, or whole runs where a job reports none.
	Iterations engine.Timing `json:"iterations"`
	Phases     []PhaseStat   `json:"phases"` // the largest share first
	// Outside is the part of the iterations that no phase covers: hand-over
	// between phases, and whatever is not a phase.
	Outside      engine.Timing `json:"outside"`
	OutsideShare float64       `json:"outside_share"`
	// Rounds has one entry per iteration of a run, and one with index -1 for what
	// follows the last: medians over the runs.
	Rounds []Round `json:"rounds"`
	Limits Limits  `json:"limits"`
	// Counted reports whether the kernel's events were read: TaskClockNS, PageFaults,
	// ContextSwitches and Migrations; HardwareCounted, whether the CPU's were: Cycles,
	// Instructions and CacheMisses. CountersNote says what is missing and why.
	Counted         bool   `json:"counted"`
	HardwareCounted bool   `json:"hardware_counted"`
	CountersNote    string `json:"counters_note,omitempty"`
	// AllocationsCounted reports whether Allocations were.
	AllocationsCounted bool `json:"allocations_counted"`
}

// PhaseStat is one phase over all iterations, parties and runs.
type PhaseStat struct {
	Name string `json:"name"`
	engine.Timing
	// Share is the part of the time of the iterations; where parties work at the
	// same time, each has its part of the instant.
	Share float64 `json:"share"`
	// Settled is the share of the records that the phase did not touch, because
	// nothing changed for them since the iteration before.
	Settled float64 `json:"settled,omitempty"`
	// Looks is how often the phase went over each record in an iteration, if more
	// than once; FLOPS and Bandwidth count each time.
	Looks float64 `json:"looks,omitempty"`
	// PointsPerSecond is how many records the phase gets through, settled ones
	// included, FLOPS and Bandwidth what it achieves on the others in arithmetic and
	// in reading points or writing messages, where that means something; FLOPSShare and BandwidthShare are the
	// shares of the machine's measured limits.
	PointsPerSecond float64 `json:"points_per_second"`
	FLOPS           float64 `json:"flops,omitempty"`
	FLOPSShare      float64 `json:"flops_share,omitempty"`
	Bandwidth       float64 `json:"bytes_per_second,omitempty"`
	BandwidthShare  float64 `json:"bandwidth_share,omitempty"`
	// Allocations is the number of heap objects of one span after the first
	// iteration, when everything has its place.
	Allocations  float64 `json:"allocations"`
	Cycles       uint64  `json:"cycles,omitempty"`
	Instructions uint64  `json:"instructions,omitempty"`
	CacheMisses  uint64  `json:"cache_misses,omitempty"`
	// TaskClockNS is the time that threads of the process ran during the phase, of
	// all threads together.
	TaskClockNS     uint64 `json:"task_clock_ns,omitempty"`
	PageFaults      uint64 `json:"page_faults,omitempty"`
	ContextSwitches uint64 `json:"context_switches,omitempty"`
	Migrations      uint64 `json:"migrations,omitempty"`
}

// Round is one iteration: medians over the runs.
type Round struct {
	Index  int              `json:"index"`
	WallNS int64            `json:"wall_ns"`
	Phases map[string]int64 `json:"phases_ns"`
}

// iteration is a stretch of a run: an iteration, or what follows the last one.
type iteration struct {
	index      int // restIndex for what follows the last iteration
	begin, end time.Duration
	spans      []Span // by their begin
}

// restIndex marks the stretch after the last iteration, which is the whole run
// of a job that reports no iterations.
const restIndex = -1

// iterations cuts a run into stretches. A span belongs to the stretch in which
// it begins, and a stretch begins with its first span: set-up before it does not
// count.
func (r *Run) iterations() []iteration {
	spans := slices.SortedFunc(slices.Values(r.Spans), func(a, b Span) int { return cmp.Compare(a.Begin, b.Begin) })
	var out []iteration
	cut := func(index int, end time.Duration) {
		n := 0
		for n < len(spans) && spans[n].Begin < end {
			n++
		}
		x := iteration{index: index, begin: end, end: end, spans: spans[:n]}
		if n > 0 {
			x.begin = spans[0].Begin
		}
		out = append(out, x)
		spans = spans[n:]
	}
	for _, it := range r.Iterations {
		cut(it.Index, it.End)
	}
	if len(spans) > 0 {
		end := spans[0].End
		for _, s := range spans {
			end = max(end, s.End)
		}
		cut(restIndex, end)
	}
	return out
}

// divide shares the time of an iteration out among its spans: an instant in
// which several spans run, of parties on different workers, is divided equally.
// It returns the part of each span and what no span covers.
func (x *iteration) divide() (parts []time.Duration, outside time.Duration) {
	parts = make([]time.Duration, len(x.spans))
	edges := []time.Duration{x.begin, x.end}
	for _, s := range x.spans {
		edges = append(edges, min(s.Begin, x.end), min(s.End, x.end))
	}
	slices.Sort(edges)
	var active []int
	next := 0
	for i := 0; i+1 < len(edges); i++ {
		from, to := edges[i], edges[i+1]
		for next < len(x.spans) && x.spans[next].Begin <= from {
			active = append(active, next)
			next++
		}
		active = slices.DeleteFunc(active, func(j int) bool { return x.spans[j].End <= from })
		if len(active) == 0 {
			outside += to - from
		}
		for _, j := range active {
			parts[j] += (to - from) / time.Duration(len(active))
		}
	}
	return parts, outside
}

// Summarise makes the summary of timed runs; allocations, which may be nil, is a
// run of the same job in which they were counted, and counters those that were
// read, nil for none.
func Summarise(runs []Run, allocations *Run, workers int, limits Limits, counters *Counters) *Summary {
	s := &Summary{Runs: len(runs), Workers: workers, Limits: limits, AllocationsCounted: allocations != nil}
	if counters != nil {
		s.Counted, s.HardwareCounted, s.CountersNote = true, counters.Hardware(), counters.Note()
	}
	var walls, outside []int64
	var whole int64 // of all stretches, the rest included
	durations := make(map[string][]int64)
	stats := make(map[string]*PhaseStat)
	perRound := make(map[int]map[string][]int64)
	wall := make(map[int][]int64)
	n, d, k := 0, 0, 0
	sent := 0.0 // bytes that the clients send in an iteration
	for i := range runs {
		r := &runs[i]
		if r.Result != nil {
			n, d, k = r.Result.N, r.Result.D, r.Result.K
			sent = 0
			for _, b := range r.Result.Comm.BytesSent {
				sent += float64(b) / float64(max(r.Result.Iterations, 1))
			}
		}
		for _, x := range r.iterations() {
			w := int64(x.end - x.begin)
			whole += w
			if x.index != restIndex || len(r.Iterations) == 0 {
				walls = append(walls, w)
			}
			wall[x.index] = append(wall[x.index], w)
			parts, rest := x.divide()
			outside = append(outside, int64(rest))
			sums := make(map[string]int64)
			for i, sp := range x.spans {
				name := sp.Phase.String()
				durations[name] = append(durations[name], int64(sp.End-sp.Begin))
				sums[name] += int64(sp.End - sp.Begin)
				if stats[name] == nil {
					stats[name] = &PhaseStat{Name: name}
				}
				stats[name].Share += float64(parts[i])
				stats[name].add(&sp)
			}
			if perRound[x.index] == nil {
				perRound[x.index] = make(map[string][]int64)
			}
			for name, v := range sums {
				perRound[x.index][name] = append(perRound[x.index][name], v)
			}
		}
	}
	if len(walls) == 0 {
		return s
	}
	s.Iterations = engine.Summarise(walls)
	s.Outside = engine.Summarise(outside)
	s.OutsideShare = float64(s.Outside.TotalNS) / float64(whole)
	for name, p := range stats {
		p.Timing = engine.Summarise(durations[name])
		p.Share /= float64(whole)
		p.rates(float64(whole), float64(n)*float64(len(walls)), d, k, sent*float64(len(walls)), limits)
		if allocations != nil {
			p.Allocations = allocationsOf(allocations, name)
		}
		s.Phases = append(s.Phases, *p)
	}
	slices.SortFunc(s.Phases, func(a, b PhaseStat) int {
		return cmp.Or(cmp.Compare(b.TotalNS, a.TotalNS), cmp.Compare(a.Name, b.Name))
	})
	s.Rounds = rounds(wall, perRound)
	return s
}

// add counts a span's work in.
func (p *PhaseStat) add(sp *Span) {
	p.Settled += float64(sp.Settled)
	p.Looks += float64(sp.Again)
	p.Cycles += sp.Counts[cycles]
	p.Instructions += sp.Counts[instructions]
	p.CacheMisses += sp.Counts[cacheMisses]
	p.TaskClockNS += sp.Counts[taskClock]
	p.PageFaults += sp.Counts[pageFaults]
	p.ContextSwitches += sp.Counts[contextSwitches]
	p.Migrations += sp.Counts[migrations]
}

// rates works out what a phase got through in its share of the nanoseconds whole, in which records of d coordinates, k
// clusters and sent bytes went by, and how near the limits it came.
func (p *PhaseStat) rates(whole, records float64, d, k int, sent float64, limits Limits) {
	// Each iteration sends every record once through a phase that works on
	// records, whatever the number of spans that it is cut into.
	points, seconds := records, p.Share*whole/1e9
	switch p.Name {
	case engine.PhaseAssign.String(), engine.PhaseFlow.String(), engine.PhaseAccumulate.String(),
		engine.PhaseCompare.String(),
		engine.PhaseSketch.String(), engine.PhaseWeights.String():
		p.PointsPerSecond = points / seconds
	}
	points += p.Looks - p.Settled
	if p.Looks > 0 {
		p.Looks = 1 + p.Looks/max(records, 1)
	}
	p.Settled /= max(records, 1)
	switch p.Name {
	case engine.PhaseAssign.String():
		perTerm, limit := limits.flopsOf(d)
		p.FLOPS = points * float64(d) * float64(k) * perTerm / seconds
		if limit > 0 {
			p.FLOPSShare = p.FLOPS / limit
		}
		fallthrough
	case engine.PhaseAccumulate.String():
		p.Bandwidth = points * float64(d) * 4 / seconds
	case engine.PhaseEncode.String(), engine.PhaseMask.String(), engine.PhaseAggregate.String():
		p.Bandwidth = sent / seconds
	}
	if limits.Bandwidth > 0 {
		p.BandwidthShare = p.Bandwidth / limits.Bandwidth
	}
}

// rounds has the median of each phase and of the whole, for each iteration.
func rounds(wall map[int][]int64, phases map[int]map[string][]int64) []Round {
	var out []Round
	order := slices.SortedFunc(maps.Keys(phases), func(a, b int) int {
		return cmp.Compare(uint(a), uint(b)) // the rest comes last
	})
	for _, index := range order {
		r := Round{Index: index, WallNS: median(wall[index]), Phases: make(map[string]int64)}
		for name, v := range phases[index] {
			r.Phases[name] = median(v)
		}
		out = append(out, r)
	}
	return out
}

// allocationsOf is the mean number of heap objects of a phase's spans after the
// first iteration.
func allocationsOf(r *Run, name string) float64 {
	sum, count := 0.0, 0
	for _, sp := range r.Spans {
		if sp.Phase.String() == name && sp.Iteration > 0 {
			sum += float64(sp.Allocs)
			count++
		}
	}
	if count == 0 {
		return 0
	}
	return sum / float64(count)
}

func median(x []int64) int64 {
	s := slices.Sorted(slices.Values(x))
	return s[len(s)/2]
}
