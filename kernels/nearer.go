package kernels

// NearestSums gives, for each of the candidates of a step of k-means++, the sum over
// the points of the smaller of nearest and the squared distance to the candidate, which
// is that of [Distances]. rows has the candidates, row by row, and a sum the order of
// [Potentials]. len(rows) = len(sums)*p.D, len(nearest) = p.N.
func NearestSums(p Panels, rows, nearest []float32, sums []float64) {
	p.check("NearestSums")
	checkLength("NearestSums", "rows", len(rows), len(sums)*p.D)
	checkLength("NearestSums", "nearest", len(nearest), p.N)
	nearestSums(&p, rows, nearest, sums)
}

// Nearer lowers nearest to the squared distances of the points to row, which are those
// of [Distances]. len(row) = p.D, len(nearest) = p.N.
func Nearer(p Panels, row, nearest []float32) {
	p.check("Nearer")
	checkLength("Nearer", "row", len(row), p.D)
	checkLength("Nearer", "nearest", len(nearest), p.N)
	nearer(&p, row, nearest)
}

// squaredDistance is the distance of point i to row.
func squaredDistance(p *Panels, i int, row []float32) float32 {
	s := float32(0)
	base := i/Lanes*p.D*Lanes + i%Lanes
	for j, c := range row {
		t := p.Data[base+j*Lanes] - c
		s = fma32(t, t, s)
	}
	return s
}

// addNearest adds the terms of a candidate, from point first on, to the chains.
func addNearest(p *Panels, first int, row, nearest []float32, chains *[Lanes]float64) {
	for i := first; i < p.N; i++ {
		chains[i%Lanes] += float64(min(nearest[i], squaredDistance(p, i, row)))
	}
}

// nearestSumsPortable is the reference form of [NearestSums].
func nearestSumsPortable(p *Panels, rows, nearest []float32, sums []float64) {
	for q := range sums {
		var chains [Lanes]float64
		addNearest(p, 0, rows[q*p.D:(q+1)*p.D], nearest, &chains)
		sums[q] = addChains(chains[:])
	}
}

// nearerPortable is the reference form of [Nearer].
func nearerPortable(p *Panels, row, nearest []float32) { nearerFrom(p, 0, row, nearest) }

func nearerFrom(p *Panels, first int, row, nearest []float32) {
	for i := first; i < p.N; i++ {
		nearest[i] = min(nearest[i], squaredDistance(p, i, row))
	}
}

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
		sums[q] = addChains(chains[:])
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
