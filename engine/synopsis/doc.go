// Package synopsis holds private summaries that protocols share, and the free
// search on them.
//
// A [Trie] is a partition of the box that is counted level by level: a midpoint
// tree ([MidpointPaths]) or an LSH forest ([HyperplanePaths]). The records of a
// party walk down it ([Walker]) and are counted as integers; the caller adds
// noise and gives the noisy counts back, so a synopsis neither draws noise nor
// knows about parties. A [Grid] is a partition in one step. What comes out is a
// set of weighted points ([Weighted]); [Search] is k-means on them, with
// restarts and swaps. Everything after the noise is post-processing and costs
// no budget.
package synopsis

import "github.com/cohort-engine/cohort/internal/parallel"

// Runner spreads independent calls over workers, as engine.Pool does. A nil Runner means the calling goroutine.
type Runner = parallel.Runner

// Source is a stream of uniform 64-bit words; a privacy stream or a
// math/rand/v2 generator.
type Source interface{ Uint64() uint64 }

// reporter returns how r tells that done of total parts are done: a runner that is to
// say so has the method Report, as engine.Pool does.
func reporter(r Runner) func(what string, done, total int) {
	if w, ok := r.(interface{ Report(string, int, int) }); ok {
		return w.Report
	}
	return func(string, int, int) {}
}

// uniform returns a number in [0, 1) with 53 random bits.
func uniform(src Source) float64 { return float64(src.Uint64()>>11) * (1.0 / (1 << 53)) }
