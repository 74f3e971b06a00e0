package chart

import (
	"math"
	"testing"
)

func TestScalesHoldTheirTicks(t *testing.T) {
	for _, values := range [][]float64{{1, 1}, {0.1, 1e6}, {-3, 5}, {1e-9, 2e-9}, {0, 0}} {
		for _, log := range []bool{false, true} {
			s := newScale(values, 10, 100, log, false)
			ticks := s.ticks()
			if len(ticks) < 2 || len(ticks) > 9 {
				t.Errorf("%v log %t: %d ticks %v", values, log, len(ticks), ticks)
			}
			for _, v := range append(ticks, values...) {
				if p := s.at(v); math.IsNaN(p) || p < 10-1e-6 || p > 100+1e-6 {
					t.Errorf("%v log %t: %v is drawn at %v", values, log, v, p)
				}
			}
		}
	}
}
