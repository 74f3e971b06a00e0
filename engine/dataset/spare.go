package dataset

import (
	"sync"
	"time"

	"github.com/cohort-engine/cohort/kernels"
)

// spareFor is how long the panels of records that were closed are kept for the next ones: a program that fits again and
// again would wait each time until the system has cleared as many pages.
const spareFor = time.Second

// spare are those panels.
var spare spareRoom

type spareRoom struct {
	mu     sync.Mutex
	panels *kernels.Panels
	end    *time.Timer
}

// put keeps panels that nobody uses any more, in place of others.
func (s *spareRoom) put(p *kernels.Panels) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.panels = p; s.end == nil {
		s.end = time.AfterFunc(spareFor, func() { s.take() })
		return
	}
	s.end.Reset(spareFor)
}

// take gives up the panels, nil if there are none.
func (s *spareRoom) take() *kernels.Panels {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.panels
	s.panels = nil
	return p
}

// newPanels returns panels that are yet to be packed.
func newPanels(n, d int) *kernels.Panels {
	if p := spare.take(); p != nil {
		if p = p.Reuse(n, d); p != nil {
			return p
		}
	}
	return kernels.NewPanels(n, d)
}
