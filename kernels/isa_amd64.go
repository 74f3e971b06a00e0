//go:build amd64 && !purego

package kernels

import (
	"sync"

	"golang.org/x/sys/cpu"
)

// grantTiles asks the system once for the registers of AMX.
var grantTiles = sync.OnceValue(tilesGranted)

// supportedPaths lists the paths whose every instruction this CPU has.
func supportedPaths() []path {
	paths, has := []path{generic}, &cpu.X86
	if has.HasAVX2 && has.HasFMA && has.HasAES && has.HasPOPCNT {
		paths = append(paths, avx2)
		if has.HasAVX512F && has.HasAVX512BW && has.HasAVX512DQ && has.HasAVX512VL && has.HasAVX512VAES {
			paths = append(paths, avx512)
			if has.HasAVX512VNNI {
				paths = append(paths, avx512vnni)
				if has.HasAMXTile && has.HasAMXInt8 && grantTiles() {
					paths = append(paths, amx)
				}
			}
		}
	}
	return paths
}

// maxTileWidth is the number of rows that a tile of a [tiling] holds at most.
const maxTileWidth = 6
