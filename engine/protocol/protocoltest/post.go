// Package protocoltest runs the roles of a protocol apart: each in a goroutine of
// its own, over a transport that turns every message into bytes and back.
package protocoltest

import (
	"context"
	"slices"
	"sync"

	"github.com/cohort-engine/cohort/engine/protocol"
)

// post is mail among goroutines of one test.
type post struct {
	mu    sync.Mutex
	ready *sync.Cond
	boxes map[[2]protocol.Role][][]byte
	gone  map[protocol.Role]bool
}

// newPost returns a post without letters.
func newPost() *post {
	p := &post{boxes: map[[2]protocol.Role][][]byte{}, gone: map[protocol.Role]bool{}}
	p.ready = sync.NewCond(&p.mu)
	return p
}

// end is one role's end of post.
type end struct {
	*post
	role protocol.Role
}

func (e end) Send(_ context.Context, to protocol.Role, message []byte) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	key := [2]protocol.Role{e.role, to}
	e.boxes[key] = append(e.boxes[key], slices.Clone(message))
	e.ready.Broadcast()
	return nil
}

func (e end) Receive(_ context.Context, from protocol.Role) ([]byte, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	key := [2]protocol.Role{from, e.role}
	for len(e.boxes[key]) == 0 {
		if e.gone[from] {
			return nil, protocol.ErrLeft
		}
		e.ready.Wait()
	}
	b := e.boxes[key][0]
	e.boxes[key] = e.boxes[key][1:]
	return b, nil
}

func (e end) Leave() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.gone[e.role] = true
	e.ready.Broadcast()
}

// Apart are the options of a run of plan whose roles share nothing but bytes.
func Apart(plan *protocol.Plan) protocol.Options {
	post := newPost()
	return protocol.Options{Connect: func(r protocol.Role) protocol.Transport {
		return protocol.OverMail(end{post, r}, r, plan.Parties, plan.Capacity.Ring)
	}}
}
