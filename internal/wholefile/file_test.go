package wholefile

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// TestRead: a file of as many bytes as may be is read, one of a byte more and one without an end are refused.
func TestRead(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	for n, large := range map[int]bool{0: false, 99: false, 100: false, 101: true} {
		if err := os.WriteFile(path, make([]byte, n), 0o600); err != nil {
			t.Fatal(err)
		}
		b, err := Read(path, 100)
		if large != errors.Is(err, ErrLarge) || !large && len(b) != n {
			t.Errorf("%d bytes: read %d, %v", n, len(b), err)
		}
	}
	if _, err := os.Stat("/dev/zero"); err == nil {
		if _, err := Read("/dev/zero", 1<<20); !errors.Is(err, ErrLarge) {
			t.Errorf("a file without an end: %v", err)
		}
	}
	if _, err := Read(path+".not", 1); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
}
