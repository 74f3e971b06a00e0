package audit

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/cohort-engine/cohort/engine/method/ckks"
	"github.com/cohort-engine/cohort/internal/fault"
)

// Timing compares the time of a function that handles secrets on one fixed secret
// with that on random ones, by Welch's t on calls of either kind in random order
// (Reparaz, Balasch and Verbauwhede, "Dude, is my code constant time?", 2017).
type Timing struct {
	Function string  `json:"function"`
	Calls    int     `json:"calls"`   // of both kinds
	Counted  int     `json:"counted"` // calls that no interruption lengthened
	Fixed    float64 `json:"fixed_ns"`
	Random   float64 `json:"random_ns"`
	T        float64 `json:"t"`
}

// TimingLimit is the |t| from which a function counts as dependent on its secrets.
// Under independence |t| stays below it but for a chance of 6e-7 a function.
const TimingLimit = 5

// DefaultTimingCalls is the number of calls of each function.
const DefaultTimingCalls = 1_000_000

// timingPool is the number of secrets of either kind, which are stored alike.
const timingPool = 64

// Timings times every function of encrypted k-means that handles secrets, calls
// times each, with random secrets from seed.
func Timings(ctx context.Context, calls int, seed uint64) ([]Timing, error) {
	if calls < 1000 {
		return nil, fault.Request("--trials", fmt.Sprintf("is %d calls of each function", calls), "give 1000 or more")
	}
	ops, err := ckks.SecretOperations()
	if err != nil {
		return nil, err
	}
	rng := rand.New(rand.NewPCG(seed, 1))
	var secrets [2][timingPool][]uint32
	for i := range timingPool {
		fixed, random := make([]uint32, ckks.SecretWords), make([]uint32, ckks.SecretWords)
		for j := range random {
			random[j] = rng.Uint32N(ckks.SecretPrime)
		}
		secrets[0][i], secrets[1][i] = fixed, random
	}
	out := make([]Timing, len(ops))
	for i, op := range ops {
		if out[i], err = timeOperation(ctx, op, &secrets, calls, rng); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// timeOperation measures one function, in blocks of calls. The longest tenth of a
// block, of both kinds together, does not count: interruptions say nothing of
// secrets, and a machine that changes its speed moves the limit with it. The first
// block warms up.
func timeOperation(ctx context.Context, op ckks.SecretOperation, secrets *[2][timingPool][]uint32, calls int,
	rng *rand.Rand) (Timing, error) {
	const block = 1000
	var times [block]float64
	var kinds [block]int
	run := func(n int) float64 {
		for i := range n {
			kinds[i] = rng.IntN(2)
			op.Load(secrets[kinds[i]][rng.IntN(timingPool)])
			start := time.Now()
			op.Run()
			times[i] = float64(time.Since(start).Nanoseconds())
		}
		sorted := slices.Clone(times[:n])
		slices.Sort(sorted)
		return sorted[(n-1)*9/10]
	}
	run(block)
	var n, mean, m2 [2]float64
	for left := calls; left > 0; left -= block {
		if ctx.Err() != nil {
			return Timing{}, ctx.Err()
		}
		size := min(left, block)
		limit := run(size)
		for i, x := range times[:size] {
			if x > limit {
				continue
			}
			kind := kinds[i]
			n[kind]++
			d := x - mean[kind]
			mean[kind] += d / n[kind]
			m2[kind] += d * (x - mean[kind])
		}
	}
	t := Timing{Function: op.Name, Calls: calls, Counted: int(n[0] + n[1]), Fixed: mean[0], Random: mean[1]}
	if v := m2[0]/(n[0]*(n[0]-1)) + m2[1]/(n[1]*(n[1]-1)); v > 0 {
		t.T = (mean[0] - mean[1]) / math.Sqrt(v)
	}
	return t, nil
}
