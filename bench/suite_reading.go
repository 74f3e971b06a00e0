package bench

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"time"

	pq "github.com/parquet-go/parquet-go"

	"github.com/cohort-engine/cohort/engine/dataset"
	"github.com/cohort-engine/cohort/engine/dataset/parquet"
)

// readingRecords is the size of the files of suite reading.
const readingRecords = 1000000

func runReading(ctx context.Context, e *Env) {
	n := e.reps(readingRecords, readingRecords/4)
	for _, format := range []string{"csv", "parquet"} {
		e.newCase(ctx, "", []Label{L("format", format), L("records", n)}, func(ctx context.Context, c *Case) error {
			dir, err := os.MkdirTemp("", "cohort-reading")
			if err != nil {
				return err
			}
			defer os.RemoveAll(dir)
			path := filepath.Join(dir, "records."+format)
			if err := writeRecords(path, format, n); err != nil {
				return err
			}
			return c.reading(ctx, path, format, n)
		})
	}
}

const readingColumns = 8

// reading measures a file.
func (c *Case) reading(ctx context.Context, path, format string, n int) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	prepare := func(workers int) error {
		read := dataset.ReadOptions{Workers: workers, Formats: []dataset.Format{parquet.Format}}
		s, err := dataset.OpenSource(ctx, path, read)
		if err != nil {
			return err
		}
		bounds := dataset.SameBounds(readingColumns, 0, 1000)
		p, err := dataset.Prepare(ctx, s, dataset.PrepareOptions{Read: read, Bounds: &bounds})
		if err != nil {
			return err
		}
		defer p.Close()
		if p.Points.N != n {
			return fmt.Errorf("%d records were read of %d", p.Points.N, n)
		}
		return nil
	}
	ways := []struct {
		name string
		read func() error
	}{
		{"one worker", func() error { return prepare(1) }},
		{"all workers", func() error { return prepare(c.Env.Pool.Workers()) }},
		{"bare loop", func() error { return bareLoop(ctx, path, format) }},
	}
	times := make([][]float64, len(ways))
	for range c.Env.reps(7, 3) {
		for i, w := range ways {
			begin := time.Now()
			if err := w.read(); err != nil {
				return err
			}
			times[i] = append(times[i], float64(time.Since(begin)))
		}
	}
	for i, w := range ways {
		rates := make([]float64, len(times[i]))
		for r, ns := range times[i] {
			rates[r] = float64(info.Size()) / 1e6 / (ns / 1e9)
		}
		c.samples(w.name, "MB/s", rates)
	}
	one := float64(c.Row.value("one worker").Median)
	c.number("all of one", "x", float64(c.Row.value("all workers").Median)/one)
	if format == "parquet" {
		c.number("time of the bare loop", "x", float64(c.Row.value("bare loop").Median)/one,
			aimedAt("goal", 1.2)...)
	}
	panels := float64(4 * n * readingColumns)
	return c.peak("memory beside the panels", panels, panels, nil,
		func() error { return prepare(c.Env.Pool.Workers()) })
}

// writeRecords writes n records of uniform numbers with four decimals.
func writeRecords(path, format string, n int) error {
	rng := rand.New(rand.NewPCG(1, uint64(n)))
	values := make([]float64, n*readingColumns)
	for i := range values {
		values[i] = float64(rng.IntN(1e7)) / 1e4
	}
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer f.Close()
	w := bufio.NewWriterSize(f, 1<<20)
	if format == "parquet" {
		var columns []parquet.Column
		for j := range readingColumns {
			columns = append(columns, parquet.Column{Name: fmt.Sprint("c", j),
				Floats: func(i int) float64 { return values[i*readingColumns+j] }})
		}
		if err := parquet.Write(w, n, columns); err != nil {
			return err
		}
	} else {
		var line []byte
		for i, v := range values {
			line = strconv.AppendFloat(line, v, 'f', 4, 64)
			if i%readingColumns < readingColumns-1 {
				line = append(line, ',')
				continue
			}
			w.Write(append(line, '\n')) // Flush tells of errors
			line = line[:0]
		}
	}
	if err := w.Flush(); err != nil {
		return err
	}
	return f.Close()
}

// bareLoop only decodes the numbers of a file, on one core.
func bareLoop(ctx context.Context, path, format string) error {
	if format == "parquet" {
		return bareParquet(path)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	for line := range bytes.Lines(text) {
		for cell := range bytes.SplitSeq(bytes.TrimSuffix(line, []byte("\n")), []byte(",")) {
			if _, err := strconv.ParseFloat(string(cell), 64); err != nil {
				return err
			}
		}
	}
	return ctx.Err()
}

// bareParquet reads all pages of a file of float64.
func bareParquet(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	file, err := pq.OpenFile(f, info.Size())
	if err != nil {
		return err
	}
	sum := 0.0
	for _, g := range file.RowGroups() {
		for _, c := range g.ColumnChunks() {
			pages := c.Pages()
			for {
				p, err := pages.ReadPage()
				if err == io.EOF {
					break
				}
				if err != nil {
					return err
				}
				data := p.Data()
				for _, x := range data.Double() {
					sum += x
				}
				pq.Release(p)
			}
			pages.Close()
		}
	}
	if math.IsNaN(sum) {
		return fmt.Errorf("the sum is %v", sum)
	}
	return nil
}
