package kernels

func nearestSums(p *Panels, rows, nearest []float32, sums []float64) {
	if current == generic {
		nearestSumsPortable(p, rows, nearest, sums)
		return
	}
	panels, step := p.N/Lanes, panelsPerCall(p.D)
	for q := range sums {
		var chains [Lanes]float64
		row := rows[q*p.D : (q+1)*p.D]
		for at := 0; at < panels; at += step {
			asmNearestSum(&p.Data[at*Lanes*p.D], min(step, panels-at), p.D, &row[0], &nearest[at*Lanes], &chains)
		}
		addNearest(p, panels*Lanes, row, nearest, &chains)
		sums[q] = addChains(&chains)
	}
}

func nearer(p *Panels, row, nearest []float32) {
	if current == generic {
		nearerPortable(p, row, nearest)
		return
	}
	panels, step := p.N/Lanes, panelsPerCall(p.D)
	for at := 0; at < panels; at += step {
		asmNearer(&p.Data[at*Lanes*p.D], min(step, panels-at), p.D, &row[0], &nearest[at*Lanes])
	}
	nearerFrom(p, panels*Lanes, row, nearest)
}
