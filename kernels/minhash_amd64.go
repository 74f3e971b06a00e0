//go:build amd64 && !purego

package kernels

func minHashBlocks(key, blocks *[16]byte, n int, least *[2]uint64) { asmMinHash(key, blocks, n, least) }
