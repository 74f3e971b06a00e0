package ckks

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/tuneinsight/lattigo/v6/ring"

	"github.com/cohort-engine/cohort/engine/method/ckks/rns"
	"github.com/cohort-engine/cohort/internal/fault"
)

// hash is the fingerprint of the parameters.
func (p *parameters) hash() uint64 {
	h := sha256.New()
	fmt.Fprint(h, p.LogN(), p.Q(), p.P(), p.Chain, ring.ConjugateInvariant)
	return binary.LittleEndian.Uint64(h.Sum(nil))
}

// terms is what the parties must agree on before anything is computed. Every
// party sends its own and compares.
type terms struct {
	Version        int      `json:"version"`
	LogN           int      `json:"log_n"`
	Q              []uint64 `json:"q"`
	P              []uint64 `json:"p"`
	N              int      `json:"n"`
	D              int      `json:"d"`
	K              int      `json:"k"`
	Rounds         int      `json:"rounds"`
	Columns        [][]int  `json:"columns"`
	Mode           string   `json:"mode"`
	Argmin         string   `json:"argmin"`
	Threshold      int      `json:"threshold"`
	Blocks         int      `json:"blocks"`
	SigmaCount     float64  `json:"sigma_count"`
	SigmaSum       float64  `json:"sigma_sum"`
	Calibration    string   `json:"calibration"`
	Neighbours     string   `json:"neighbours"`
	CommonSeed     []byte   `json:"common_seed,omitempty"`
	ColumnScale    float64  `json:"column_scale"`
	FreshScale     float64  `json:"fresh_scale"`
	SignPolynomial string   `json:"sign_polynomial"`
}

// wireVersion changes whenever the protocol does.
const wireVersion = 4

func (t terms) marshal() ([]byte, error) { return json.Marshal(t) }

// agree refuses a party's terms that differ from ours, naming the first field.
func (t terms) agree(party int, theirs []byte) error {
	if mine, err := t.marshal(); err == nil && bytes.Equal(mine, theirs) {
		return nil
	}
	var other terms
	dec := json.NewDecoder(bytes.NewReader(theirs))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&other); err != nil {
		return fault.Failed("terms of party "+fmt.Sprint(party), "cannot be read: "+err.Error(), "use the same version", err)
	}
	mine, yours := t.fields(), other.fields()
	for i := range mine {
		if mine[i] != yours[i] {
			return fault.Failed("terms of party "+fmt.Sprint(party), fmt.Sprintf("%s, and here %s", yours[i], mine[i]),
				"start every party with the same parameters", nil)
		}
	}
	return nil
}

func (t terms) fields() []string {
	return []string{
		fmt.Sprint("version ", t.Version), fmt.Sprint("LogN ", t.LogN), fmt.Sprint("primes ", t.Q, t.P),
		fmt.Sprint("n ", t.N), fmt.Sprint("d ", t.D),
		fmt.Sprint("k ", t.K), fmt.Sprint("rounds ", t.Rounds), fmt.Sprint("columns ", t.Columns),
		fmt.Sprint("mode ", t.Mode), fmt.Sprint("argmin ", t.Argmin),
		fmt.Sprint("threshold ", t.Threshold), fmt.Sprint("blocks ", t.Blocks),
		fmt.Sprint("sigma of counts ", t.SigmaCount), fmt.Sprint("sigma of sums ", t.SigmaSum),
		fmt.Sprint("calibration ", t.Calibration), fmt.Sprint("neighbours ", t.Neighbours),
		fmt.Sprintf("common seed %x", t.CommonSeed),
		fmt.Sprint("column scale ", t.ColumnScale), fmt.Sprint("fresh scale ", t.FreshScale), "sign polynomial " +
			t.SignPolynomial,
	}
}

// keysMessage carries what Alice needs to compute: the relinearisation key,
// rotation keys for the powers of two of the layout, the ring-switching key and
// the public key that re-randomises aggregates. All are seeded.
type keysMessage struct {
	Relin     *switchKey
	Rotations []*switchKey
	Small     *switchKey
	Public    *publicKey
}

func (w *writer) switchKey(k *switchKey) {
	w.b = append(w.b, k.Seed[:]...)
	for _, row := range k.Rows {
		appendRows(w, row, w.p.primes(k.levels()))
	}
}

func (r *reader) switchKey(g *rns.Gadget) *switchKey {
	k := &switchKey{gadget: g, Seed: r.seed()}
	levelQ, _ := k.levels()
	for range g.Digits(levelQ) {
		if r.err != nil {
			return k
		}
		k.Rows = append(k.Rows, r.poly(r.p.primes(k.levels())))
	}
	return k
}

func (w *writer) publicKey(k *publicKey) {
	w.b = append(w.b, k.Seed[:]...)
	appendRows(w, k.B, w.p.primes(k.LevelQ, k.LevelP))
}

func (r *reader) publicKey(levelQ, levelP int) *publicKey {
	return &publicKey{LevelQ: levelQ, LevelP: levelP, Seed: r.seed(), B: r.poly(r.p.primes(levelQ, levelP))}
}

// rotationLevel is the highest level at which ciphertexts are rotated: after
// the comparison, or as soon as points are selected when the nearest centroid is found by rank.
func (p *parameters) rotationLevel() int {
	if len(p.Chain.LogTop) > 0 {
		return p.MaxLevel() - 1
	}
	return aggregateLevel + p.maxDepth()
}

func (m *keysMessage) marshal(p *parameters, run region) []byte {
	w := newWriter(p, kindKeys, sizes{p}.keys(len(m.Rotations)))
	w.switchKey(m.Relin)
	w.u32(uint32(len(m.Rotations)))
	for _, k := range m.Rotations {
		w.switchKey(k)
	}
	w.switchKey(m.Small)
	w.publicKey(m.Public)
	return w.end(run)
}

// readKeys reads keys, whose rows the reader reads late.
func readKeys(p *parameters, rotations int, b []byte) (*keysMessage, *reader) {
	r := newReader(p, kindKeys, b)
	m := &keysMessage{Relin: r.switchKey(p.relin)}
	for range r.count("rotation keys", rotations) {
		if r.err != nil {
			break
		}
		m.Rotations = append(m.Rotations, r.switchKey(p.rotation))
	}
	m.Small = r.switchKey(p.small)
	m.Public = r.publicKey(aggregateLevel, -1)
	return m, r
}

// publicKeyMessage carries the full public key to parties that encrypt under
// another party's key.
type publicKeyMessage struct{ Key *publicKey }

func (m *publicKeyMessage) marshal(p *parameters) []byte {
	w := newWriter(p, kindPublicKey, sizes{p}.publicKey(m.Key.LevelQ, m.Key.LevelP))
	w.publicKey(m.Key)
	return w.end(alone)
}

func readPublicKey(p *parameters, b []byte) (*publicKeyMessage, error) {
	r := newReader(p, kindPublicKey, b)
	m := &publicKeyMessage{Key: r.publicKey(p.MaxLevel(), 0)}
	return m, r.finish(alone)
}

// columnMessage carries one encrypted column: the ciphertexts for comparisons,
// at the top level, and those for aggregates, at the aggregate level. C1 of a ciphertext is a seed where
// the sender holds the secret key, a polynomial where it encrypted under a public key.
type columnMessage struct {
	Column int
	Seeded bool
	// Dither has what ciphertexts for comparisons were rounded with (dither).
	Dither     [seedSize]byte
	Tops, Lows []columnCipher
}

// columnCipher is a ciphertext of a column.
type columnCipher struct {
	SeededCipher
	// C1 is set when the ciphertext is not seeded.
	C1 rns.Poly
}

// expand restores the ciphertext, which takes over the polynomials.
func (c *columnCipher) expand(p *parameters) *cipher {
	if c.C1 != nil {
		return &cipher{c: [2]rns.Poly{c.C0, c.C1}, scale: c.Scale, room: p.lattice.Room()}
	}
	return c.SeededCipher.expand(p)
}

func (w *writer) columnCiphers(cs []columnCipher, seeded bool) {
	w.u32(uint32(len(cs)))
	for _, c := range cs {
		if seeded {
			w.f64(c.Scale)
			w.b = append(w.b, c.Seed[:]...)
			appendRows(w, c.C0, w.p.Q())
		} else {
			w.f64(c.Scale)
			appendRows(w, c.C0, w.p.Q())
			appendRows(w, c.C1, w.p.Q())
		}
	}
}

func (r *reader) columnCiphers(what string, n, level int, seeded bool, scale float64) []columnCipher {
	var cs []columnCipher
	primes := r.p.primes(level, -1)
	for range r.count(what, n) {
		if r.err != nil {
			return nil
		}
		s := r.scale()
		if r.err == nil && s != scale {
			r.fail(fmt.Sprintf("has a ciphertext at scale %g, want %g", s, scale))
		}
		if seeded {
			c := SeededCipher{Scale: s, Seed: r.seed(), C0: r.poly(primes)}
			cs = append(cs, columnCipher{SeededCipher: c})
		} else {
			c0, c1 := r.poly(primes), r.poly(primes)
			cs = append(cs, columnCipher{SeededCipher: SeededCipher{Scale: s, C0: c0}, C1: c1})
		}
	}
	return cs
}

func (m *columnMessage) marshal(p *parameters, lay layout, run region) []byte {
	w := newWriter(p, kindColumn, sizes{p}.column(lay, m.Seeded))
	w.u32(uint32(m.Column))
	seeded := byte(0)
	if m.Seeded {
		seeded = 1
	}
	w.b = append(append(w.b, seeded), m.Dither[:]...)
	w.columnCiphers(m.Tops, m.Seeded)
	w.columnCiphers(m.Lows, m.Seeded)
	return w.end(run)
}

// readColumn reads a column's ciphertexts, whose rows the reader reads late; columns are those that the sender
// may send, topScale and lowScale the scales of those for comparisons and for aggregates.
func readColumn(p *parameters, lay layout, columns []int, topScale, lowScale float64,
	b []byte) (*columnMessage, *reader) {
	r := newReader(p, kindColumn, b)
	m := &columnMessage{Column: int(r.u32())}
	if r.err == nil && !slices.Contains(columns, m.Column) {
		r.fail(fmt.Sprintf("has column %d, which is not the sender's", m.Column))
	}
	switch f := r.u8(); {
	case r.err != nil:
	case f > 1:
		r.fail(fmt.Sprintf("has form %d", f))
	default:
		m.Seeded = f == 1
	}
	m.Dither = r.seed()
	m.Tops = r.columnCiphers("ciphertexts for comparisons", lay.tops(), p.MaxLevel(), m.Seeded, topScale)
	m.Lows = r.columnCiphers("ciphertexts for aggregates", lay.lows(), aggregateLevel, m.Seeded, lowScale)
	return m, r
}

// aggregatesMessage carries the encrypted totals of a round, with Alice's noise
// inside, and the public value of one record in each.
type aggregatesMessage struct {
	Round  int
	Units  []float64
	Totals []Aggregate
}

// marshal writes the message in memory, if there is enough: that of the last round's, which everybody has read who has
// answered it.
func (m *aggregatesMessage) marshal(p *parameters, run region, memory []byte) []byte {
	w := newWriterIn(p, kindAggregates, slices.Grow(memory[:0], wireHead+sizes{p}.aggregates(len(m.Totals))))
	w.u32(uint32(m.Round))
	w.u32(uint32(len(m.Totals)))
	size, from := sizes{p}.total(), len(w.b)
	w.b = w.b[:from+len(m.Totals)*size]
	run(len(m.Totals), func(i int) {
		t, one := &m.Totals[i], writer{b: w.b[from+i*size:][:0:size]}
		one.f64(m.Units[i])
		for j := range t.C0 {
			one.pack(t.C0[j:j+1], p.Q()[j])
			packRow(one.place(len(t.C1[j]), p.Q()[j]), t.C1[j], p.Q()[j])
		}
	})
	return w.b
}

// receivedAggregates are those of a message, in its bytes.
type receivedAggregates struct {
	Units  []float64
	Totals []receivedTotal
}

// receivedTotal is an [Aggregate] of which C1 stays packed until it meets the secret.
type receivedTotal struct {
	C0 [aggregateLevel + 1]uint64
	c1 [aggregateLevel + 1][]byte
}

// readAggregates reads count totals of the given round. Whether their coefficients are sound shows when they are
// decrypted.
func readAggregates(p *parameters, round, count int, b []byte) (*receivedAggregates, error) {
	r := newReader(p, kindAggregates, b)
	r.count("as its round", round)
	m := &receivedAggregates{Units: make([]float64, r.count("totals", count)), Totals: make([]receivedTotal, count)}
	for i := range m.Totals {
		t := &m.Totals[i]
		m.Units[i] = r.scale()
		for j := range t.C0 {
			if v := r.unpack(1, p.Q()[j]); v != nil {
				t.C0[j] = v[0]
			}
			t.c1[j] = r.take(packedSize(p.N()/p.stride, p.Q()[j]))
		}
	}
	return m, r.end()
}

// centroidsMessage carries k centroids of d coordinates.
type centroidsMessage struct {
	Round     int
	Centroids [][]float64
}

func (m *centroidsMessage) marshal(p *parameters) []byte {
	w := newWriter(p, kindCentroids, 0)
	w.u32(uint32(m.Round))
	for _, c := range m.Centroids {
		for _, x := range c {
			w.f64(x)
		}
	}
	return w.b
}

func readCentroids(p *parameters, round, k, d int, b []byte) (*centroidsMessage, error) {
	r := newReader(p, kindCentroids, b)
	m := &centroidsMessage{Round: r.count("as its round", round)}
	for range k {
		row := make([]float64, d)
		for h := range row {
			row[h] = r.f64()
		}
		m.Centroids = append(m.Centroids, row)
	}
	if r.err == nil {
		for _, c := range m.Centroids {
			for _, x := range c {
				if x < -1 || x > 1 {
					r.fail(fmt.Sprintf("has a coordinate %g outside [-1, 1]", x))
				}
			}
		}
	}
	return m, r.end()
}
