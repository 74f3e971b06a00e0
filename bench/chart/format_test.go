package chart

import "testing"

func TestQuantity(t *testing.T) {
	for _, c := range []struct {
		x    float64
		unit string
		want string
	}{
		{999, Bytes, "999 B"}, {10_332, Bytes, "10.3 kB"}, {1.69e8, Bytes, "169 MB"},
		{1500, Nanoseconds, "1.5 µs"}, {2e9, Nanoseconds, "2 s"}, {4.48, "G hashes/s", "4.48 G hashes/s"},
	} {
		if got := Quantity(c.x, c.unit); got != c.want {
			t.Errorf("%v %s: %q, want %q", c.x, c.unit, got, c.want)
		}
	}
}
