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
		pad := newMasks(root, Ring64, 1, length).of(uint32(round), 0)
		for at := 0; at+aes.BlockSize <= len(pad); at += aes.BlockSize {
			block := [aes.BlockSize]byte(pad[at:])
			if seen[block] {
				t.Fatalf("a block of round %d, of %d elements, was used before", round, length)
			}
			seen[block] = true
		}
	}
}
