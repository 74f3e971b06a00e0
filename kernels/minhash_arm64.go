//go:build arm64 && !purego

package kernels

func minHashBlocks(key, blocks *[16]byte, n int, least *[2]uint64) {
	var schedule [44]uint32
	expandKey(&aesTable().sbox, key, &schedule)
	asmMinHash(&schedule, blocks, n, least)
}
