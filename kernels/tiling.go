package kernels

// tiling cuts rows of coefficients into tiles of about the same width, so that no
// routine is left with a narrow rest: a tile of w rows of d coefficients from row a
// on occupies [a*d:(a+w)*d] as [d][w].
type tiling struct {
	width int // of the first wide tiles; the others are one narrower
	wide  int
	count int
}

const (
	// oneTile is the width of the tile of AVX-512 that a few centroids are alone, where a group of panels in their
	// dimensions is more than the first-level cache holds: points are read once.
	oneTile     = 10
	oneTileDims = 256
)

// dotTiling is the tiling of k centroids of d dimensions; of one tile, the last rows may be none.
func dotTiling(k, d int) tiling {
	if maxTileWidth < k && k <= oneTile && d >= oneTileDims && hasOneTile() {
		return tiling{width: oneTile, wide: 1, count: 1}
	}
	return newTiling(k)
}

// hasOneTile says whether the path in use has the routine for the tile of oneTile centroids.
func hasOneTile() bool { return current >= avx512 && current < neon }

// newTiling cuts rows > 0 rows into as few tiles as the routines' widths allow.
func newTiling(rows int) tiling {
	count := (rows + maxTileWidth - 1) / maxTileWidth
	width := (rows + count - 1) / count
	return tiling{width: width, wide: count - (count*width - rows), count: count}
}

// at returns the number of rows of tile i.
func (t tiling) at(i int) int {
	if i < t.wide {
		return t.width
	}
	return t.width - 1
}

// fill writes row-major rows of d coefficients to dst tile by tile.
func (t tiling) fill(dst, rows []float32, d int) {
	first := 0
	for i := range t.count {
		w := t.at(i)
		tile := dst[first*d : (first+w)*d]
		for q := range min(w, len(rows)/d-first) {
			for j, x := range rows[(first+q)*d : (first+q+1)*d] {
				tile[j*w+q] = x
			}
		}
		first += w
	}
}
