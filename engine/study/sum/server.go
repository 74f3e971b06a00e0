package sum

import (
	"bytes"
	"crypto/ecdh"
	"fmt"
	"slices"

	"github.com/cohort-engine/cohort/internal/fault"
	"github.com/cohort-engine/cohort/internal/secagg"
)

// Phase is what the server of a sum waits for.
type Phase byte

// The phases, in order.
const (
	Keys Phase = iota
	Shares
	Vectors
	Signatures
	Reveals
	Done
)

// String names the phase for people.
func (p Phase) String() string {
	return [...]string{"keys", "shares", "masked vectors", "signatures", "unmasking", "done"}[p]
}

// Server adds up one sum.
type Server struct {
	*Config
	Number uint32
	phase  Phase
	graph  *graph
	// expected are those whose answers the phase waits for, in those who answered it.
	expected, in []bool
	waiting      int // expected, and not in
	answered     int // in
	keys         map[int][]byte
	sealed       []map[int][]byte // by receiver and sender
	shared       []bool           // who has sent shares
	vectors      Set              // whose vectors are in the total
	total        []uint64
	kept         Set // whose vectors an earlier life had in the total when it closed the step; nil if there was none
	signatures   map[int][]byte
	revealed     map[int]map[int][secretBytes]byte // by owner and sharer: of the kind that its owner's fate asks for
}

// Out is a message for a party.
type Out struct {
	To   int
	Body []byte
}

// NewServer begins a sum, in which it waits for the parties that are expected; others
// may still come before the first step ends.
func (c *Config) NewServer(number uint32, expected []bool) *Server {
	s := &Server{Config: c, Number: number, expected: slices.Clone(expected), in: make([]bool, c.Parties),
		vectors: c.newSet()}
	s.waiting = count(expected)
	if c.Plain {
		s.phase = Vectors
		return s
	}
	s.graph, s.keys, s.sealed, s.shared = newGraph(c), make(map[int][]byte), make([]map[int][]byte, c.Parties),
		make([]bool, c.Parties)
	s.signatures, s.revealed = make(map[int][]byte), make(map[int]map[int][secretBytes]byte)
	return s
}

// Phase is the step under way.
func (s *Server) Phase() Phase { return s.phase }

// Missing lists the parties whose answers the step waits for.
func (s *Server) Missing() (parties []int) {
	for p, e := range s.expected {
		if e && !s.in[p] {
			parties = append(parties, p)
		}
	}
	return parties
}

// Expect says whether the step waits for a party.
func (s *Server) Expect(party int, expected bool) {
	if s.expected[party] != expected && !s.in[party] {
		if expected {
			s.waiting++
		} else {
			s.waiting--
		}
	}
	s.expected[party] = expected
}

// Answered is how many have answered the step.
func (s *Server) Answered() int { return s.answered }

// stepOf says which step a message answers.
var stepOf = map[byte]Phase{kindKeys: Keys, kindShares: Shares, kindMasked: Vectors, kindSigned: Signatures,
	kindReveal: Reveals}

// Take takes a message of a party. An error says why it is refused: the party is then
// as one that said nothing. late says that the step it belongs to is over.
func (s *Server) Take(from int, b []byte) (late bool, err error) {
	kind, number, rest, err := split(b)
	if err != nil {
		return false, err
	}
	if from < 0 || from >= s.Parties || number != s.Number {
		return false, refuse("it is of sum %d in sum %d", number+1, s.Number+1)
	}
	phase, known := stepOf[kind]
	switch {
	case !known || phase > s.phase:
		return false, refuse("it is of kind %d in the step of %v", kind, s.phase)
	case phase < s.phase:
		return true, nil
	case s.in[from]:
		return false, refuse("party %d sends a second message in the step of %v", from+1, s.phase)
	case !s.expected[from] && s.phase != Keys && !s.Plain:
		return true, nil
	}
	switch phase {
	case Keys:
		err = s.takeKey(from, rest)
	case Shares:
		err = s.takeShares(from, rest)
	case Vectors:
		err = s.takeVector(from, rest)
	case Signatures:
		err = s.takeSignature(from, rest)
	case Reveals:
		err = s.takeReveal(from, rest)
	}
	if err == nil {
		s.in[from] = true
		s.answered++
		if s.expected[from] {
			s.waiting--
		}
	}
	return false, err
}

func (s *Server) takeKey(from int, b []byte) error {
	if len(b) != keyBytes+signBytes {
		return refuse("a key of %d bytes", len(b))
	}
	s.keys[from] = bytes.Clone(b)
	return nil
}

func (s *Server) takeShares(from int, b []byte) error {
	got := make(map[int][]byte)
	err := s.entries(b, sealedBytes, func(p int, b []byte) error {
		if _, near := slices.BinarySearch(s.graph.near[from], p); !near || s.keys[p] == nil {
			return refuse("shares for party %d, which waits for none", p+1)
		}
		got[p] = bytes.Clone(b)
		return nil
	})
	if err != nil {
		return err
	}
	for _, p := range s.graph.near[from] {
		if s.keys[p] != nil && got[p] == nil {
			return refuse("shares for party %d are missing", p+1)
		}
	}
	for p, sealed := range got {
		if s.sealed[p] == nil {
			s.sealed[p] = make(map[int][]byte)
		}
		s.sealed[p][from] = sealed
	}
	s.shared[from] = true
	return nil
}

func (s *Server) takeVector(from int, b []byte) error {
	size := s.Ring.Bytes()
	if s.kept != nil {
		if !s.kept.Has(from) {
			return refuse("a vector of %d bytes was refused before", len(b))
		}
		s.vectors.add(from)
		return nil
	}
	if s.total == nil && len(b) > 0 && len(b)%size == 0 {
		s.total = make([]uint64, len(b)/size)
	}
	if len(b) == 0 || len(b) != len(s.total)*size {
		return refuse("a vector of %d bytes, where the first had %d", len(b), len(s.total)*size)
	}
	secagg.AddWords(s.total, s.Ring, b)
	s.vectors.add(from)
	return nil
}

func (s *Server) takeSignature(from int, b []byte) error {
	if len(b) != signBytes {
		return refuse("a signature of %d bytes", len(b))
	}
	s.signatures[from] = bytes.Clone(b)
	return nil
}

func (s *Server) takeReveal(from int, b []byte) error {
	got := make(map[int][secretBytes]byte)
	err := s.entries(b, 1+secretBytes, func(p int, b []byte) error {
		_, near := slices.BinarySearch(s.graph.near[from], p)
		if !near && p != from || !s.shared[p] || b[0] > 1 || (b[0] == 1) == s.vectors.Has(p) {
			return refuse("a share of party %d that was not asked for", p+1)
		}
		got[p] = [secretBytes]byte(b[1:])
		return nil
	})
	if err != nil {
		return err
	}
	for p, x := range got {
		if s.revealed[p] == nil {
			s.revealed[p] = make(map[int][secretBytes]byte)
		}
		s.revealed[p][from] = x
	}
	return nil
}

// State is what the sum has of the vectors, before the step of vectors is closed: whose they
// are, and their total. A server that is given it needs of their messages the heads alone.
func (s *Server) State() []byte { return secagg.AppendWords(slices.Clone(s.vectors), s.Ring, s.total) }

// Restore begins with State of an earlier life.
func (s *Server) Restore(state []byte) error {
	at := len(s.vectors)
	if len(state) < at || (len(state)-at)%s.Ring.Bytes() != 0 {
		return refuse("a state of %d bytes", len(state))
	}
	set, err := s.setOf(state[:at])
	s.kept, s.total = set, s.readWords(state[at:])
	return err
}

// Ready reports whether all that are expected have answered.
func (s *Server) Ready() bool { return s.waiting == 0 }

// Close ends the step with those who have answered and returns what they are told. It
// fails if they are fewer than the threshold: then there is no sum.
func (s *Server) Close() (out []Out, err error) {
	if s.answered < s.Threshold {
		return nil, fault.Failed("sum "+fmt.Sprint(s.Number+1),
			fmt.Sprintf("%d of %d parties answered in the step of %v, and %d must", s.answered, s.Parties, s.phase, s.Threshold),
			"begin a new study with those who can stay, or a lower --at-least", nil)
	}
	for p, in := range s.in {
		if !in {
			continue
		}
		if body := s.told(p); body != nil {
			out = append(out, Out{p, body})
		}
	}
	if s.phase == Reveals {
		err = s.unmask()
	}
	s.phase++
	if s.Plain || s.phase > Reveals {
		s.phase = Done
	}
	s.expected, s.in = s.in, make([]bool, s.Parties)
	s.waiting, s.answered = s.answered, 0
	return out, err
}

// told is what a party hears at the end of a step.
func (s *Server) told(p int) []byte {
	var b []byte
	switch s.phase {
	case Keys:
		b = head(kindKeyList, s.Number)
		for _, q := range s.graph.near[p] {
			if key := s.keys[q]; key != nil {
				b = entry(b, q, key)
			}
		}
	case Shares:
		b = head(kindShareList, s.Number)
		for _, q := range s.graph.near[p] {
			if sealed := s.sealed[p][q]; sealed != nil && s.shared[q] {
				b = entry(b, q, sealed)
			}
		}
	case Vectors:
		if !s.Plain {
			b = append(head(kindSet, s.Number), s.vectors...)
		}
	case Signatures:
		b = head(kindSigners, s.Number)
		for q := range s.Parties {
			_, near := slices.BinarySearch(s.graph.near[p], q)
			if signature := s.signatures[q]; signature != nil && (near || q == p) {
				b = entry(b, q, signature)
			}
		}
	}
	return b
}

// unmask takes off the own masks of those in the set, and the pairs' masks of those who
// shared their secrets and vanished.
func (s *Server) unmask() error {
	var cached struct {
		points, weights []uint16
	}
	for owner, shared := range s.shared {
		if !shared {
			continue
		}
		var points []uint16
		var shares [][secretBytes]byte
		for q := 0; q < s.Parties && len(points) < s.graph.threshold; q++ {
			if x, is := s.revealed[owner][q]; is {
				points, shares = append(points, uint16(q+1)), append(shares, x)
			}
		}
		if len(points) < s.graph.threshold {
			return fault.Failed("sum "+fmt.Sprint(s.Number+1),
				fmt.Sprintf("%s of a secret of party %d left, and %d needed", fault.Count(len(points), "share"), owner+1,
					s.graph.threshold),
				"begin a new study with those who can stay, or a lower --at-least", nil)
		}
		if !slices.Equal(points, cached.points) {
			w, err := weights(points)
			if err != nil {
				return err
			}
			cached.points, cached.weights = points, w
		}
		secret := combine(cached.weights, shares)
		if s.vectors.Has(owner) {
			s.addMask(s.total, s.ownKey(secret), true)
			continue
		}
		if err := s.dropPairs(owner, secret); err != nil {
			return err
		}
	}
	return nil
}

// dropPairs takes off the masks that the others added for a party that vanished.
func (s *Server) dropPairs(owner int, secret [32]byte) error {
	key, err := ecdh.X25519().NewPrivateKey(secret[:])
	if err != nil {
		return err
	}
	if !bytes.Equal(key.PublicKey().Bytes(), s.keys[owner][:keyBytes]) {
		return fault.Failed("sum "+fmt.Sprint(s.Number+1),
			fmt.Sprintf("the shares of party %d do not make up its key", owner+1), "find out who sent wrong shares", nil)
	}
	for _, q := range s.graph.near[owner] {
		if !s.vectors.Has(q) || s.sealed[q][owner] == nil {
			continue
		}
		public, err := ecdh.X25519().NewPublicKey(s.keys[q][:keyBytes])
		if err != nil {
			return err
		}
		mask, err := s.pairKey(s.Number, key, public, owner, q)
		if err != nil {
			return err
		}
		s.addMask(s.total, mask, owner > q) // q added it if owner < q
	}
	return nil
}

// Set has whose vectors are in the sum, and Total the sum, encoded, when it is done.
func (s *Server) Set() Set { return s.vectors }

// Total is the sum under the group's masks, encoded.
func (s *Server) Total() []byte { return secagg.AppendWords(nil, s.Ring, s.total) }

// Result is the message that tells a party the sum: vector is Total, to which the
// server may have added its noise.
func (s *Server) Result(vector []byte) []byte {
	b := head(kindResult, s.Number)
	if s.vectors.Count() < s.Parties {
		b = append(b, s.vectors...)
	}
	return append(b, vector...)
}
