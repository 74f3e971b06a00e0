package bench

import "testing"

// TestBindsMost tells the parts of an iteration apart that takes 10, of which the sums take some.
func TestBindsMost(t *testing.T) {
	for _, x := range []struct {
		name        string
		sums, limit float64
		of, want    string
	}{
		{"iteration", 2, 5, "8-bit products", "integer multiply ports"},
		{"iteration", 2, 5, "8-bit products of tiles", "tile unit"},
		{"iteration without labels", 2, 5, "bandwidth", "bandwidth"},
		{"multiply-adds", 2, 5, "multiply-adds", "FMA ports"},
		{"multiply-adds", 6, 3, "multiply-adds", "sums"},
		{"iteration", 2, 3, "16-bit products", "rounding and selection"},
	} {
		samples := map[string][]float64{"multiply-adds": {12, 10}}
		for _, with := range []string{"", " without labels"} {
			samples["iteration"+with] = []float64{10, 11}
			samples["assignment"+with] = []float64{10 - x.sums}
		}
		if got := bindsMost(samples, x.name, x.limit, x.of); got != x.want {
			t.Errorf("%+v: %q", x, got)
		}
	}
}
