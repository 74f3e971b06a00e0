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
		if digests[p], err = digestsOf(b); err != nil {
			return fmt.Errorf("%v: %w", protocol.Role(p), err)
		}
	}
	rows, _, err := sketch.MatchDigests(digests, true)
	if err != nil {
		return err
	}
	for p, list := range rows {
		if err := box.send(ctx, protocol.Role(p), mailIDs, encodeRows(list)); err != nil {
			return err
		}
	}
	return nil
}

// digestsOf are the digests of a party's message.
func digestsOf(b []byte) ([]sketch.Digest, error) {
	if len(b)%digestBytes != 0 {
		return nil, fault.Failed("matching", fmt.Sprintf("a party sent %d bytes", len(b)),
			"use the same version everywhere", nil)
	}
	all := make([]sketch.Digest, 0, len(b)/digestBytes)
	for ; len(b) > 0; b = b[digestBytes:] {
		all = append(all, sketch.Digest(b))
	}
	return all, nil
}

// encodeRows is the coordinator's message of matched rows.
func encodeRows(list []int) []byte {
	b := make([]byte, 0, 4*len(list))
	for _, r := range list {
		b = binary.LittleEndian.AppendUint32(b, uint32(r))
	}
	return b
}

// rowsOf are the rows of the coordinator's message: some of n, each once.
func rowsOf(b []byte, n int) ([]int, error) {
	if len(b)%4 != 0 || len(b)/4 > n {
		return nil, fault.Failed("matching", fmt.Sprintf("the coordinator sent %d bytes for %s", len(b),
			fault.Count(n, "row")),
			"use the same version everywhere", nil)
	}
	rows, seen := make([]int, len(b)/4), make([]bool, n)
	for i := range rows {
		r := int(binary.LittleEndian.Uint32(b[4*i:]))
		if r >= n || seen[r] {
			return nil, fault.Failed("matching", "the coordinator named a row that is not there, or one twice",
				"ask who runs it", nil)
		}
		rows[i], seen[r] = r, true
	}
	return rows, nil
}

// match is a party's part: it returns the records that all parties have, in the
// common order.
func (p *Party) match(ctx context.Context, box *postbox, group secret.Root, part dataset.Part,
	ids []string) (dataset.Part, []string, error) {
	if len(ids) != part.Points.N {
		return part, nil, fault.Request("ids", fmt.Sprintf("are %d for %s", len(ids),
			fault.Count(part.Points.N, "record")),
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
	rows, err := rowsOf(b, part.Points.N)
	if err != nil {
		return part, nil, err
	}
	points := kernels.NewPanels(len(rows), part.Points.D)
	matched, row := make([]string, len(rows)), make([]float32, part.Points.D)
	for i, r := range rows {
		points.Set(i, part.Points.Point(r, row))
		matched[i] = ids[r]
	}
	part.Points = points
	return part, matched, nil
}
