//go:build amd64 && !purego

package kernels

import "github.com/klauspost/cpuid/v2"

// supportedPaths lists the paths whose every instruction this CPU has.
func supportedPaths() []path {
	paths := []path{generic}
	if cpuid.CPU.Supports(cpuid.AVX2, cpuid.FMA3, cpuid.AESNI, cpuid.POPCNT) {
		paths = append(paths, avx2)
		if cpuid.CPU.Supports(cpuid.AVX512F, cpuid.AVX512BW, cpuid.AVX512DQ, cpuid.AVX512VL, cpuid.VAES) {
			paths = append(paths, avx512)
			if cpuid.CPU.Supports(cpuid.AVX512VNNI) {
				paths = append(paths, avx512vnni)
			}
		}
	}
	return paths
}

// maxTileWidth is the number of rows that a tile of a [tiling] holds at most.
const maxTileWidth = 6
