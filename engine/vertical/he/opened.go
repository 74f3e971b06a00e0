package he

import (
	"context"

	"github.com/cohort-engine/cohort/engine"
	"github.com/cohort-engine/cohort/engine/fault"
	"github.com/cohort-engine/cohort/engine/privacy"
)

// Opened is the first round of a two-party run up to its noise: keys made, columns encrypted, records
// compared and added up under encryption. It can be closed many times, with new noise each time, which an
// audit does: what comes after the noise is a thousandth of the work. It serves one goroutine at a
// time.
type Opened struct {
	s      *session
	totals []total
}

// Open runs the job's setup and its first round up to the encrypted totals.
func Open(ctx context.Context, j *Job, rt *engine.Runtime) (*Opened, error) {
	if err := j.Validate(); err != nil {
		return nil, err
	}
	if j.mode() != TwoParty || j.Budget == nil {
		return nil, fault.Request("ckks round", "is opened for two parties with a budget only", "give two parties and a budget")
	}
	s, err := newSession(j, rt)
	if err != nil {
		return nil, err
	}
	if err := s.exchangeTerms(); err != nil {
		return nil, err
	}
	if err := s.setup(ctx); err != nil {
		return nil, err
	}
	members, _, err := s.members(ctx, s.start)
	if err != nil {
		return nil, err
	}
	o := &Opened{s: s}
	o.totals, err = s.alice.totals(ctx, rt.Pool(), 0, members)
	return o, err
}

// AliceView is what party 0 knows at the end of a round besides her columns.
type AliceView struct {
	// Noise is what she added to each count and sum, in records, in the order count, sum of column
	// 0, ... of cluster 0, then cluster 1.
	Noise []float64
	// Centroids are what the key holder decrypted, perturbed, divided and sent back.
	Centroids [][]float64
}

// Close ends the round with noise from streams: Alice perturbs the encrypted totals and sends them, the
// key holder decrypts them, adds his noise, divides and answers.
func (o *Opened) Close(streams *privacy.Streams) (*AliceView, error) {
	s := o.s
	s.streams, s.bob.streams = streams, streams
	s.bob.current, s.bob.average = s.start, averager{}
	s.log.Messages = s.log.Messages[:0]
	msg, z, err := s.perturb(0, o.totals)
	if err != nil {
		return nil, err
	}
	v := &AliceView{Noise: make([]float64, len(z))}
	for i, x := range z {
		v.Noise[i] = float64(x) / msg.Units[i]
	}
	v.Centroids, _, err = s.decrypt(1, msg, s.start)
	return v, err
}
