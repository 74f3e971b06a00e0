package lloyd

import (
	"bytes"
	"math"
	"testing"

	"github.com/cohort-engine/cohort/internal/vary"
)

// Centroids of anybody are numbers and those that were sent, or they are refused.
func FuzzDecodeCentroids(f *testing.F) {
	f.Add(encodeCentroids([]float64{0.5, -1}))
	f.Add(encodeCentroids([]float64{0.5}))
	f.Add(encodeCentroids([]float64{math.NaN(), 1}))
	f.Add(encodeCentroids([]float64{1, math.Inf(-1)}))
	f.Fuzz(func(t *testing.T, b []byte) {
		vary.Bytes(b, func(b []byte) {
			x := make([]float64, 2)
			if decodeCentroids(x, b) != nil {
				return
			}
			if s := x[0] - x[0] + x[1] - x[1]; s != 0 || !bytes.Equal(encodeCentroids(x), b) {
				t.Errorf("%x was taken as %v", b, x)
			}
		})
	})
}
