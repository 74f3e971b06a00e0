package arrow

import (
	"fmt"
	"math"
	"runtime"
	"slices"
	"testing"
	"unsafe"

	"github.com/cohort-engine/cohort/engine/dataset"
	"github.com/cohort-engine/cohort/internal/fault"
)

// producer makes batches as another library would, and keeps their memory in place.
type producer struct{ pin runtime.Pinner }

func (p *producer) text(s string) *byte {
	b := append([]byte(s), 0)
	p.pin.Pin(&b[0])
	return &b[0]
}

// columnOf makes a column of numbers, with bits of which are valid or nil.
func columnOf[T any](p *producer, format, name string, values []T, valid []byte, offset, length,
	nulls int) (*Schema, *Array) {
	buffers := make([]unsafe.Pointer, 2)
	p.pin.Pin(&values[0])
	p.pin.Pin(&buffers[0])
	buffers[1] = unsafe.Pointer(&values[0])
	if valid != nil {
		p.pin.Pin(&valid[0])
		buffers[0] = unsafe.Pointer(&valid[0])
	}
	return &Schema{Format: p.text(format), Name: p.text(name), Release: 1},
		&Array{Length: int64(length), NullCount: int64(nulls), Offset: int64(offset), NBuffers: 2,
			Buffers: &buffers[0], Release: 1}
}

func (p *producer) batch(offset, length int, schemas []*Schema, arrays []*Array) (*Schema, *Array) {
	buffers := make([]unsafe.Pointer, 1)
	return &Schema{Format: p.text("+s"), NChildren: int64(len(schemas)), Children: unsafe.SliceData(schemas), Release: 1},
		&Array{Length: int64(length), Offset: int64(offset), NBuffers: 1, NChildren: int64(len(arrays)),
			Buffers: &buffers[0], Children: unsafe.SliceData(arrays), Release: 1}
}

func rowsOf(b interface {
	Shape() (int, int)
	Widen([]float64, int, int, int)
}, lo, hi int) []float64 {
	_, d := b.Shape()
	rows := make([]float64, (hi-lo)*d)
	b.Widen(rows, lo, hi, d)
	return rows
}

// Every format, offsets of columns and of batches, and nulls give the numbers that the producer means.
func TestImport(t *testing.T) {
	var p producer
	defer p.pin.Unpin()
	var schemas []*Schema
	var arrays []*Array
	add := func(s *Schema, a *Array) { schemas, arrays = append(schemas, s), append(arrays, a) }
	add(columnOf(&p, "c", "a", []int8{9, -1, 2, 3}, nil, 1, 3, 0))
	add(columnOf(&p, "C", "b", []uint8{1, 2, 255}, nil, 0, 3, 0))
	add(columnOf(&p, "s", "c", []int16{1, 2, -3}, nil, 0, 3, 0))
	add(columnOf(&p, "S", "d", []uint16{1, 2, 65535}, nil, 0, 3, 0))
	add(columnOf(&p, "i", "e", []int32{1, 2, -1 << 31}, nil, 0, 3, 0))
	add(columnOf(&p, "I", "f", []uint32{1, 2, 1<<32 - 1}, nil, 0, 3, 0))
	add(columnOf(&p, "l", "g", []int64{1, 2, -1 << 40}, nil, 0, 3, 0))
	add(columnOf(&p, "L", "h", []uint64{1, 2, 1 << 63}, nil, 0, 3, 0))
	add(columnOf(&p, "f", "i", []float32{1, 2.5, 3}, []byte{0b101}, 0, 3, 1))
	add(columnOf(&p, "g", "j", []float64{9, 9, 1, 2, math.Pi}, []byte{0b10111}, 2, 3, 1))
	add(columnOf(&p, "e", "k", []uint16{0x3c00, 0xc100, 0x0001}, nil, 0, 3, 0))
	b, err := load(p.batch(1, 2, schemas, arrays))
	if err != nil {
		t.Fatal(err)
	}
	want := []float64{2, 2, 2, 2, 2, 2, 2, 2, math.NaN(), math.NaN(), -2.5, 3, 255, -3, 65535, -1 << 31, 1<<32 - 1,
		-1 << 40, 1 << 63, 3, math.Pi, 0x1p-24}
	got := rowsOf(b, 0, 2)
	if !slices.EqualFunc(got, want, func(a, b float64) bool { return a == b || a != a && b != b }) {
		t.Errorf("rows %v, want %v", got, want)
	}
	if b.Names()[10] != "k" || b.Check("data") != nil {
		t.Errorf("names %q", b.Names())
	}
	one, err := load(columnOf(&p, "g", "", []float64{1, 2}, nil, 0, 2, 0))
	if err != nil || one.Names() != nil || !slices.Equal(rowsOf(one, 0, 2), []float64{1, 2}) {
		t.Errorf("a column alone gives %v, error %v", one, err)
	}
}

// load imports what a producer has made.
func load(s *Schema, a *Array) (*Batch, error) { return Import("data", s, a) }

// Batches are one after the other, whatever rows are asked for.
func TestRecords(t *testing.T) {
	var p producer
	defer p.pin.Unpin()
	var batches []*Batch
	var want []float64
	for i, n := range []int{3, 0, 40, 1, 16} {
		values := make([]float64, max(n, 1))
		for j := range values {
			values[j] = float64(100*i + j)
		}
		want = append(want, values[:n]...)
		s, a := columnOf(&p, "g", "x", values, nil, 0, n, 0)
		b, err := load(p.batch(0, n, []*Schema{s}, []*Array{a}))
		if err != nil {
			t.Fatal(err)
		}
		batches = append(batches, b)
	}
	all, err := Records("data", batches)
	if err != nil {
		t.Fatal(err)
	}
	for lo := 0; lo < len(want); lo++ {
		for hi := lo + 1; hi <= len(want); hi++ {
			if got := rowsOf(all, lo, hi); !slices.Equal(got, want[lo:hi]) {
				t.Fatalf("rows %d to %d are %v, want %v", lo, hi, got, want[lo:hi])
			}
		}
	}
	_, memory := dataset.FromMatrix("data", dataset.Matrix[float64]{D: 2})
	if _, err := Records("data", batches[1:2]); !fault.IsRequest(err) || fmt.Sprint(err) != fmt.Sprint(memory) {
		t.Errorf("no records: %v, of other memory %v", err, memory)
	}
	other, err := load(columnOf(&p, "g", "y", []float64{1}, nil, 0, 1, 0))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Records("data", []*Batch{batches[0], other}); !fault.IsRequest(err) {
		t.Errorf("batches of other columns: %v", err)
	}
}

func TestRefused(t *testing.T) {
	var p producer
	defer p.pin.Unpin()
	s, a := columnOf(&p, "u", "text", []byte{1}, nil, 0, 1, 0)
	if _, err := Import("data", s, a); !fault.IsRequest(err) {
		t.Errorf("text: %v", err)
	}
	good, short := columnOf(&p, "g", "x", []float64{1}, nil, 0, 1, 0)
	if _, err := load(p.batch(0, 2, []*Schema{good}, []*Array{short})); !fault.IsRequest(err) {
		t.Errorf("a short column: %v", err)
	}
	if _, err := load(p.batch(0, 1, nil, []*Array{short})); !fault.IsRequest(err) {
		t.Errorf("no schema for a column: %v", err)
	}
	none, err := load(p.batch(0, 1, nil, nil))
	if err != nil || !fault.IsRequest(none.Check("data")) {
		t.Errorf("no columns: %v", err)
	}
	short.Release = 0
	for _, pair := range [][2]any{{good, short}, {nil, short}, {good, nil}} {
		s, _ := pair[0].(*Schema)
		a, _ := pair[1].(*Array)
		if _, err := Import("data", s, a); !fault.IsRequest(err) {
			t.Errorf("what is no batch: %v", err)
		}
	}
	short.Release, short.NBuffers = 1, 1
	if _, err := Import("data", good, short); !fault.IsRequest(err) {
		t.Errorf("one buffer: %v", err)
	}
}
