// Package parallel says what a pool of workers is to the packages that need one and do not import the engine.
package parallel

import "context"

// Runner spreads independent calls over workers, as engine.Pool does: Run calls fn(worker, index) once for every
// index in [0, n), 0 <= worker < Workers(), and returns ctx.Err() if ctx ends before every index was started.
type Runner interface {
	Workers() int
	Run(ctx context.Context, n int, fn func(worker, index int)) error
}

// Serial is a Runner of one worker: the calling goroutine.
type Serial struct{}

// Workers implements Runner.
func (Serial) Workers() int { return 1 }

// Run implements Runner.
func (Serial) Run(ctx context.Context, n int, fn func(worker, index int)) error {
	for i := range n {
		if err := ctx.Err(); err != nil {
			return err
		}
		fn(0, i)
	}
	return ctx.Err()
}

// Or is r, or Serial in place of nil.
func Or(r Runner) Runner {
	if r == nil {
		return Serial{}
	}
	return r
}

// Wake wakes the workers of r for regions that are about to come, if it is a pool that can: what comes before them
// spares them the wait.
func Wake(r Runner) {
	if w, ok := r.(interface{ Wake() }); ok {
		w.Wake()
	}
}
