package study

import (
	"bytes"
	"crypto/ecdh"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/nats-io/nkeys"

	"github.com/cohort-engine/cohort/engine/protocol"
	"github.com/cohort-engine/cohort/internal/fault"
)

// identity is what a role is: a key to sign with and one to agree on keys with, and
// the root of its randomness. It is made once and kept in the role's journal.
type identity struct {
	Study   []byte `json:"study"`
	Party   int    `json:"party"`
	Signing []byte `json:"signing"` // nkey seed
	Sealing []byte `json:"sealing"` // X25519
	Root    []byte `json:"root"`
}

// String hides the keys.
func (identity) String() string { return "study.identity(redacted)" }

// GoString hides the keys.
func (i identity) GoString() string { return i.String() }

// keys are an identity's, ready for use.
type keys struct {
	party   protocol.Role
	signing nkeys.KeyPair
	sealing *ecdh.PrivateKey
	root    [32]byte
}

// newIdentity draws the keys of a role.
func newIdentity(study [32]byte, party protocol.Role) (*identity, error) {
	pair, err := nkeys.CreateUser()
	if err != nil {
		return nil, err
	}
	seed, err := pair.Seed()
	if err != nil {
		return nil, err
	}
	sealing, err := ecdh.X25519().GenerateKey(rand.Reader)
	if err != nil {
		return nil, err
	}
	i := &identity{Study: study[:], Party: int(party), Signing: seed, Sealing: sealing.Bytes(), Root: make([]byte, 32)}
	rand.Read(i.Root) // never fails since Go 1.24
	return i, nil
}

// keys reads an identity.
func (i *identity) keys() (*keys, error) {
	pair, err := nkeys.FromSeed(i.Signing)
	if err != nil || len(i.Root) != 32 {
		return nil, errors.New("study: a journal without keys")
	}
	sealing, err := ecdh.X25519().NewPrivateKey(i.Sealing)
	if err != nil {
		return nil, err
	}
	return &keys{party: protocol.Role(i.Party), signing: pair, sealing: sealing, root: [32]byte(i.Root)}, nil
}

// Entry is a role in the roster: its public keys, signed by itself.
type Entry struct {
	Party     int    `json:"party"` // from 0; -1 is the coordinator, -2 and -3 are further servers
	Signing   string `json:"signing"`
	Sealing   []byte `json:"sealing"`
	Signature []byte `json:"signature"`
}

// statement is what an entry's owner signs.
func (e *Entry) statement(study [32]byte) []byte {
	b := append([]byte("cohort roster entry\x00"), study[:]...)
	b = binary.LittleEndian.AppendUint32(b, uint32(int32(e.Party)))
	b = append(b, e.Signing...)
	return append(b, e.Sealing...)
}

// entry is the entry of an identity.
func (k *keys) entry(study [32]byte) (Entry, error) {
	public, err := k.signing.PublicKey()
	if err != nil {
		return Entry{}, err
	}
	e := Entry{Party: int(k.party), Signing: public, Sealing: k.sealing.PublicKey().Bytes()}
	e.Signature, err = k.signing.Sign(e.statement(study))
	return e, err
}

// check checks an entry that may come from anybody.
func (e *Entry) check(study [32]byte) error {
	public, err := nkeys.FromPublicKey(e.Signing)
	if err != nil || !nkeys.IsValidPublicUserKey(e.Signing) || public.Verify(e.statement(study), e.Signature) != nil {
		return fault.Failed("roster", fmt.Sprintf("the entry of %v is not signed by its key", protocol.Role(e.Party)),
			"ask the coordinator what happened: do not go on", nil)
	}
	if _, err := ecdh.X25519().NewPublicKey(e.Sealing); err != nil {
		return fault.Failed("roster", fmt.Sprintf("the entry of %v has no key", protocol.Role(e.Party)),
			"ask the coordinator what happened: do not go on", err)
	}
	return nil
}

// place is where a role stands among those of a study with so many parties: after the
// coordinator come the parties, then other servers. A party that is not there has none, -1.
func place(r protocol.Role, parties int) int {
	switch {
	case r == protocol.Server:
		return 0
	case r.Serves():
		return parties + int(protocol.Server-r)
	case int(r) >= parties:
		return -1
	}
	return int(r) + 1
}

// roleAt is the role at a place.
func roleAt(place, parties int) protocol.Role {
	if place > parties {
		return protocol.ServerAt(place - parties)
	}
	return protocol.Role(place - 1)
}

// Roster are all roles of a study: the coordinator, the parties in order, other servers.
type Roster struct {
	Entries []Entry `json:"entries"`

	parties  int
	study    [32]byte
	signers  []nkeys.KeyPair
	seals    []*ecdh.PublicKey
	identity [32]byte
}

// newRoster checks the entries of a study of so many parties, and servers besides the
// coordinator.
func newRoster(study [32]byte, parties, servers int, entries []Entry) (*Roster, error) {
	if len(entries) != 1+parties+servers {
		return nil, fault.Failed("roster", fmt.Sprintf("has %d entries for %d roles", len(entries), 1+parties+servers),
			"ask the coordinator what happened", nil)
	}
	r := &Roster{Entries: entries, study: study, parties: parties}
	h := sha256.New()
	h.Write([]byte("cohort roster\x00"))
	h.Write(study[:])
	seen := make(map[string]bool)
	for i := range entries {
		e := &entries[i]
		if e.Party != int(roleAt(i, parties)) {
			return nil, fault.Failed("roster", "is not in order", "ask the coordinator what happened", nil)
		}
		if err := e.check(study); err != nil {
			return nil, err
		}
		if seen[e.Signing] || seen[string(e.Sealing)] {
			return nil, fault.Failed("roster", "has one key twice", "ask the coordinator what happened: do not go on", nil)
		}
		seen[e.Signing], seen[string(e.Sealing)] = true, true
		public, err := nkeys.FromPublicKey(e.Signing)
		if err != nil {
			return nil, err
		}
		seal, err := ecdh.X25519().NewPublicKey(e.Sealing)
		if err != nil {
			return nil, err
		}
		r.signers, r.seals = append(r.signers, public), append(r.seals, seal)
		h.Write(e.statement(study))
	}
	r.identity = [32]byte(h.Sum(nil))
	return r, nil
}

// hash stands for the study and all keys.
func (r *Roster) hash() [32]byte { return r.identity }

// Fingerprint is the roster's hash for people to compare by telephone: eight groups of
// five digits, 132 bits.
func (r *Roster) Fingerprint() string {
	return fingerprint(r.identity[:])
}

// fingerprint is bytes in digits.
func fingerprint(b []byte) string {
	sum := sha256.Sum256(b)
	var groups []string
	for i := range 8 {
		groups = append(groups, fmt.Sprintf("%05d", binary.BigEndian.Uint32(sum[4*i:])%100000))
	}
	return strings.Join(groups, " ")
}

// keyPrint is the fingerprint of the keys of the role at a place.
func (r *Roster) keyPrint(place int) string {
	e := &r.Entries[place]
	return strings.Join(strings.Fields(fingerprint(e.statement(r.study)))[:4], " ")
}

// verify checks a signature of a role.
func (r *Roster) verify(party protocol.Role, statement, signature []byte) bool {
	at := place(party, r.parties)
	return at >= 0 && at < len(r.signers) && r.signers[at].Verify(statement, signature) == nil
}

// consent is what a party signs when it agrees to a study with a roster.
func (r *Roster) consent() []byte {
	return append([]byte("cohort consent\x00"), r.identity[:]...)
}

// pair is the secret that two roles of the roster share.
func (k *keys) pair(r *Roster, other protocol.Role) ([32]byte, error) {
	at := place(other, r.parties)
	if at < 0 || at >= len(r.seals) || other == k.party {
		return [32]byte{}, fmt.Errorf("study: there is no %v to share a key with", other)
	}
	shared, err := k.sealing.ECDH(r.seals[at])
	if err != nil {
		return [32]byte{}, fmt.Errorf("study: the key of %v is of small order", other)
	}
	return derived(shared, r.identity, fmt.Sprintf("pair %d %d", min(k.party, other), max(k.party, other)))
}

// agrees reports whether there is a secret that this role and an entry's owner share: with a key of small order there
// is none, and a study would end when its parties have paid.
func (k *keys) agrees(e *Entry) bool {
	key, err := ecdh.X25519().NewPublicKey(e.Sealing)
	if err == nil {
		_, err = k.sealing.ECDH(key)
	}
	return err == nil
}

// links returns the keys of the streams to and from another role.
func (k *keys) links(r *Roster) func(protocol.Role) (to, from [32]byte, err error) {
	return func(other protocol.Role) (to, from [32]byte, err error) {
		pair, err := k.pair(r, other)
		if err != nil {
			return to, from, err
		}
		if to, err = derived(pair[:], r.identity, fmt.Sprintf("link %d %d", k.party, other)); err != nil {
			return to, from, err
		}
		from, err = derived(pair[:], r.identity, fmt.Sprintf("link %d %d", other, k.party))
		return to, from, err
	}
}

// derived is HKDF with SHA-256.
func derived(secret []byte, salt [32]byte, info string) (out [32]byte, err error) {
	b, err := hkdf.Key(sha256.New, secret, salt[:], "cohort study "+info, len(out))
	copy(out[:], b)
	return out, err
}

// strict decodes JSON that has no other fields.
func strict(b []byte, v any) error {
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	return d.Decode(v)
}
