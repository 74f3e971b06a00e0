package study

import (
	"context"
	"encoding/binary"
	"fmt"

	"github.com/cohort-engine/cohort/engine/dataset"
	"github.com/cohort-engine/cohort/engine/method/sketch"
	"github.com/cohort-engine/cohort/engine/privacy"
	"github.com/cohort-engine/cohort/engine/protocol"
	"github.com/cohort-engine/cohort/internal/fault"
	"github.com/cohort-engine/cohort/internal/secret"
	"github.com/cohort-engine/cohort/kernels"
)

// Matching: each party sends the coordinator a digest of each id under a key that the
// parties share and the coordinator lacks; the coordinator tells each party which of
// its rows have an id that every party has, in one order for all. So every party
// learns which of its ids all others have too; the coordinator learns how many ids
// each party has and how many each group of parties has in common, and no id, unless
// a party gives it the key.

// digestBytes is the length of a digest.
const digestBytes = 16

// match is the coordinator's part.
func (o *Coordinator) match(ctx context.Context, box *postbox) error {
	digests := make([][]sketch.Digest, len(o.Study.Parties))
	for p := range digests {
		b, err := box.receive(ctx, protocol.Role(p), mailIDs)
		if err != nil {
			return err
		}
		if len(b)%digestBytes != 0 {
			return fault.Failed("matching", fmt.Sprintf("%v sent %d bytes", protocol.Role(p), len(b)),
				"use the same version everywhere", nil)
		}
		for ; len(b) > 0; b = b[digestBytes:] {
			digests[p] = append(digests[p], sketch.Digest(b))
		}
	}
	rows, _, err := sketch.MatchDigests(digests, true)
	if err != nil {
		return err
	}
	for p, list := range rows {
		b := make([]byte, 0, 4*len(list))
		for _, r := range list {
			b = binary.LittleEndian.AppendUint32(b, uint32(r))
		}
		if err := box.send(ctx, protocol.Role(p), mailIDs, b); err != nil {
			return err
		}
	}
	return nil
}

// match is a party's part: it returns the records that all parties have, in the
// common order.
func (p *Party) match(ctx context.Context, box *postbox, group secret.Root, part dataset.Part,
	ids []string) (dataset.Part, []string, error) {
	if len(ids) != part.Points.N {
		return part, nil, fault.Request("ids", fmt.Sprintf("are %d for %d records", len(ids), part.Points.N),
			"name the id column")
	}
	var b []byte
	for _, d := range sketch.JoinDigests(sketch.NewSecret(privacy.StreamsOf(group)), ids) {
		b = append(b, d[:]...)
	}
	if err := box.send(ctx, protocol.Server, mailIDs, b); err != nil {
		return part, nil, err
	}
	b, err := box.receive(ctx, protocol.Server, mailIDs)
	if err != nil {
		return part, nil, err
	}
	points := kernels.NewPanels(len(b)/4, part.Points.D)
	matched, row := make([]string, 0, points.N), make([]float32, part.Points.D)
	seen := make([]bool, part.Points.N)
	for i := range points.N {
		r := int(binary.LittleEndian.Uint32(b[4*i:]))
		if r >= part.Points.N || seen[r] {
			return part, nil, fault.Failed("matching", "the coordinator named a row that is not there, or one twice",
				"ask who runs it", nil)
		}
		seen[r] = true
		points.Set(i, part.Points.Point(r, row))
		matched = append(matched, ids[r])
	}
	part.Points = points
	return part, matched, nil
}
