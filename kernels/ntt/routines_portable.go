//go:build purego || (!amd64 && !arm64)

package ntt

func forwardFold(p *Prime, dst, src []uint32) {
	forwardFoldPortable(p, dst, src)
}

func forward2(p *Prime, a, w []uint32, blocks, t int) {
	forward2Portable(p, a, w, blocks, t)
}

func forward4(p *Prime, a, w, w2 []uint32, blocks, t int) {
	forward4Portable(p, a, w, w2, blocks, t)
}

func forwardTail(p *Prime, a, tail []uint32, full bool) {
	forwardTailPortable(p, a, tail, full)
}

func inverseTail(p *Prime, dst, src, untail []uint32) {
	inverseTailPortable(p, dst, src, untail)
}

func inverse2(p *Prime, a, w []uint32, blocks, t int) {
	inverse2Portable(p, a, w, blocks, t)
}

func inverse4(p *Prime, a, w, w2 []uint32, blocks, t int) {
	inverse4Portable(p, a, w, w2, blocks, t)
}

func inverseFold(p *Prime, a []uint32, scale uint32, full bool) {
	inverseFoldPortable(p, a, scale, full)
}

func scaleWords(p *Prime, dst, a []uint32, c uint32, full bool) {
	scaleWordsPortable(p, dst, a, c, full)
}

func addWords(p *Prime, dst, a, b []uint32) {
	addWordsPortable(p, dst, a, b)
}

func subWords(p *Prime, dst, a, b []uint32) {
	subWordsPortable(p, dst, a, b)
}

func addScalar(p *Prime, dst, a []uint32, c uint32) {
	addScalarPortable(p, dst, a, c)
}

func scaleAdd(p *Prime, dst, a []uint32, c uint32) {
	scaleAddPortable(p, dst, a, c)
}

func subScale(p *Prime, dst, a, b []uint32, c uint32) {
	subScalePortable(p, dst, a, b, c)
}

func multiply(p *Prime, dst, a, b []uint32) {
	multiplyPortable(p, dst, a, b)
}

func multiplyAdd(p *Prime, dst, a, b []uint32) {
	multiplyAddPortable(p, dst, a, b)
}

func product(p *Prime, c *[3][]uint32, a, b *[2][]uint32, times uint32) {
	productPortable(p, c, a, b, times)
}

func productAdd(p *Prime, c *[3][]uint32, a, b *[2][]uint32, times uint32) {
	productAddPortable(p, c, a, b, times)
}

func convert(p *Prime, dst []uint32, src [][]uint32, c, whole []uint32) {
	convertPortable(p, dst, src, c, whole)
}

func whole(dst []uint32, src [][]uint32, fractions []uint32, bits int) {
	wholePortable(dst, src, fractions, bits)
}

func inner(p *Prime, k0, k1 []uint32, x [][]uint32, key *Key, c0, c1 []uint32, lift uint32) {
	innerPortable(p, k0, k1, x, key, c0, c1, lift)
}
