package study

import (
	"math"

	"github.com/cohort-engine/cohort/engine/protocol"
	"github.com/cohort-engine/cohort/engine/study/link"
)

const (
	// quotaTimes is how many times what the plan says a role may send another, quotaSpare how many bytes beyond that
	// all roles together may, in equal parts of at least quotaLeast.
	quotaTimes, quotaSpare, quotaLeast = 4, 64 << 20, 1 << 20
	// quotaIDs is how many ids a party may send for each of the study's records, beyond that.
	quotaIDs = 64
	// A sum has so many messages between the coordinator and a party at most, besides those of the method,
	// and so many bytes of keys, shares and signatures for each party.
	sumMessages, sumEach = 16, 512
)

// quota returns link.Config.Quota: how much a role may send another in the whole study, by the plan. Who breaks the
// protocol could fill the disk and the memory of the other without it.
func (s *Study) quota() (func(from, to protocol.Role) int64, error) {
	r, err := s.runner(nil)
	if err != nil {
		return nil, err
	}
	o, err := r.Outline()
	if err != nil {
		return nil, err
	}
	core, c := r.Core(), o.Bytes
	sums, beside := 0.0, 0.0 // beside has the bytes that the plan does not count
	for _, x := range core.Releases {
		times, words := float64(max(x.Times, 1)), float64(x.Words)
		if sums += times; c != nil && !x.Uncovered {
			continue
		}
		if x.Words == 0 { // as if it could show all records
			words = float64(s.Records+s.K+len(s.Parties)) * float64(len(s.Bounds)+2)
		}
		beside += times * words * float64(core.Capacity.Ring.Bytes())
	}
	if c != nil {
		sums += float64(c.Rounds)
	}
	beside += sums * float64(sumMessages*link.MessageBytes+sumEach*(len(s.Parties)+1))
	spare := float64(max(quotaSpare/len(s.roles()), quotaLeast))
	ids := 0.0
	if s.IDColumn != "" && s.ByColumns() {
		ids = min(quotaIDs*digestBytes*float64(s.Records), mostMessage)
	}
	return func(from, to protocol.Role) int64 {
		planned, more := beside, 0.0
		switch {
		case c != nil && !from.Serves():
			planned += float64(c.BytesSent[from])
		case c != nil && !to.Serves():
			planned += float64(c.BytesReceived[to])
		}
		if from == protocol.Server || to == protocol.Server {
			more = ids
		}
		return int64(min(quotaTimes*planned+spare+more, math.MaxInt64/2))
	}, nil
}
