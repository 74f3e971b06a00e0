package dataset

import (
	"context"
	"fmt"
	"io"
	"math"
	"os"

	"github.com/cohort-engine/cohort/engine/fault"
)

// OpenLabels reads class labels: one integer per row of text (a header is
// allowed), a one-dimensional .npy, or IDX, each also gzip-compressed.
func OpenLabels(ctx context.Context, path string) ([]int32, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, pathFault(path, err)
	}
	defer f.Close()
	return ReadLabels(ctx, path, f)
}

// ReadLabels reads class labels from r; the name stands in errors.
func ReadLabels(ctx context.Context, name string, r io.Reader) ([]int32, error) {
	t, err := Read(ctx, name, r, "")
	if err != nil {
		return nil, err
	}
	if t.D != 1 {
		return nil, fault.Failed(name, fmt.Sprintf("%d columns where labels have one", t.D), "give one integer per row", nil)
	}
	labels := make([]int32, t.N)
	first := 1
	if t.Columns != nil {
		first = 2
	}
	for i, v := range t.Rows {
		if v != math.Trunc(v) || math.Abs(v) > math.MaxInt32 {
			return nil, fault.Failed(place(name, i+first, 1), fmt.Sprintf("%g is not an integer label", v), "give one integer per row", nil)
		}
		labels[i] = int32(v)
	}
	return labels, nil
}
