package sketch

import (
	"reflect"
	"testing"
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
		m, err := decodeMessage(b)
		if err != nil {
			return
		}
		if again, err := decodeMessage(m.encode(int(b[7]))); err != nil || !reflect.DeepEqual(again, m) {
			t.Errorf("%+v comes back as %+v, %v", m, again, err)
		}
	})
}
