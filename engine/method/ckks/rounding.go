package ckks

import (
	"encoding/binary"
	"math"

	"github.com/tuneinsight/lattigo/v6/ring"
	"github.com/tuneinsight/lattigo/v6/utils/sampling"
)

// rounding is a party's randomness for roundings, which makes their errors independent of the data: what
// T4 bounds the errors of encrypted totals by. Not for concurrent use.
type rounding struct {
	prng  sampling.PRNG
	bytes []byte
}

// rounding returns the randomness of one work item's roundings.
func (e entropy) rounding(purpose string, index int) *rounding {
	return &rounding{prng: e.prng(purpose, index)}
}

// Words implements rns.Dither.
func (r *rounding) Words(dst []uint32) {
	if r.bytes == nil {
		r.bytes = make([]byte, 4*len(dst))
	}
	b := r.bytes[:4*len(dst)]
	_, _ = r.prng.Read(b) // never fails
	for i := range dst {
		dst[i] = binary.LittleEndian.Uint32(b[4*i:])
	}
}

// round rounds x scale to integers: to floor(x scale + U) for U uniform in [0, 1), whose mean is x scale,
// or without randomness to the nearest.
func (m *embedder) round(x []float64, scale float64) []int64 {
	if m.dither == nil {
		for i, v := range x {
			m.whole[i] = int64(math.RoundToEven(v * scale))
		}
		return m.whole
	}
	m.dither.Words(m.words)
	for i, v := range x {
		m.whole[i] = int64(math.Floor(float64(v*scale) + (float64(m.words[i])+0.5)/(1<<32)))
	}
	return m.whole
}

// encodeWide returns the polynomial with the given values in its slots as the samplers write residues.
func (m *embedder) encodeWide(p *parameters, values []float64, level int, scale float64) (ring.Poly, error) {
	coefficients := make([]float64, len(m.complex))
	if err := m.coefficients(values, coefficients); err != nil {
		return ring.Poly{}, err
	}
	out := ring.NewPoly(p.N(), level)
	whole := m.round(coefficients, scale)
	for j, row := range out.Coeffs {
		q := newModulus(p.Q()[j])
		for i, z := range whole {
			row[i] = q.signed(z)
		}
	}
	r := p.RingQ().AtLevel(level)
	r.NTT(out, out)
	return out, nil
}
