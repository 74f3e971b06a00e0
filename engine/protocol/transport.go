package protocol

import (
	"context"

	"github.com/cohort-engine/cohort/internal/secagg"
)

// Transport is one role's end of what connects the roles: the one seam between
// them. Calls of one role come from one goroutine.
//
// Messages from one role to another arrive in the order in which they were sent.
type Transport interface {
	// Send gives message to another role, which may read it after the call returns.
	Send(ctx context.Context, to Role, message []byte) error
	// Receive waits for the next message of another role.
	Receive(ctx context.Context, from Role) ([]byte, error)
	// Sum is a party's side of a masked sum: it hands own over and returns the
	// coordinator's sum in its place, with who is present in it.
	Sum(ctx context.Context, round int, own *secagg.Masked) error
	// Collect is the coordinator's side: it waits for the masked vectors of all
	// parties that are left and returns their sum, nil when no party is left. The sum
	// is the transport's own, valid until the next call.
	Collect(ctx context.Context, round int) (*secagg.Masked, error)
	// Return gives the sum, to which the coordinator may have added, to the parties
	// whose vectors are in it.
	Return(ctx context.Context, total *secagg.Masked) error
	// Abreast runs work of the role's own. Roles that share a process run theirs at
	// the same time, each on one of its workers.
	Abreast(ctx context.Context, work func(context.Context) error) error
	// Leave ends the role's part: nobody waits for it any more.
	Leave()
	// Once returns what compute returns: a function of public values, or of values
	// that all parties of the group share, which several roles compute alike. A
	// transport whose roles share memory may call it for the first of them only and
	// give the others the same value. Nobody may change it but a later compute, between
	// which and this one all of them have met in a sum.
	Once(name string, round int, compute func() (any, error)) (any, error)
	// Traffic counts the bytes of the messages of this role as they would be encoded.
	Traffic() (sent, received int64)
}
