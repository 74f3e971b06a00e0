package protocol

import (
	"encoding/binary"
	"math"
	"strings"

	"github.com/cohort-engine/cohort/engine"
	"github.com/cohort-engine/cohort/engine/privacy"
)

// Info implements engine.Plan.
func (pl *Plan) Info() engine.JobInfo {
	return engine.JobInfo{Method: pl.Method, N: pl.N, D: pl.D, K: pl.K, Parties: pl.Parties, Rounds: pl.Rounds}
}

// Outline implements engine.Plan.
func (pl *Plan) Outline() (*engine.Outline, error) {
	ledger, err := pl.Ledger(nil)
	if err != nil {
		return nil, err
	}
	o := &engine.Outline{Method: pl.Method, N: pl.N, D: pl.D, K: pl.K, Parties: pl.Parties,
		Calibration: string(pl.Calibration),
		Rounds:      pl.Rounds, Releases: []engine.PlannedRelease{}, ClusterSizes: pl.ClusterSizes,
		UnassignedAtLeast: pl.Unassigned,
		Doubts:            pl.doubts(), PublicSeed: pl.PublicSeed.String(), Ledger: ledger}
	o.Bytes, o.BytesAtMost = pl.traffic()
	if pl.Private {
		epsilon, delta := pl.Budget.Epsilon, pl.Budget.Delta
		o.Epsilon, o.Delta = &epsilon, &delta
	}
	for _, e := range ledger.Entries() {
		if e.Kind == privacy.Release {
			o.Releases = append(o.Releases, pl.outline(e))
		}
	}
	return o, nil
}

// boxWidth is the width of the normalised box.
const boxWidth = 2

// outline states the noise of a release.
func (pl *Plan) outline(e privacy.Entry) engine.PlannedRelease {
	r := engine.PlannedRelease{Entry: e}
	deviation := e.Scale
	switch strings.TrimPrefix(e.Mechanism, "discrete-") {
	case "laplace":
		deviation *= math.Sqrt2
	case "gaussian":
	default:
		return r
	}
	if e.Scale == 0 || e.Bound == nil {
		return r
	}
	if e.Noise != nil {
		deviation *= math.Sqrt(float64(e.Noise.Shares) / float64(e.Noise.Needed))
	}
	r.Deviation = &deviation
	share := deviation / boxWidth
	switch e.Bound.Rule.Release {
	case "centroids":
	case "sums", "relative sums":
		share *= float64(e.Bound.Shape.K) / float64(pl.N)
	default:
		return r
	}
	r.OfBox = &share
	return r
}

// NoMessages are none of a number of parties.
func NoMessages(parties int) *engine.Comm {
	return &engine.Comm{BytesSent: make([]int64, parties), BytesReceived: make([]int64, parties)}
}

// traffic counts the messages of all rounds by party, nil where no bound of their sizes is
// known. atMost says that sizes follow from what is released, and this is a bound.
func (pl *Plan) traffic() (c *engine.Comm, atMost bool) {
	c = NoMessages(pl.Parties)
	for _, r := range pl.Releases {
		if r.Uncovered {
			continue
		}
		if r.Words == 0 {
			if pl.Messages == nil {
				return nil, false
			}
			continue
		}
		atMost = atMost || r.AtMost
		times, at := max(r.Times, 1), 1
		if pl.Leaves == nil {
			at = times // who takes part is the same in every round
		}
		for t := 0; t < times; t += at {
			round := t
			if r.Before {
				round = 0
			}
			pl.addTraffic(c, round, int64(at)*int64(r.Words*pl.Capacity.Ring.Bytes()), int64(at))
		}
		if pl.tellsNoise && r.Makers == ServerAlone {
			c.BytesSent[0] += int64(times) * int64(layoutBytes(r))
			atMost = true
		}
		c.Rounds += times
	}
	if m := pl.Messages; m != nil {
		for q := range m.BytesSent {
			c.BytesSent[q] += m.BytesSent[q]
			c.BytesReceived[q] += m.BytesReceived[q]
		}
		c.Rounds += m.Rounds
	}
	return c, atMost
}

// layoutBytes bounds the message that tells the server which noise to draw.
func layoutBytes(r *Release) int {
	const head, group = 2 * binary.MaxVarintLen32, 2*binary.MaxVarintLen32 + 2 + 8
	return head + len(r.Name) + max(r.Groups, 1)*group
}

// addTraffic counts a number of sums of a round, whose vectors have so many bytes
// together.
func (pl *Plan) addTraffic(c *engine.Comm, round int, bytes, sums int64) {
	var present []Role
	for q := range Role(pl.Parties) {
		if pl.Present(q, round) {
			present = append(present, q)
		}
	}
	first, others := pl.First(round), int64(len(present)-1)
	for _, q := range present {
		switch {
		case pl.Ring && others == 0:
		case pl.Ring: // the partial sum from each to the next, the sum from the first to all others
			c.BytesSent[q] += bytes
			c.BytesReceived[q] += bytes
			if q == first {
				c.BytesSent[q] += others * bytes
			} else {
				c.BytesReceived[q] += bytes
			}
		case pl.Servers > 0: // a share to each, and one of the sum from each
			c.BytesSent[q] += int64(pl.Servers) * bytes
			c.BytesReceived[q] += int64(pl.Servers) * bytes
		case pl.Coordinated:
			c.BytesSent[q] += bytes
			c.BytesReceived[q] += bytes
			if len(present) < pl.Parties { // the sum says who is in it
				c.BytesReceived[q] += sums * int64((pl.Parties+7)/8)
			}
		default:
			c.BytesSent[q] += bytes
		}
	}
}
