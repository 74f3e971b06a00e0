//go:build purego || (!amd64 && !arm64)

package kernels

func supportedPaths() []path { return []path{generic} }

// maxTileWidth is the number of rows that a tile of a [tiling] holds at most.
const maxTileWidth = 6
