package dataset

import (
	"context"
	"fmt"
	"math"

	"github.com/cohort-engine/cohort/internal/fault"
)

// openLabels reads class labels: one integer per row of text (a header is
// allowed), a one-dimensional .npy, or IDX, each also gzip-compressed.
func openLabels(ctx context.Context, path string) ([]int32, error) {
	s, err := openPath(ctx, path, ReadOptions{})
	if err != nil {
		return nil, err
	}
	t, err := readTable(ctx, s, ReadOptions{})
	if err != nil {
		return nil, err
	}
	return t.integers()
}

// integers returns the records of a table of labels.
func (t *Table) integers() ([]int32, error) {
	if t.D != 1 {
		return nil, fault.Failed(t.Name, fmt.Sprintf("%d columns where labels have one", t.D),
			"give one integer per row", nil)
	}
	labels := make([]int32, t.N)
	for i, v := range t.Rows {
		if v != math.Trunc(v) || math.Abs(v) > math.MaxInt32 {
			return nil, fault.Failed(t.schema().place(i, 0), fmt.Sprintf("%g is not an integer label", v),
				"give one integer per row", nil)
		}
		labels[i] = int32(v)
	}
	return labels, nil
}
