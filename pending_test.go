package cohort

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// pendingPlan is a digest of a plan.
var pendingPlan = strings.Repeat("0123456789abcdef", 4)

// A run that was killed while it erased a root whose result had been delivered leaves zeros: the next one draws a root.
func TestErasedRootsAreNone(t *testing.T) {
	ledger := filepath.Join(t.TempDir(), "ledger")
	if err := os.WriteFile(pendingPath(ledger, pendingPlan), make([]byte, 300), 0o600); err != nil {
		t.Fatal(err)
	}
	p, err := openPending(ledger, pendingPlan, "data")
	if err != nil || p.found {
		t.Fatalf("found %v, %v", p != nil && p.found, err)
	}
	p.file.Close()
	again, err := openPending(ledger, pendingPlan, "data")
	if err != nil || !again.found || again.state != p.state {
		t.Errorf("the root is another: %v", err)
	}
	again.file.Close()
}

// Who opens the file of a root while another erases it has a file that is there, so that a root that is paid for waits.
func TestRootsAreInFilesThatAreThere(t *testing.T) {
	ledger := filepath.Join(t.TempDir(), "ledger")
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for range 200 {
				p, err := openPending(ledger, pendingPlan, "data")
				if err != nil {
					if !strings.Contains(err.Error(), "under way") {
						t.Error(err)
					}
					continue
				}
				if p.found {
					t.Error("an erased root is found")
				}
				if b, err := os.ReadFile(pendingPath(ledger, pendingPlan)); err != nil ||
					!bytes.Contains(b, []byte(p.state.Root)) {
					t.Errorf("the root is not in its file: %v", err)
				}
				if err := p.erase(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
}

// FuzzPending opens roots that somebody has changed: they are found as they were, or refused and left as they are,
// since what was paid for may wait there.
func FuzzPending(f *testing.F) {
	ledger := filepath.Join(f.TempDir(), "ledger")
	p, err := openPending(ledger, pendingPlan, "data")
	if err != nil {
		f.Fatal(err)
	}
	text, err := os.ReadFile(p.file.Name())
	if err != nil {
		f.Fatal(err)
	}
	p.file.Close()
	f.Add(text)
	f.Add(text[:len(text)/2])
	f.Add([]byte{})
	f.Add(make([]byte, 9))
	f.Add(bytes.ReplaceAll(text, []byte("data"), []byte("rows")))
	f.Add(bytes.ReplaceAll(text, []byte(`"root":"`), []byte(`"root":"0`)))
	f.Add(append(bytes.Clone(text), text...))
	f.Fuzz(func(t *testing.T, text []byte) {
		if err := os.WriteFile(p.file.Name(), text, 0o600); err != nil {
			t.Fatal(err)
		}
		got, err := openPending(ledger, pendingPlan, "data")
		if err == nil {
			defer got.file.Close()
		}
		left, e := os.ReadFile(p.file.Name())
		if e != nil {
			t.Fatal(e)
		}
		blank := len(bytes.Trim(text, "\x00")) == 0
		switch {
		case err != nil && blank:
			t.Fatalf("a blank file is refused: %v", err)
		case !blank && !bytes.Equal(left, text):
			t.Fatalf("the file was %q and is %q: %v", text, left, err)
		case err == nil && got.found == blank:
			t.Fatalf("found is %v in %q", got.found, text)
		case err == nil && (got.state.Plan != pendingPlan || got.state.Data != "data"):
			t.Fatalf("a root of %+v", got.state)
		}
		if err == nil {
			if _, err := got.root(); err != nil {
				t.Fatal(err)
			}
		}
	})
}
