package flow

import (
	"cmp"
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math"
	"slices"
)

// hashBits is the width of a word of the tie hash. Sums of 2(k+2) of them, the
// longest path on k <= 65535 clusters, fit in an int64.
const hashBits = 45

// TieDelta bounds the probability that in any of rounds assignments of n records
// to k clusters, each with a key of its own, the optimum is not unique up to identical
// records, on either of two neighbouring data sets: 2 rounds (n k/2^45)^2, which is what the
// order-independence of the assignment adds to delta. By the isolation lemma two words of W
// values, of which one maps two values to one, leave a tie with probability at most 2nk/W^2
// (privacy/THEOREMS.md T1).
func TieDelta(n, k, rounds int) float64 {
	one := math.Ldexp(float64(n)*float64(k), -hashBits)
	return min(1, 2*float64(rounds)*float64(one*one))
}

// digest identifies a quantised record.
type digest [16]byte

// tieHash computes the words that tell assignments of equal distance apart:
// AES-128, under the key zero, of the digest of the record added to the public key and the
// cluster, cut to two words of hashBits bits. The first word is at least 1, so an extra
// membership is never free. The key may change from problem to problem at no cost.
type tieHash struct {
	key    [16]byte
	block  cipher.Block
	scale  float64
	record []byte
	point  []float32
	in     [16]byte
	out    [16]byte
}

func newTieHash(p *Problem) *tieHash {
	block, err := aes.NewCipher(make([]byte, 16))
	if err != nil {
		panic(err) // a 16-byte key is always accepted
	}
	t := &tieHash{block: block}
	t.of(p)
	return t
}

// of makes t the hash of a problem.
func (t *tieHash) of(p *Problem) { t.key, t.scale = p.Key, math.Ldexp(1, p.FractionBits) }

// digest returns the first half of SHA-256 over the grid coordinates of point i.
func (t *tieHash) digest(p *Problem, i int) digest {
	t.point = p.Points.Point(i, t.point)
	t.record = t.record[:0]
	for _, x := range t.point {
		t.record = binary.LittleEndian.AppendUint32(t.record, uint32(int32(float64(x)*t.scale)))
	}
	sum := sha256.Sum256(t.record)
	return digest(sum[:16])
}

// words returns the hash of a record and cluster j.
func (t *tieHash) words(d digest, j int) (hash0, hash1 int64) {
	for i, x := range d {
		t.in[i] = x ^ t.key[i]
	}
	binary.LittleEndian.PutUint32(t.in[:], binary.LittleEndian.Uint32(t.in[:])^uint32(j))
	t.block.Encrypt(t.out[:], t.in[:])
	hash0 = int64(binary.LittleEndian.Uint64(t.out[:8]) >> (64 - hashBits))
	hash1 = int64(binary.LittleEndian.Uint64(t.out[8:]) >> (64 - hashBits))
	return max(1, hash0), hash1
}

// nearer reports whether cluster a is before cluster b by their distances from point i and tie hashes.
func (t *tieHash) nearer(p *Problem, i, a, b int) bool {
	if x, y := p.cost(i, a), p.cost(i, b); x != y {
		return x < y
	}
	d := t.digest(p, i)
	a0, a1 := t.words(d, a)
	b0, b1 := t.words(d, b)
	return a0 < b0 || a0 == b0 && a1 < b1
}

// tie is a group that is as cheap in a column, in which it is or not.
type tie struct{ group, column int32 }

// ties replaces an optimal flow by the one that is also least in the tie hash.
// Optimal flows differ only along tight arcs (complementary slackness: prices are
// optimal for all of them), so each word of the hash is minimised over the tight arcs
// of the level before, with the sizes that its prices leave open. Where the tight
// arcs have no cycle the optimum is unique already, and nothing is hashed.
type ties struct {
	words [2]members // whose costs are the first and the second word of the hash
	tied  []tie
	union []int32
}

// origin is a group of the level before, one of its points and its multiplicity.
type origin struct{ group, point, units int32 }

// breakTies applies the tie-break to the flow of s.members.
func (s *Solver) breakTies(ctx context.Context) error {
	b := &s.ties
	levels := [...]*members{&s.members, &b.words[0], &b.words[1]}
	deepest := 0
	for level := 1; level < len(levels); level++ {
		upper, lower := levels[level-1], levels[level]
		if err := upper.tied(ctx, &b.tied); err != nil {
			return err
		}
		if !b.cyclic(&upper.t) {
			break
		}
		deepest = level
		lower.narrow(upper, b.tied, level)
		if solved, _, err := lower.t.run(ctx, 0, math.MaxInt); err != nil {
			return err
		} else if !solved {
			panic(fmt.Sprintf("flow: tie level %d: the level before was not optimal", level))
		}
	}
	for level := deepest; level > 0; level-- {
		levels[level-1].give(levels[level])
	}
	return nil
}

// tied sets ties to the tight arcs of the groups that have several, by group and
// column. Unknown moves are not tight.
func (m *members) tied(ctx context.Context, ties *[]tie) error {
	t := &m.t
	*ties = (*ties)[:0]
	for u := range int32(t.columns) {
		c := &m.columns[u]
		for i := range t.rows[u] {
			e := &t.rows[u][i]
			tight := t.potential[e.column] - t.potential[u]
			if e.cost > tight {
				continue
			}
			if t.refresh(u, e); e.cost != tight {
				continue
			}
			m.gather(u, e.column, tight, infinity)
			for _, s := range m.going {
				*ties = append(*ties, tie{c.slots[s].group, u}, tie{c.slots[s].group, e.column})
			}
		}
	}
	slices.SortFunc(*ties, func(a, b tie) int {
		return cmp.Or(cmp.Compare(a.group, b.group), cmp.Compare(a.column, b.column))
	})
	*ties = slices.Compact(*ties)
	return ctx.Err()
}

// cyclic reports whether the tight arcs of t have a cycle, through the super-sink if
// prices leave sizes open.
func (b *ties) cyclic(t *transport) bool {
	b.union = b.union[:0]
	for j := range t.sink + 1 {
		b.union = append(b.union, j)
	}
	cyclic := false
	for j := range t.sink {
		if least, most := t.bounds[j].at(t.price(int(j))); least < most && b.unite(j, t.sink) {
			cyclic = true
		}
	}
	for i, x := range b.tied {
		if i > 0 && b.tied[i-1].group == x.group && b.unite(b.tied[i-1].column, x.column) {
			cyclic = true
		}
	}
	return cyclic
}

// unite joins two sets of columns and reports whether they were one.
func (b *ties) unite(x, y int32) bool {
	for b.union[x] != x {
		b.union[x] = b.union[b.union[x]]
		x = b.union[x]
	}
	for b.union[y] != y {
		b.union[y] = b.union[b.union[y]]
		y = b.union[y]
	}
	b.union[x] = y
	return x == y
}

// narrow makes m the ties of upper: its groups are those that are tied, each in the
// columns where a word of its hash is least.
func (m *members) narrow(upper *members, ties []tie, word int) {
	t, above := &m.t, &upper.t
	m.s, m.p, m.k, m.outside, m.escape, m.exclusive = upper.s, upper.p, upper.k, upper.outside, upper.escape,
		upper.exclusive
	m.reach, m.laying = infinity-1, upper.laying
	t.resize(above.columns)
	t.m = m
	copy(t.size, above.size)
	for _, x := range []*[]int64{&m.known, &m.listed} {
		*x = append((*x)[:0], slices.Repeat([]int64{infinity}, t.columns)...)
	}
	m.columns = atLeast(m.columns, t.columns)
	for j := range t.columns {
		least, most := above.bounds[j].at(above.price(j))
		t.bounds[j] = bounds{lo: least, hi: most, top: most, under: infinity, over: infinity}
		m.columns[j].slots = m.columns[j].slots[:0]
	}
	m.origins, m.arcs, m.first = m.origins[:0], m.arcs[:0], m.first[:0]
	m.spot, m.labels = m.spot[:0], m.labels[:0]
	m.unlink()
	for len(ties) > 0 {
		own := 1
		for own < len(ties) && ties[own].group == ties[0].group {
			own++
		}
		m.add(upper, ties[:own], word)
		ties = ties[own:]
	}
	m.first = append(m.first, int32(len(m.arcs)))
	for u := range int32(t.columns) {
		t.where[u] = 1
		for _, s := range m.columns[u].slots {
			for _, a := range m.arcsOf(s.group) {
				if t.where[a.column] == 0 {
					t.where[a.column] = 1
					t.rows[u] = append(t.rows[u], entry{0, a.column, stale})
				}
			}
		}
		t.where[u] = 0
		for _, e := range t.rows[u] {
			t.where[e.column] = 0
		}
	}
	t.setOutflows()
}

// add adds the group of upper that has the given ties.
func (m *members) add(upper *members, ties []tie, word int) {
	q, o := int32(len(m.origins)), origin{ties[0].group, ties[0].group, int32(upper.copies(ties[0].group))}
	if word > 1 {
		o.point = upper.origins[o.group].point
	}
	m.origins = append(m.origins, o)
	m.spot, m.labels, m.first = append(m.spot, -1), append(m.labels, 0), append(m.first, int32(len(m.arcs)))
	hash, left := m.s.hash.digest(m.p, int(o.point)), int64(0)
	for _, x := range ties {
		var words [2]int64 // 0 for the columns that are no clusters
		if int(x.column) < m.k {
			words[0], words[1] = m.s.hash.words(hash, int(x.column))
		}
		m.arcs = append(m.arcs, entry{words[word-1], x.column, stale})
		if s := upper.slotOf(x.group, x.column); s >= 0 {
			units := int64(upper.columns[x.column].slots[s].units)
			m.t.size[x.column] -= units
			left += units
		}
	}
	arcs := m.arcs[m.first[q]:]
	slices.SortFunc(arcs, func(a, b entry) int { return cmp.Compare(a.cost, b.cost) })
	for _, a := range arcs {
		if units := min(left, m.capacity(q, a.column)); units > 0 {
			m.put(q, a.column, units)
			m.t.size[a.column] += units
			left -= units
		}
	}
}

// arcsOf returns the arcs of a group of ties.
func (m *members) arcsOf(q int32) []entry { return m.arcs[m.first[q]:m.first[q+1]] }

// give makes the columns of the groups of lower those of m.
func (m *members) give(lower *members) {
	copy(m.t.size, lower.t.size)
	for q, o := range lower.origins {
		g := o.group
		for _, a := range lower.arcsOf(int32(q)) {
			units := int32(0)
			if s := lower.slotOf(int32(q), a.column); s >= 0 {
				units = lower.columns[a.column].slots[s].units
			}
			if units > 0 || m.slotOf(g, a.column) >= 0 {
				s := m.put(g, a.column, 0)
				m.columns[a.column].slots[s].units = units
			}
		}
	}
}
