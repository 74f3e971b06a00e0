//go:build !arm64 || purego

package kernels

import "testing"

// TestFilterNearestStaysInsideItsSlices finds the centroids of least scores on slices that touch guard pages.
func TestFilterNearestStaysInsideItsSlices(t *testing.T) {
	withPaths(t, func(t *testing.T) {
		if !new(filterScratch).nearest(1, 1, 0, 0) {
			return
		}
		for _, atEnd := range []bool{false, true} {
			const tiles, panels = 3, 3
			scores := guarded[int32](t, tiles*filterTile*panels*Lanes, atEnd)
			least := guarded[int32](t, tiles*panels*Lanes, atEnd)
			best, labels := guarded[int32](t, Lanes, atEnd), guarded[int32](t, Lanes, atEnd)
			for panel := range panels {
				asmFilterNearest(&scores[0], &least[0], tiles, panels, panel, 0, &best[0], &labels[0])
			}
			scores[len(scores)-1], least[len(least)-1], best[Lanes-1] = -1, -1, -1 // of the last point and centroid
			asmFilterNearest(&scores[0], &least[0], tiles, panels, panels-1, 0, &best[0], &labels[0])
			if want := int32(tiles*filterTile - 1); labels[Lanes-1] != want {
				t.Fatalf("the label is %d, want %d", labels[Lanes-1], want)
			}
		}
	})
}
