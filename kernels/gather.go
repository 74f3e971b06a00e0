package kernels

import (
	"fmt"
	"slices"
	"unsafe"
)

// Gather copies the points of src that which names, in that order, to dst, which has
// room for as many, and returns a view of them: with their integer forms, where those
// of src have some (PrepareFilter). Points of one panel come from the cache where they
// are named one after the other. It panics where dst is too small, or a point does not
// exist.
func Gather(dst, src *Panels, which []int32) Panels {
	dst.check("Gather")
	src.check("Gather")
	if dst.D != src.D || len(which) > dst.N {
		panic(fmt.Sprintf("kernels: Gather: %d points of d=%d into panels of n=%d, d=%d", len(which), src.D, dst.N, dst.D))
	}
	checkPoints("Gather", which, src.N)
	gather(dst.Data, 0, src.Data, which, 0, src.D)
	view := Panels{N: len(which), D: dst.D, Data: dst.Data}
	if src.filter != nil {
		dst.gatherFilter(src, which)
		view.filter = dst.filter
	}
	return view
}

// checkPoints panics unless which names points of n.
func checkPoints(what string, which []int32, n int) {
	most := uint32(0) // which a negative number exceeds
	for _, i := range which {
		most = max(most, uint32(i))
	}
	if len(which) > 0 && int(most) >= n {
		panic(fmt.Sprintf("kernels: %s: points %d to %d of %d", what, slices.Min(which), slices.Max(which), n))
	}
}

// gather copies points of d words each, the lanes of a panel, to dst from its point number at on; the first point of
// src is number first there. All of them are there, and dst has room. Without checks of bounds the processor
// waits for the lines of several points at once.
func gather[T uint32 | uint64 | float32](dst []T, at int, src []T, which []int32, first, d int) {
	step := Lanes * int(unsafe.Sizeof(*new(T)))
	for i, p := range which {
		from := unsafe.Pointer(&src[(first+int(p)/Lanes)*Lanes*d+int(p)%Lanes])
		to := unsafe.Pointer(&dst[(at+i)/Lanes*Lanes*d+(at+i)%Lanes])
		h := 0
		for ; h+4 <= d; h += 4 {
			from, to := unsafe.Add(from, h*step), unsafe.Add(to, h*step)
			a, b := *(*T)(from), *(*T)(unsafe.Add(from, step))
			x, y := *(*T)(unsafe.Add(from, 2*step)), *(*T)(unsafe.Add(from, 3*step))
			*(*T)(to), *(*T)(unsafe.Add(to, step)) = a, b
			*(*T)(unsafe.Add(to, 2*step)), *(*T)(unsafe.Add(to, 3*step)) = x, y
		}
		for ; h < d; h++ {
			*(*T)(unsafe.Add(to, h*step)) = *(*T)(unsafe.Add(from, h*step))
		}
	}
}

// words are integer forms as the words that an instruction multiplies.
func words[T uint32 | uint64](data []byte) []T {
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(data))), len(data)/int(unsafe.Sizeof(*new(T))))
}

// gatherFilter copies the integer forms of points of src.
func (p *Panels) gatherFilter(src *Panels, which []int32) {
	from, to := src.filter, p.filter
	if to == nil || to.group != from.group || to.words != from.words || to.chunk != from.chunk ||
		len(to.panels) < panelCount(p.N) {
		panels := panelCount(p.N)
		to = &filterPoints{group: from.group, zero: from.zero, words: from.words, chunk: from.chunk, runs: from.runs,
			panels: make([][2]float32, panels), data: aligned[byte](panels * from.size() * Lanes)}
		p.filter = to
	}
	to.scale, to.most, to.norm, to.rough, to.floor = from.scale, from.most, from.norm, from.rough, from.floor
	to.reach = from.reach
	if wordBytes(from.group) == 8 {
		gather(words[uint64](to.data), 0, words[uint64](from.data), which, src.firstPanel, from.words)
	} else {
		gather(words[uint32](to.data), 0, words[uint32](from.data), which, src.firstPanel, from.words)
	}
	for i := range to.panels[:panelCount(len(which))] {
		to.panels[i] = [2]float32{}
	}
	for i, at := range which {
		bounds, own := &to.panels[i/Lanes], from.panels[src.firstPanel+int(at)/Lanes]
		bounds[0], bounds[1] = max(bounds[0], own[0]), max(bounds[1], own[1])
	}
}
