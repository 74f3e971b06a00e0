package dataset

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// FuzzCache gives a preparation files that somebody has changed. It ends with the records and labels of the source,
// from what is there or anew; where the state's digest was made anew, too, which none but a forger does, with some.
func FuzzCache(f *testing.F) {
	folder := f.TempDir()
	rows := filepath.Join(folder, "rows.csv")
	text := strings.Repeat("1,2,a\n3,,b\n5,6,c\n", 20)
	if err := os.WriteFile(rows, []byte(text), 0o600); err != nil {
		f.Fatal(err)
	}
	read := ReadOptions{LabelColumn: "3", Missing: DropRow, Workers: 1, chunkBytes: 64}
	prepare := func(cache string) (*Prepared, error) {
		s, err := OpenSource(context.Background(), rows, read)
		if err != nil {
			return nil, err
		}
		return Prepare(context.Background(), s, PrepareOptions{Read: read, Bounds: &Bounds{Lo: []float64{0, 0},
			Hi: []float64{10, 10}}, DigestKey: &[16]byte{7}, Cache: cache, noteBytes: 300})
	}
	want, err := prepare("")
	if err != nil {
		f.Fatal(err)
	}
	cache := filepath.Join(folder, "cache")
	p, err := prepare(cache)
	if err != nil {
		f.Fatal(err)
	}
	p.Close()
	files := map[string][]byte{} // by ending
	var base string
	for _, ending := range []string{".json", ".panels", ".labels"} {
		names, err := filepath.Glob(filepath.Join(cache, "*"+ending))
		if err != nil || len(names) != 1 {
			f.Fatal(names, err)
		}
		base = strings.TrimSuffix(names[0], ending)
		if files[ending], err = os.ReadFile(names[0]); err != nil {
			f.Fatal(err)
		}
	}
	state, _, _ := strings.Cut(string(files[".json"]), "\n")
	for _, from := range []string{"?", `"N":40`, `"Complete":true`, `"Labelled":true`, `"Chunks":8`, `"Seen":60`,
		`"Classes":["a",`} {
		forged := strings.Replace(state, from, `"N":24`, 1)
		f.Add(forged, true, 0, byte(0), 0, byte(0), 1<<20)
		f.Add(forged+"\n", false, 0, byte(0), 0, byte(0), 1<<20)
	}
	whole := string(files[".json"])
	f.Add(whole, false, 3, byte(1), 0, byte(0), 1<<20)
	f.Add(whole, false, 0, byte(0), 3, byte(128), 1<<20)
	f.Add(whole, false, 0, byte(0), 0, byte(0), 5)
	f.Fuzz(func(t *testing.T, state string, forged bool, panel int, xor byte, label int, and byte, keep int) {
		text := []byte(state)
		if forged {
			text = digested(text)
		}
		panels, labels := slices.Clone(files[".panels"]), slices.Clone(files[".labels"])
		panels[uint(panel)%uint(len(panels))] ^= xor
		labels[uint(label)%uint(len(labels))] ^= and
		cut := func(b []byte) []byte { return b[:min(uint(keep), uint(len(b)))] }
		for ending, b := range map[string][]byte{".json": text, ".panels": cut(panels), ".labels": cut(labels)} {
			if err := os.WriteFile(base+ending, b, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		p, err := prepare(cache)
		if err != nil {
			if forged { // such as of no records at all
				return
			}
			t.Fatal(err)
		}
		defer p.Close()
		if len(p.Table.Labels) != p.Points.N && len(p.Table.Labels) != 0 {
			t.Fatalf("%d labels for %d points", len(p.Table.Labels), p.Points.N)
		}
		if !forged && (!slices.Equal(p.Points.Data, want.Points.Data) || p.Points.N != want.Points.N ||
			!slices.Equal(p.Table.Labels, want.Table.Labels) || !slices.Equal(p.Digests, want.Digests)) {
			t.Fatalf("%d points, %d labels, and they differ", p.Points.N, len(p.Table.Labels))
		}
	})
}
