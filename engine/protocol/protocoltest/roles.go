package protocoltest

import (
	"testing"

	"github.com/cohort-engine/cohort/engine/privacy"
	"github.com/cohort-engine/cohort/engine/protocol"
	"github.com/cohort-engine/cohort/internal/secret"
)

// Roles gathers the roles of a run, to check what randomness they have.
type Roles []*protocol.Party

// Join is the option Joined of a run.
func (r *Roles) Join(p *protocol.Party) { *r = append(*r, p) }

// first is the first word of streams, which tells roots apart.
func first(s *privacy.Streams) uint64 { return s.Stream(0, 0, "first word").Uint64() }

// Check fails the test if two roles share what is a role's own, if the server has
// what the parties share, or if anything of it is public. want is the number of
// roles.
func (r Roles) Check(t testing.TB, want int) {
	t.Helper()
	if len(r) != want {
		t.Fatalf("%d roles took part, want %d", len(r), want)
	}
	own, roots := map[uint64]protocol.Role{}, map[secret.Root]protocol.Role{}
	public := first(r[0].Public)
	if public != first(r[0].Plan.PublicSeed.Streams()) || r[0].Plan.PublicSeed == (protocol.PublicSeed{}) {
		t.Error("public randomness does not follow from a seed that the plan states")
	}
	for _, p := range r {
		word, root := first(p.Streams()), p.Root("test")
		if q, known := own[word]; known {
			t.Errorf("%v and %v draw from one stream", q, p.Role)
		}
		if q, known := roots[root]; known {
			t.Errorf("%v and %v have one root", q, p.Role)
		}
		own[word], roots[root] = p.Role, p.Role
		if first(p.Public) != public {
			t.Errorf("%v has other public randomness than %v", p.Role, r[0].Role)
		}
		if (p.Group == nil) != p.Role.Serves() {
			t.Errorf("%v: what the parties share is given to them and not to the server", p.Role)
		}
	}
	for _, p := range r {
		if p.Group == nil {
			continue
		}
		group := first(p.Group)
		if group != first(r[0].Group) {
			t.Errorf("%v and %v share nothing", r[0].Role, p.Role)
		}
		if q, known := own[group]; known || group == public {
			t.Errorf("what the parties share is known to all or %v's own", q)
		}
	}
	if q, known := own[public]; known {
		t.Errorf("%v draws from the public seed", q)
	}
}
