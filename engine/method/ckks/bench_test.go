package ckks

import (
	"fmt"
	"math"
	"runtime"
	"syscall"
	"testing"
	"time"

	"github.com/cohort-engine/cohort/engine"
	"github.com/cohort-engine/cohort/engine/enginetest"
	"github.com/cohort-engine/cohort/engine/privacy"
	"github.com/cohort-engine/cohort/engine/protocol"
)

func cpuTime() time.Duration {
	var u syscall.Rusage
	syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkTenRounds runs the whole protocol, keys, encryption, noise and
// serialisation included; one op is ten rounds. It has as many workers as -cpu says.
func BenchmarkTenRounds(b *testing.B) {
	for _, c := range []struct{ n, k int }{{1000, 2}, {1000, 5}, {1000, 8}, {10000, 2}, {10000, 5}, {10000, 8}} {
		b.Run(fmt.Sprintf("n=%d/k=%d", c.n, c.k), func(b *testing.B) {
			data := sample(b, "timesynth", c.n, 2, c.k, 3)
			e := enginetest.New(b, engine.WithWorkers(runtime.GOMAXPROCS(0)))
			b.ResetTimer()
			for b.Loop() {
				cpu := cpuTime()
				j := &Job{Problem: protocol.Problem{Clients: data.Table(), Bounds: data.Bounds,
					Columns: [][]int{{0}, {1}}, K: c.k, Iterations: 10,
					Budget: privacy.Budget{Epsilon: 5, Delta: 1e-5}, Seed: seed(1), NoQuality: true}}
				res := enginetest.Run(b, e, j)
				b.ReportMetric((cpuTime() - cpu).Seconds(), "cpu-s/op")
				b.ReportMetric(float64(res.Details["bytes_total"].(int64))/1e6, "MB/op")
			}
		})
	}
}

// BenchmarkLargeRound is one round with 100,000 records, set-up included.
func BenchmarkLargeRound(b *testing.B) {
	for _, k := range []int{2, 5, 8} {
		b.Run(fmt.Sprintf("k=%d", k), func(b *testing.B) {
			data := sample(b, "timesynth", 100000, 2, k, 3)
			e := enginetest.New(b, engine.WithWorkers(2))
			for b.Loop() {
				var r Round
				cpu := cpuTime()
				j := &Job{Problem: protocol.Problem{Clients: data.Table(), Bounds: data.Bounds,
					Columns: [][]int{{0}, {1}}, K: k, Iterations: 1, Budget: privacy.Budget{Epsilon: 5, Delta: 1e-5},
					Seed: seed(1), NoQuality: true}, OnRound: func(x Round) { r = x }}
				res := enginetest.Run(b, e, j)
				round := res.Timings["compare"].TotalNS + res.Timings["sum"].TotalNS + res.Timings["decrypt"].TotalNS
				b.ReportMetric(float64(round)/1e9, "s/round")
				b.ReportMetric(float64(r.Pairs), "pairs")
				b.ReportMetric((cpuTime() - cpu).Seconds(), "cpu-s/op")
				b.ReportMetric(float64(res.Details["bytes_total"].(int64))/1e6, "MB/op")
			}
		})
	}
}

// BenchmarkWorkers compares one and two workers on the comparisons of a round.
func BenchmarkWorkers(b *testing.B) {
	data := sample(b, "timesynth", 32768, 2, 5, 3)
	for _, workers := range []int{1, 2} {
		b.Run(fmt.Sprintf("workers=%d", workers), func(b *testing.B) {
			e := enginetest.New(b, engine.WithWorkers(workers))
			for b.Loop() {
				j := &Job{Problem: protocol.Problem{Clients: data.Table(), Bounds: data.Bounds,
					Columns: [][]int{{0}, {1}}, K: 5, Iterations: 2, Calibration: privacy.None, Seed: seed(1),
					NoQuality: true}}
				res := enginetest.Run(b, e, j)
				b.ReportMetric(float64(res.Timings["compare"].TotalNS)/2e9, "compare-s/round")
			}
		})
	}
}

// BenchmarkSign is one evaluation of the sign polynomials on one worker.
func BenchmarkSign(b *testing.B) {
	for _, depth := range []int{0, 2, 3, 4} {
		b.Run(fmt.Sprintf("depth=%d", depth), func(b *testing.B) {
			c, err := chooseChain(depth)
			if err != nil {
				b.Fatal(err)
			}
			p, err := newParameters(c)
			if err != nil {
				b.Fatal(err)
			}
			rnd := testEntropy(7)
			sk := newSecretKey(p, rnd, alone)
			ev, err := newEvaluator(p, newRelinearisation(p, sk, rnd).make(alone).expand(p, alone), nil)
			if err != nil {
				b.Fatal(err)
			}
			w := newScratch(p)
			s := pairSign.plan(p, aggregateLevel, depth, 1)
			m := w.embed.encode(b, w.values, math.Exp2(s.in))
			in := encryptSeeded(p, m, topLevel(depth, pairSign), math.Exp2(s.in), sk, rnd, "t", 0).expand(p)
			b.ResetTimer()
			for b.Loop() {
				ev.sign(w, in, pairSign)
			}
		})
	}
}
