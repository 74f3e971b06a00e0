package kernels

import "fmt"

// Matrix is a Q x D matrix in the layout that [Project] reads. It is read-only
// for the kernel, so workers may share it.
type Matrix struct {
	Q, D   int
	rows   []float32 // [Q][D]
	tiles  []float32 // the rows by tiling
	tiling tiling
}

// NewMatrix copies q rows of d coefficients (row-major). It panics unless
// q, d > 0 and len(rows) = q*d.
func NewMatrix(q, d int, rows []float32) *Matrix {
	if q <= 0 || d <= 0 {
		panic(fmt.Sprintf("kernels: NewMatrix: q=%d, d=%d, want both > 0", q, d))
	}
	checkLength("NewMatrix", "rows", len(rows), q*d)
	m := &Matrix{Q: q, D: d, rows: alignedFloat32(q * d), tiles: alignedFloat32(q * d), tiling: newTiling(q)}
	m.set(rows)
	return m
}

// set copies other coefficients.
func (m *Matrix) set(rows []float32) {
	copy(m.rows, rows)
	m.tiling.fill(m.tiles, rows, m.D)
}

// Project writes the products of each point with the rows of m to dst: point i
// of dst has the Q coordinates m x_i. A product is a float32 chain s = 0,
// s = fma(x, m, s) in dimension order. It panics unless p.D = m.D, dst.D = m.Q and
// dst.N = p.N.
func Project(p Panels, m *Matrix, dst Panels) {
	p.check("Project")
	dst.check("Project")
	if p.D != m.D || dst.D != m.Q || dst.N != p.N {
		panic(fmt.Sprintf("kernels: Project: points %d x %d, matrix %d x %d, result %d x %d", p.N, p.D, m.Q, m.D, dst.N,
			dst.D))
	}
	project(&p, m, &dst)
}

// projectPortable is the reference form of [Project].
func projectPortable(p *Panels, m *Matrix, dst *Panels) {
	for base := 0; base < p.N; base += Lanes {
		panel := p.Data[base*p.D : base*p.D+p.D*Lanes]
		out := dst.Data[base*m.Q : base*m.Q+m.Q*Lanes]
		lanes := min(Lanes, p.N-base)
		for q := range m.Q {
			var s [Lanes]float32
			for j, c := range m.rows[q*m.D : (q+1)*m.D] {
				x := (*[Lanes]float32)(panel[j*Lanes:])
				for l := range s {
					s[l] = fma32(x[l], c, s[l])
				}
			}
			copy(out[q*Lanes:], s[:lanes])
		}
	}
}

func project(p *Panels, m *Matrix, dst *Panels) {
	if current == generic {
		projectPortable(p, m, dst)
		return
	}
	full := p.N / Lanes
	step := panelsPerCall(m.tiling.width * m.D)
	for at := 0; at < full; at += step {
		x, out := &p.Data[at*Lanes*p.D], dst.Data[at*Lanes*m.Q:]
		for t, a := 0, 0; t < m.tiling.count; t++ {
			w := m.tiling.at(t)
			asmProjectN(w, x, min(step, full-at), m.D, &m.tiles[a*m.D], &out[a*Lanes], 4*Lanes*m.Q)
			a += w
		}
	}
	if base := full * Lanes; base < p.N { // the last panel is part empty
		var last [maxTileWidth * Lanes]float32
		for t, a := 0, 0; t < m.tiling.count; t++ {
			w := m.tiling.at(t)
			asmProjectN(w, &p.Data[base*p.D], 1, m.D, &m.tiles[a*m.D], &last[0], len(last)*4)
			for q := range w {
				copy(dst.Data[base*m.Q+(a+q)*Lanes:], last[q*Lanes:q*Lanes+p.N-base])
			}
			a += w
		}
	}
}
