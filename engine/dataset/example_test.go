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

// Records that somebody makes are put on the grid as they come over a channel.
func ExampleFromChannel() {
	batches := make(chan dataset.Matrix[float64])
	go func() {
		defer close(batches)
		for i := range 3 {
			x := float64(i)
			batches <- dataset.Matrix[float64]{N: 2, D: 2, Data: []float64{x, 10 * x, x + 0.5, 10*x + 5}}
		}
	}()
	source, err := dataset.FromChannel("made", 2, nil, batches)
	if err != nil {
		fmt.Println(err)
		return
	}
	bounds, err := dataset.ParseBounds("0:4,0:40", 2)
	if err != nil {
		fmt.Println(err)
		return
	}
	prepared, err := dataset.Prepare(context.Background(), source, dataset.PrepareOptions{Bounds: &bounds})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(prepared.Points.N, prepared.Points.Point(5, make([]float32, 2)))
	// Output: 6 [0.25 0.25]
}
