package dataset

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/cohort-engine/cohort/internal/fault"
)

const npyMagic = "\x93NUMPY"

func isNPY(head []byte) bool { return bytes.HasPrefix(head, []byte(npyMagic)) }

// maxNPYHeader bounds the header text; numpy itself writes some hundred bytes.
const maxNPYHeader = 1 << 16

// newNPY opens a one- or two-dimensional numeric array (NumPy NEP 1, format
// versions 1 to 3), C or Fortran order.
func newNPY(f *file, opts *ReadOptions) (Source, error) {
	r, err := f.reader()
	if err != nil {
		return nil, err
	}
	defer f.keep(r)
	bad := func(why, do string) error { return fault.Failed(f.name, why, do, nil) }
	pre, err := r.peek(12)
	if err != nil {
		return nil, readFault(f.name, 0, unexpected(err))
	}
	at, size := 10, int(binary.LittleEndian.Uint16(pre[8:]))
	switch major := pre[6]; major {
	case 1:
	case 2, 3:
		at, size = 12, int(min(binary.LittleEndian.Uint32(pre[8:]), maxNPYHeader+1))
	default:
		return nil, bad(fmt.Sprintf(".npy format version %d", major), "write it with version 1, 2 or 3")
	}
	if size > maxNPYHeader {
		return nil, bad("the .npy header is too long", "write the array again with numpy.save")
	}
	text, err := r.peek(at + size)
	if err != nil {
		return nil, readFault(f.name, 0, unexpected(err))
	}
	h, err := parseNPYHeader(string(text[at:]))
	if err != nil {
		return nil, bad(".npy header: "+err.Error(), "save an array of float32 or float64 with a row for each record")
	}
	if h.d == 0 {
		return nil, bad("the array is empty", "give an array with one record per row")
	}
	return newArray(f, opts, array{kind: h.kind, n: h.n, d: h.d, fortran: h.fortran, skip: at + size})
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
		return h, fmt.Errorf("descr %q is none of bool, int8 to uint64, float32 and float64", descr)
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
