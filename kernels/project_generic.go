//go:build purego || !amd64

package kernels

func project(p *Panels, m *Matrix, dst *Panels) { projectPortable(p, m, dst) }
