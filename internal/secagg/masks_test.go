package secagg

import (
	"crypto/aes"
	"testing"

	"github.com/cohort-engine/cohort/internal/secret"
)

// No block of a client's masks comes twice, whatever the lengths of the vectors: the
// difference of two vectors under one block would be seen by all who have both.
func TestNoBlockTwice(t *testing.T) {
	root := secret.Simulated(1, "masks")
	seen := make(map[[aes.BlockSize]byte]bool)
	for round, length := range []int{40, 40, 36, 30, 64, 2, 50, 31} {
		key, err := NewKey(root, Ring64, length)
		if err != nil {
			t.Fatal(err)
		}
		pad := key.pad()
		new(stream).mask(pad, key, uint32(round), 0)
		for at := 0; at+aes.BlockSize <= len(pad); at += aes.BlockSize {
			block := [aes.BlockSize]byte(pad[at:])
			if seen[block] {
				t.Fatalf("a block of round %d, of %d elements, was used before", round, length)
			}
			seen[block] = true
		}
	}
}

// A client that has forgotten its masks has none of their bytes.
func TestForget(t *testing.T) {
	c, err := newClient(secret.Simulated(1, "masks"), Ring64, 0, 2, 5)
	if err != nil {
		t.Fatal(err)
	}
	m := NewMasked(Ring64, 2, 5)
	if err := c.Mask(m, 0, []int64{1, 2, 3, 4, 5}); err != nil {
		t.Fatal(err)
	}
	sum := make([]int64, 5)
	if err := c.Unmask(sum, m); err != nil {
		t.Fatal(err)
	}
	c.Forget()
	for _, x := range append(append([]byte(nil), c.own...), c.pad...) {
		if x != 0 {
			t.Fatal("a mask is left")
		}
	}
	for _, x := range c.scratch {
		if x != 0 {
			t.Fatal("a sum is left")
		}
	}
	if err := c.Unmask(sum, m); err != nil || sum[4] != 5 {
		t.Errorf("a mask that is made again gives %v, %v", sum, err)
	}
}
