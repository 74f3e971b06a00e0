package bench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/cohort-engine/cohort/engine/dataset"
	"github.com/cohort-engine/cohort/internal/fault"
)

// DefaultDataDir is where the data sets are looked for.
const DefaultDataDir = "../shared/data"

// Set is a data set of the data folder, on the grid in [-1, 1].
type Set struct {
	Name    string
	N, D, K int
	Labels  []int32 // nil if it has none
	// Norm has the records, mapped from the bounds that the data itself has, as
	// the papers do.
	Norm *dataset.Normalised

	classes []int32 // see classesOf
}

// missingSetError says that a data set is not in the data folder.
type missingSetError struct{ Set, Dir string }

// Error names the set and the folder.
func (e *missingSetError) Error() string {
	return fmt.Sprintf("data set %s: is not in %s: give its folder with --data-dir", e.Set, e.Dir)
}

// Sets reads and keeps the data sets of a folder with a manifest.json.
type Sets struct {
	dir     string
	entries map[string]manifestEntry
	names   []string // in the manifest's order
	loaded  map[string]*Set
	bytes   int
}

// keepBytes bounds the sets that are kept in memory between cases.
const keepBytes = 1 << 30

type manifestEntry struct {
	Name   string          `json:"name"`
	File   json.RawMessage `json:"file"`
	Labels json.RawMessage `json:"labels_file"`
	K      int             `json:"k"`
}

// OpenSets reads the manifest of a data folder. A folder that does not exist
// gives no sets, and each is reported when it is asked for.
func OpenSets(dir string) (*Sets, error) {
	s := &Sets{dir: dir, entries: make(map[string]manifestEntry), loaded: make(map[string]*Set)}
	path := filepath.Join(dir, "manifest.json")
	b, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return s, nil
	}
	if err != nil {
		return nil, fault.File(path, "check the folder given with --data-dir", err)
	}
	var m struct{ Sets []manifestEntry }
	if err := json.Unmarshal(b, &m); err != nil {
		return nil, fault.File(path, "check the folder given with --data-dir", err)
	}
	for _, e := range m.Sets {
		s.entries[e.Name] = e
		s.names = append(s.names, e.Name)
	}
	return s, nil
}

// allNames lists the sets of the manifest.
func (s *Sets) allNames() []string { return s.names }

// Has reports whether a set is in the folder.
func (s *Sets) Has(name string) bool {
	e, ok := s.entries[name]
	if !ok {
		return false
	}
	for _, f := range paths(e.File) {
		if _, err := os.Stat(filepath.Join(s.dir, f)); err != nil {
			return false
		}
	}
	return true
}

// paths decodes a file name or a list of them.
func paths(raw json.RawMessage) []string {
	var one string
	if json.Unmarshal(raw, &one) == nil && one != "" {
		return []string{one}
	}
	var many []string
	_ = json.Unmarshal(raw, &many)
	return many
}

// Table reads the records of a set as they are in its file.
func (s *Sets) Table(ctx context.Context, name string) (*dataset.Table, error) {
	if !s.Has(name) {
		return nil, &missingSetError{name, s.dir}
	}
	e := s.entries[name]
	files := paths(e.File)
	spec, opts := filepath.Join(s.dir, files[0]), dataset.ReadOptions{}
	if len(files) > 1 {
		spec = filepath.Join(s.dir, filepath.Dir(files[0])) // an MNIST folder
	} else if l := paths(e.Labels); len(l) == 1 {
		if path := filepath.Join(s.dir, l[0]); exists(path) {
			opts.Labels = path
		}
	}
	return dataset.Open(ctx, spec, opts)
}

// get reads a set, or returns it again.
func (s *Sets) get(ctx context.Context, name string) (*Set, error) {
	if set, ok := s.loaded[name]; ok {
		return set, nil
	}
	t, err := s.Table(ctx, name)
	if err != nil {
		return nil, err
	}
	set, err := newSet(name, t, looseBounds, s.entries[name].K)
	if err != nil {
		return nil, err
	}
	size := 4 * len(set.Norm.Points.Data)
	if s.bytes+size > keepBytes {
		clear(s.loaded)
		s.bytes = 0
	}
	s.loaded[name] = set
	s.bytes += size
	return set, nil
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// looseBounds are the bounds of the data; a constant column, of which images
// have many, gets a width of one around its value.
func looseBounds(t *dataset.Table) (dataset.Bounds, error) {
	if t.Bytes {
		return dataset.BoundsFromData(t)
	}
	b := dataset.Bounds{Lo: append([]float64(nil), t.Row(0)...), Hi: append([]float64(nil), t.Row(0)...), FromData: true}
	for i := range t.N {
		for j, v := range t.Row(i) {
			b.Lo[j], b.Hi[j] = min(b.Lo[j], v), max(b.Hi[j], v)
		}
	}
	for j := range b.Lo {
		if b.Lo[j] == b.Hi[j] {
			b.Hi[j]++
		}
	}
	return b, b.Validate("bounds of " + t.Name)
}

// parts splits the set among clients with a seed.
func (s *Set) parts(clients int, seed uint64) ([]dataset.Part, error) {
	return s.Norm.Split(clients, nil, seed)
}

// generatedSet is a built-in set on the grid, with the number of clusters that
// it was made with.
func generatedSet(ctx context.Context, name string, g dataset.Generator) (*Set, error) {
	t, err := dataset.Generate(ctx, name, g)
	if err != nil {
		return nil, err
	}
	return newSet("builtin:"+name, t, dataset.BoundsFromData, int(t.Labels[t.N-1])+1)
}

// blobsOf are k round clusters.
func blobsOf(ctx context.Context, n, d, k int) (*Set, error) {
	return generatedSet(ctx, "blobs", dataset.Generator{N: n, D: d, K: k, Seed: 1})
}

// newSet puts a table of k clusters on the grid.
func newSet(name string, t *dataset.Table, bounds func(*dataset.Table) (dataset.Bounds, error), k int) (*Set, error) {
	b, err := bounds(t)
	if err != nil {
		return nil, err
	}
	norm, err := dataset.Normalise(t, b, dataset.DefaultFractionBits)
	if err != nil {
		return nil, err
	}
	return &Set{Name: name, N: t.N, D: t.D, K: k, Labels: t.Labels, Norm: norm}, nil
}
