package ckks

import (
	"fmt"
	"sync/atomic"

	"github.com/cohort-engine/cohort/engine"
)

// steps tells observers how far a phase is, ciphertext by ciphertext: the numbers are public. A nil
// steps tells nobody.
type steps struct {
	pool  *engine.Pool
	what  string
	total int // 0 if unknown
	done  atomic.Int64
}

// phase begins a phase of a round, counted from 0.
func (s *run) phase(pool *engine.Pool, t int, what string, total int) *steps {
	return &steps{pool: pool, what: fmt.Sprintf("round %d of %d, %s", t+1, s.job.rounds(), what), total: total}
}

// one is done.
func (s *steps) one() {
	if s != nil {
		s.pool.Report(s.what, int(s.done.Add(1)), s.total)
	}
}
