package flow

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	sha256 "github.com/minio/sha256-simd"
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

func newTieHash(key [16]byte, fractionBits int) *tieHash {
	block, err := aes.NewCipher(make([]byte, 16))
	if err != nil {
		panic(err) // a 16-byte key is always accepted
	}
	return &tieHash{key: key, block: block, scale: math.Ldexp(1, fractionBits)}
}

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

// tie is a group that is as cheap in a column, in which it is or not.
type tie struct{ group, column int32 }

// ties replaces an optimal flow by the one that is also least in the tie hash.
// Optimal flows differ only along tight arcs (complementary slackness: prices are
// optimal for all of them), so each word of the hash is minimised over the tight arcs
// of the level before, with the sizes that its prices leave open. Where the tight
// arcs have no cycle the optimum is unique already, and nothing is hashed.
type ties struct {
	levels [3]tieLevel // distance, first and second word of the tie hash
	tied   []tie
	union  []int32
}

// tieArc is a tight arc of a group: its cost, units and capacity.
type tieArc struct {
	cost        int64
	units, room int64
	column      int32
	owner       int32 // position of its group
	from        int32 // the arc of the level before
}

// tieLevel is a transport along explicit arcs.
type tieLevel struct {
	t      transport
	arcs   []tieArc
	groups []int32
	first  []int32   // arcs of groups[q] are arcs[first[q]:first[q+1]]
	inside [][]int32 // arcs into each column that have units
}

// breakTies applies the tie-break to the flow of s.members.
func (s *Solver) breakTies(ctx context.Context, p *Problem) error {
	m, b := &s.members, &s.ties
	if err := m.tied(&b.tied); err != nil || len(b.tied) == 0 {
		return err
	}
	b.levels[0].take(m, b.tied)
	deepest := 0
	for level := 1; level < len(b.levels); level++ {
		upper, lower := &b.levels[level-1], &b.levels[level]
		if !b.tighten(upper, lower) {
			break
		}
		deepest = level
		if err := s.rehash(ctx, p, lower, level); err != nil {
			return err
		}
		if level == 1 {
			s.stats.Tied = len(lower.groups)
		}
	}
	for level := deepest; level > 0; level-- {
		upper, lower := &b.levels[level-1], &b.levels[level]
		for _, a := range lower.arcs {
			c := &upper.arcs[a.from]
			upper.t.size[c.column] += a.units - c.units
			c.units = a.units
		}
	}
	if deepest > 0 {
		m.give(&b.levels[0])
	}
	return nil
}

// tied sets ties to the tight arcs of the groups that have several, by group and
// column. Unknown moves are not tight.
func (m *members) tied(ties *[]tie) error {
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
			t.refresh(u, e)
			if e.cost != tight {
				continue
			}
			for s := range int32(len(c.slots)) {
				if m.value(u, s, e.column)-m.value(u, s, u) == tight && m.accepts(u, s, e.column) > 0 {
					*ties = append(*ties, tie{c.slots[s].group, u}, tie{c.slots[s].group, e.column})
				}
			}
		}
	}
	slices.SortFunc(*ties, func(a, b tie) int {
		if a.group != b.group {
			return int(a.group - b.group)
		}
		return int(a.column - b.column)
	})
	*ties = slices.Compact(*ties)
	return m.ctx.Err()
}

// take makes the level of the ties of m.
func (l *tieLevel) take(m *members, ties []tie) {
	t := &m.t
	l.reset(t.columns)
	copy(l.t.size, t.size)
	copy(l.t.bounds, t.bounds)
	copy(l.t.potential, t.potential)
	for i, x := range ties {
		if i == 0 || ties[i-1].group != x.group {
			l.close()
			l.groups = append(l.groups, x.group)
		}
		a := tieArc{cost: t.potential[x.column], column: x.column, room: m.groups[x.group].units}
		if x.column == m.escape {
			a.room *= m.exclusive - 1
		}
		if s := m.slotOf(x.group, x.column); s >= 0 {
			a.units = m.columns[x.column].slots[s].units
		}
		l.add(a)
	}
	l.close()
}

// give makes the units of the level those of m.
func (m *members) give(l *tieLevel) {
	for _, a := range l.arcs {
		q := l.groups[a.owner]
		if m.slotOf(q, a.column) >= 0 || a.units > 0 {
			s := m.put(q, a.column, 0)
			slots := m.columns[a.column].slots
			slots[s].units = a.units
		}
	}
	copy(m.t.size, l.t.size)
}

func (l *tieLevel) reset(columns int) {
	l.t.resize(columns)
	l.arcs, l.groups, l.first = l.arcs[:0], l.groups[:0], l.first[:0]
	l.first = append(l.first, 0)
}

// add adds an arc of the group that close ends.
func (l *tieLevel) add(a tieArc) {
	a.owner = int32(len(l.first) - 1)
	l.arcs = append(l.arcs, a)
}

// close ends the arcs of a group, if it has any.
func (l *tieLevel) close() {
	if n := int32(len(l.arcs)); n > l.first[len(l.first)-1] {
		l.first = append(l.first, n)
	}
}

// of returns the arcs of the group of position q.
func (l *tieLevel) of(q int32) []tieArc { return l.arcs[l.first[q]:l.first[q+1]] }

// tighten fills lower with the groups of upper that could change columns at no cost,
// and with their tight arcs. It reports whether these have a cycle, through the
// super-sink if prices leave sizes open.
func (b *ties) tighten(upper, lower *tieLevel) bool {
	t, columns := &upper.t, upper.t.columns
	lower.reset(columns)
	b.union = b.union[:0]
	for j := range int32(columns + 1) {
		b.union = append(b.union, j)
	}
	copy(lower.t.size, t.size)
	cyclic := false
	for j := range columns {
		least, most := t.bounds[j].at(t.price(j))
		lower.t.bounds[j] = bounds{lo: least, hi: most, top: most, under: infinity, over: infinity}
		if least < most && b.unite(int32(j), int32(columns)) {
			cyclic = true
		}
	}
	for q := range upper.groups {
		last, next := int64(-infinity), int64(infinity) // dearest used, cheapest with room
		for _, a := range upper.of(int32(q)) {
			v := a.cost + t.price(int(a.column))
			if a.units > 0 {
				last = max(last, v)
			}
			if a.units < a.room {
				next = min(next, v)
			}
		}
		if last < next {
			continue
		}
		lower.groups = append(lower.groups, upper.groups[q])
		previous := int32(-1)
		for i, a := range upper.of(int32(q)) {
			if a.cost+t.price(int(a.column)) != last {
				continue
			}
			if previous >= 0 && b.unite(previous, a.column) {
				cyclic = true
			}
			previous = a.column
			a.cost, a.from = 0, upper.first[q]+int32(i)
			lower.add(a)
		}
		lower.close()
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

// rehash minimises word level-1 of the tie hash over the arcs of l.
func (s *Solver) rehash(ctx context.Context, p *Problem, l *tieLevel, level int) error {
	m := &s.members
	for q, g := range l.groups {
		d := s.hash.digest(p, int(m.record[m.groups[g].begin]))
		arcs, units := l.of(int32(q)), int64(0)
		for i := range arcs {
			a := &arcs[i]
			if int(a.column) < p.k() {
				hash0, hash1 := s.hash.words(d, int(a.column))
				a.cost = hash0
				if level == 2 {
					a.cost = hash1
				}
			}
			units += a.units
			l.t.size[a.column] -= a.units
			a.units = 0
		}
		for units > 0 { // take the cheapest
			var least *tieArc
			for i := range arcs {
				if a := &arcs[i]; a.units == 0 && (least == nil || a.cost < least.cost) {
					least = a
				}
			}
			least.units = min(units, least.room)
			units -= least.units
			l.t.size[least.column] += least.units
		}
	}
	l.list()
	clear(l.t.potential)
	l.t.moves = l
	l.t.start(l.t.potential[:l.t.columns])
	if solved, _, err := l.t.run(ctx, 0, math.MaxInt); err != nil {
		return err
	} else if !solved {
		panic(fmt.Sprintf("flow: tie level %d: the level before was not optimal", level))
	}
	return nil
}

// list lists the arcs with units and the moves between their columns.
func (l *tieLevel) list() {
	t := &l.t
	for len(l.inside) < t.columns {
		l.inside = append(l.inside, nil)
	}
	into := make([][]int32, t.columns)
	for u := range t.columns {
		l.inside[u] = l.inside[u][:0]
	}
	for i, a := range l.arcs {
		into[a.column] = append(into[a.column], int32(i))
		if a.units > 0 {
			l.inside[a.column] = append(l.inside[a.column], int32(i))
		}
	}
	for u := range int32(t.columns) {
		t.where[u] = 1
		for _, i := range into[u] {
			for _, b := range l.of(l.arcs[i].owner) {
				if t.where[b.column] == 0 {
					t.where[b.column] = 1
					t.rows[u] = append(t.rows[u], entry{0, b.column, stale})
				}
			}
		}
		t.where[u] = 0
		for _, e := range t.rows[u] {
			t.where[e.column] = 0
		}
	}
}

// cheapest implements moves; members are arcs.
func (l *tieLevel) cheapest(u, v int32) (int64, int32) {
	best, member := int64(infinity), int32(stale)
	for _, i := range l.inside[u] {
		for _, b := range l.of(l.arcs[i].owner) {
			if b.column == v && b.units < b.room && b.cost-l.arcs[i].cost < best {
				best, member = b.cost-l.arcs[i].cost, i
			}
		}
	}
	return best, member
}

// to returns the arc to column v of the group of arc i.
func (l *tieLevel) to(i, v int32) int32 {
	for at := l.first[l.arcs[i].owner]; ; at++ {
		if l.arcs[at].column == v {
			return at
		}
	}
}

func (l *tieLevel) room(_, v, i int32) int64 {
	b := &l.arcs[l.to(i, v)]
	return min(l.arcs[i].units, b.room-b.units)
}

// move implements moves.
func (l *tieLevel) move(u, v, i int32, units int64) {
	to := l.to(i, v)
	a, b := &l.arcs[i], &l.arcs[to]
	if b.units == 0 {
		l.inside[v] = append(l.inside[v], to)
	}
	a.units -= units
	b.units += units
	if a.units == 0 {
		list := l.inside[u]
		list[slices.Index(list, i)] = list[len(list)-1]
		l.inside[u] = list[:len(list)-1]
	}
	owner := a.owner
	for x := l.first[owner]; x < l.first[owner+1]; x++ {
		if l.arcs[x].units == 0 && x != i {
			continue
		}
		row := l.t.rows[l.arcs[x].column]
		for at := range row {
			l.update(&row[at], x, owner)
		}
	}
}

// update renews what an entry of the column of arc x says of the arcs of x's group.
func (l *tieLevel) update(e *entry, x, owner int32) {
	from := &l.arcs[x]
	for y := l.first[owner]; y < l.first[owner+1]; y++ {
		to := &l.arcs[y]
		if to.column != e.column || y == x {
			continue
		}
		possible := from.units > 0 && to.units < to.room
		switch cost := to.cost - from.cost; {
		case e.member == x && !possible:
			e.member = stale
		case possible && cost < e.cost:
			e.cost, e.member = cost, x
		}
	}
}

// extend implements moves: all are known.
func (l *tieLevel) extend(int32) (bool, error) { panic("flow: all moves between ties are known") }
