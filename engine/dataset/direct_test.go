package dataset

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"testing"
)

// queued hides what a source is, so that its records go through the queue of all others.
type queued struct{ Source }

// Matrices of any layout are measured and put on the grid as any other source is.
func TestDirectEqualsQueued(t *testing.T) {
	layouts := map[string]func(n, d int) Borrowed{
		"rows":    func(n, d int) Borrowed { return &Matrix[float32]{Data: numbers[float32](n*d, 1), N: n, D: d} },
		"columns": func(n, d int) Borrowed { m := ColumnMajor(numbers[float64](n*d, 2), n, d); return &m },
		"padded": func(n, d int) Borrowed {
			return &Matrix[float64]{Data: numbers[float64](n*(d+3), 3), N: n, D: d, RowStride: d + 3, ColumnStride: 1}
		},
		"backwards": func(n, d int) Borrowed {
			return &Matrix[float32]{Data: numbers[float32](n*d, 4), N: n, D: d, RowStride: -d, ColumnStride: 1,
				Offset: (n - 1) * d}
		},
	}
	for name, make := range layouts {
		for _, shape := range [][2]int{{1, 1}, {40, 3}, {5001, 17}, {70001, 2}} {
			for _, workers := range []int{1, 3} {
				for _, bounds := range []*Bounds{nil, {Lo: repeated(-2, shape[1]), Hi: repeated(1.5, shape[1])}} {
					s, err := Below("data", []Borrowed{make(shape[0], shape[1])})
					if err != nil {
						t.Fatal(err)
					}
					o := PrepareOptions{Read: ReadOptions{Workers: workers}, Bounds: bounds, OneScale: shape[0] == 1}
					if direct(s, &o) == nil {
						t.Fatalf("%s: %v is queued", name, shape)
					}
					samePreparation(t, fmt.Sprintf("%s %v, %d workers", name, shape, workers), s, o)
				}
			}
		}
	}
}

// Several holders' records keep their places, ids are noticed across the runs, and the first error counts.
func TestDirectParts(t *testing.T) {
	first, second := numbers[float32](64*1024*2, 5), numbers[float32](70000*2, 6)
	for i := range 64 * 1024 {
		first[2*i] = float32(i)
	}
	of := func() Source {
		s, err := Below("data", []Borrowed{&Matrix[float32]{Data: first, N: 64 * 1024, D: 2},
			&Matrix[float32]{Data: second, N: 70000, D: 2}})
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	o := PrepareOptions{Read: ReadOptions{Workers: 2}}
	if p := samePreparation(t, "parts", of(), o); len(p.Table.Files) != 2 || p.Table.Report.IDLike != nil {
		t.Errorf("%+v", p.Table)
	}
	for i := range 70000 {
		second[2*i] = float32(1<<20 + i)
	}
	if p := samePreparation(t, "ids", of(), o); len(p.Table.Report.IDLike) != 1 {
		t.Errorf("ids are %v", p.Table.Report.IDLike)
	}
	second[2*50000+1], second[2*69000] = float32(math.NaN()), float32(math.Inf(1))
	for range 3 {
		if p := samePreparation(t, "not finite", of(), o); p != nil {
			t.Error("NaN is taken")
		}
	}
	o.Bounds = &Bounds{Lo: repeated(-1, 2), Hi: repeated(1, 2)}
	samePreparation(t, "not finite, with bounds", of(), o)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := Prepare(ctx, of(), o); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

// samePreparation prepares the records in both ways and returns the direct one, nil after an error.
func samePreparation(t *testing.T, name string, s Source, o PrepareOptions) *Prepared {
	t.Helper()
	want, wrong := Prepare(context.Background(), queued{s}, o)
	got, err := Prepare(context.Background(), s, o)
	if wrong != nil || err != nil {
		if wrong == nil || err == nil || wrong.Error() != err.Error() {
			t.Errorf("%s: error %v, want %v", name, err, wrong)
		}
		return nil
	}
	if !reflect.DeepEqual(got.Normalised, want.Normalised) || !reflect.DeepEqual(got.Table, want.Table) {
		t.Errorf("%s:\n%+v\n%+v\nwant\n%+v\n%+v", name, got.Normalised.Bounds, got.Table, want.Normalised.Bounds, want.Table)
	}
	return got
}

// A closed preparation's memory serves the next one, whatever was in it.
func TestMemoryIsUsedAgain(t *testing.T) {
	prepare := func(n int) *Prepared {
		s, err := FromMatrix("data", Matrix[float32]{Data: numbers[float32](n*3, 7), N: n, D: 3})
		if err != nil {
			t.Fatal(err)
		}
		p, err := Prepare(context.Background(), s, PrepareOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	want := prepare(3001)
	larger := prepare(3020)
	memory := &larger.Points.Data[0]
	for i := range larger.Points.Data {
		larger.Points.Data[i] = float32(math.NaN())
	}
	larger.Close()
	got := prepare(3001)
	if &got.Points.Data[0] != memory || !reflect.DeepEqual(got.Points, want.Points) {
		t.Error("memory is not used again, or not as it should be")
	}
	got.Close()
	got.Close()
	if small := prepare(10); &small.Points.Data[0] == memory {
		t.Error("ten records keep the memory of thousands")
	}
}

func numbers[T float32 | float64](n int, seed uint64) []T {
	rng := rand.New(rand.NewPCG(seed, 1))
	x := make([]T, n)
	for i := range x {
		x[i] = T(rng.NormFloat64())
	}
	return x
}

func repeated(x float64, n int) []float64 {
	all := make([]float64, n)
	for i := range all {
		all[i] = x
	}
	return all
}
