package profile

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/cohort-engine/cohort/bench/table"
	"github.com/cohort-engine/cohort/engine"
	"github.com/cohort-engine/cohort/internal/fault"
)

// lines is a table that is filled row by row.
type lines struct{ table.Table }

func newTable(names ...string) *lines {
	t := &lines{table.Table{Right: true}}
	for i, name := range names {
		t.Columns, t.Numeric = append(t.Columns, name), append(t.Numeric, i > 0)
	}
	return t
}

// add appends a column.
func (t *lines) add(names ...string) {
	for _, name := range names {
		t.Columns, t.Numeric = append(t.Columns, name), append(t.Numeric, true)
	}
}

// row appends a row; cells that are left out are empty.
func (t *lines) row(cells ...string) {
	t.Rows = append(t.Rows, append(cells, make([]string, len(t.Columns)-len(cells))...))
}

func (t *lines) write(b *strings.Builder, width int) {
	for _, line := range t.Lines(width) {
		b.WriteString(line + "\n")
	}
}

// WriteText writes the latency table, the counters and the table of rounds in
// lines of at most width characters; a width of 0 prints each row on one line.
func (s *Summary) WriteText(w io.Writer, width int) error {
	var b strings.Builder
	say := func(format string, args ...any) {
		b.WriteString(table.Paragraph(fmt.Sprintf(format, args...), 0, 0, width))
	}
	what := "iterations"
	if len(s.Rounds) == 1 && s.Rounds[0].Index == restIndex {
		what = "whole runs, without iterations,"
	}
	say("%d %s in %s on %d workers: p50 %s, p90 %s, p99 %s, max %s",
		s.Iterations.Count, what, fault.Count(s.Runs, "run"), s.Workers,
		ns(s.Iterations.P50NS), ns(s.Iterations.P90NS), ns(s.Iterations.P99NS), ns(s.Iterations.MaxNS))
	b.WriteString("\n")
	t := newTable("phase", "share", "count", "total", "p50", "p90", "p99", "max", "points/s", "rate", "of limit")
	if s.AllocationsCounted {
		t.add("allocs")
	}
	for _, p := range s.Phases {
		row := []string{p.Name, fmt.Sprintf("%.1f%%", 100*p.Share), fmt.Sprint(p.Count), ns(p.TotalNS), ns(p.P50NS),
			ns(p.P90NS), ns(p.P99NS), ns(p.MaxNS),
			per(p.PointsPerSecond), p.rate(), p.ofLimit()}
		if s.AllocationsCounted {
			row = append(row, allocations(p.Allocations))
		}
		t.row(row...)
	}
	o := s.Outside
	t.row("outside phases", fmt.Sprintf("%.1f%%", 100*s.OutsideShare), fmt.Sprint(o.Count), ns(o.TotalNS), ns(o.P50NS),
		ns(o.P90NS), ns(o.P99NS), ns(o.MaxNS))
	t.write(&b, width)
	for _, p := range s.Phases {
		if p.Settled > 0 {
			b.WriteString("\n")
			say("%s did not touch %.1f%% of the records: nothing changed for them since the "+
				"iteration before (points/s has them, the rate has not)", p.Name, 100*p.Settled)
		}
	}
	for _, p := range s.Phases {
		if p.Looks > 0 {
			b.WriteString("\n")
			say("%s went over the records %.1f times in an iteration (the rate has each "+
				"time, points/s one)", p.Name, p.Looks)
		}
	}
	l := s.Limits
	b.WriteString("\n")
	say("limits measured on this machine, all workers: %s GFLOP/s of differences (d < "+
		"%d), %s of products, %.1f GB/s read from blocks of 64 MiB",
		giga(l.Differences), wideDimensions, giga(l.Products), l.Bandwidth/1e9)
	s.writeCounters(&b, width)
	s.writeRounds(&b, width)
	_, err := io.WriteString(w, b.String())
	return err
}

// writeCounters prints the counters, over all runs and threads.
func (s *Summary) writeCounters(b *strings.Builder, width int) {
	if !s.Counted {
		return
	}
	b.WriteString("\n")
	t := newTable("phase", "on a core", "cores", "page faults", "switches", "migrations")
	if s.HardwareCounted {
		t.add("cycles", "instructions", "per cycle", "cache misses")
	}
	for _, p := range s.Phases {
		row := []string{p.Name, ns(int64(p.TaskClockNS)),
			fmt.Sprintf("%.2f", float64(p.TaskClockNS)/max(float64(p.TotalNS), 1)),
			count(p.PageFaults), count(p.ContextSwitches), count(p.Migrations)}
		if s.HardwareCounted {
			row = append(row, count(p.Cycles), count(p.Instructions),
				fmt.Sprintf("%.2f", float64(p.Instructions)/max(float64(p.Cycles), 1)), count(p.CacheMisses))
		}
		t.row(row...)
	}
	t.write(b, width)
	if s.CountersNote != "" {
		b.WriteString(table.Paragraph(s.CountersNote, 0, 0, width))
	}
}

// shownRounds is the number of iterations that the text shows at most, and
// shownPhases the number of phases in their columns.
const shownRounds, shownPhases = 16, 6

func (s *Summary) writeRounds(b *strings.Builder, width int) {
	t := newTable("iteration", "whole")
	for _, p := range s.Phases[:min(len(s.Phases), shownPhases)] {
		t.add(p.Name)
	}
	for _, r := range s.Rounds[:min(len(s.Rounds), shownRounds)] {
		name := "rest"
		if r.Index != restIndex {
			name = fmt.Sprint(r.Index + 1)
		}
		row := []string{name, ns(r.WallNS)}
		for _, n := range t.Columns[2:] {
			cell := ""
			if v, ok := r.Phases[n]; ok {
				cell = ns(v)
			}
			row = append(row, cell)
		}
		t.row(row...)
	}
	b.WriteString("\nIterations, medians over the runs\n")
	t.write(b, width)
	if len(s.Rounds) > shownRounds {
		fmt.Fprintf(b, "  (%d more)\n", len(s.Rounds)-shownRounds)
	}
}

// allocations prints a mean number of objects.
func allocations(x float64) string {
	if x < 100 {
		return fmt.Sprintf("%.3g", x)
	}
	return fmt.Sprintf("%.0f", x)
}

func (p *PhaseStat) rate() string {
	switch {
	case p.FLOPS > 0:
		return fmt.Sprintf("%.3g GFLOP/s", p.FLOPS/1e9)
	case p.Bandwidth > 0:
		return fmt.Sprintf("%.3g GB/s", p.Bandwidth/1e9)
	}
	return ""
}

// ofLimit is the larger of the two shares: the limit that is nearer.
func (p *PhaseStat) ofLimit() string {
	share := max(p.FLOPSShare, p.BandwidthShare)
	if share == 0 {
		return ""
	}
	return fmt.Sprintf("%.0f%%", 100*share)
}

func ns(x int64) string {
	switch v := float64(x); {
	case v >= 1e9:
		return fmt.Sprintf("%.3g s", v/1e9)
	case v >= 1e6:
		return fmt.Sprintf("%.3g ms", v/1e6)
	case v >= 1e3:
		return fmt.Sprintf("%.3g µs", v/1e3)
	}
	return fmt.Sprintf("%d ns", x)
}

// giga prints a rate in units of 10^9, or that it is not known.
func giga(x float64) string {
	if x == 0 {
		return "unknown"
	}
	return fmt.Sprintf("%.0f", x/1e9)
}

func per(x float64) string {
	switch {
	case x == 0:
		return ""
	case x >= 1e9:
		return fmt.Sprintf("%.3g G", x/1e9)
	case x >= 1e6:
		return fmt.Sprintf("%.3g M", x/1e6)
	}
	return fmt.Sprintf("%.3g k", x/1e3)
}

func count(x uint64) string {
	if x < 10000 {
		return fmt.Sprint(x)
	}
	return per(float64(x))
}

// timelineWidth is the number of columns of the drawing: a line of 80 with the
// name before it.
const timelineWidth = 68

// WriteTimeline draws the iteration of median length, one column per slice of
// time: a line for the phases of each party and one for each worker. A letter is
// the phase that fills most of the slice.
func WriteTimeline(w io.Writer, runs []Run, workers int) error {
	run, x := typical(runs)
	if run == nil {
		return nil
	}
	length := x.end - x.begin
	letters := legend(x.spans)
	slot := func(i int) (time.Duration, time.Duration) {
		return x.begin + length*time.Duration(i)/timelineWidth, x.begin + length*time.Duration(i+1)/timelineWidth
	}
	overlap := func(a, b, from, to time.Duration) time.Duration { return max(min(b, to)-max(a, from), 0) }
	// phaseAt is the letter of the phase that fills most of a slice.
	phaseAt := func(i int, keep func(Span) bool) byte {
		from, to := slot(i)
		share := make(map[byte]time.Duration)
		for _, s := range x.spans {
			if keep(s) {
				share[letters[s.Phase]] += overlap(s.Begin, s.End, from, to)
			}
		}
		letter, most := byte('.'), time.Duration(0)
		for _, s := range x.spans { // in order of time, so that ties are stable
			if l := letters[s.Phase]; share[l] > most {
				letter, most = l, share[l]
			}
		}
		return letter
	}
	var b strings.Builder
	name := "Run"
	if x.index != restIndex {
		name = fmt.Sprintf("Iteration %d", x.index+1)
	}
	fmt.Fprintf(&b, "%s, %s long, one column is %s\n", name, ns(int64(length)), ns(int64(length)/timelineWidth))
	var parties []int
	for _, s := range x.spans {
		if !slices.Contains(parties, s.Party) {
			parties = append(parties, s.Party)
		}
	}
	slices.Sort(parties)
	for _, p := range parties {
		fmt.Fprintf(&b, "  %-9s ", party(p))
		for i := range timelineWidth {
			b.WriteByte(phaseAt(i, func(s Span) bool { return s.Party == p }))
		}
		b.WriteByte('\n')
	}
	for worker := range workers {
		fmt.Fprintf(&b, "  %-9s ", fmt.Sprintf("worker %d", worker+1))
		for i := range timelineWidth {
			from, to := slot(i)
			busy := time.Duration(0)
			for _, s := range run.Stays {
				if s.Worker == worker {
					busy += overlap(s.Begin, s.End, from, to)
				}
			}
			switch {
			case 2*busy >= to-from || worker == 0: // the caller of the regions does all the rest
				b.WriteByte(phaseAt(i, func(Span) bool { return true }))
			case busy > 0:
				b.WriteByte('-')
			default:
				b.WriteByte('.')
			}
		}
		b.WriteByte('\n')
	}
	writeKeys(&b, x.spans, letters)
	_, err := io.WriteString(w, b.String())
	return err
}

// writeKeys says which letter is which phase.
func writeKeys(b *strings.Builder, spans []Span, letters map[engine.Phase]byte) {
	var keys []string
	shown := make(map[engine.Phase]bool)
	for _, s := range spans {
		if !shown[s.Phase] {
			shown[s.Phase] = true
			keys = append(keys, fmt.Sprintf("%c %s,", letters[s.Phase], s.Phase))
		}
	}
	b.WriteString(table.Paragraph(strings.Join(keys, " ")+" - less than half, . nothing", 2, 0, timelineWidth+12))
}

// typical is the iteration of median length, the first ones left out, and its run; nil where there is none.
func typical(runs []Run) (*Run, iteration) {
	type candidate struct {
		run *Run
		it  iteration
	}
	var all []candidate
	for i := range runs {
		for _, it := range runs[i].iterations() {
			if it.index > 0 || len(runs[i].Iterations) <= 1 {
				all = append(all, candidate{&runs[i], it})
			}
		}
	}
	if len(all) == 0 {
		return nil, iteration{}
	}
	slices.SortFunc(all, func(a, b candidate) int { return int((a.it.end - a.it.begin) - (b.it.end - b.it.begin)) })
	c := all[len(all)/2]
	return c.run, c.it
}

// legend gives each phase a letter: its initial, or the next free letter of its
// name.
func legend(spans []Span) map[engine.Phase]byte {
	letters := make(map[engine.Phase]byte)
	used := make(map[byte]bool)
	for _, s := range spans {
		if _, ok := letters[s.Phase]; ok {
			continue
		}
		name := s.Phase.String()
		for i := range len(name) + 26 {
			c := byte('A' + i%26)
			if i < len(name) {
				c = name[i] - 'a' + 'A'
			}
			if !used[c] {
				letters[s.Phase], used[c] = c, true
				break
			}
		}
	}
	return letters
}
