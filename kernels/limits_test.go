package kernels

import "testing"

// TestLimitsAreMeasured: a path with assembly has positive limits, and the bounds
// grow with the work.
func TestLimitsAreMeasured(t *testing.T) {
	for _, p := range supportedPaths() {
		t.Run(p.String(), func(t *testing.T) {
			defer forcePath(p)()
			runs := 300
			if testing.Short() {
				runs = 5
			}
			l := measureLimits(runs)
			if p == generic {
				if l != (Limits{}) {
					t.Errorf("limits without loops: %+v", l)
				}
				if l.AssignSeconds(10, 2, 3) != 0 || l.AESSeconds(1) != 0 {
					t.Error("bounds without limits are not zero")
				}
			} else {
				if l.FMA <= 0 || l.SubFMA <= 0 || l.Argmin <= 0 || l.AES <= 0 {
					t.Errorf("limits %+v, want all positive", l)
				}
				for _, d := range []int{2, 20} {
					if one, two := l.AssignSeconds(100, d, 5), l.AssignSeconds(200, d, 5); !(one > 0 && two > one) {
						t.Errorf("d=%d: bounds %g and %g for 100 and 200 points", d, one, two)
					}
				}
				if l.AESSeconds(10) <= 0 {
					t.Error("the bound of AES is not positive")
				}
			}
			one, two := MeasureFMA(1), MeasureFMA(2)
			if p == generic && (one != 0 || two != 0) {
				t.Errorf("rates without loops: %g and %g", one, two)
			}
			if p != generic && (one <= 0 || two <= 0 || two > 3*one) {
				t.Errorf("%g multiply-adds a second of one thread, %g of two", one, two)
			}
			for _, c := range []struct{ size, readers int }{{5000, 1}, {5000, 3}, {1, 2}} {
				if rate := MeasureRead(c.size, c.readers); rate <= 0 {
					t.Errorf("bandwidth of %d readers of %d bytes is %g", c.readers, c.size, rate)
				}
			}
		})
	}
}
