package dataset

import (
	"bytes"
	"context"
	"encoding/csv"
	"fmt"
	"io"
	"strconv"
	"testing"
)

// eightColumns is a CSV of 8 columns with digits significant ones; 0: the shortest
// text of a float64.
func eightColumns(b testing.TB, n, digits int) []byte {
	t, err := Generate(context.Background(), "box-blobs", Generator{N: n, D: 8, K: 20, Seed: 1})
	if err != nil {
		b.Fatal(err)
	}
	var text bytes.Buffer
	if digits == 0 {
		if err := Write(&text, t); err != nil {
			b.Fatal(err)
		}
		return text.Bytes()
	}
	var line []byte
	for i := range n {
		line = line[:0]
		for j, v := range t.Row(i) {
			if j > 0 {
				line = append(line, ',')
			}
			line = strconv.AppendFloat(line, v, 'g', digits, 64)
		}
		text.Write(append(line, '\n'))
	}
	return text.Bytes()
}

// BenchmarkCSV compares the reader with encoding/csv and strconv on the same text.
func BenchmarkCSV(b *testing.B) {
	for _, digits := range []int{0, 6} {
		text := eightColumns(b, 100000, digits)
		bounds, err := ParseBounds("-10:110", 8)
		if err != nil {
			b.Fatal(err)
		}
		for _, workers := range []int{1, 2} {
			b.Run(fmt.Sprintf("digits=%d/panels/workers=%d", digits, workers), func(b *testing.B) {
				b.SetBytes(int64(len(text)))
				for b.Loop() {
					opts := ReadOptions{Workers: workers}
					s, err := openFormat(context.Background(), stream("f", bytes.NewReader(text)), opts)
					if err != nil {
						b.Fatal(err)
					}
					if _, err := Prepare(context.Background(), s, PrepareOptions{Read: opts, Bounds: &bounds}); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
		b.Run(fmt.Sprintf("digits=%d/stdlib", digits), func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				var rows []float64
				r := csv.NewReader(bytes.NewReader(text))
				r.ReuseRecord = true
				for {
					cells, err := r.Read()
					if err == io.EOF {
						break
					}
					for _, c := range cells {
						v, err := strconv.ParseFloat(c, 64)
						if err != nil {
							b.Fatal(err)
						}
						rows = append(rows, v)
					}
				}
				if len(rows) == 0 {
					b.Fatal("no values")
				}
			}
		})
	}
}
