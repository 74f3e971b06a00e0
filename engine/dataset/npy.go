package dataset

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"

	"github.com/cohort-engine/cohort/engine/fault"
)

const npyMagic = "\x93NUMPY"

func isNPY(head []byte) bool { return bytes.HasPrefix(head, []byte(npyMagic)) }

// maxNPYHeader bounds the header text; numpy itself writes some hundred bytes.
const maxNPYHeader = 1 << 16

// readNPY reads a one- or two-dimensional numeric array (NumPy NEP 1, format
// versions 1 to 3), C or Fortran order.
func readNPY(ctx context.Context, path string, r *bufio.Reader) (*Table, error) {
	bad := func(why, do string) error { return fault.Failed(path, why, do, nil) }
	var pre [8]byte
	if _, err := io.ReadFull(r, pre[:]); err != nil {
		return nil, readFault(path, 0, unexpected(err))
	}
	var size int
	if major := pre[6]; major == 1 {
		var b [2]byte
		if _, err := io.ReadFull(r, b[:]); err != nil {
			return nil, readFault(path, 0, unexpected(err))
		}
		size = int(binary.LittleEndian.Uint16(b[:]))
	} else if major == 2 || major == 3 {
		var b [4]byte
		if _, err := io.ReadFull(r, b[:]); err != nil {
			return nil, readFault(path, 0, unexpected(err))
		}
		size = int(min(binary.LittleEndian.Uint32(b[:]), maxNPYHeader+1))
	} else {
		return nil, bad(fmt.Sprintf(".npy format version %d", major), "write it with version 1, 2 or 3")
	}
	if size > maxNPYHeader {
		return nil, bad("the .npy header is too long", "write the array again with numpy.save")
	}
	text := make([]byte, size)
	if _, err := io.ReadFull(r, text); err != nil {
		return nil, readFault(path, 0, unexpected(err))
	}
	h, err := parseNPYHeader(string(text))
	if err != nil {
		return nil, bad(".npy header: "+err.Error(), "write the array again with numpy.save")
	}
	t := &Table{Name: path, N: h.n, D: h.d}
	if t.N == 0 || t.D == 0 {
		return nil, bad("the array is empty", "give an array with one record per row")
	}
	if t.Rows, err = readNumbers(ctx, path, r, h.kind, h.n, h.d, 0, h.fortran); err != nil {
		return nil, err
	}
	return t, nil
}

// number is the binary form of one value.
type number struct {
	size   int
	order  binary.ByteOrder
	float  bool
	signed bool
}

type npyHeader struct {
	kind    number
	fortran bool
	n, d    int
}

// parseNPYHeader parses the Python dictionary that describes the array.
func parseNPYHeader(s string) (npyHeader, error) {
	var h npyHeader
	descr, ok := npyField(s, "descr")
	if !ok || len(descr) < 2 || (descr[0] != '\'' && descr[0] != '"') {
		return h, fmt.Errorf("no simple numeric descr")
	}
	descr = descr[1:]
	if end := strings.IndexAny(descr, `'"`); end >= 0 {
		descr = descr[:end]
	}
	if len(descr) < 3 {
		return h, fmt.Errorf("descr %q is not a numeric type", descr)
	}
	switch descr[0] {
	case '<', '|', '=':
		h.kind.order = binary.LittleEndian
	case '>':
		h.kind.order = binary.BigEndian
	default:
		return h, fmt.Errorf("descr %q is not a numeric type", descr)
	}
	size, err := strconv.Atoi(descr[2:])
	if err != nil {
		return h, fmt.Errorf("descr %q is not a numeric type", descr)
	}
	h.kind.size = size
	ok = false
	switch descr[1] {
	case 'f':
		h.kind.float = true
		ok = size == 4 || size == 8
	case 'i':
		h.kind.signed = true
		ok = size == 1 || size == 2 || size == 4 || size == 8
	case 'u':
		ok = size == 1 || size == 2 || size == 4 || size == 8
	case 'b':
		ok = size == 1
	}
	if !ok {
		return h, fmt.Errorf("descr %q is not an integer or float32/float64 type", descr)
	}
	order, ok := npyField(s, "fortran_order")
	if !ok {
		return h, fmt.Errorf("no fortran_order")
	}
	h.fortran = strings.HasPrefix(order, "True")
	shape, ok := npyField(s, "shape")
	if !ok || !strings.HasPrefix(shape, "(") {
		return h, fmt.Errorf("no shape")
	}
	end := strings.IndexByte(shape, ')')
	if end < 0 {
		return h, fmt.Errorf("no shape")
	}
	dims := make([]int, 0, 2)
	for _, item := range strings.Split(shape[1:end], ",") {
		if item = strings.TrimSpace(item); item == "" {
			continue
		}
		v, err := strconv.Atoi(item)
		if err != nil || v < 0 || v > math.MaxInt32 {
			return h, fmt.Errorf("shape %s is out of range", shape[:end+1])
		}
		dims = append(dims, v)
	}
	switch len(dims) {
	case 1:
		h.n, h.d = dims[0], 1
	case 2:
		h.n, h.d = dims[0], dims[1]
	default:
		return h, fmt.Errorf("shape %s has %d dimensions where 1 or 2 are understood", shape[:end+1], len(dims))
	}
	return h, nil
}

// npyField returns the text after 'name': in the header dictionary.
func npyField(s, name string) (string, bool) {
	i := strings.Index(s, "'"+name+"'")
	if i < 0 {
		return "", false
	}
	s = strings.TrimLeft(s[i+len(name)+2:], " ")
	s, ok := strings.CutPrefix(s, ":")
	return strings.TrimLeft(s, " "), ok
}

// readNumbers reads n*d values and returns them row-major. It grows its result
// with the data that really comes, so a false shape cannot ask for memory.
func readNumbers(ctx context.Context, path string, r io.Reader, kind number, n, d, spare int, fortran bool) ([]float64, error) {
	total := n * d // both below 2^31
	perChunk := (1 << 16) / kind.size
	buf := make([]byte, perChunk*kind.size)
	values := make([]float64, 0, min(total+spare, max(1<<20, perChunk)))
	for len(values) < total {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		count := min(perChunk, total-len(values))
		if len(values)+count > cap(values) {
			// A header may lie, so room is made as values arrive; never more than
			// there is to read, for sets that fill the memory.
			grown := make([]float64, len(values), min(total+spare, 8*cap(values)))
			copy(grown, values)
			values = grown
		}
		b := buf[:count*kind.size]
		if _, err := io.ReadFull(r, b); err != nil {
			return nil, readFault(path, 0, unexpected(err))
		}
		for i := range count {
			v := kind.value(b[i*kind.size:])
			if math.IsNaN(v) || math.IsInf(v, 0) {
				at := len(values)
				row, column := at/d, at%d
				if fortran {
					row, column = at%n, at/n
				}
				return nil, fault.Failed(place(path, row+1, column+1), errNotFinite.Error(), "correct the cell, or leave the column out with --columns", errNotFinite)
			}
			values = append(values, v)
		}
	}
	var one [1]byte
	if _, err := io.ReadFull(r, one[:]); err == nil {
		return nil, fault.Failed(path, fmt.Sprintf("more data than the %d x %d values its header declares", n, d), "write the file again", nil)
	} else if err != io.EOF {
		return nil, readFault(path, 0, err)
	}
	if !fortran || d == 1 {
		return values, nil
	}
	rows := make([]float64, total)
	for j := range d {
		for i := range n {
			rows[i*d+j] = values[j*n+i]
		}
	}
	return rows, nil
}

func (k number) value(b []byte) float64 {
	switch {
	case k.float && k.size == 4:
		return float64(math.Float32frombits(k.order.Uint32(b)))
	case k.float:
		return math.Float64frombits(k.order.Uint64(b))
	case k.size == 1 && k.signed:
		return float64(int8(b[0]))
	case k.size == 1:
		return float64(b[0])
	case k.size == 2 && k.signed:
		return float64(int16(k.order.Uint16(b)))
	case k.size == 2:
		return float64(k.order.Uint16(b))
	case k.size == 4 && k.signed:
		return float64(int32(k.order.Uint32(b)))
	case k.size == 4:
		return float64(k.order.Uint32(b))
	case k.signed:
		return float64(int64(k.order.Uint64(b)))
	}
	return float64(k.order.Uint64(b))
}

// unexpected turns a clean end of file, where more was promised, into
// io.ErrUnexpectedEOF.
func unexpected(err error) error {
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}
