package dataset

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/cohort-engine/cohort/internal/fault"
)

// A file that is cut, written on, written anew or replaced between two passes over it, or while it is read, ends the
// reading with an error that says so; one whose name or mode changes does not.
func TestFileThatChanges(t *testing.T) {
	ctx := context.Background()
	rows := strings.Repeat("1,2\n3,4\n", 200_000)
	write := func(path, text string) error { return os.WriteFile(path, []byte(text), 0o600) }
	for what, c := range map[string]struct {
		change  func(path string) error
		refused bool
	}{
		"is cut":        {func(path string) error { return os.Truncate(path, 400) }, true},
		"is written on": {func(path string) error { return write(path, rows+"5,6\n") }, true},
		"is written anew": {func(path string) error {
			at := time.Now().Add(time.Second) // clocks of files are coarse
			return errors.Join(write(path, strings.Repeat("3,4\n1,2\n", 200_000)), os.Chtimes(path, at, at))
		}, true},
		"is another": {func(path string) error {
			return errors.Join(write(path+".new", rows), os.Rename(path+".new", path))
		}, true},
		"has another mode": {func(path string) error { return os.Chmod(path, 0o400) }, false},
		"does not change":  {func(string) error { return nil }, false},
	} {
		path := filepath.Join(t.TempDir(), "rows.csv")
		open := func() Source {
			t.Helper()
			if err := write(path, rows); err != nil {
				t.Fatal(err)
			}
			s, err := OpenSource(ctx, path, ReadOptions{})
			if err != nil {
				t.Fatal(err)
			}
			return s
		}
		check := func(when string, err error, refused bool) {
			t.Helper()
			if own := (*fault.Error)(nil); refused != (err != nil) ||
				err != nil && (!errors.As(err, &own) || !strings.Contains(err.Error(), "was changed while it was read")) {
				t.Errorf("a file that %s %s: %v", what, when, err)
			}
		}
		s := open()
		check("not yet", Visit(ctx, s, ReadOptions{}, func([]float64) {}), false)
		if err := c.change(path); err != nil {
			t.Fatal(err)
		}
		check("between passes", Visit(ctx, s, ReadOptions{}, func([]float64) {}), c.refused)

		s, once := open(), false
		err := Visit(ctx, s, ReadOptions{chunkBytes: 1 << 12}, func([]float64) {
			if !once {
				once = true
				if err := c.change(path); err != nil {
					t.Error(err)
				}
			}
		})
		if what != "is another" { // the one that is open stays as it was
			check("while it is read", err, c.refused)
		}
	}
}
