package dataset

import (
	"sync"
	"time"

	"github.com/cohort-engine/cohort/kernels"
)

// spareFor is how long the memory of records that were closed is kept for the next ones: a program that fits again and
// again would wait each time until the system has found and cleared as many pages.
const spareFor = time.Second

// spare is that memory. No record is left in it: whoever comes next need not be who closed them.
var spare spareRoom

type spareRoom struct {
	mu     sync.Mutex
	memory []float32
	end    *time.Timer
}

// put clears and keeps the memory of panels that nobody uses any more, in place of others'.
func (s *spareRoom) put(p *kernels.Panels) {
	clear(p.Data)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.memory = p.Data; s.end == nil {
		s.end = time.AfterFunc(spareFor, func() { s.take() })
		return
	}
	s.end.Reset(spareFor)
}

// take gives the memory up, nil if there is none.
func (s *spareRoom) take() []float32 {
	s.mu.Lock()
	defer s.mu.Unlock()
	m := s.memory
	s.memory = nil
	return m
}

// newPanels returns panels that are yet to be packed.
func newPanels(n, d int) *kernels.Panels {
	if p := kernels.PanelsIn(spare.take(), n, d); p != nil {
		return p
	}
	return kernels.NewPanels(n, d)
}
