package journal

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// FuzzOpen opens journals that were cut, changed in a byte, or written on by somebody. What is found are the first of
// the records that were written, all of them if nothing but bytes behind them changed; none is found that was not
// written, and what is appended then is found behind them. What is refused stays as it is.
func FuzzOpen(f *testing.F) {
	path := filepath.Join(f.TempDir(), "journal")
	f.Add([]byte("some records of some lengths"), 1<<20, 0, byte(0), []byte(nil))
	f.Add([]byte("some records of some lengths"), 60, 0, byte(0), []byte(nil))
	f.Add([]byte("some records of some lengths"), 90, 3, byte(1), make([]byte, 30))
	f.Add([]byte("some records of some lengths"), 1<<20, 40, byte(1), []byte{1})
	f.Add([]byte(nil), 5, 0, byte(0), []byte(magic))
	f.Add([]byte(nil), 0, 0, byte(0), []byte(magic[:7]))
	f.Fuzz(func(t *testing.T, payload []byte, keep, at int, xor byte, more []byte) {
		all, written, ends := parts(t, path, payload)
		text := bytes.Clone(all[:min(uint(keep), uint(len(all)))])
		if len(text) > 0 {
			text[uint(at)%uint(len(text))] ^= xor
		}
		text = append(text, more...)
		same := int64(0) // as far as it is what was written
		for same < int64(min(len(text), len(all))) && text[same] == all[same] {
			same++
		}
		whole := 0
		for whole < len(written) && ends[whole+1] <= same {
			whole++
		}
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
		checked, failed := Check(path)
		j, err := Open(path)
		if err != nil {
			if left, _ := os.ReadFile(path); !errors.Is(err, ErrDamaged) || !bytes.Equal(left, text) {
				t.Fatalf("refused with %v, and %d bytes of %d are left", err, len(left), len(text))
			}
			if failed == nil {
				t.Fatalf("refused with %v, and %+v before", err, checked)
			}
			return
		}
		defer func() { j.Abandon() }()
		found := j.Records()
		if len(found) != whole {
			t.Fatalf("%d records of %d that are whole, of %d bytes %d as written", len(found), whole, len(text), same)
		}
		for i, r := range found {
			if b, err := j.Read(r); err != nil || r.Kind != byte(i) || !bytes.Equal(b, written[i]) {
				t.Fatalf("record %d is %q, %v", i, b, err)
			}
		}
		if len(text) >= len(magic) && (failed != nil || checked.Records != whole) {
			t.Fatalf("%d records are found, and %+v, %v before", whole, checked, failed)
		}
		if _, err := j.Append(9, []byte("next")); err != nil {
			t.Fatal(err)
		}
		if err := j.w.Flush(); err != nil {
			t.Fatal(err)
		}
		j.Abandon()
		if j, err = Open(path); err != nil || len(j.Records()) != whole+1 {
			t.Fatalf("%d records after one more: %v", len(j.Records()), err)
		}
	})
}

// parts makes a journal at path anew with parts of a payload as records, and returns its bytes, the records and where
// each ends, after where the first begins.
func parts(t *testing.T, path string, payload []byte) (all []byte, written [][]byte, ends []int64) {
	os.Remove(path)
	j := open(t, path)
	ends = append(ends, j.end)
	for n := 0; len(payload) > 0; n++ {
		part := payload[:min(len(payload), 5*n)]
		payload = payload[len(part):]
		if _, err := j.Append(byte(n), part); err != nil {
			t.Fatal(err)
		}
		written, ends = append(written, part), append(ends, j.end)
	}
	if err := j.w.Flush(); err != nil {
		t.Fatal(err)
	}
	j.Abandon()
	all, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return all, written, ends
}
