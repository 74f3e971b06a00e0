package audit

import (
	"sync"

	"github.com/cohort-engine/cohort/engine"
)

// perWorker keeps what a worker uses again from trial to trial: sessions, tapes, keys.
type perWorker[T any] struct {
	mu   sync.Mutex
	made map[*engine.Runtime]T
	make func() (T, error)
}

func newPerWorker[T any](make func() (T, error)) *perWorker[T] {
	return &perWorker[T]{made: map[*engine.Runtime]T{}, make: make}
}

// of returns the worker's own, made on its first call.
func (p *perWorker[T]) of(rt *engine.Runtime) (T, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if x, ok := p.made[rt]; ok {
		return x, nil
	}
	x, err := p.make()
	if err == nil {
		p.made[rt] = x
	}
	return x, err
}
