//go:build !arm64 || purego

package kernels

func potentials(dots *Panels, norms, nearest, squares []float32, sums []float64) {
	if current == generic {
		potentialsPortable(dots, norms, nearest, squares, sums)
		return
	}
	panels := dots.N / Lanes
	for q, square := range squares {
		var chains [Lanes]float64
		for at := 0; at < panels; at += blocksPerCall {
			asmPotential(&dots.Data[(at*dots.D+q)*Lanes], min(blocksPerCall, panels-at), 4*Lanes*dots.D,
				&norms[at*Lanes], &nearest[at*Lanes], square, &chains)
		}
		addPotential(dots, panels*Lanes, q, norms, nearest, square, &chains)
		sums[q] = addChains(chains[:])
	}
}

func lowerNearest(dots *Panels, q int, norms, nearest []float32, square float32) {
	if current == generic {
		lowerPortable(dots, q, norms, nearest, square)
		return
	}
	panels := dots.N / Lanes
	for at := 0; at < panels; at += blocksPerCall {
		asmLower(&dots.Data[(at*dots.D+q)*Lanes], min(blocksPerCall, panels-at), 4*Lanes*dots.D, &norms[at*Lanes],
			&nearest[at*Lanes], square)
	}
	lowerFrom(dots, panels*Lanes, q, norms, nearest, square)
}
