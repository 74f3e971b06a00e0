package dataset

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/cohort-engine/cohort/internal/fault"
)

// idxKinds are the value types of the IDX format (MNIST); numbers are
// big-endian.
var idxKinds = map[byte]number{
	0x08: {size: 1, order: binary.BigEndian},
	0x09: {size: 1, order: binary.BigEndian, signed: true},
	0x0b: {size: 2, order: binary.BigEndian, signed: true},
	0x0c: {size: 4, order: binary.BigEndian, signed: true},
	0x0d: {size: 4, order: binary.BigEndian, float: true},
	0x0e: {size: 8, order: binary.BigEndian, float: true},
}

func isIDX(head []byte) bool {
	if len(head) < 4 || head[0] != 0 || head[1] != 0 || head[3] == 0 {
		return false
	}
	_, ok := idxKinds[head[2]]
	return ok
}

// newIDX opens an IDX file; the first dimension counts the records, the others make
// up one record.
func newIDX(f *file, opts *ReadOptions) (Source, error) {
	r, err := f.reader()
	if err != nil {
		return nil, err
	}
	defer f.keep(r)
	magic, err := r.peek(4)
	if err != nil {
		return nil, readFault(f.name, 0, unexpected(err))
	}
	kind, dims := idxKinds[magic[2]], int(magic[3])
	head, err := r.peek(4 + 4*dims)
	if err != nil {
		return nil, readFault(f.name, 0, unexpected(err))
	}
	n, d := 0, 1
	for i := range dims {
		size := int64(binary.BigEndian.Uint32(head[4+4*i:]))
		if i == 0 {
			if size > math.MaxInt32 {
				return nil, fault.Failed(f.name, "the IDX header declares too many records", "check the file", nil)
			}
			n = int(size)
			continue
		}
		if size == 0 || int64(d)*size > math.MaxInt32 {
			return nil, fault.Failed(f.name, fmt.Sprintf("the IDX header declares a dimension of %d", size),
				"check the file", nil)
		}
		d *= int(size)
	}
	return newArray(f, opts, array{kind: kind, n: n, d: d, skip: 4 + 4*dims})
}
