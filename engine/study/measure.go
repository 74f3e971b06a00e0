package study

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/cohort-engine/cohort/engine/protocol"
	"github.com/cohort-engine/cohort/engine/study/bus"
	"github.com/cohort-engine/cohort/engine/study/journal"
	"github.com/cohort-engine/cohort/engine/study/link"
	"github.com/cohort-engine/cohort/engine/study/sum"
	"github.com/cohort-engine/cohort/internal/fault"
	"github.com/cohort-engine/cohort/internal/secagg"
)

// Sums measures sums of vectors over the loopback interface. Its parties are in one
// process, each with a connection, links and a journal of its own; its coordinator is where
// Coordinate runs, in a process of its own or not.
type Sums struct {
	Parties, Words, Rounds int
	// Plain leaves out the masks between pairs of parties.
	Plain bool
	// Dir is the folder of the journals.
	Dir string
}

// sumsOrder is what the coordinator of a measurement is told.
type sumsOrder struct {
	Sums
	Identity *identity
	Entries  []Entry
}

// sumsPlace is where the coordinator of a measurement listens.
type sumsPlace struct {
	URL string
	Pin [32]byte
}

// sumsEnd is a role of a measurement.
type sumsEnd struct {
	conn *bus.Conn
	end  *link.End
	file *journal.File
	box  *postbox
}

// sumsStudy is the hash of a study that there is not, and sumsID its name in subjects.
var sumsStudy = sha256.Sum256([]byte("measurement"))

const sumsID = "0011223344556677"

// sumsPatience is how long a role of a measurement waits for another, on a machine that does
// something else, too.
const sumsPatience = 10 * time.Minute

// Measure plays the parties of all rounds. coordinate hands an order to a coordinator, which
// gives it to CoordinateSums, and returns what that had ready.
func (m *Sums) Measure(ctx context.Context, coordinate func(order []byte) (place []byte, err error)) error {
	playing, cancel := context.WithCancel(ctx)
	defer cancel()
	order := sumsOrder{Sums: *m}
	var all []*keys
	for r := protocol.Server; int(r) < m.Parties; r++ {
		id, err := newIdentity(sumsStudy, r)
		if err != nil {
			return err
		}
		k, err := id.keys()
		if err != nil {
			return err
		}
		e, err := k.entry(sumsStudy)
		if err != nil {
			return err
		}
		if r == protocol.Server {
			order.Identity = id
		}
		all, order.Entries = append(all, k), append(order.Entries, e)
	}
	roster, err := newRoster(sumsStudy, m.Parties, 0, order.Entries)
	if err != nil {
		return err
	}
	answer, err := coordinate(encode(order))
	if err != nil {
		return err
	}
	var place sumsPlace
	if err := strict(answer, &place); err != nil {
		return err
	}
	ends := make([]*sumsEnd, m.Parties)
	for p := range ends {
		k := all[p+1]
		ends[p], err = m.open(ctx, bus.Dialer{Self: k.party, URL: place.URL, Pin: place.Pin}, k, roster)
		if err != nil {
			return err
		}
		defer ends[p].close()
	}
	errs := make([]error, m.Parties)
	var parties sync.WaitGroup
	for p, e := range ends {
		parties.Go(func() {
			if errs[p] = m.party(playing, e, all[p+1], roster); errs[p] != nil {
				cancel() // the others wait for it
			}
		})
	}
	parties.Wait()
	if err := ctx.Err(); err != nil {
		return err
	}
	return errors.Join(slices.DeleteFunc(errs, func(err error) bool { return errors.Is(err, context.Canceled) })...)
}

// config is that of a measurement's sums.
func (m *Sums) config(r *Roster) sum.Config {
	return sum.Config{Study: r.hash(), Parties: m.Parties, Threshold: m.Parties, Ring: secagg.Ring64, Plain: m.Plain}
}

// CoordinateSums is the coordinator of a measurement. ready is told what Measure needs to
// know; each hears how long every round took, from the coordinator's readiness to the sum on
// its way to every party.
func CoordinateSums(ctx context.Context, order []byte, ready func(place []byte) error,
	each func(took time.Duration) error) error {
	var m sumsOrder
	if err := strict(order, &m); err != nil || m.Identity == nil || len(m.Entries) == 0 {
		return fault.Failed("measurement", "its order cannot be read", "use one version of the program", err)
	}
	k, err := m.Identity.keys()
	if err != nil {
		return err
	}
	roster, err := newRoster(sumsStudy, m.Parties, 0, m.Entries)
	if err != nil {
		return err
	}
	server, pin, err := listenForSums(m.Entries[0].Signing, 8*m.Words > bus.LongMessage)
	if err != nil {
		return err
	}
	defer server.Close()
	e, err := m.open(ctx, bus.Dialer{Self: protocol.Server, Server: server}, k, roster)
	if err != nil {
		return err
	}
	defer e.close()
	if err := ready(encode(sumsPlace{URL: "tls://" + server.Address(), Pin: pin})); err != nil {
		return err
	}
	h := newServerTransport(nil, e.box, m.config(roster), sumsPatience, slog.New(slog.DiscardHandler), nil,
		protocol.Role.String)
	for t := range m.Rounds {
		begun := time.Now()
		total, err := h.Collect(ctx, t)
		if err == nil {
			err = h.Return(ctx, total)
		}
		if err == nil {
			err = each(time.Since(begun))
		}
		if err != nil {
			return fmt.Errorf("sum %d: %w", t+1, err)
		}
	}
	for server.Clients() > 1 { // until all have the last sum
		if err := pause(ctx, 5*time.Millisecond); err != nil {
			return err
		}
	}
	return nil
}

// listenForSums starts the server of a measurement, which lets everybody in.
func listenForSums(own string, long bool) (*bus.Server, [32]byte, error) {
	chain, key, err := bus.NewCertificate(time.Now())
	if err != nil {
		return nil, [32]byte{}, err
	}
	certificate, err := tls.X509KeyPair(chain, key)
	if err != nil {
		return nil, [32]byte{}, err
	}
	pin, err := bus.Pin(certificate)
	if err != nil {
		return nil, pin, err
	}
	server, err := bus.Listen("127.0.0.1:0", sumsID, certificate, own, long,
		func(bus.Login) error { return nil }, slog.New(slog.DiscardHandler))
	return server, pin, err
}

// open connects a role.
func (m *Sums) open(ctx context.Context, d bus.Dialer, k *keys, roster *Roster) (*sumsEnd, error) {
	e := &sumsEnd{}
	var err error
	if e.file, err = journal.Open(filepath.Join(m.Dir, fmt.Sprint("role", int(k.party)), JournalName)); err != nil {
		return nil, err
	}
	ready := make(chan struct{})
	d.Study, d.Key = sumsID, k.signing
	d.Frames = func(from protocol.Role, b []byte) {
		<-ready
		e.end.Deliver(from, b)
	}
	if e.conn, err = bus.Dial(ctx, d); err == nil {
		c := link.Config{Self: k.party, Keys: k.links(roster), Journal: e.file, Bus: e.conn, Most: mostMessage}
		if k.party == protocol.Server {
			c.Brief = brief
		} else {
			c.Lasting, c.Secret = lasting, k.root
		}
		e.end, err = link.New(c)
	}
	if err != nil {
		e.file.Close()
		return nil, err
	}
	close(ready)
	e.end.Start()
	e.box = newPostbox(e.end, k.party, sumsPatience)
	return e, nil
}

func (e *sumsEnd) close() {
	e.end.Close()
	e.conn.Close()
	e.file.Abandon()
}

// party takes part in all rounds: it adds its number to the first element.
func (m *Sums) party(ctx context.Context, e *sumsEnd, k *keys, roster *Roster) error {
	member := &sum.Member{Config: m.config(roster), Index: int(k.party), Root: k.root,
		Pair:   func(q int) ([32]byte, error) { return k.pair(roster, protocol.Role(q)) },
		Sign:   k.signing.Sign,
		Verify: func(q int, b, signature []byte) bool { return roster.verify(protocol.Role(q), b, signature) }}
	t := &partyTransport{box: e.box, parties: m.Parties, member: member}
	own := secagg.NewMasked(secagg.Ring64, m.Parties, m.Words)
	values := make([]int64, m.Words)
	values[0] = int64(k.party) + 1
	for round := range m.Rounds {
		own.Reset(round)
		if err := own.Add(values); err != nil {
			return err
		}
		if err := t.Sum(ctx, round, own); err != nil {
			return err
		}
		if round > 0 && round < m.Rounds-1 {
			continue // the first and the last are looked at
		}
		total := binary.LittleEndian.Uint64(own.AppendWire(t.wire[:0]))
		if want := uint64(m.Parties) * uint64(m.Parties+1) / 2; total != want {
			return fmt.Errorf("study: sum %d is %d where the vectors have %d", round+1, total, want)
		}
	}
	return nil
}
