package sum

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/ecdh"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/cohort-engine/cohort/internal/secagg"
)

// Member is a party's part in all sums of a study.
type Member struct {
	Config
	Index int
	// Root is the party's own secret, from which what it draws for its sums follows.
	Root [32]byte
	// Pair is the secret that the party shares with another.
	Pair func(party int) ([32]byte, error)
	// Sign and Verify are of the keys in the roster.
	Sign   func(statement []byte) ([]byte, error)
	Verify func(party int, statement, signature []byte) bool
	// History stands for all that parties must have had alike: at first a digest of what they share before the first
	// sum, then of that and the results of all sums so far, in their order.
	History [sha256.Size]byte

	graph *graph
	pairs map[int][32]byte // that Pair has given
	plain []byte           // message of the last sum, if Plain
}

// Client is a party's part in one sum.
type Client struct {
	*Member
	number uint32
	length int // of the vector, encoded
	words  []uint64
	secret *ecdh.PrivateKey
	seed   [32]byte
	keys   map[int]*ecdh.PublicKey      // of neighbours
	shares map[int][2][secretBytes]byte // of neighbours' seeds and keys, and of the own
	set    Set                          // that was signed
	next   byte                         // kind of the message that is waited for
}

// Result is what a sum came to.
type Result struct {
	// Set has whose vectors are in it; Vector the sum, encoded.
	Set    Set
	Vector []byte
}

// Begin joins sum number with a vector, encoded, and returns the first message, which is
// valid until the next sum.
func (m *Member) Begin(number uint32, vector []byte) (*Client, []byte, error) {
	if m.graph == nil && !m.Plain {
		m.graph = newGraph(&m.Config)
	}
	c := &Client{Member: m, number: number, length: len(vector)}
	if m.Plain {
		c.next = kindResult
		m.plain = append(append(m.plain[:0], head(kindMasked, number)...), vector...)
		return c, m.plain, nil
	}
	c.words = m.readWords(vector)
	var err error
	if c.secret, err = ecdh.X25519().NewPrivateKey(c.draw("key", keyBytes)); err != nil {
		return nil, nil, err
	}
	c.seed = [32]byte(c.draw("mask", secretBytes))
	key := c.secret.PublicKey().Bytes()
	signature, err := m.Sign(m.keyStatement(number, key))
	if err != nil {
		return nil, nil, err
	}
	c.next = kindKeyList
	return c, append(append(head(kindKeys, number), key...), signature...), nil
}

// keyStatement is what a party signs with its key of a sum: its history, too. What it adds follows from that, its
// noise among it, so it sums with those alone who have had the same.
func (m *Member) keyStatement(number uint32, key []byte) []byte {
	return m.statement("key", number, slices.Concat(key, m.History[:]))
}

// remember adds the result of a sum to the history.
func (m *Member) remember(number uint32, r *Result) {
	if m.Plain {
		return // nothing is signed
	}
	h := sha256.New()
	h.Write(m.History[:])
	h.Write(m.statement("result", number, r.Set))
	h.Write(r.Vector)
	m.History = [sha256.Size]byte(h.Sum(nil))
}

// draw derives what is secret of this sum.
func (c *Client) draw(what string, n int) []byte {
	return derive(c.Root[:], c.Study, fmt.Sprintf("sum %d %s", c.number, what), n)
}

// Take takes the server's next message: it returns the answer, nil for none, and the
// result at the end.
func (c *Client) Take(b []byte) (answer []byte, result *Result, err error) {
	kind, number, rest, err := split(b)
	switch {
	case err != nil:
		return nil, nil, err
	case number != c.number:
		return nil, nil, refuse("it is of sum %d in sum %d", number+1, c.number+1)
	case kind == kindResult: // also for a party that comes late
		result, err = c.end(rest)
		return nil, result, err
	case kind != c.next:
		return nil, nil, refuse("it is of kind %d where %d comes next", kind, c.next)
	}
	switch kind {
	case kindKeyList:
		answer, err = c.share(rest)
	case kindShareList:
		answer, err = c.mask(rest)
	case kindSet:
		answer, err = c.signSet(rest)
	case kindSigners:
		answer, err = c.reveal(rest)
	}
	return answer, nil, err
}

// sealer seals shares from one party for another.
func (c *Client) sealer(from, to, other int) (cipher.AEAD, error) {
	pair, known := c.pairs[other]
	if !known {
		var err error
		if pair, err = c.Pair(other); err != nil {
			return nil, err
		}
		if c.pairs == nil {
			c.pairs = make(map[int][32]byte)
		}
		c.pairs[other] = pair
	}
	block, err := aes.NewCipher(derive(pair[:], c.Study, fmt.Sprintf("sum shares %d %d", from, to), 32))
	if err != nil {
		return nil, err
	}
	return cipher.NewGCM(block)
}

// nonce is that of the shares of this sum: a direction has one message a sum.
func (c *Client) nonce() []byte { return binary.BigEndian.AppendUint32(make([]byte, 8, 12), c.number) }

// share is step 2.
func (c *Client) share(list []byte) ([]byte, error) {
	c.keys, c.shares = make(map[int]*ecdh.PublicKey), make(map[int][2][secretBytes]byte)
	near := c.graph.near[c.Index]
	err := c.entries(list, keyBytes+signBytes, func(p int, b []byte) error {
		if _, is := slices.BinarySearch(near, p); !is {
			return refuse("a key of party %d, which is no neighbour", p+1)
		}
		if !c.Verify(p, c.keyStatement(c.number, b[:keyBytes]), b[keyBytes:]) {
			return refuse("the key of party %d is not signed by it, or it has another secret of the group or was told other "+
				"results than this one", p+1)
		}
		key, err := ecdh.X25519().NewPublicKey(b[:keyBytes])
		c.keys[p] = key
		return err
	})
	if err != nil {
		return nil, err
	}
	if len(c.keys)+1 < c.graph.threshold {
		return nil, refuse("it has %d keys, and %d shares make up a secret", len(c.keys), c.graph.threshold)
	}
	n := (c.graph.threshold - 1) * secretBytes
	coefficients := [2][]byte{c.coefficients("seed", n), c.coefficients("key", n)}
	var key [secretBytes]byte
	copy(key[:], c.secret.Bytes())
	part := func(p int) (out [2][secretBytes]byte) {
		return [2][secretBytes]byte{share(c.seed, coefficients[0], uint16(p+1)), share(key, coefficients[1], uint16(p+1))}
	}
	c.shares[c.Index] = part(c.Index)
	out := head(kindShares, c.number)
	for _, p := range near {
		if c.keys[p] == nil {
			continue
		}
		s := part(p)
		aead, err := c.sealer(c.Index, p, p)
		if err != nil {
			return nil, err
		}
		out = entry(out, p, aead.Seal(nil, c.nonce(), slices.Concat(s[0][:], s[1][:]), nil))
	}
	c.next = kindShareList
	return out, nil
}

// coefficients are the key stream of a key for one secret.
func (c *Client) coefficients(of string, n int) []byte {
	block, err := aes.NewCipher(c.draw("shares of the "+of, 32))
	if err != nil {
		panic("sum: " + err.Error()) // the key has 32 bytes
	}
	b := make([]byte, n)
	cipher.NewCTR(block, make([]byte, aes.BlockSize)).XORKeyStream(b, b)
	return b
}

// mask is step 3: the parties whose shares came are those whose masks are added.
func (c *Client) mask(list []byte) ([]byte, error) {
	err := c.entries(list, sealedBytes, func(p int, b []byte) error {
		if c.keys[p] == nil {
			return refuse("shares of party %d, whose key did not come", p+1)
		}
		aead, err := c.sealer(p, c.Index, p)
		if err != nil {
			return err
		}
		plain, err := aead.Open(nil, c.nonce(), b, nil)
		if err != nil {
			return refuse("the shares of party %d cannot be opened", p+1)
		}
		c.shares[p] = [2][secretBytes]byte{[secretBytes]byte(plain), [secretBytes]byte(plain[secretBytes:])}
		return nil
	})
	if err != nil {
		return nil, err
	}
	if len(c.shares) < c.graph.threshold {
		return nil, refuse("it has shares of %d parties, and %d make up a secret", len(c.shares), c.graph.threshold)
	}
	masked := c.words // nothing else needs the vector
	c.words = nil
	c.addMask(masked, c.ownKey(c.seed), false)
	for p := range c.shares {
		if p == c.Index {
			continue
		}
		key, err := c.pairKey(c.number, c.secret, c.keys[p], c.Index, p)
		if err != nil {
			return nil, err
		}
		c.addMask(masked, key, p < c.Index)
	}
	c.next = kindSet
	return secagg.AppendWords(head(kindMasked, c.number), c.Ring, masked), nil
}

// ownKey is the key of a party's own mask.
func (c *Config) ownKey(seed [32]byte) []byte { return derive(seed[:], c.Study, "sum own mask", 32) }

// pairKey is the key of the mask of two parties in a sum.
func (c *Config) pairKey(number uint32, own *ecdh.PrivateKey, other *ecdh.PublicKey, i, j int) ([]byte, error) {
	shared, err := own.ECDH(other)
	if err != nil {
		return nil, refuse("a key of small order")
	}
	return derive(shared, c.Study, fmt.Sprintf("sum %d pair mask %d %d", number, min(i, j), max(i, j)), 32), nil
}

// signSet is step 4.
func (c *Client) signSet(b []byte) ([]byte, error) {
	set, err := c.setOf(b)
	if err != nil {
		return nil, err
	}
	if n := set.Count(); n < c.Threshold || !set.Has(c.Index) {
		return nil, refuse("a set of %d parties, with the threshold %d, or without this one", n, c.Threshold)
	}
	for _, p := range c.graph.near[c.Index] {
		if _, shared := c.shares[p]; set.Has(p) && !shared {
			return nil, refuse("party %d is in the set and its shares are not there", p+1)
		}
	}
	c.set, c.next = bytes.Clone(set), kindSigners
	signature, err := c.Sign(c.statement("set", c.number, b))
	return append(head(kindSigned, c.number), signature...), err
}

// reveal is step 5.
func (c *Client) reveal(list []byte) ([]byte, error) {
	signed := 0
	near := c.graph.near[c.Index]
	err := c.entries(list, signBytes, func(p int, b []byte) error {
		if _, is := slices.BinarySearch(near, p); !is && p != c.Index {
			return refuse("a signature of party %d, which is no neighbour", p+1)
		}
		if !c.set.Has(p) || !c.Verify(p, c.statement("set", c.number, c.set), b) {
			return refuse("party %d has not signed this set", p+1)
		}
		signed++
		return nil
	})
	if err != nil {
		return nil, err
	}
	if signed < c.graph.threshold {
		return nil, refuse("%d parties have signed the set, and %d must", signed, c.graph.threshold)
	}
	out := head(kindReveal, c.number)
	for p := range c.Parties {
		s, held := c.shares[p]
		if !held {
			continue
		}
		which := byte(0)
		if !c.set.Has(p) {
			which = 1
		}
		out = entry(out, p, []byte{which}, s[which][:])
	}
	c.next = kindResult
	return out, nil
}

// end reads the result. A party that signed a set takes the sum over that set alone.
func (c *Client) end(b []byte) (*Result, error) {
	at := len(b) - c.length
	if at < 0 {
		return nil, refuse("a result of %d bytes", len(b))
	}
	set := c.everybody()
	if at > 0 {
		var err error
		if set, err = c.setOf(b[:at]); err != nil {
			return nil, err
		}
	}
	if n := set.Count(); n < c.Threshold {
		return nil, refuse("a sum of %d parties, with the threshold %d", n, c.Threshold)
	}
	if c.set != nil && !bytes.Equal(c.set, set) {
		return nil, refuse("a sum over another set than the one that was signed")
	}
	r := &Result{Set: set, Vector: b[at:]}
	c.remember(c.number, r)
	return r, nil
}
