//go:build arm64 && !purego

package kernels

import "github.com/klauspost/cpuid/v2"

// supportedPaths lists the paths whose every instruction this CPU has. Vector
// instructions are part of every arm64 that Go supports; AES is not.
func supportedPaths() []path {
	paths := []path{generic}
	if cpuid.CPU.Supports(cpuid.ASIMD, cpuid.AESARM) {
		paths = append(paths, neon)
		if cpuid.CPU.Supports(cpuid.ASIMDDP) {
			paths = append(paths, neondot)
			if cpuid.CPU.Supports(cpuid.I8MM) {
				paths = append(paths, neoni8mm)
			}
		}
	}
	return paths
}

// maxTileWidth is the number of rows that a tile of a [tiling] holds at most.
const maxTileWidth = 4
