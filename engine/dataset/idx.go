package dataset

import (
	"bufio"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"math"

	"github.com/cohort-engine/cohort/engine/fault"
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

// readIDX reads an IDX file; the first dimension counts the records, the others
// make up one record. The rows have room for spare more values.
func readIDX(ctx context.Context, path string, r *bufio.Reader, spare int) (*Table, error) {
	var magic [4]byte
	if _, err := io.ReadFull(r, magic[:]); err != nil {
		return nil, readFault(path, 0, unexpected(err))
	}
	kind := idxKinds[magic[2]]
	n, d := 0, 1
	for i := range int(magic[3]) {
		var b [4]byte
		if _, err := io.ReadFull(r, b[:]); err != nil {
			return nil, readFault(path, 0, unexpected(err))
		}
		size := int64(binary.BigEndian.Uint32(b[:]))
		if i == 0 {
			if size > math.MaxInt32 {
				return nil, fault.Failed(path, "the IDX header declares too many records", "check the file", nil)
			}
			n = int(size)
			continue
		}
		if size == 0 || int64(d)*size > math.MaxInt32 {
			return nil, fault.Failed(path, fmt.Sprintf("the IDX header declares a dimension of %d", size), "check the file", nil)
		}
		d *= int(size)
	}
	if n == 0 {
		return nil, fault.Failed(path, "the file has no records", "give a file with at least one record", nil)
	}
	rows, err := readNumbers(ctx, path, r, kind, n, d, spare, false)
	if err != nil {
		return nil, err
	}
	return &Table{Name: path, N: n, D: d, Rows: rows, Bytes: kind == idxKinds[0x08]}, nil
}
