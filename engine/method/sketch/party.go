package sketch

import (
	"context"
	"encoding/binary"
	"math"

	"github.com/cohort-engine/cohort/engine"
	"github.com/cohort-engine/cohort/engine/privacy"
	"github.com/cohort-engine/cohort/engine/protocol"
)

// partyName is what people call party l: they count from 1.
func partyName(l int) string { return protocol.Role(l).String() }

// play is a party's program: local centres, memberships, and what the protocol sends
// of them to the server.
func (p *party) play(ctx context.Context, q *protocol.Party) (*protocol.Outcome, error) {
	p.Party = q
	if err := p.localCenters(ctx); err != nil {
		return nil, err
	}
	sizes, err := p.assign(ctx)
	if err != nil {
		return nil, err
	}
	var m message
	if r := p.releases.sizes; r != nil {
		if m.Sizes, m.SizeBits, err = noisy(p.Party, r, 0, "sizes", 0, copied(sizes), len(sizes)); err != nil {
			return nil, err
		}
	}
	if err := p.releaseSketches(ctx, &m); err != nil {
		return nil, err
	}
	if err := p.sendMessage(ctx, &m); err != nil {
		return nil, err
	}
	if r := p.releases.reports; r != nil {
		if err := p.sendReports(ctx, r); err != nil {
			return nil, err
		}
	}
	if r := p.releases.records; r != nil {
		n, _, err := noisy(p.Party, r, 0, "records", 0, copied([]int64{int64(p.points.N)}), 1)
		if err != nil {
			return nil, err
		}
		if err := p.Send(ctx, r.Release, protocol.Server, binary.LittleEndian.AppendUint64(nil, uint64(n[0]))); err != nil {
			return nil, err
		}
	}
	if p.memberships == nil {
		return p.takeBack(ctx)
	}
	b := make([]byte, len(p.labels))
	for i, a := range p.labels {
		b[i] = byte(a)
	}
	return nil, p.Send(ctx, p.memberships, protocol.Server, b)
}

// releaseSketches puts the party's sketches of its memberships into a message.
func (p *party) releaseSketches(ctx context.Context, m *message) error {
	if p.releases.sketches == nil {
		return nil
	}
	return p.Apply(p.releases.sketches, 0, func() (err error) {
		m.Sets, err = p.makeSketches(ctx)
		p.Drew(0, "heights", func() [][2]float64 { return p.heightChances(m.Sets) })
		return err
	})
}

// localCenters finds the party's centres as planned.
func (p *party) localCenters(ctx context.Context) error {
	r := p.releases
	var err error
	switch {
	case r.exact != nil:
		if err = p.plainCenters(ctx); err == nil {
			_, err = p.OwnReals(r.exact, 0, "", 0, protocol.NewPrivateReals(nil))
		}
		return err
	case r.tree != nil:
		err = p.startTree(ctx)
	case r.forest != nil:
		err = p.startForest(ctx)
	}
	if err != nil || r.refinement == nil {
		return err
	}
	return p.refine(ctx)
}

// sendMessage sends centres and what m has: the server sees no more.
func (p *party) sendMessage(ctx context.Context, m *message) error {
	return p.Send(ctx, p.message, protocol.Server, p.encode(m))
}

func (p *party) encode(m *message) []byte {
	span := p.span(engine.PhaseEncode)
	defer p.End(span)
	m.Party, m.Clusters, m.Columns, m.FractionBits = p.index, p.plan.clusters, p.d(), p.bits
	unit := math.Ldexp(1, p.bits)
	for _, c := range p.centers {
		m.Centers = append(m.Centers, int32(float64(c)*unit))
	}
	heightBytes := 1
	if p.plan.distribution != nil {
		heightBytes = p.plan.distribution.bytes()
	}
	return m.encode(heightBytes)
}

// sendReports sends every record's membership under local privacy (LDP-AGG).
func (p *party) sendReports(ctx context.Context, r *protocol.Release) error {
	const block = 1 << 14
	f, n, streams := p.frequency, p.points.N, p.Streams()
	reports := make([]uint8, n)
	span := p.span(engine.PhaseNoise)
	err := p.Apply(r, 0, func() error {
		err := p.Pool().Run(ctx, (n+block-1)/block, func(_, b int) {
			st := streams.Stream(p.index, b, "reports")
			for i := b * block; i < min((b+1)*block, n); i++ {
				reports[i] = uint8(f.report(f.value(p.index, i, int(p.labels[i])), st))
			}
		})
		if err != nil {
			return err
		}
		p.Drew(0, "reports", func() [][2]float64 { return p.reportChances(f, reports) })
		return p.replayReports(f, reports)
	})
	p.End(span)
	if err != nil {
		return err
	}
	return p.Send(ctx, r, protocol.Server, reports) // hash seeds are public functions of party and row
}

// replayReports passes a party's reports to an audit's replay.
func (p *party) replayReports(f *frequency, reports []uint8) error {
	if p.Replay == nil {
		return nil
	}
	exact, released := make([]int64, len(reports)), make([]int64, len(reports))
	for i, r := range reports {
		exact[i], released[i] = int64(f.value(p.index, i, int(p.labels[i]))), int64(r)
	}
	truth, lie := math.Log(f.truth()), math.Log((1-f.truth())/float64(f.size-1))
	err := p.Replay.Release(exact, released, privacy.OtherLikelihood(func(exact, released int64) float64 {
		if exact == released {
			return truth
		}
		return lie
	}))
	for i, r := range released {
		reports[i] = uint8(r)
	}
	return err
}

// reportSeed is the public seed of the hash function of a report.
func reportSeed(party, row int) uint64 {
	return uint64(row)*0xd1342543de82ef95 + uint64(party+1)*0x2545f4914f6cdd1d
}

// makeSketches makes the party's sketches with the digests of the ids, which all
// parties compute alike.
func (p *party) makeSketches(ctx context.Context) ([]*Sketches, error) {
	sk, err := protocol.Once(p.Party, "digests", 0, func() (*sketcher, error) {
		span := p.span(engine.PhaseSketch)
		defer p.End(span)
		return newSketcher(ctx, p.Pool(), NewSecret(p.Group), p.points.N, p.job.id())
	})
	if err != nil {
		return nil, err
	}
	return p.encodeMemberships(ctx, sk)
}

// encodeMemberships is phase 2 for one party: its sketches under the joint keys,
// or under those of each pair that it belongs to.
func (p *party) encodeMemberships(ctx context.Context, sk *sketcher) ([]*Sketches, error) {
	span := p.span(engine.PhaseSketch)
	defer p.End(span)
	if !p.plan.pairKeys {
		set, err := p.sketchSet(ctx, sk, 0, p.plan.parties, p.index)
		return []*Sketches{set}, err
	}
	var sets []*Sketches
	for other := range p.plan.parties {
		if other == p.index {
			continue
		}
		at := 0
		if other < p.index {
			at = 1
		}
		index := pairIndex(p.plan.parties, min(other, p.index), max(other, p.index))
		set, err := p.sketchSet(ctx, sk, 1+index, 2, at)
		if err != nil {
			return nil, err
		}
		sets = append(sets, set)
	}
	return sets, nil
}

// sketchSet makes a party's sketches under key set number set, which `parties`
// parties share and in which it has position `at`.
func (p *party) sketchSet(ctx context.Context, sk *sketcher, set, parties, at int) (*Sketches, error) {
	var phantoms cellPhantoms
	if p.job.Calibration == privacy.Proven {
		phantoms = cellPhantoms{parties: parties, at: at, perCell: p.plan.phantoms}
	}
	e, err := sk.encode(ctx, set, p.plan.sketches, p.labels, p.plan.clusters, phantoms)
	if err != nil {
		return nil, err
	}
	if p.job.Calibration != privacy.Proven {
		e.addOwnPhantoms(p.Streams().Stream(p.index, set, "phantoms"), p.plan.phantoms)
	}
	return sk.sketches(ctx, e, p.plan.distribution, p.plan.floor)
}
