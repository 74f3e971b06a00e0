package bench

import (
	"context"
	"time"

	"github.com/cohort-engine/cohort/engine"
	"github.com/cohort-engine/cohort/engine/horizontal"
)

func fastLloydSuites() []Suite {
	return []Suite{{
		Name: "fastlloyd-table3", Group: GroupFastLloyd, Title: "FastLloyd Table 3: time and bytes per iteration",
		About: "One iteration of fastlloyd with two clients. FastLloyd's figures (Macbook Pro M2 Max, mean of 20 runs) include a 0.5 ms " +
			"sleep for every send, so they are compared with our computation plus the same sleeps; MohLloyd is the secure protocol of " +
			"Mohassel et al. that it is compared with there. Bytes are those that all clients send and receive.",
		Source: "FastLloyd, Table 3",
		Needs:  []string{"timesynth_k2_d2_n10000", "timesynth_k2_d5_n10000", "timesynth_k5_d2_n10000", "timesynth_k5_d5_n10000", "timesynth_k2_d2_n100000", "timesynth_k2_d5_n100000", "timesynth_k5_d2_n100000", "timesynth_k5_d5_n100000", "lsun", "s1"},
		Figures: []Figure{
			{Title: "Time of one iteration", X: "set", Y: "iteration", LogY: true, Bars: true},
		},
		Run: runTable3,
	}}
}

// table3 is FastLloyd's Table 3: milliseconds and bytes, 0 where nothing is
// printed.
var table3 = []struct {
	set             string
	ms, half        float64
	moh             float64
	bytes, mohBytes float64
}{
	{"timesynth_k2_d2_n10000", 3.23, 0.23, 10500, 128, 2.557e8},
	{"timesynth_k2_d5_n10000", 8.61, 1.81, 0, 320, 0},
	{"timesynth_k5_d2_n10000", 18.02, 3.59, 34050, 320, 9.746e8},
	{"timesynth_k5_d5_n10000", 19.83, 2.01, 0, 800, 0},
	{"timesynth_k2_d2_n100000", 85.57, 2.42, 105120, 128, 2.467e9},
	{"timesynth_k2_d5_n100000", 313.47, 6.79, 0, 320, 0},
	{"timesynth_k5_d2_n100000", 423.1, 6.88, 347250, 320, 9.535e9},
	{"timesynth_k5_d5_n100000", 412.89, 5.84, 0, 800, 0},
	{"lsun", 1.81, 0.1, 1481, 192, 0},
	{"s1", 24.76, 0.3, 49087, 960, 0},
}

func runTable3(ctx context.Context, e *Env) error {
	const source = "FastLloyd, Table 3"
	sleeps, err := FindNetwork("fastlloyd")
	if err != nil {
		return err
	}
	for _, row := range table3 {
		err := e.Case(ctx, "", []Label{L("set", row.set)}, func(ctx context.Context, c *Case) error {
			s, err := c.Env.Set(ctx, row.set)
			if err != nil {
				return err
			}
			ms := float64(time.Millisecond)
			paper := Reference{Name: "FastLloyd", Kind: Published, Value: Number(row.ms * ms), Half: Number(row.half * ms), Source: source}
			refs := []Reference{paper}
			if row.moh > 0 {
				refs = append(refs, Reference{Name: "MohLloyd", Kind: Published, Value: Number(row.moh * ms), Source: source})
			}
			res, err := c.Iterations(ctx, c.Env.Reps(20, 4), func(run int) (engine.Job, error) {
				return horizontalJob(s, horizontal.FastLloyd, claimedOf(horizontal.FastLloyd), 1, run, withoutQuality)
			}, append(refs, peerIteration(row.set, horizontal.FastLloyd)...)...)
			if err != nil {
				return err
			}
			traffic := Traffic(res.Comm)
			pause := sleeps.Cost(res.Comm.Rounds, traffic) / time.Duration(res.Iterations)
			c.Number("with its sleeps", Nanoseconds, c.Row.Value("iteration").Shown()+float64(pause), paper)
			bytes := []Reference{{Name: "FastLloyd", Kind: Published, Value: Number(row.bytes), Source: source}}
			if row.mohBytes > 0 {
				bytes = append(bytes, Reference{Name: "MohLloyd", Kind: Published, Value: Number(row.mohBytes), Source: source})
			}
			c.Number("bytes", Bytes, float64(traffic)/float64(res.Iterations), bytes...)
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}
