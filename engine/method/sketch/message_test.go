package sketch

import (
	"encoding/binary"
	"math"
	"reflect"
	"testing"

	"github.com/cohort-engine/cohort/internal/vary"
)

// What comes from anybody is refused, or is what it is again when it is sent on; nothing panics.
func FuzzDecodeMessage(f *testing.F) {
	set := newSketches(3, 2)
	for i := range set.Heights {
		set.Heights[i] = uint16(i + 1)
	}
	for _, m := range []*message{
		{Party: 1, Clusters: 2, Columns: 2, FractionBits: 8, Centers: []int32{1, -2, 3, 4}},
		{Clusters: 2, Columns: 1, FractionBits: 8, Centers: []int32{1, 2}, Sizes: []int64{7, -9}, SizeBits: 4,
			Sets: []*Sketches{set, set}},
	} {
		for heightBytes := 1; heightBytes <= 2; heightBytes++ {
			b := m.encode(heightBytes)
			f.Add(b)
			f.Add(b[:len(b)-1])
		}
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		vary.Bytes(b, func(b []byte) {
			m, err := decodeMessage(b)
			if err != nil {
				return
			}
			if again, err := decodeMessage(m.encode(int(b[7]))); err != nil || !reflect.DeepEqual(again, m) {
				t.Errorf("%+v comes back as %+v, %v", m, again, err)
			}
		})
	})
}

// So is a result that comes back: its numbers are numbers, as many as there may be.
func FuzzDecodeReturned(f *testing.F) {
	const k, d = 3, 2
	for rows := range k + 2 {
		b := binary.LittleEndian.AppendUint64(nil, 7)
		for i := range rows * (d + 1) {
			b = binary.LittleEndian.AppendUint64(b, math.Float64bits(float64(i)))
		}
		f.Add(b)
	}
	f.Add(binary.LittleEndian.AppendUint64(make([]byte, 8*(d+1)), math.Float64bits(math.NaN())))
	f.Fuzz(func(t *testing.T, b []byte) {
		vary.Bytes(b, func(b []byte) {
			cells, numbers, err := decodeReturned(b, k, d)
			if err != nil {
				return
			}
			again := binary.LittleEndian.AppendUint64(nil, uint64(cells))
			for _, x := range numbers {
				if x-x != 0 {
					t.Errorf("%v was taken", x)
				}
				again = binary.LittleEndian.AppendUint64(again, math.Float64bits(x))
			}
			if len(numbers)%(d+1) != 0 || len(numbers) > k*(d+1) || len(again) != len(b) || string(again[8:]) != string(b[8:]) {
				t.Errorf("%x is read as %x", b, again)
			}
		})
	})
}
