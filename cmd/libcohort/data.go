package main

/*
#include <stdlib.h>
#include "types.h"
*/
import "C"

import (
	"fmt"
	"unsafe"

	"github.com/cohort-engine/cohort/cmd/libcohort/request"
	"github.com/cohort-engine/cohort/engine/dataset"
	"github.com/cohort-engine/cohort/engine/dataset/arrow"
	"github.com/cohort-engine/cohort/internal/fault"
)

// mostNumbers bounds the numbers of a matrix: a slice of more cannot be described.
const mostNumbers = 1 << 46

// numbers is how many the holders have, of a file as many as there can be.
func numbers(data *request.Data) (count int) {
	if data.File != "" {
		return mostNumbers
	}
	for _, p := range data.Parts {
		n, d := p.Shape()
		count += n * d
	}
	return count
}

// read describes the holders' records where they are. release gives back what Arrow streams have handed over, and is
// called whatever the error.
func read(holders *C.cohort_data, count C.int32_t, weights *C.double) (data *request.Data, release func(), err error) {
	data, release = new(request.Data), func() {}
	if holders == nil || count < 1 {
		return data, release, null("data")
	}
	var streams []*stream
	release = func() {
		for _, s := range streams {
			s.release()
		}
	}
	all := unsafe.Slice(holders, count)
	for i := range all { // those after a fault are released as well
		if all[i].kind == C.COHORT_ARROW_STREAM && all[i].data != nil {
			streams = append(streams, &stream{from: (*C.struct_ArrowArrayStream)(all[i].data)})
		}
	}
	n, arrows := 0, streams
	for i := range all {
		name := "data"
		if count > 1 {
			name = fmt.Sprintf("data, part %d", i+1)
		}
		part, err := describe(name, &all[i], &arrows, data)
		if err != nil {
			return data, release, err
		}
		if part != nil {
			rows, _ := part.Shape()
			n += rows
			data.Parts = append(data.Parts, part)
		}
	}
	if data.File != "" && count > 1 {
		return data, release, fault.Request("data", "are a file and other holders'",
			"give one file, or several with commas between their names")
	}
	if weights != nil {
		if data.File != "" {
			return data, release, fault.Request("weights", "are given for a file", "give the records in memory")
		}
		data.Weights = unsafe.Slice((*float64)(weights), n)
	}
	return data, release, nil
}

// describe is the records of one holder, nil if they are in a file.
func describe(name string, d *C.cohort_data, streams *[]*stream, data *request.Data) (dataset.Borrowed, error) {
	if d.data == nil {
		return nil, null(name)
	}
	switch d.kind {
	case C.COHORT_FLOAT32:
		return matrix[float32](name, d)
	case C.COHORT_FLOAT64:
		return matrix[float64](name, d)
	case C.COHORT_FILE:
		data.File = C.GoString((*C.char)(d.data))
		return nil, nil
	case C.COHORT_ARROW_STREAM:
		s := (*streams)[0]
		*streams = (*streams)[1:]
		return s.records(name)
	}
	return nil, fault.Request(name, fmt.Sprintf("kind %d is unknown", d.kind), "choose one of cohort_kind")
}

// matrix describes numbers in memory: the slice begins at the lowest address.
func matrix[T float32 | float64](name string, d *C.cohort_data) (dataset.Borrowed, error) {
	m := &dataset.Matrix[T]{N: int(d.rows), D: int(d.columns), RowStride: int(d.row_stride),
		ColumnStride: int(d.column_stride)}
	if m.N < 1 || m.D < 1 {
		return m, m.Check(name)
	}
	if m.RowStride == 0 && m.ColumnStride == 0 {
		m.RowStride, m.ColumnStride = m.D, 1
	}
	lo, hi := 0.0, 0.0 // of the numbers, in float64, where nothing wraps
	for _, step := range []float64{float64(m.N-1) * float64(m.RowStride), float64(m.D-1) * float64(m.ColumnStride)} {
		lo, hi = lo+min(step, 0), hi+max(step, 0)
	}
	if hi-lo >= mostNumbers || float64(m.N)*float64(m.D) >= mostNumbers { // a stride of 0 repeats numbers
		return nil, fault.Request(name, fmt.Sprintf("%d x %d numbers with strides of %d and %d are more than fit in memory",
			m.N, m.D, m.RowStride, m.ColumnStride), "make shape and strides agree with the data")
	}
	if uintptr(d.data)%unsafe.Alignof(*new(T)) != 0 {
		return nil, fault.Request(name, "its address is no multiple of the size of a number", "give aligned memory")
	}
	m.Offset = int(-lo)
	first := unsafe.Add(unsafe.Pointer(d.data), int(lo)*int(unsafe.Sizeof(*new(T))))
	m.Data = unsafe.Slice((*T)(first), int(hi-lo)+1)
	if d.names != nil {
		for _, s := range unsafe.Slice(d.names, m.D) {
			m.Columns = append(m.Columns, C.GoString(s))
		}
	}
	return m, m.Check(name)
}

// stream is an Arrow stream that is read.
type stream struct {
	from   *C.struct_ArrowArrayStream
	schema *C.struct_ArrowSchema
	arrays []*C.struct_ArrowArray
}

// records reads the batches, which stay the producer's until they are released. What the producer writes
// into is memory of C.
func (s *stream) records(name string) (dataset.Borrowed, error) {
	if s.from.release == nil {
		return nil, fault.Request(name, "its stream was released already", "hand over a stream once")
	}
	s.schema = (*C.struct_ArrowSchema)(C.calloc(1, C.sizeof_struct_ArrowSchema))
	if C.stream_schema(s.from, s.schema) != 0 {
		return nil, s.fault(name)
	}
	var batches []*arrow.Batch
	for {
		a := (*C.struct_ArrowArray)(C.calloc(1, C.sizeof_struct_ArrowArray))
		s.arrays = append(s.arrays, a)
		if C.stream_next(s.from, a) != 0 {
			return nil, s.fault(name)
		}
		if a.release == nil { // the end
			break
		}
		b, err := arrow.Import(fmt.Sprintf("%s, batch %d", name, len(batches)+1), (*arrow.Schema)(unsafe.Pointer(s.schema)),
			(*arrow.Array)(unsafe.Pointer(a)))
		if err != nil {
			return nil, err
		}
		batches = append(batches, b)
	}
	return arrow.Records(name, batches)
}

func (s *stream) fault(name string) error {
	why := "its producer gives no reason"
	if text := C.stream_error(s.from); text != nil {
		why = C.GoString(text)
	}
	return fault.Failed(name, "its Arrow stream failed: "+why, "hand over another", nil)
}

func (s *stream) release() {
	for _, a := range s.arrays {
		C.release_array(a)
		C.free(unsafe.Pointer(a))
	}
	if s.schema != nil {
		C.release_schema(s.schema)
		C.free(unsafe.Pointer(s.schema))
	}
	C.release_stream(s.from)
}
