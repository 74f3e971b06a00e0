package kernels

// changed compares labels, 32 at a time.
func changed(before, now []uint16, masks []uint32) {
	blocks := len(now) / 32
	if current == generic {
		blocks = 0
	}
	if blocks > 0 {
		asmChangedLabels(&before[0], &now[0], blocks, &masks[0])
	}
	changedPortable(before[32*blocks:], now[32*blocks:], masks[blocks:])
}

func extreme(dist, second []float32, dst [][4]float32) {
	blocks := len(dist) / BoundPoints
	if current == generic {
		blocks = 0
	}
	if blocks > 0 {
		asmDistanceBounds(&dist[0], &second[0], blocks, &dst[0])
	}
	extremesPortable(dist[BoundPoints*blocks:], second[BoundPoints*blocks:], dst[blocks:])
}
