//go:build arm64 && !purego

package kernels

import "golang.org/x/sys/cpu"

// supportedPaths lists the paths whose every instruction this CPU has. Vector
// instructions are part of every arm64 that Go supports; AES is not.
func supportedPaths() []path {
	paths, has := []path{generic}, &cpu.ARM64
	if has.HasASIMD && has.HasAES {
		paths = append(paths, neon)
		if has.HasASIMDDP {
			paths = append(paths, neondot)
			if has.HasI8MM {
				paths = append(paths, neoni8mm)
			}
		}
	}
	return paths
}

// maxTileWidth is the number of rows that a tile of a [tiling] holds at most.
const maxTileWidth = 4
