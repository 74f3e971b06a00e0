//go:build (amd64 || arm64) && !purego

package kernels

import "math"

// hashBlock is the number of digests a pass over the keys visits: 256 KiB, which
// stay in the second-level cache, and some ten microseconds per call.
const hashBlock = 1 << 14

func minHash(keys, digests [][16]byte, offsets []int, dst []uint64) {
	if current == generic {
		minHashPortable(keys, digests, offsets, dst)
		return
	}
	for i := range dst {
		dst[i] = math.MaxUint64
	}
	clusters := len(offsets) - 1
	for a := range clusters {
		for lo := offsets[a]; lo < offsets[a+1]; lo += hashBlock {
			records := digests[lo:min(lo+hashBlock, offsets[a+1])]
			var few [4][16]byte
			if len(records) < len(few) { // the kernels need a whole vector
				for r := range few {
					few[r] = records[min(r, len(records)-1)]
				}
				records = few[:]
			}
			for i := range keys {
				row := dst[2*i*clusters:]
				least := [2]uint64{row[a], row[clusters+a]}
				minHashBlocks(&keys[i], &records[0], len(records), &least)
				row[a], row[clusters+a] = least[0], least[1]
			}
		}
	}
}
