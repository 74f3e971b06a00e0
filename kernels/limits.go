package kernels

import (
	"fmt"
	"math"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

// Limits are rates that one core of this machine reaches at best on the current
// instruction set, as measured by loops that do nothing else. A rate is zero
// where the instruction set has no such loop.
type Limits struct {
	FMA    float64 // float32 fused multiply-adds per second
	SubFMA float64 // float32 subtractions, each with a fused multiply-add, per second
	Argmin float64 // float32 candidates for a minimum with its index, per second
	Dot    float64 // products of 16-bit integers per second, of the candidate filter
	Tile   float64 // products of bytes in tiles per second, likewise
	Word   float64 // products of 32-bit words to 64 bits per second, of lattice arithmetic
	AES    float64 // AES rounds of 16-byte blocks per second
}

// AssignSeconds returns the least time that the arithmetic of an assignment of n
// points of d coordinates to k centroids takes on one core: the distances, and a
// step of the minimum for each. It is 0 where the limits are not measured.
func (l Limits) AssignSeconds(n, d, k int) float64 {
	if l.FMA == 0 {
		return 0
	}
	perDim := 1 / l.SubFMA
	if d >= exactDims {
		perDim = 1 / l.FMA
	}
	return float64(n) * float64(k) * (float64(d)*perDim + 1/l.Argmin)
}

// FilterSeconds returns the least time that the integer scores of an assignment of p to k centroids take on one core,
// where bytes multiply as fast as vectors of 16-bit integers do outside tiles; 0 where there are none. Two words that
// the ranking multiplies crosswise take the products of one. With AVX2, 32 products of bytes and their sum take two
// instructions, but for a few of a run's, and so do 16 of 16-bit integers, crosswise or not: additions take units of
// products.
func (l Limits) FilterSeconds(p *Panels, k int) float64 {
	products := float64(p.N) * float64(k) * float64(p.D)
	switch {
	case l.Dot == 0:
		return 0
	case p.Ranks(k):
		words, spared := (p.D+1)/2, 0
		for w := range words {
			if current != avx2 && rankPartner(w, p.D, k) > w {
				spared++
			}
		}
		return products * (1 - float64(spared)/float64(words)) / l.Dot
	case p.narrow != nil, p.bounds != nil && boundsPay(p.D, k):
		return products / l.Dot
	case p.filter == nil:
		return 0
	case p.filter.chunk > 1:
		return products / l.Tile
	}
	return products / l.Dot * 2 / float64(p.filter.group)
}

// ProjectSeconds returns the least time that the arithmetic of a projection of n
// points of d coordinates to q takes on one core, 0 where the limits are not
// measured.
func (l Limits) ProjectSeconds(n, d, q int) float64 {
	if l.FMA == 0 {
		return 0
	}
	return float64(n) * float64(d) * float64(q) / l.FMA
}

// AESSeconds returns the least time that AES-128 of so many blocks takes on one
// core, 0 where the limits are not measured.
func (l Limits) AESSeconds(blocks float64) float64 {
	if l.AES == 0 {
		return 0
	}
	return 10 * blocks / l.AES
}

// WordSeconds returns the least time that so many products of 32-bit words take on one core, 0 where the limits are not
// measured.
func (l Limits) WordSeconds(products float64) float64 {
	if l.Word == 0 {
		return 0
	}
	return products / l.Word
}

// MeasureLimits measures the limits of the core it runs on, in some 50 ms. Other
// work on the core, and a clock that has not risen yet, lower the figures: see
// [Limits.Best].
func MeasureLimits() Limits { return measureLimits(300) }

func measureLimits(runs int) Limits {
	return Limits{
		FMA:    bestRate(peakFMA, runs),
		SubFMA: bestRate(peakSubFMA, runs),
		Argmin: bestRate(peakArgmin, runs),
		Dot:    bestRate(peakDot, runs),
		Tile:   bestRate(peakTile, runs),
		Word:   bestRate(peakWord, runs),
		AES:    bestRate(peakAES, runs),
	}
}

// Best returns the larger of each pair of limits. What a machine does at best is
// the best of several measurements.
func (l Limits) Best(m Limits) Limits {
	return Limits{
		FMA:    max(l.FMA, m.FMA),
		SubFMA: max(l.SubFMA, m.SubFMA),
		Argmin: max(l.Argmin, m.Argmin),
		Dot:    max(l.Dot, m.Dot),
		Tile:   max(l.Tile, m.Tile),
		Word:   max(l.Word, m.Word),
		AES:    max(l.AES, m.AES),
	}
}

// bestRate returns the best rate over several runs of a loop: run(n) does n
// rounds and returns the operations of a round, 0 if there is no such loop.
func bestRate(run func(n int) int, runs int) float64 {
	const rounds = 1 << 14
	best := 0.0
	for range runs {
		start := time.Now()
		operations := run(rounds)
		if s := time.Since(start).Seconds(); s > 0 {
			best = max(best, float64(operations)*rounds/s)
		}
	}
	return best
}

// MeasureRead returns the bandwidth in bytes per second at which readers threads
// together read a block of the given size over and over, each a part of its own,
// as the kernels read panels: with huge pages where the system grants them. The
// size is rounded up to 512 bytes for each. It panics unless readers > 0.
func MeasureRead(size, readers int) float64 {
	const unit = 512
	if readers <= 0 {
		panic(fmt.Sprintf("kernels: MeasureRead: readers=%d, want more than 0", readers))
	}
	each := (size + unit*readers - 1) / (unit * readers) * unit
	block := aligned[byte](each * readers)
	for i := 0; i < len(block); i += 4096 {
		block[i] = 1 // a page of its own, not the shared page of zeros
	}
	passes := max(1, readCall/each) // short blocks: enough for the clock
	read := func(i int) {
		part := block[i*each : (i+1)*each]
		for range passes {
			for lo := 0; lo < each; lo += readCall {
				readBlocks(part[lo:min(lo+readCall, each)])
			}
		}
	}
	return float64(len(block)*passes) / atOnce(readers, read).Seconds()
}

// MeasureFMA returns the float32 multiply-adds per second of so many threads at once, 0 where the limits are not
// measured. Threads that share a core share its arithmetic: two of them do hardly more than one. It panics unless
// threads > 0.
func MeasureFMA(threads int) float64 {
	if threads <= 0 {
		panic(fmt.Sprintf("kernels: MeasureFMA: threads=%d, want more than 0", threads))
	}
	const rounds = 1 << 16
	operations := peakFMA(1)
	if operations == 0 {
		return 0
	}
	least := atOnce(threads, func(int) { peakFMA(rounds) })
	return float64(operations) * rounds * float64(threads) / least.Seconds()
}

// atOnce runs work on so many threads at once, over and over, and returns the least time that all of them took.
func atOnce(threads int, work func(i int)) time.Duration {
	// The others wait actively for each round: waking a thread would take longer
	// than reading a block that fits a cache.
	var round, working atomic.Int64
	var quit atomic.Bool
	var done sync.WaitGroup
	for i := 1; i < threads; i++ {
		done.Go(func() {
			for last := int64(0); !quit.Load(); runtime.Gosched() {
				if now := round.Load(); now != last {
					last = now
					work(i)
					working.Add(-1)
				}
			}
		})
	}
	until := 40 * time.Millisecond
	if threads > 1 {
		until *= 5 // the system needs a while to spread threads over the cores
	}
	least := time.Duration(math.MaxInt64)
	for spent := time.Duration(0); spent < until; {
		working.Store(int64(threads - 1))
		start := time.Now()
		round.Add(1)
		work(0)
		for working.Load() > 0 {
			runtime.Gosched()
		}
		elapsed := time.Since(start)
		spent += elapsed
		least = min(least, elapsed)
	}
	quit.Store(true)
	done.Wait()
	return least
}

// readCall bounds the bytes that one call reads.
const readCall = 1 << 20

// readPortable reads one word of each cache line.
func readPortable(block []byte) {
	var sum byte
	for i := 0; i < len(block); i += lineBytes {
		sum |= block[i]
	}
	runtime.KeepAlive(sum) // or the compiler leaves out the reads
}

// vectorFloats is the number of float32 in a vector of the path in use.
func vectorFloats() int {
	switch {
	case current == generic:
		return 0
	case current >= neon:
		return 4
	case current >= avx512:
		return 16
	}
	return 8
}

// peak runs a limit loop and returns the operations of a round, each of peakChains
// vectors of the given number of elements; 0 on the path without loops.
func peak(loop func(n int), n, elements int) int {
	if elements > 0 {
		loop(n)
	}
	return peakChains * elements
}

func peakFMA(n int) int    { return peak(asmPeakFMA, n, vectorFloats()) }
func peakSubFMA(n int) int { return peak(asmPeakSubFMA, n, vectorFloats()) }
func peakArgmin(n int) int { return peak(asmPeakArgmin, n, vectorFloats()) }
func peakAES(n int) int    { return peak(asmPeakAES, n, aesBlocks()) }

// readBlocks reads a multiple of 512 bytes.
func readBlocks(block []byte) {
	if current == generic {
		readPortable(block)
	} else {
		asmRead(&block[0], len(block)/512)
	}
}
