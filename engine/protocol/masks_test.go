package protocol

import (
	"testing"

	"github.com/cohort-engine/cohort/internal/secagg"
	"github.com/cohort-engine/cohort/internal/secret"
)

// TestMaskKeyIsOfItsRoot: parties of one process share the key of one root and one length, and no other: the first
// party of a ring masks with a root of its own.
func TestMaskKeyIsOfItsRoot(t *testing.T) {
	var s shared
	one, other := secret.New(), secret.New()
	key := func(root secret.Root, length int) *secagg.Key {
		k, err := s.maskKey(root, secagg.Ring32, length)
		if err != nil {
			t.Fatal(err)
		}
		return k
	}
	first := key(one, 5)
	if key(one, 5) != first {
		t.Error("one root and one length have two keys")
	}
	if key(one, 6) == first || key(other, 6) == key(one, 6) || key(other, 6) == first {
		t.Error("masks of another length or another root have one key")
	}
	if _, err := s.maskKey(one, secagg.Ring32, 0); err == nil || s.key != nil {
		t.Errorf("masks without elements: error %v, and a key is kept: %v", err, s.key != nil)
	}
}
