//go:build amd64 && !purego

package kernels

import (
	"sync"

	"github.com/klauspost/cpuid/v2"
)

// grantTiles asks the system once for the registers of AMX.
var grantTiles = sync.OnceValue(tilesGranted)

// supportedPaths lists the paths whose every instruction this CPU has.
func supportedPaths() []path {
	paths := []path{generic}
	if cpuid.CPU.Supports(cpuid.AVX2, cpuid.FMA3, cpuid.AESNI, cpuid.POPCNT) {
		paths = append(paths, avx2)
		if cpuid.CPU.Supports(cpuid.AVX512F, cpuid.AVX512BW, cpuid.AVX512DQ, cpuid.AVX512VL, cpuid.VAES) {
			paths = append(paths, avx512)
			if cpuid.CPU.Supports(cpuid.AVX512VNNI) {
				paths = append(paths, avx512vnni)
				if cpuid.CPU.Supports(cpuid.AMXTILE, cpuid.AMXINT8) && grantTiles() {
					paths = append(paths, amx)
				}
			}
		}
	}
	return paths
}

// maxTileWidth is the number of rows that a tile of a [tiling] holds at most.
const maxTileWidth = 6
