package protocol

import (
	"context"
	"errors"
	"fmt"

	"github.com/cohort-engine/cohort/internal/secagg"
)

// Mail carries bytes between roles that share no memory.
type Mail interface {
	// Send gives a copy of message to another role.
	Send(ctx context.Context, to Role, message []byte) error
	// Receive waits for the next message of another role. It returns ErrLeft when
	// that role has left and all its messages were read.
	Receive(ctx context.Context, from Role) ([]byte, error)
	// Leave tells all others that this role sends no more.
	Leave()
}

// ErrLeft says that a role has left and sends no more.
var ErrLeft = errors.New("has left")

// OverMail returns the transport of a role over mail: masked vectors cross as
// bytes to the server and back, and everybody computes for itself. parties is the
// number of parties, ring that of their sums.
func OverMail(mail Mail, role Role, parties int, ring secagg.Ring) Transport {
	return &byMail{mail: mail, role: role, ring: ring, gone: make([]bool, parties)}
}

// byMail is a Transport over Mail.
type byMail struct {
	mail           Mail
	role           Role
	ring           secagg.Ring
	gone           []bool         // parties that have left, as the server knows them
	message, total *secagg.Masked // the server's
	wire           []byte
	sent, received int64
}

// Send implements Transport.
func (m *byMail) Send(ctx context.Context, to Role, message []byte) error {
	m.sent += int64(len(message))
	return m.mail.Send(ctx, to, message)
}

// Receive implements Transport.
func (m *byMail) Receive(ctx context.Context, from Role) ([]byte, error) {
	b, err := m.mail.Receive(ctx, from)
	if err != nil {
		return nil, fmt.Errorf("protocol: %v waits for a message: %v %w", m.role, from, err)
	}
	m.received += int64(len(b))
	return b, nil
}

// Sum implements Transport.
func (m *byMail) Sum(ctx context.Context, _ int, own *secagg.Masked) error {
	m.wire = own.AppendWire(m.wire[:0])
	if err := m.Send(ctx, Server, m.wire); err != nil {
		return err
	}
	b, err := m.Receive(ctx, Server)
	if err != nil {
		return err
	}
	return own.ReadSum(b, own.Round())
}

// Collect implements Transport. The first message says how long vectors are.
func (m *byMail) Collect(ctx context.Context, round int) (*secagg.Masked, error) {
	first := true
	for p := range m.gone {
		if m.gone[p] {
			continue
		}
		b, err := m.mail.Receive(ctx, Role(p))
		if errors.Is(err, ErrLeft) {
			m.gone[p] = true
			continue
		}
		if err != nil {
			return nil, err
		}
		m.received += int64(len(b))
		if length := len(b) / m.ring.Bytes(); first && (m.total == nil || m.total.Len() != length) {
			m.total, m.message = secagg.NewMasked(m.ring, len(m.gone), length),
				secagg.NewMasked(m.ring, len(m.gone), length)
		}
		if first {
			m.total.Reset(round)
			first = false
		}
		if err = m.message.ReadFrom(b, round, p); err == nil {
			err = m.total.Merge(m.message)
		}
		if err != nil {
			return nil, fmt.Errorf("%v: %w", Role(p), err)
		}
	}
	if first {
		return nil, nil
	}
	return m.total, nil
}

// Return implements Transport.
func (m *byMail) Return(ctx context.Context, total *secagg.Masked) error {
	m.wire = total.AppendSum(m.wire[:0])
	for p := range m.gone {
		if !total.Present(p) {
			continue
		}
		if err := m.Send(ctx, Role(p), m.wire); err != nil {
			return err
		}
	}
	return nil
}

// Abreast implements Transport.
func (m *byMail) Abreast(ctx context.Context, work func(context.Context) error) error {
	return work(ctx)
}

// Leave implements Transport.
func (m *byMail) Leave() { m.mail.Leave() }

// Once implements Transport: every role computes for itself.
func (m *byMail) Once(_ string, _ int, compute func() (any, error)) (any, error) { return compute() }

// Traffic implements Transport.
func (m *byMail) Traffic() (sent, received int64) { return m.sent, m.received }
