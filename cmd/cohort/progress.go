package main

import (
	"io"
	"os"
	"sync"
	"time"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"

	"github.com/cohort-engine/cohort/engine"
)

// progress is an observer that draws a bar on a terminal for work that takes
// longer than a second.
type progress struct {
	out   io.Writer
	label string

	mu    sync.Mutex
	start time.Time
	bar   *progressbar.ProgressBar
}

// newProgress returns nil if w is not a terminal.
func newProgress(w io.Writer, label string) *progress {
	f, ok := w.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		return nil
	}
	return &progress{out: w, label: label}
}

func (p *progress) JobBegin(engine.JobInfo) {
	p.mu.Lock()
	p.start = time.Now()
	p.mu.Unlock()
}

func (p *progress) PhaseBegin(engine.Span) {}
func (p *progress) PhaseEnd(engine.Span)   {}

func (p *progress) IterationEnd(it engine.Iteration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.bar == nil {
		if time.Since(p.start) < time.Second {
			return
		}
		total := it.Total
		if total == 0 {
			total = -1
		}
		p.bar = progressbar.NewOptions(total, progressbar.OptionSetWriter(p.out), progressbar.OptionSetDescription(p.label),
			progressbar.OptionSetWidth(30), progressbar.OptionShowCount(), progressbar.OptionClearOnFinish())
	}
	_ = p.bar.Set(it.Index + 1) // a terminal that is gone is no reason to stop
}

func (p *progress) JobEnd(*engine.Result, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.bar != nil {
		_ = p.bar.Finish()
		p.bar = nil
	}
}
