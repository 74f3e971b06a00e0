package journal

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
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
			c, failed := Check(path)
			j, err := Open(path)
			if cut >= len(magic) && (err == nil) != (failed == nil) {
				t.Fatalf("cut at %d with %d zeros: %v where it is opened with %v", cut, zeros, failed, err)
			}
			if failed == nil && (c.Records != whole || c.Torn != int64(cut+zeros)-ends[whole] || c.Head != j.chain) {
				t.Fatalf("cut at %d with %d zeros: found to be %+v", cut, zeros, c)
			}
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

// A look at a journal leaves a torn record where it is, needs no lock and makes no file.
func TestCheckChangesNothing(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal")
	all, ends := write(t, path, 3)
	cut := all[:len(all)-1]
	if err := os.WriteFile(path, cut, 0o400); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		c, err := Check(path)
		if err != nil || c.Records != 2 || c.Torn != int64(len(cut))-ends[2] {
			t.Errorf("found to be %+v, %v", c, err)
		}
	}
	if left, err := os.ReadFile(path); err != nil || !bytes.Equal(left, cut) {
		t.Errorf("%d bytes are left of %d: %v", len(left), len(cut), err)
	}
	if err := os.Chmod(path, 0o600); err != nil {
		t.Fatal(err)
	}
	j := open(t, path)
	defer j.Close()
	if c, err := Check(path); err != nil || c.Torn != 0 {
		t.Errorf("while a role has it: %+v, %v", c, err)
	}
	if _, err := j.Append('a', make([]byte, 2*gathered)); err != nil { // of which the end is not in the file yet
		t.Fatal(err)
	}
	if c, err := Check(path); err != nil || c.Records != 2 || c.Torn < 2*gathered || !c.Written {
		t.Errorf("while a role writes a record: %+v, %v", c, err)
	}
	j.Abandon() // as a role that is killed there
	if c, err := Check(path); err != nil || c.Records != 2 || c.Torn < 2*gathered || c.Written {
		t.Errorf("after it was killed: %+v, %v", c, err)
	}
	none := filepath.Join(t.TempDir(), "none")
	if _, err := Check(none); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a file that is not there: %v", err)
	}
	if _, err := os.Stat(none); err == nil {
		t.Error("it was made")
	}
}

// Looks at a torn journal are in nobody's way: neither in that of the role that begins again, nor in each other's.
func TestChecksDisturbNobody(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal")
	all, _ := write(t, path, 3)
	torn := all[:len(all)-1]
	var looks sync.WaitGroup
	for range 20 {
		if err := os.WriteFile(path, torn, 0o600); err != nil {
			t.Fatal(err)
		}
		begin := make(chan struct{})
		for range 4 {
			looks.Go(func() {
				<-begin
				for range 20 {
					if c, err := Check(path); err != nil || c.Written {
						t.Errorf("beside other looks: %+v, %v", c, err)
					}
				}
			})
		}
		close(begin)
		looks.Wait()
		stop := make(chan struct{})
		for range 2 {
			looks.Go(func() {
				for {
					select {
					case <-stop:
						return
					default:
					}
					if _, err := Check(path); err != nil {
						t.Errorf("beside a role: %v", err)
					}
				}
			})
		}
		j, err := Open(path)
		close(stop)
		looks.Wait()
		if err != nil {
			t.Fatalf("beside looks: %v", err)
		}
		j.Close()
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
		if _, failed := Check(path); !errors.Is(err, ErrDamaged) || !errors.Is(failed, ErrDamaged) {
			t.Errorf("a change at %d: %v, %v", at, err, failed)
		}
	}
}
