package dataset_test

import (
	"context"
	"fmt"
	"strings"

	"github.com/cohort-engine/cohort/engine/dataset"
)

// A table is read, put on the grid from public bounds, and split among clients.
func Example() {
	text := "age,income\n30,2000\n45,9000\n52,3000\n28,2500\n"
	table, err := dataset.Read(context.Background(), "people.csv", strings.NewReader(text), dataset.ReadOptions{})
	if err != nil {
		fmt.Println(err)
		return
	}
	bounds, err := dataset.ParseBounds("0:100,0:8000", table.D)
	if err != nil {
		fmt.Println(err)
		return
	}
	norm, err := dataset.Normalise(table, bounds, dataset.DefaultFractionBits)
	if err != nil {
		fmt.Println(err)
		return
	}
	parts, err := norm.Split(2, nil, 1)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(table.Columns, norm.Points.Point(0, make([]float32, 2)), "clamped", norm.Clamped, "clients", len(parts))
	// Output: [age income] [-0.3999939 -0.5] clamped 1 clients 2
}

// A bad cell is reported with its row and column.
func ExampleRead_fault() {
	_, err := dataset.Read(context.Background(), "people.csv", strings.NewReader("30,2000\n45,n/a\n"),
		dataset.ReadOptions{})
	fmt.Println(strings.ReplaceAll(err.Error(), ": ", ":\n"))
	// Output:
	// people.csv, row 2, column 2:
	// "n/a" is not a number:
	// correct the cell, or leave the column out with --columns, or choose what to do with --missing
}
