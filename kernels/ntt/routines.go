package ntt

// The portable forms and the assembly routines, chosen by the path in use and by
// the kind of prime. Slices are not empty and of the lengths that the callers state.

func forwardFold(p *Prime, dst, src []uint32) {
	if current == generic {
		forwardFoldPortable(p, dst, src)
		return
	}
	if p.lazy {
		asmNTTForwardFoldLazy(&dst[0], &src[0], &p.words[0], len(src))
	} else {
		asmNTTForwardFold(&dst[0], &src[0], &p.words[0], len(src))
	}
	p.foldEdge(dst, src)
}

func forward2(p *Prime, a, w []uint32, blocks, t int) {
	switch {
	case current == generic:
		forward2Portable(p, a, w, blocks, t)
	case p.lazy:
		asmNTTForwardLayerLazy(&a[0], &w[0], &p.words[0], blocks, t)
	default:
		asmNTTForwardLayer(&a[0], &w[0], &p.words[0], blocks, t)
	}
}

func forward4(p *Prime, a, w, w2 []uint32, blocks, t int) {
	switch {
	case current == generic:
		forward4Portable(p, a, w, w2, blocks, t)
	case p.lazy:
		asmNTTForwardLayersLazy(&a[0], &w[0], &w2[0], &p.words[0], blocks, t)
	default:
		asmNTTForwardLayers(&a[0], &w[0], &w2[0], &p.words[0], blocks, t)
	}
}

func forwardTail(p *Prime, a, tail []uint32, full bool) {
	switch {
	case current == generic:
		forwardTailPortable(p, a, tail, full)
	case full && p.lazy:
		asmNTTForwardTailFullLazy(&a[0], &tail[0], &p.words[0], len(a)/block)
	case full:
		asmNTTForwardTailFull(&a[0], &tail[0], &p.words[0], len(a)/block)
	case p.lazy:
		asmNTTForwardTailLazy(&a[0], &tail[0], &p.words[0], len(a)/block)
	default:
		asmNTTForwardTail(&a[0], &tail[0], &p.words[0], len(a)/block)
	}
}

func inverseTail(p *Prime, dst, src, untail []uint32) {
	if current == generic {
		inverseTailPortable(p, dst, src, untail)
		return
	}
	asmNTTInverseTail(&dst[0], &src[0], &untail[0], &p.words[0], len(src)/block)
}

func inverse2(p *Prime, a, w []uint32, blocks, t int) {
	if current == generic {
		inverse2Portable(p, a, w, blocks, t)
		return
	}
	asmNTTInverseLayer(&a[0], &w[0], &p.words[0], blocks, t)
}

func inverse4(p *Prime, a, w, w2 []uint32, blocks, t int) {
	if current == generic {
		inverse4Portable(p, a, w, w2, blocks, t)
		return
	}
	asmNTTInverseLayers(&a[0], &w[0], &w2[0], &p.words[0], blocks, t)
}

func inverseFold(p *Prime, a []uint32, scale uint32, full bool) {
	if current == generic {
		inverseFoldPortable(p, a, scale, full)
		return
	}
	f := p.newFoldBack(scale, full)
	if full {
		asmNTTInverseFold(&a[0], &p.words[0], len(a), f.scale, f.turned)
	} else {
		asmNTTInverseFoldLazy(&a[0], &p.words[0], len(a), f.scale, f.turned)
	}
	p.unfoldEdge(a, f)
}

func scaleWords(p *Prime, dst, a []uint32, c uint32, full bool) {
	switch {
	case current == generic:
		scaleWordsPortable(p, dst, a, c, full)
	case full:
		asmNTTScale(&dst[0], &a[0], &p.words[0], len(dst)/lanes, c)
	default:
		asmNTTScaleLazy(&dst[0], &a[0], &p.words[0], len(dst)/lanes, c)
	}
}

func addWords(p *Prime, dst, a, b []uint32) {
	if current == generic {
		addWordsPortable(p, dst, a, b)
		return
	}
	asmNTTAdd(&dst[0], &a[0], &b[0], &p.words[0], len(dst)/lanes)
}

func subWords(p *Prime, dst, a, b []uint32) {
	if current == generic {
		subWordsPortable(p, dst, a, b)
		return
	}
	asmNTTSub(&dst[0], &a[0], &b[0], &p.words[0], len(dst)/lanes)
}

func addScalar(p *Prime, dst, a []uint32, c uint32) {
	if current == generic {
		addScalarPortable(p, dst, a, c)
		return
	}
	asmNTTAddScalar(&dst[0], &a[0], &p.words[0], len(dst)/lanes, c)
}

func scaleAdd(p *Prime, dst, a []uint32, c uint32) {
	if current == generic {
		scaleAddPortable(p, dst, a, c)
		return
	}
	asmNTTScaleAdd(&dst[0], &a[0], &p.words[0], len(dst)/lanes, c)
}

func subScale(p *Prime, dst, a, b []uint32, c uint32) {
	switch {
	case current == generic:
		subScalePortable(p, dst, a, b, c)
	case p.lazy:
		asmNTTSubScaleLazy(&dst[0], &a[0], &b[0], &p.words[0], len(dst)/lanes, c)
	default:
		asmNTTSubScale(&dst[0], &a[0], &b[0], &p.words[0], len(dst)/lanes, c)
	}
}

func multiply(p *Prime, dst, a, b []uint32) {
	if current == generic {
		multiplyPortable(p, dst, a, b)
		return
	}
	asmNTTMultiply(&dst[0], &a[0], &b[0], &p.words[0], len(dst)/lanes)
}

func multiplyAdd(p *Prime, dst, a, b []uint32) {
	if current == generic {
		multiplyAddPortable(p, dst, a, b)
		return
	}
	asmNTTMultiplyAdd(&dst[0], &a[0], &b[0], &p.words[0], len(dst)/lanes)
}

func product(p *Prime, c *[3][]uint32, a, b *[2][]uint32, times uint32) {
	if current == generic {
		productPortable(p, c, a, b, times)
		return
	}
	asmNTTProduct(&c[0][0], &c[1][0], &c[2][0], &a[0][0], &a[1][0], &b[0][0], &b[1][0], &p.words[0], len(c[0])/lanes,
		times)
}

func productAdd(p *Prime, c *[3][]uint32, a, b *[2][]uint32, times uint32) {
	if current == generic {
		productAddPortable(p, c, a, b, times)
		return
	}
	asmNTTProductAdd(&c[0][0], &c[1][0], &c[2][0], &a[0][0], &a[1][0], &b[0][0], &b[1][0], &p.words[0], len(c[0])/lanes,
		times)
}

func convert(p *Prime, dst []uint32, src [][]uint32, c []uint32) {
	if current == generic {
		convertPortable(p, dst, src, c)
		return
	}
	from := firsts(src)
	asmNTTConvertN(len(src), &dst[0], &from[0], &c[0], &p.words[0], len(dst)/lanes)
}

func whole(dst []uint32, src [][]uint32, fractions []uint32, bits int) {
	from := firsts(src)
	if current == generic {
		wholePortable(dst, src, fractions, bits)
		return
	}
	asmNTTWholeN(len(src), &dst[0], &from[0], &fractions[0], len(dst)/lanes, bits)
}

func inner(p *Prime, k0, k1 []uint32, x [][]uint32, key *Key, c0, c1 []uint32, lift uint32) {
	from := firsts(x)
	stride := 8 * lanes * key.digits
	switch {
	case current == generic:
		innerPortable(p, k0, k1, x, key, c0, c1, lift)
	case c0 != nil:
		asmNTTInnerLift(&k0[0], &k1[0], &from[0], len(x), &key.words[0], stride, &p.words[0], len(k0)/lanes, &c0[0],
			&c1[0], lift)
	default:
		asmNTTInnerN(len(x), &k0[0], &k1[0], &from[0], &key.words[0], stride, &p.words[0], len(k0)/lanes)
	}
}

// firsts are the addresses of the slices' first words.
func firsts(s [][]uint32) (p [MaxTerms + 1]*uint32) {
	for i := range s {
		p[i] = &s[i][0]
	}
	return p
}

func uniform(p *Prime, dst []uint32, random []byte) int {
	if current == generic {
		return uniformPortable(p, dst, random)
	}
	return asmNTTUniform(&dst[0], &random[0], &p.words[0], len(dst)/lanes)
}
