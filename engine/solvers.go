package engine

import (
	"sync"
	"weak"

	"github.com/cohort-engine/cohort/flow"
)

// solvers are those that no run uses, as long as the garbage collector leaves them: a new one's memory costs as much
// as a small assignment.
type solvers struct {
	mu   sync.Mutex
	idle []weak.Pointer[flow.Solver]
}

// TakeSolver returns a solver that knows no problem; a run gives it back to KeepSolver.
func (p *Pool) TakeSolver() *flow.Solver {
	p.solvers.mu.Lock()
	defer p.solvers.mu.Unlock()
	for last := len(p.solvers.idle) - 1; last >= 0; last-- {
		s := p.solvers.idle[last].Value()
		p.solvers.idle = p.solvers.idle[:last]
		if s != nil {
			return s
		}
	}
	return flow.NewSolver()
}

// KeepSolver lets another run have a solver's memory.
func (p *Pool) KeepSolver(s *flow.Solver) {
	s.Forget()
	p.solvers.mu.Lock()
	defer p.solvers.mu.Unlock()
	p.solvers.idle = append(p.solvers.idle, weak.Make(s))
}
