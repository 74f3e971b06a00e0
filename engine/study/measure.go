package study

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"fmt"
	"log/slog"
	"path/filepath"
	"time"

	"github.com/cohort-engine/cohort/engine/protocol"
	"github.com/cohort-engine/cohort/engine/study/bus"
	"github.com/cohort-engine/cohort/engine/study/journal"
	"github.com/cohort-engine/cohort/engine/study/link"
	"github.com/cohort-engine/cohort/engine/study/sum"
	"github.com/cohort-engine/cohort/internal/secagg"
)

// Sums measures sums of vectors over the loopback interface: a coordinator and parties,
// each with a connection, links and a journal of its own, all in this process.
type Sums struct {
	Parties, Words, Rounds int
	// Plain leaves out the masks between pairs of parties.
	Plain bool
	// Dir is the folder of the journals.
	Dir string
}

// sumsEnd is a role of a measurement.
type sumsEnd struct {
	conn *bus.Conn
	end  *link.End
	file *journal.File
	box  *postbox
}

// Measure returns how long each round took.
func (m *Sums) Measure(ctx context.Context) (rounds []time.Duration, err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	study := sha256.Sum256([]byte("measurement"))
	var all []*keys
	var entries []Entry
	for r := protocol.Server; int(r) < m.Parties; r++ {
		id, err := newIdentity(study, r)
		if err != nil {
			return nil, err
		}
		k, err := id.keys()
		if err != nil {
			return nil, err
		}
		e, err := k.entry(study)
		if err != nil {
			return nil, err
		}
		all, entries = append(all, k), append(entries, e)
	}
	roster, err := newRoster(study, m.Parties, entries)
	if err != nil {
		return nil, err
	}
	chain, key, err := bus.NewCertificate(time.Now())
	if err != nil {
		return nil, err
	}
	certificate, err := tls.X509KeyPair(chain, key)
	if err != nil {
		return nil, err
	}
	pin, err := bus.Pin(certificate)
	if err != nil {
		return nil, err
	}
	server, err := bus.Listen("127.0.0.1:0", "0011223344556677", certificate, entries[0].Signing,
		func(bus.Login) error { return nil }, slog.New(slog.DiscardHandler))
	if err != nil {
		return nil, err
	}
	defer server.Close()
	ends := make([]*sumsEnd, m.Parties+1)
	for i, k := range all {
		d := bus.Dialer{Self: k.party, Study: "0011223344556677", URL: "tls://" + server.Address(), Pin: pin, Key: k.signing}
		if i == 0 {
			d.Server = server
		}
		if ends[i], err = m.open(ctx, d, k, roster); err != nil {
			return nil, err
		}
		defer ends[i].close()
	}
	config := sum.Config{Study: roster.Hash(), Parties: m.Parties, Threshold: m.Parties, Ring: secagg.Ring64,
		Plain: m.Plain}
	for p := range m.Parties {
		go func() {
			if err := m.party(ctx, ends[p+1], all[p+1], roster, config); err != nil && ctx.Err() == nil {
				cancel(err)
			}
		}()
	}
	h := newHub(nil, ends[0].box, config, time.Minute, slog.New(slog.DiscardHandler), nil)
	for t := range m.Rounds {
		begun := time.Now()
		total, err := h.Collect(ctx, t)
		if err == nil {
			err = h.Return(ctx, total)
		}
		if err != nil {
			if cause := context.Cause(ctx); cause != nil {
				err = cause
			}
			return nil, fmt.Errorf("sum %d: %w", t+1, err)
		}
		rounds = append(rounds, time.Since(begun))
	}
	return rounds, nil
}

// open connects a role.
func (m *Sums) open(ctx context.Context, d bus.Dialer, k *keys, roster *Roster) (*sumsEnd, error) {
	e := &sumsEnd{}
	var err error
	if e.file, err = journal.Open(filepath.Join(m.Dir, fmt.Sprint("role", int(k.party)), JournalName)); err != nil {
		return nil, err
	}
	ready := make(chan struct{})
	d.Frames = func(from protocol.Role, b []byte) {
		<-ready
		e.end.Deliver(from, b)
	}
	if e.conn, err = bus.Dial(ctx, d); err == nil {
		e.end, err = link.New(link.Config{Self: k.party, Keys: k.links(roster), Journal: e.file, Bus: e.conn,
			Most: mostMessage})
	}
	if err != nil {
		e.file.Close()
		return nil, err
	}
	close(ready)
	e.end.Start()
	e.box = newPostbox(e.end, k.party, time.Minute)
	return e, nil
}

func (e *sumsEnd) close() {
	e.end.Close()
	e.conn.Close()
	e.file.Abandon()
}

// party takes part in all rounds.
func (m *Sums) party(ctx context.Context, e *sumsEnd, k *keys, roster *Roster, config sum.Config) error {
	member := &sum.Member{Config: config, Index: int(k.party), Root: k.root,
		Pair: func(q int) ([32]byte, error) { return k.pair(roster, protocol.Role(q)) },
		Sign: k.signing.Sign, Verify: func(q int, b,
			signature []byte) bool {
			return roster.verify(protocol.Role(q), b, signature)
		}}
	t := &partyTransport{box: e.box, parties: m.Parties, member: member}
	own := secagg.NewMasked(secagg.Ring64, m.Parties, m.Words)
	for round := range m.Rounds {
		own.Reset(round)
		if err := t.Sum(ctx, round, own); err != nil {
			return err
		}
	}
	return nil
}
