//go:build amd64 && !purego

package ntt

import "github.com/cohort-engine/cohort/asm"

func forwardFold(p *Prime, dst, src []uint32) {
	if current == generic {
		forwardFoldPortable(p, dst, src)
		return
	}
	switch {
	case current == avx512 && p.lazy:
		asm.NTTForwardFoldLazyAVX512(&dst[0], &src[0], &p.words[0], len(src))
	case current == avx512:
		asm.NTTForwardFoldAVX512(&dst[0], &src[0], &p.words[0], len(src))
	case p.lazy:
		asm.NTTForwardFoldLazyAVX2(&dst[0], &src[0], &p.words[0], len(src))
	default:
		asm.NTTForwardFoldAVX2(&dst[0], &src[0], &p.words[0], len(src))
	}
	p.foldEdge(dst, src)
}

func forward2(p *Prime, a, w []uint32, blocks, t int) {
	if current == generic {
		forward2Portable(p, a, w, blocks, t)
		return
	}
	switch {
	case current == avx512 && p.lazy:
		asm.NTTForward2LazyAVX512(&a[0], &w[0], &p.words[0], blocks, t)
	case current == avx512:
		asm.NTTForward2AVX512(&a[0], &w[0], &p.words[0], blocks, t)
	case p.lazy:
		asm.NTTForward2LazyAVX2(&a[0], &w[0], &p.words[0], blocks, t)
	default:
		asm.NTTForward2AVX2(&a[0], &w[0], &p.words[0], blocks, t)
	}
}

func forward4(p *Prime, a, w, w2 []uint32, blocks, t int) {
	if current == generic {
		forward4Portable(p, a, w, w2, blocks, t)
		return
	}
	switch {
	case current == avx512 && p.lazy:
		asm.NTTForward4LazyAVX512(&a[0], &w[0], &w2[0], &p.words[0], blocks, t)
	case current == avx512:
		asm.NTTForward4AVX512(&a[0], &w[0], &w2[0], &p.words[0], blocks, t)
	case p.lazy:
		asm.NTTForward4LazyAVX2(&a[0], &w[0], &w2[0], &p.words[0], blocks, t)
	default:
		asm.NTTForward4AVX2(&a[0], &w[0], &w2[0], &p.words[0], blocks, t)
	}
}

func forwardTail(p *Prime, a, tail []uint32, full bool) {
	if current == generic {
		forwardTailPortable(p, a, tail, full)
		return
	}
	switch {
	case current == avx512 && full && p.lazy:
		asm.NTTForwardTailFullLazyAVX512(&a[0], &tail[0], &p.words[0], len(a)/block)
	case current == avx512 && full:
		asm.NTTForwardTailFullAVX512(&a[0], &tail[0], &p.words[0], len(a)/block)
	case current == avx512 && p.lazy:
		asm.NTTForwardTailLazyAVX512(&a[0], &tail[0], &p.words[0], len(a)/block)
	case current == avx512:
		asm.NTTForwardTailAVX512(&a[0], &tail[0], &p.words[0], len(a)/block)
	case full && p.lazy:
		asm.NTTForwardTailFullLazyAVX2(&a[0], &tail[0], &p.words[0], len(a)/block)
	case full:
		asm.NTTForwardTailFullAVX2(&a[0], &tail[0], &p.words[0], len(a)/block)
	case p.lazy:
		asm.NTTForwardTailLazyAVX2(&a[0], &tail[0], &p.words[0], len(a)/block)
	default:
		asm.NTTForwardTailAVX2(&a[0], &tail[0], &p.words[0], len(a)/block)
	}
}

func inverseTail(p *Prime, dst, src, untail []uint32) {
	if current == generic {
		inverseTailPortable(p, dst, src, untail)
		return
	}
	switch {
	case current == avx512:
		asm.NTTInverseTailAVX512(&dst[0], &src[0], &untail[0], &p.words[0], len(src)/block)
	default:
		asm.NTTInverseTailAVX2(&dst[0], &src[0], &untail[0], &p.words[0], len(src)/block)
	}
}

func inverse2(p *Prime, a, w []uint32, blocks, t int) {
	if current == generic {
		inverse2Portable(p, a, w, blocks, t)
		return
	}
	switch {
	case current == avx512:
		asm.NTTInverse2AVX512(&a[0], &w[0], &p.words[0], blocks, t)
	default:
		asm.NTTInverse2AVX2(&a[0], &w[0], &p.words[0], blocks, t)
	}
}

func inverse4(p *Prime, a, w, w2 []uint32, blocks, t int) {
	if current == generic {
		inverse4Portable(p, a, w, w2, blocks, t)
		return
	}
	switch {
	case current == avx512:
		asm.NTTInverse4AVX512(&a[0], &w[0], &w2[0], &p.words[0], blocks, t)
	default:
		asm.NTTInverse4AVX2(&a[0], &w[0], &w2[0], &p.words[0], blocks, t)
	}
}

func inverseFold(p *Prime, a []uint32, scale uint32, full bool) {
	if current == generic {
		inverseFoldPortable(p, a, scale, full)
		return
	}
	f := p.newFoldBack(scale, full)
	switch {
	case current == avx512 && full:
		asm.NTTInverseFoldAVX512(&a[0], &p.words[0], len(a), f.scale, f.turned)
	case current == avx512:
		asm.NTTInverseFoldLazyAVX512(&a[0], &p.words[0], len(a), f.scale, f.turned)
	case full:
		asm.NTTInverseFoldAVX2(&a[0], &p.words[0], len(a), f.scale, f.turned)
	default:
		asm.NTTInverseFoldLazyAVX2(&a[0], &p.words[0], len(a), f.scale, f.turned)
	}
	p.unfoldEdge(a, f)
}

func scaleWords(p *Prime, dst, a []uint32, c uint32, full bool) {
	if current == generic {
		scaleWordsPortable(p, dst, a, c, full)
		return
	}
	switch {
	case current == avx512 && full:
		asm.NTTScaleAVX512(&dst[0], &a[0], &p.words[0], len(dst)/lanes, c)
	case current == avx512:
		asm.NTTScaleLazyAVX512(&dst[0], &a[0], &p.words[0], len(dst)/lanes, c)
	case full:
		asm.NTTScaleAVX2(&dst[0], &a[0], &p.words[0], len(dst)/lanes, c)
	default:
		asm.NTTScaleLazyAVX2(&dst[0], &a[0], &p.words[0], len(dst)/lanes, c)
	}
}

func addWords(p *Prime, dst, a, b []uint32) {
	if current == generic {
		addWordsPortable(p, dst, a, b)
		return
	}
	switch {
	case current == avx512:
		asm.NTTAddAVX512(&dst[0], &a[0], &b[0], &p.words[0], len(dst)/lanes)
	default:
		asm.NTTAddAVX2(&dst[0], &a[0], &b[0], &p.words[0], len(dst)/lanes)
	}
}

func subWords(p *Prime, dst, a, b []uint32) {
	if current == generic {
		subWordsPortable(p, dst, a, b)
		return
	}
	switch {
	case current == avx512:
		asm.NTTSubAVX512(&dst[0], &a[0], &b[0], &p.words[0], len(dst)/lanes)
	default:
		asm.NTTSubAVX2(&dst[0], &a[0], &b[0], &p.words[0], len(dst)/lanes)
	}
}

func addScalar(p *Prime, dst, a []uint32, c uint32) {
	if current == generic {
		addScalarPortable(p, dst, a, c)
		return
	}
	switch {
	case current == avx512:
		asm.NTTAddScalarAVX512(&dst[0], &a[0], &p.words[0], len(dst)/lanes, c)
	default:
		asm.NTTAddScalarAVX2(&dst[0], &a[0], &p.words[0], len(dst)/lanes, c)
	}
}

func scaleAdd(p *Prime, dst, a []uint32, c uint32) {
	if current == generic {
		scaleAddPortable(p, dst, a, c)
		return
	}
	switch {
	case current == avx512:
		asm.NTTScaleAddAVX512(&dst[0], &a[0], &p.words[0], len(dst)/lanes, c)
	default:
		asm.NTTScaleAddAVX2(&dst[0], &a[0], &p.words[0], len(dst)/lanes, c)
	}
}

func subScale(p *Prime, dst, a, b []uint32, c uint32) {
	if current == generic {
		subScalePortable(p, dst, a, b, c)
		return
	}
	switch {
	case current == avx512 && p.lazy:
		asm.NTTSubScaleLazyAVX512(&dst[0], &a[0], &b[0], &p.words[0], len(dst)/lanes, c)
	case current == avx512:
		asm.NTTSubScaleAVX512(&dst[0], &a[0], &b[0], &p.words[0], len(dst)/lanes, c)
	case p.lazy:
		asm.NTTSubScaleLazyAVX2(&dst[0], &a[0], &b[0], &p.words[0], len(dst)/lanes, c)
	default:
		asm.NTTSubScaleAVX2(&dst[0], &a[0], &b[0], &p.words[0], len(dst)/lanes, c)
	}
}

func multiply(p *Prime, dst, a, b []uint32) {
	if current == generic {
		multiplyPortable(p, dst, a, b)
		return
	}
	switch {
	case current == avx512:
		asm.NTTMultiplyAVX512(&dst[0], &a[0], &b[0], &p.words[0], len(dst)/lanes)
	default:
		asm.NTTMultiplyAVX2(&dst[0], &a[0], &b[0], &p.words[0], len(dst)/lanes)
	}
}

func multiplyAdd(p *Prime, dst, a, b []uint32) {
	if current == generic {
		multiplyAddPortable(p, dst, a, b)
		return
	}
	switch {
	case current == avx512:
		asm.NTTMultiplyAddAVX512(&dst[0], &a[0], &b[0], &p.words[0], len(dst)/lanes)
	default:
		asm.NTTMultiplyAddAVX2(&dst[0], &a[0], &b[0], &p.words[0], len(dst)/lanes)
	}
}

func product(p *Prime, c *[3][]uint32, a, b *[2][]uint32, times uint32) {
	if current == generic {
		productPortable(p, c, a, b, times)
		return
	}
	switch {
	case current == avx512:
		asm.NTTProductAVX512(&c[0][0], &c[1][0], &c[2][0], &a[0][0], &a[1][0], &b[0][0], &b[1][0], &p.words[0], len(c[0])/lanes, times)
	default:
		asm.NTTProductAVX2(&c[0][0], &c[1][0], &c[2][0], &a[0][0], &a[1][0], &b[0][0], &b[1][0], &p.words[0], len(c[0])/lanes, times)
	}
}

func productAdd(p *Prime, c *[3][]uint32, a, b *[2][]uint32, times uint32) {
	if current == generic {
		productAddPortable(p, c, a, b, times)
		return
	}
	switch {
	case current == avx512:
		asm.NTTProductAddAVX512(&c[0][0], &c[1][0], &c[2][0], &a[0][0], &a[1][0], &b[0][0], &b[1][0], &p.words[0], len(c[0])/lanes, times)
	default:
		asm.NTTProductAddAVX2(&c[0][0], &c[1][0], &c[2][0], &a[0][0], &a[1][0], &b[0][0], &b[1][0], &p.words[0], len(c[0])/lanes, times)
	}
}

func convert(p *Prime, dst []uint32, src [][]uint32, c, whole []uint32) {
	if current == generic {
		convertPortable(p, dst, src, c, whole)
		return
	}
	from := firsts(src)
	d, s, f, m, blocks := &dst[0], &from[0], &c[0], &p.words[0], len(dst)/lanes
	wide := current == avx512
	if whole == nil {
		switch {
		case len(src) == 1 && wide:
			asm.NTTConvert1AVX512(d, s, f, m, blocks)
		case len(src) == 1:
			asm.NTTConvert1AVX2(d, s, f, m, blocks)
		case len(src) == 2 && wide:
			asm.NTTConvert2AVX512(d, s, f, m, blocks)
		case len(src) == 2:
			asm.NTTConvert2AVX2(d, s, f, m, blocks)
		case len(src) == 3 && wide:
			asm.NTTConvert3AVX512(d, s, f, m, blocks)
		case len(src) == 3:
			asm.NTTConvert3AVX2(d, s, f, m, blocks)
		case len(src) == 4 && wide:
			asm.NTTConvert4AVX512(d, s, f, m, blocks)
		case len(src) == 4:
			asm.NTTConvert4AVX2(d, s, f, m, blocks)
		case len(src) == 5 && wide:
			asm.NTTConvert5AVX512(d, s, f, m, blocks)
		case len(src) == 5:
			asm.NTTConvert5AVX2(d, s, f, m, blocks)
		}
		return
	}
	w := &whole[0]
	switch {
	case len(src) == 1 && wide:
		asm.NTTConvert1WholeAVX512(d, s, f, w, m, blocks)
	case len(src) == 1:
		asm.NTTConvert1WholeAVX2(d, s, f, w, m, blocks)
	case len(src) == 2 && wide:
		asm.NTTConvert2WholeAVX512(d, s, f, w, m, blocks)
	case len(src) == 2:
		asm.NTTConvert2WholeAVX2(d, s, f, w, m, blocks)
	case len(src) == 3 && wide:
		asm.NTTConvert3WholeAVX512(d, s, f, w, m, blocks)
	case len(src) == 3:
		asm.NTTConvert3WholeAVX2(d, s, f, w, m, blocks)
	case len(src) == 4 && wide:
		asm.NTTConvert4WholeAVX512(d, s, f, w, m, blocks)
	case len(src) == 4:
		asm.NTTConvert4WholeAVX2(d, s, f, w, m, blocks)
	case len(src) == 5 && wide:
		asm.NTTConvert5WholeAVX512(d, s, f, w, m, blocks)
	case len(src) == 5:
		asm.NTTConvert5WholeAVX2(d, s, f, w, m, blocks)
	}
}

func whole(dst []uint32, src [][]uint32, fractions []uint32) {
	if current == generic {
		wholePortable(dst, src, fractions)
		return
	}
	from := firsts(src)
	d, s, f, blocks := &dst[0], &from[0], &fractions[0], len(dst)/lanes
	wide := current == avx512
	switch {
	case len(src) == 1 && wide:
		asm.NTTWhole1AVX512(d, s, f, blocks)
	case len(src) == 1:
		asm.NTTWhole1AVX2(d, s, f, blocks)
	case len(src) == 2 && wide:
		asm.NTTWhole2AVX512(d, s, f, blocks)
	case len(src) == 2:
		asm.NTTWhole2AVX2(d, s, f, blocks)
	case len(src) == 3 && wide:
		asm.NTTWhole3AVX512(d, s, f, blocks)
	case len(src) == 3:
		asm.NTTWhole3AVX2(d, s, f, blocks)
	case len(src) == 4 && wide:
		asm.NTTWhole4AVX512(d, s, f, blocks)
	case len(src) == 4:
		asm.NTTWhole4AVX2(d, s, f, blocks)
	case len(src) == 5 && wide:
		asm.NTTWhole5AVX512(d, s, f, blocks)
	case len(src) == 5:
		asm.NTTWhole5AVX2(d, s, f, blocks)
	}
}

func inner(p *Prime, k0, k1 []uint32, x [][]uint32, key *Key, c0, c1 []uint32, lift uint32) {
	if current == generic {
		innerPortable(p, k0, k1, x, key, c0, c1, lift)
		return
	}
	from := firsts(x)
	d0, d1, s, k, stride, m, blocks := &k0[0], &k1[0], &from[0], &key.words[0], 8*lanes*key.digits, &p.words[0], len(k0)/lanes
	wide := current == avx512
	if c0 == nil {
		switch {
		case len(x) == 1 && wide:
			asm.NTTInner1AVX512(d0, d1, s, k, stride, m, blocks)
		case len(x) == 1:
			asm.NTTInner1AVX2(d0, d1, s, k, stride, m, blocks)
		case len(x) == 2 && wide:
			asm.NTTInner2AVX512(d0, d1, s, k, stride, m, blocks)
		case len(x) == 2:
			asm.NTTInner2AVX2(d0, d1, s, k, stride, m, blocks)
		case len(x) == 3 && wide:
			asm.NTTInner3AVX512(d0, d1, s, k, stride, m, blocks)
		case len(x) == 3:
			asm.NTTInner3AVX2(d0, d1, s, k, stride, m, blocks)
		case len(x) == 4 && wide:
			asm.NTTInner4AVX512(d0, d1, s, k, stride, m, blocks)
		case len(x) == 4:
			asm.NTTInner4AVX2(d0, d1, s, k, stride, m, blocks)
		case len(x) == 5 && wide:
			asm.NTTInner5AVX512(d0, d1, s, k, stride, m, blocks)
		case len(x) == 5:
			asm.NTTInner5AVX2(d0, d1, s, k, stride, m, blocks)
		}
		return
	}
	l0, l1 := &c0[0], &c1[0]
	switch {
	case len(x) == 1 && wide:
		asm.NTTInner1LiftAVX512(d0, d1, s, k, stride, m, blocks, l0, l1, lift)
	case len(x) == 1:
		asm.NTTInner1LiftAVX2(d0, d1, s, k, stride, m, blocks, l0, l1, lift)
	case len(x) == 2 && wide:
		asm.NTTInner2LiftAVX512(d0, d1, s, k, stride, m, blocks, l0, l1, lift)
	case len(x) == 2:
		asm.NTTInner2LiftAVX2(d0, d1, s, k, stride, m, blocks, l0, l1, lift)
	case len(x) == 3 && wide:
		asm.NTTInner3LiftAVX512(d0, d1, s, k, stride, m, blocks, l0, l1, lift)
	case len(x) == 3:
		asm.NTTInner3LiftAVX2(d0, d1, s, k, stride, m, blocks, l0, l1, lift)
	case len(x) == 4 && wide:
		asm.NTTInner4LiftAVX512(d0, d1, s, k, stride, m, blocks, l0, l1, lift)
	case len(x) == 4:
		asm.NTTInner4LiftAVX2(d0, d1, s, k, stride, m, blocks, l0, l1, lift)
	case len(x) == 5 && wide:
		asm.NTTInner5LiftAVX512(d0, d1, s, k, stride, m, blocks, l0, l1, lift)
	case len(x) == 5:
		asm.NTTInner5LiftAVX2(d0, d1, s, k, stride, m, blocks, l0, l1, lift)
	}
}

// firsts are the addresses of the slices' first words.
func firsts(s [][]uint32) (p [maxTerms]*uint32) {
	for i := range s {
		p[i] = &s[i][0]
	}
	return p
}
