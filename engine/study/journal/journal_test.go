package journal

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

func open(t *testing.T, path string) *File {
	t.Helper()
	j, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	return j
}

// write makes a journal of n records and returns its bytes and the ends of its records.
func write(t *testing.T, path string, n int) (all []byte, ends []int64) {
	t.Helper()
	j := open(t, path)
	ends = append(ends, j.end)
	for i := range n {
		if _, err := j.Append(byte(1+i), []byte("part "), fmt.Append(nil, i)); err != nil {
			t.Fatal(err)
		}
		ends = append(ends, j.end)
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	all, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return all, ends
}

// What was appended is there after a reopening, and can be appended to; the owner alone can read it.
func TestReopen(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state", "journal")
	write(t, path, 3)
	j := open(t, path)
	defer j.Close()
	if _, err := Open(path); err == nil {
		t.Error("a journal was opened twice")
	}
	more, err := j.Append(9, []byte("more"))
	if err != nil {
		t.Fatal(err)
	}
	if err := j.Flush(); err != nil {
		t.Fatal(err)
	}
	for i, r := range append(j.Records(), more) {
		want := fmt.Sprint("part ", i)
		if i == 3 {
			want = "more"
		}
		if b, err := j.Read(r); err != nil || string(b) != want {
			t.Errorf("record %d is %q, %v", i, b, err)
		}
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
}

// A file cut anywhere has the whole records before the cut, and goes on from there.
func TestTorn(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal")
	all, ends := write(t, path, 2)
	for cut := 0; cut < len(all); cut += 3 {
		for _, zeros := range []int{0, 40} {
			if err := os.WriteFile(path, append(bytes.Clone(all[:cut]), make([]byte, zeros)...), 0o600); err != nil {
				t.Fatal(err)
			}
			whole := 0
			for whole < 2 && ends[whole+1] <= int64(cut) {
				whole++
			}
			at := int64(cut) == ends[whole] && cut >= len(magic)
			j, err := Open(path)
			if err != nil {
				if zeros == 0 || at { // zeros within a record make it look altered
					t.Fatalf("cut at %d with %d zeros: %v", cut, zeros, err)
				}
				continue
			}
			if len(j.Records()) != whole {
				t.Fatalf("cut at %d: %d records for %d", cut, len(j.Records()), whole)
			}
			if _, err := j.Append(7, []byte("again")); err != nil {
				t.Fatal(err)
			}
			if err := j.Close(); err != nil {
				t.Fatal(err)
			}
			again := open(t, path)
			if len(again.Records()) != whole+1 {
				t.Fatalf("cut at %d: %d records after one more", cut, len(again.Records()))
			}
			again.Close()
		}
	}
}

// A changed bit is refused wherever it is.
func TestAltered(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal")
	all, _ := write(t, path, 2)
	for at := range all {
		b := bytes.Clone(all)
		b[at] ^= 4
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		j, err := Open(path)
		if err == nil {
			j.Close()
		}
		if !errors.Is(err, ErrDamaged) {
			t.Errorf("a change at %d: %v", at, err)
		}
	}
}
