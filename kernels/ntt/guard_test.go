//go:build linux

package ntt

import (
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// guarded returns n words that end right before an inaccessible page, or start
// right after one, so that any access outside them faults.
func guarded(t testing.TB, n int, atEnd bool) []uint32 {
	t.Helper()
	page := unix.Getpagesize()
	inner := (4*n + page - 1) / page * page
	b, err := unix.Mmap(-1, 0, inner+2*page, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := unix.Munmap(b); err != nil {
			t.Error(err)
		}
	})
	for _, fence := range [][]byte{b[:page], b[page+inner:]} {
		if err := unix.Mprotect(fence, unix.PROT_NONE); err != nil {
			t.Fatal(err)
		}
	}
	start := page
	if atEnd {
		start += inner - 4*n
	}
	return unsafe.Slice((*uint32)(unsafe.Pointer(&b[start])), n)
}

// TestKernelsStayInsideTheirSlices runs every kernel on slices that touch guard
// pages, at both ends. An access outside ends the test binary with a fault.
func TestKernelsStayInsideTheirSlices(t *testing.T) {
	for _, atEnd := range []bool{false, true} {
		for _, kind := range []Kind{Standard, ConjugateInvariant} {
			for _, logN := range []int{MinLogN, 12} {
				for _, q := range testPrimes[:2] {
					r, err := NewRing(kind, logN, q)
					if err != nil {
						t.Fatal(err)
					}
					w := r.tables()
					for _, table := range []*[]uint32{&w.forward, &w.backward, &w.tail, &w.untail} {
						g := guarded(t, r.n, atEnd)
						copy(g, *table)
						*table = g
					}
					guardedRing(t, r, atEnd)
				}
			}
		}
		guardedVectors(t, atEnd)
	}
}

func guardedRing(t *testing.T, r *Ring, atEnd bool) {
	x, y := guarded(t, r.n, atEnd), guarded(t, r.n, atEnd)
	onEveryPath(t, func(path) {
		r.Forward(y, x)
		r.ForwardLazy(y, x)
		clear(x)
		r.Inverse(y, x, 1)
		r.InverseLazy(y, x, 1)
	})
}

func guardedVectors(t *testing.T, atEnd bool) {
	p, err := NewPrime(testPrimes[0])
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range []int{16, 32, 1040} {
		v := make([][]uint32, 9)
		for i := range v {
			v[i] = guarded(t, n, atEnd)
		}
		key := NewKey(n, MaxTerms)
		key.words = guarded(t, len(key.words), atEnd)
		onEveryPath(t, func(path) {
			p.Add(v[0], v[1], v[2])
			p.Sub(v[0], v[1], v[2])
			p.AddScalar(v[0], v[1], 3)
			p.Scale(v[0], v[1], 3)
			p.ScaleAdd(v[0], v[1], 3)
			p.SubScale(v[0], v[1], v[2], 3)
			p.Multiply(v[0], v[1], v[2])
			p.MultiplyAdd(v[0], v[1], v[2])
			p.Product((*[3][]uint32)(v), (*[2][]uint32)(v[3:]), (*[2][]uint32)(v[5:]), 1)
			p.ProductAdd((*[3][]uint32)(v), (*[2][]uint32)(v[3:]), (*[2][]uint32)(v[5:]), 1)
			p.Uniform(v[0][:n/2], bytesOf(v[1]))
			p.Uniform(v[0][n/2:], bytesOf(v[1]))
			Permute(v[0], v[1], v[8])
			for terms := 1; terms <= MaxTerms; terms++ {
				c := guarded(t, terms+1, atEnd)
				p.Convert(v[0], v[1:1+terms], c[:terms])
				p.Convert(v[0], v[1:2+terms], c)
				Whole(v[0], v[1:1+terms], c[:terms], 58)
				p.Inner(v[0], v[7], v[1:1+terms], key, nil, nil, 0)
				p.Inner(v[0], v[7], v[1:1+terms], key, v[6], v[8], 3)
				clear(v[8])
			}
		})
	}
}

// bytesOf are the bytes of words, where these are.
func bytesOf(words []uint32) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(&words[0])), 4*len(words))
}
