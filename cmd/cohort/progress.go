package main

import (
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"

	"github.com/cohort-engine/cohort/engine"
)

// progress is an observer that draws a bar with the time left on a terminal, for
// work that takes longer than a second. A nil progress draws nothing.
type progress struct {
	out   io.Writer
	label string
	after time.Duration

	mu    sync.Mutex
	start time.Time
	what  string
	bar   *progressbar.ProgressBar
}

// newProgress returns nil if w is not a terminal.
func newProgress(w io.Writer, label string) *progress {
	f, ok := w.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		return nil
	}
	return &progress{out: w, label: label, after: time.Second, start: time.Now()}
}

func (p *progress) JobBegin(engine.JobInfo) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.clear()
	p.start = time.Now()
}

func (p *progress) PhaseBegin(engine.Span) {}
func (p *progress) PhaseEnd(engine.Span)   {}

func (p *progress) IterationEnd(it engine.Iteration) { p.Progress("rounds", it.Index+1, it.Total) }

// Progress shows that done of total parts, 0 if unknown, are done: "hybrid search,
// starts (3/10)", "lloyd rounds: 26".
func (p *progress) Progress(what string, done, total int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if time.Since(p.start) < p.after {
		return
	}
	if total == 0 {
		total = -1
	}
	if p.bar == nil || p.what != what {
		p.clear()
		p.what = what
		options := []progressbar.Option{progressbar.OptionSetWriter(p.out),
			progressbar.OptionSetDescription(p.label + " " + what), progressbar.OptionSetWidth(20),
			progressbar.OptionClearOnFinish(), progressbar.OptionThrottle(100 * time.Millisecond)}
		if total > 0 {
			options = append(options, progressbar.OptionShowCount())
		}
		p.bar = progressbar.NewOptions(total, options...)
	}
	if total < 0 {
		p.bar.Describe(fmt.Sprintf("%s %s: %d", p.label, what, done))
	}
	_ = p.bar.Set(done) // a terminal that is gone is no reason to stop
}

// clear takes the bar away.
func (p *progress) clear() {
	if p.bar != nil {
		_ = p.bar.Clear()
		p.bar = nil
	}
}

func (p *progress) JobEnd(*engine.Result, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.clear()
}

// reading shows how many records of a file were read.
func (p *progress) reading(read, total int) { p.Progress("reading, rows", read, total) }
