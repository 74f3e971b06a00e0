//go:build amd64 && !purego

package kernels

func boundKeys(dist, second []float32, labels []uint16, moved []float64, s *KeyBound, keys, far []float32) {
	at := 0
	for left := len(labels) / 8; left > 0 && current != generic; left = (len(labels) - at) / 8 {
		n := min(left, blocksPerCall)
		asmBoundKeys(&dist[at], &second[at], &labels[at], &moved[0], s.Off, s.Error, s.Most, n, &keys[at], &far[at])
		at += 8 * n
	}
	boundKeysPortable(dist[at:], second[at:], labels[at:], moved, s, keys[at:], far[at:])
}
