//go:build (amd64 || arm64) && !purego

package kernels

func within(p *Panels, c *Centroids, limit []float32, masks []uint16) {
	if current == generic {
		withinPortable(p, c, limit, masks)
		return
	}
	panels := panelCount(p.N)
	step := panelsPerCall(c.K * c.D)
	for at := 0; at < panels; at += step {
		asmWithinN(c.D, &p.Data[at*Lanes*p.D], min(step, panels-at), &c.rows[0], c.K, &limit[at*Lanes], &masks[at*c.K])
	}
}
