package protocol

import (
	"encoding/hex"
	"fmt"
	"sync"

	"github.com/cohort-engine/cohort/engine/privacy"
	"github.com/cohort-engine/cohort/internal/secagg"
	"github.com/cohort-engine/cohort/internal/secret"
)

// PublicSeed is what all public randomness of a run follows from: starts,
// projections, hash functions, searches among released values. The plan states
// it. Nothing that must be secret may come from it.
type PublicSeed [32]byte

// NewPublicSeed is the public seed of a simulation, or a fresh one for nil.
func NewPublicSeed(seed *uint64) PublicSeed {
	if seed == nil {
		return secret.New().Key()
	}
	return secret.Simulated(*seed, "public").Key()
}

// Streams are the public streams.
func (s PublicSeed) Streams() *privacy.Streams { return privacy.StreamsOf(secret.Of(s)) }

// String is the seed in hexadecimal.
func (s PublicSeed) String() string { return hex.EncodeToString(s[:]) }

// MarshalText encodes the seed in hexadecimal.
func (s PublicSeed) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText reads what MarshalText writes.
func (s *PublicSeed) UnmarshalText(text []byte) error {
	if n, err := hex.Decode(s[:], text[:min(len(text), 2*len(s))]); err != nil || n != len(s) || len(text) != 2*len(s) {
		return fmt.Errorf("protocol: a public seed has %d hexadecimal digits", 2*len(s))
	}
	return nil
}

// Secrets are the roots of what a role keeps from others. A role needs its own and
// the public seed of the plan, and nobody else's.
type Secrets struct {
	// Own is the root of the role's own randomness: its noise, its keys.
	Own secret.Root
	// Group is what all parties share and the server lacks, for masks and for hashing
	// under common keys; zero at the server.
	Group secret.Root
}

// SimulatedSecrets are the secrets of a role in the simulation of a seed.
func SimulatedSecrets(seed uint64, r Role) Secrets {
	root := secret.Simulation(seed)
	s := Secrets{Own: ownOf(root, r)}
	if !r.Serves() {
		s.Group = groupOf(root)
	}
	return s
}

// ownOf is a role's own root, and groupOf what the parties share, where one root has the secrets of all.
func ownOf(root secret.Root, r Role) secret.Root { return root.Derive(r.String()) }
func groupOf(root secret.Root) secret.Root       { return root.Derive("group") }

// shared is what follows from what the parties of this process share, derived once.
type shared struct {
	root   secret.Root // of the secrets of all, where one process has them; else zero
	group  secret.Root
	of     *privacy.Streams
	masks  secret.Root
	public *privacy.Streams

	mu      sync.Mutex
	key     *secagg.Key // the last one
	keyRoot secret.Root
	keyFor  int
}

// newShared makes what the roles of a plan share. Where they are given no secrets, these follow from one root: of a
// simulation, or a fresh one.
func newShared(plan *Plan, given bool) *shared {
	s := &shared{public: plan.PublicSeed.Streams()}
	switch {
	case given:
		return s
	case plan.Seed != nil:
		s.root = secret.Simulation(*plan.Seed)
	default:
		s.root = secret.New()
	}
	s.group = groupOf(s.root)
	return s
}

// maskKey is the mask generator of a root for vectors of a length.
func (s *shared) maskKey(root secret.Root, ring secagg.Ring, length int) (*secagg.Key, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.key != nil && s.keyRoot == root && s.keyFor == length {
		return s.key, nil
	}
	var err error
	s.key, err = secagg.NewKey(root, ring, length)
	s.keyRoot, s.keyFor = root, length
	return s.key, err
}

// from is what follows from the parties' root.
func (s *shared) from(group secret.Root) (of *privacy.Streams, masks secret.Root) {
	if s.of == nil || s.group != group {
		s.group, s.of, s.masks = group, privacy.StreamsOf(group.Derive("streams")), group.Derive("masks")
	}
	return s.of, s.masks
}

// take gives the party its randomness. In a process that has the secrets of all, its own are derived when they are
// asked for, which is never where it draws nothing.
func (p *Party) take(given func(Role) Secrets, common *shared) error {
	p.Public, p.common = common.public, common
	group, none := common.group, secret.Root{}
	if common.root == none {
		var s Secrets
		if given != nil {
			s = given(p.Role)
		}
		switch {
		case s.Own == none:
			return fmt.Errorf("protocol: %v has no root of its own", p.Role)
		case s.Group == none && !p.Role.Serves() && p.Plan.Parties > 1:
			return fmt.Errorf("protocol: %v lacks the root that the parties share", p.Role)
		case p.single && p.Plan.PublicSeed == (PublicSeed{}):
			return fmt.Errorf("protocol: the plan of %v states no public seed", p.Role)
		}
		p.own, group = s.Own, s.Group
	}
	if p.Role.Serves() {
		return nil
	}
	p.Group, p.maskRoot = common.from(group)
	if p.Plan.Ring {
		p.maskRoot = p.root().Derive("masks")
	}
	return nil
}

// root is that of all that is the role's own.
func (p *Party) root() secret.Root {
	if p.own == (secret.Root{}) {
		p.own = ownOf(p.common.root, p.Role)
	}
	return p.own
}

// Streams are the role's own randomness.
func (p *Party) Streams() *privacy.Streams {
	if p.streams == nil {
		p.streams = privacy.StreamsOf(p.root().Derive("streams"))
	}
	return p.streams
}

// Root is a secret of the role's own, for what draws its randomness otherwise than
// from streams.
func (p *Party) Root(name string) secret.Root { return p.root().Derive("root " + name) }
