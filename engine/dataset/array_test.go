package dataset

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestArrayFiles: numbers of a file of several chunks, by rows and by columns, all columns and some.
func TestArrayFiles(t *testing.T) {
	const n, d = 20011, 3
	rows, columns := make([]float32, n*d), make([]float32, n*d)
	for i := range n {
		for j := range d {
			rows[i*d+j] = float32(i*d + j)
			columns[j*n+i] = rows[i*d+j]
		}
	}
	for _, c := range []struct {
		values  []float32
		fortran bool
		chosen  string
		want    []int
	}{{rows, false, "", []int{0, 1, 2}}, {columns, true, "", []int{0, 1, 2}}, {rows, false, "3,1", []int{2, 0}},
		{columns, true, "3,1", []int{2, 0}}} {
		path := filepath.Join(t.TempDir(), "a.npy")
		if err := os.WriteFile(path, npy("<f4", c.fortran, "(20011, 3)", c.values), 0o600); err != nil {
			t.Fatal(err)
		}
		s, err := OpenSource(context.Background(), path, ReadOptions{Columns: c.chosen})
		if err != nil {
			t.Fatal(err)
		}
		at := 0
		err = s.Chunks(context.Background(), func(chunk Chunk) error {
			b := &Block{}
			if err := chunk.Decode(b); err != nil {
				return err
			}
			for i, v := range b.Rows {
				r := at + i/len(c.want)
				if want := float64(r*d + c.want[i%len(c.want)]); v != want {
					t.Fatalf("by columns %v, columns %q: record %d has %g, want %g", c.fortran, c.chosen, r, v, want)
				}
			}
			at += len(b.Rows) / len(c.want)
			return nil
		})
		if err != nil || at != n {
			t.Fatalf("%d records: %v", at, err)
		}
	}
}

// TestArraysWithoutRecords: an array of no records is refused, but where there may be none.
func TestArraysWithoutRecords(t *testing.T) {
	for name, b := range map[string][]byte{
		"rows.npy": npy("<f8", false, "(0, 3)", []float64{}), "columns.npy": npy("<f8", true, "(0, 3)", []float64{}),
		"images.idx": idx(8, []uint32{0, 3}, []uint8{})} {
		path := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		for columns, d := range map[string]int{"": 3, "3,1": 2} {
			for _, may := range []bool{false, true} {
				opts := ReadOptions{Columns: columns, MayLack: may}
				file, err := Open(t.Context(), path, opts)
				stream, also := Read(t.Context(), name, bytes.NewReader(b), opts)
				for _, got := range []struct {
					*Table
					error
				}{{file, err}, {stream, also}} {
					if may && (got.error != nil || got.N != 0 || got.D != d) ||
						!may && (got.error == nil || !strings.Contains(got.Error(), "the file has no records")) {
						t.Errorf("%s, columns %q, %v: %v, %+v", name, columns, may, got.error, got.Table)
					}
				}
			}
		}
	}
}

// TestArrayCutWhileRead: a file that is cut short while it is mapped is an error, not the end of the process.
func TestArrayCutWhileRead(t *testing.T) {
	if !mapsFiles {
		t.Skip("files are not mapped on this system")
	}
	const n = 1 << 16
	for _, fortran := range []bool{false, true} {
		path := filepath.Join(t.TempDir(), "a.npy")
		if err := os.WriteFile(path, npy("<f8", fortran, "(65536, 2)", make([]float64, 2*n)), 0o600); err != nil {
			t.Fatal(err)
		}
		s, err := OpenSource(context.Background(), path, ReadOptions{})
		if err != nil {
			t.Fatal(err)
		}
		err = s.Chunks(context.Background(), func(c Chunk) error {
			if err := os.Truncate(path, 4096); err != nil {
				t.Fatal(err)
			}
			return c.Decode(&Block{})
		})
		if err == nil || !strings.Contains(err.Error(), "truncated") {
			t.Errorf("by columns %v: %v", fortran, err)
		}
	}
}
