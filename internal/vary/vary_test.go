package vary

import (
	"bytes"
	"testing"
)

// An input is tried alone where nothing is asked for, and else with others, which are the same again, whatever
// is done to what is tried, and are of many lengths and kinds.
func TestInputs(t *testing.T) {
	b := []byte("a message of some bytes, and of no meaning")
	was := bytes.Clone(b)
	try := func(n int) (all [][]byte) {
		some(n, b, func(b []byte) {
			all = append(all, bytes.Clone(b))
			clear(b)
		})
		return all
	}
	if all := try(0); len(all) != 1 || !bytes.Equal(all[0], was) {
		t.Fatalf("alone: %q", all)
	}
	copy(b, was)
	all := try(2000)
	if len(all) != 2001 || !bytes.Equal(all[0], was) || !bytes.Equal(b, was) {
		t.Fatalf("%d inputs, the first %q; %q is left", len(all), all[0], b)
	}
	seen, lengths := make(map[string]bool), make(map[int]bool)
	for i, x := range try(2000) {
		if !bytes.Equal(x, all[i]) {
			t.Fatalf("input %d is %q and then %q", i, all[i], x)
		}
		seen[string(x)], lengths[len(x)] = true, true
	}
	if len(seen) < 1500 || len(lengths) < 60 || !lengths[0] {
		t.Errorf("%d inputs of %d lengths among 2001", len(seen), len(lengths))
	}
	some(100, nil, func([]byte) {})
}
