package protocol

import (
	"encoding/binary"
	"errors"
	"math"
)

// errGroups says that the server was told no layout.
var errGroups = errors.New("protocol: the layout of a release is malformed")

// mostGroups and mostValues bound the layout that a server takes from a party.
const (
	mostGroups = 1 << 20
	mostValues = 1 << 31
)

// encodeGroups encodes the layout of a release for the server that draws its noise;
// exact releases have none. Layouts follow from public values.
func encodeGroups(round int, groups []Group) []byte {
	if len(groups) > 0 && groups[0].Noise == nil {
		groups = nil
	}
	b := binary.AppendUvarint(nil, uint64(round))
	b = binary.AppendUvarint(b, uint64(len(groups)))
	for _, g := range groups {
		b = binary.AppendUvarint(b, uint64(len(g.Stream)))
		b = append(b, g.Stream...)
		b = binary.AppendUvarint(b, uint64(g.Values))
		gaussian := byte(0)
		if g.Noise.Mechanism == Gaussian {
			gaussian = 1
		}
		b = append(b, gaussian, byte(g.Noise.Rounding))
		b = binary.LittleEndian.AppendUint64(b, math.Float64bits(g.Noise.Scale))
	}
	return b
}

// decodeGroups reads a layout.
func decodeGroups(b []byte) (round int, groups []Group, err error) {
	number := func(most uint64) uint64 {
		x, n := binary.Uvarint(b)
		if n <= 0 || x > most {
			err = errGroups
			return 0
		}
		b = b[n:]
		return x
	}
	round = int(number(math.MaxUint32))
	count := int(number(mostGroups))
	var last *Distribution
	for i := 0; i < count && err == nil; i++ {
		var g Group
		name := int(number(256))
		if err != nil || len(b) < name {
			return 0, nil, errGroups
		}
		g.Stream, b = string(b[:name]), b[name:]
		g.Values = int(number(mostValues))
		if err != nil || len(b) < 10 {
			return 0, nil, errGroups
		}
		n := Noise{Mechanism: Laplace, Rounding: Rounding(b[1]),
			Scale: math.Float64frombits(binary.LittleEndian.Uint64(b[2:]))}
		if b[0] == 1 {
			n.Mechanism = Gaussian
		}
		b = b[10:]
		if n.Rounding > TowardZero || !(n.Scale > 0) || math.IsInf(n.Scale, 1) {
			return 0, nil, errGroups
		}
		if last == nil || last.Noise != n {
			if last, err = NewDistribution(n, nil); err != nil {
				return 0, nil, err
			}
		}
		g.Noise = last
		groups = append(groups, g)
	}
	if err == nil && len(b) > 0 {
		err = errGroups
	}
	return round, groups, err
}

// valuesOf is the length of vectors of a layout.
func valuesOf(groups []Group) int {
	n := 0
	for _, g := range groups {
		n += g.Values
	}
	return n
}
