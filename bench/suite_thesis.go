package bench

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/cohort-engine/cohort/engine"
	"github.com/cohort-engine/cohort/engine/dataset"
	"github.com/cohort-engine/cohort/engine/method/lloyd"
	"github.com/cohort-engine/cohort/engine/step"
)

// thesisSets are the sets of Thesis-H's tables, by the names of its columns.
var thesisSets = []struct{ column, set string }{{"s1", "s1"}, {"house", "house"}, {"iris", "iris"},
	{"image", "image"}, {"adult", "adult"}, {"birch2", "birch2_25k"}}

// thesisNeeds are the names of the sets.
func thesisNeeds() (names []string) {
	for _, s := range thesisSets {
		names = append(names, s.set)
	}
	return names
}

// thesisEpsilon and the factors of thesisSizes are the defaults of Thesis-H,
// Table 7.1.
const thesisEpsilon = 4

func thesisSizes(j *lloyd.Job) { j.EtaMinAlpha, j.EtaMaxAlpha = 1.5, 3 }

// strategy is a row of an ablation: what it is called and how it changes the job.
type strategy struct {
	name string
	edit func(*lloyd.Job)
}

var posts = map[string]step.Post{"none": step.Keep, "fold": step.Fold, "trunc": step.Truncate}

// postStrategies are Table 8.2's: post-processing of sums, counts and centroids. All
// comes first what the thesis prints, then the rest of the 27.
func postStrategies(printed *printedTable) []strategy {
	var out []strategy
	for _, sum := range []string{"none", "fold", "trunc"} {
		for _, count := range []string{"none", "fold", "trunc"} {
			for _, centroid := range []string{"none", "fold", "trunc"} {
				out = append(out, strategy{fmt.Sprintf("(%s, %s, %s)", sum, count, centroid), func(j *lloyd.Job) {
					j.PostSum, j.PostCount, j.Post = posts[sum], posts[count], posts[centroid]
				}})
			}
		}
	}
	rank := func(s strategy) int {
		at := slices.IndexFunc(printed.lines, func(line []string) bool { return line[0] == s.name })
		if at < 0 {
			at = len(out)
		}
		return at
	}
	slices.SortStableFunc(out, func(a, b strategy) int { return rank(a) - rank(b) })
	return out
}

// centroidStrategies are Table 8.3's: post-processing of centroids.
func centroidStrategies() []strategy {
	var out []strategy
	for _, name := range []string{"fold", "trunc", "none"} {
		out = append(out, strategy{name, func(j *lloyd.Job) { j.Post = posts[name] }})
	}
	return out
}

// startStrategies are those of Tables 8.4 and 8.5. The released code draws random
// starts in [0, 1]^d, one corner of the box.
var startStrategies = []strategy{
	{"sphere-packing", func(j *lloyd.Job) { j.Init = step.Sphere }},
	{"random", func(j *lloyd.Job) {
		r := rand.New(rand.NewPCG(*j.Seed, 0x7374617274))
		j.Start = make([]float64, j.K*j.Clients[0].Points.D)
		for i := range j.Start {
			j.Start[i] = r.Float64()
		}
	}},
}

func thesisSuites() []Suite {
	ablation := func(number, title string, p variant, rows func(e *Env) []strategy, best int) Suite {
		return Suite{
			Name: "thesis-" + number, Group: groupThesisH, Title: "Thesis-H Table " + number + ": " + title,
			About: "WCSS at epsilon 4 with the thesis's bounds on cluster sizes, means of 10 runs, two clients. NMA is " +
				"csulloyd, AMN is fastlloyd; " +
				"both run as the released code (published), which folds and truncates the sums and counts of all clients at " +
				"the sizes of one and draws " +
				"random starts in [0, 1]^d. TNW is the mean over sets of WCSS/n, the thesis's score; BC counts the sets on " +
				"which a strategy is " +
				fmt.Sprintf("among the best %d. The thesis prints no spread, and for Table 8.2 the 13 of 27 strategies with a "+
					"BC above 0.", best),
			Source: "Thesis-H, Table " + number, Needs: thesisNeeds(),
			Figures: []Figure{{Title: "TNW by strategy", X: "strategy", Y: "TNW", Bars: true},
				{Title: "WCSS on s1 by strategy", X: "strategy", Y: "s1 WCSS", Bars: true}},
			Run: func(ctx context.Context, e *Env) {
				e.ablate(ctx, p, rows(e))
				e.bestCounts(ctx, best)
			},
		}
	}
	centroids := func(*Env) []strategy { return centroidStrategies() }
	starts := func(*Env) []strategy { return startStrategies }
	return []Suite{
		ablation("8.2", "post-processing under NMA", csuLloydCode,
			func(e *Env) []strategy { return postStrategies(e.printed["thesis-8.2"]) }, 3),
		ablation("8.3", "post-processing under AMN", fastLloydCode, centroids, 1),
		ablation("8.4", "initialisation under NMA", csuLloydCode, starts, 1),
		ablation("8.5", "initialisation under AMN", fastLloydCode, starts, 1),
		adultSuite(),
		houseSuite(),
		thesisTimes("8.6", "NMA", csuLloyd),
		thesisTimes("8.7", "AMN", fastLloydCode),
		{
			Name: "thesis-fig8.8", Group: groupThesisH, Title: "Thesis-H Figure 8.8: empty clusters on Birch2",
			About: "Average number of the 100 clusters that attract no point, against epsilon, 20 runs. The figure prints no " +
				"numbers; the thesis's text gives about 15 (NMA) and 20 (AMN) without constraint and noise, 0 with the " +
				"constraint, with noise about 10 (NMA) and 22 to 25 (AMN) without it, and about 4 (NMA) and 2 (AMN) with it at " +
				"epsilon 1. The means of unconstrained clusters (AMN) take the noise of section 6.3.1 for a cluster of one " +
				"record, as the released code draws it. All noisy centroids are folded (Table 7.1).",
			Source: "Thesis-H, Figure 8.8 and section 8.5.3", Needs: []string{"birch2_25k"},
			Figures: []Figure{{Table: "private", Title: "Empty clusters by epsilon", X: "epsilon", Y: "empty",
				Series: []string{"protocol"}, Level: withoutNoise}},
			Run: runEmptyClusters,
		},
	}
}

// ablate measures the WCSS of strategies on all sets, one row per strategy. A
// set that is missing leaves its column out.
func (e *Env) ablate(ctx context.Context, p variant, rows []strategy) {
	for _, r := range rows {
		e.newCase(ctx, "", []Label{L("strategy", r.name)}, func(ctx context.Context, c *Case) error {
			return c.ablate(ctx, p, r)
		})
	}
}

func (c *Case) ablate(ctx context.Context, p variant, r strategy) error {
	var normalised, squares float64
	var there []string
	for _, column := range thesisSets {
		if !c.Env.sets.Has(column.set) {
			continue
		}
		s, err := c.Env.set(ctx, column.set)
		if err != nil {
			return err
		}
		scores, err := c.runs(ctx, c.Env.reps(10, 3), func(run int) (engine.Job, error) {
			return p.job(s, thesisEpsilon, run, func(j *lloyd.Job) { thesisSizes(j); r.edit(j) })
		})
		if err != nil {
			return err
		}
		c.samples(column.column+" WCSS", unitPlain, scores.wcss)
		v := c.Row.value(column.column + " WCSS")
		normalised += float64(v.Mean) / float64(s.N)
		squares += float64(v.Half) * float64(v.Half) / float64(s.N) / float64(s.N)
		there = append(there, column.column)
	}
	if len(there) == 0 {
		return &missingSetError{thesisSets[0].set, c.Env.sets.dir}
	}
	sets := float64(len(there))
	c.add(Value{Name: "TNW", Mean: Number(normalised / sets), Median: Number(normalised / sets),
		Half: Number(math.Sqrt(squares) / sets), N: 1})
	if len(there) < len(thesisSets) {
		c.setApart("TNW", "over "+strings.Join(there, ", ")+" alone")
	}
	return nil
}

// bestCounts counts for each strategy the sets on which its mean WCSS is among the
// lowest few of those measured, which has to be all of them.
func (e *Env) bestCounts(ctx context.Context, few int) {
	var rows []*Row
	for i := range e.rows {
		if e.rows[i].Table == "" && e.rows[i].Failed == "" {
			rows = append(rows, &e.rows[i])
		}
	}
	if e.left > 0 || len(rows) < 2 {
		return
	}
	counts := make(map[string]int)
	for _, column := range thesisSets {
		value := column.column + " WCSS"
		ranked := slices.DeleteFunc(slices.Clone(rows), func(r *Row) bool { return r.value(value) == nil })
		slices.SortStableFunc(ranked, func(a, b *Row) int { return cmp.Compare(a.value(value).Mean, b.value(value).Mean) })
		for _, r := range ranked[:min(few, len(ranked))] {
			counts[r.label("strategy")]++
		}
	}
	for _, r := range rows {
		strategy := r.label("strategy")
		e.newCase(ctx, "best counts", []Label{L("strategy", strategy)}, func(_ context.Context, c *Case) error {
			c.number("BC", unitPlain, float64(counts[strategy]))
			c.setApart("BC", "it ranks means that differ by less than their intervals")
			return nil
		})
	}
}

// thesisTimes is Table 8.6 or 8.7: the time of an iteration on LAN and WAN.
func thesisTimes(number, protocolName string, p variant) Suite {
	source := "Thesis-H, Table " + number
	return Suite{
		Name: "thesis-" + number, Group: groupThesisH, Title: source + ": time per iteration under " + protocolName,
		About: "One iteration at epsilon 4, two clients; the network's part is the thesis's model, one round trip of 1 ms " +
			"(LAN) or 100 ms (WAN), added to our measured computation. The thesis ran on a Macbook Pro M2 Max, Mohassel et " +
			"al. and Jiang et al. on machines and networks of their own (sections 8.6.1 and 8.6.2). synth is generated: 5000 " +
			"points, 2 dimensions, 2 clusters.",
		Source: source, Needs: thesisNeeds(),
		Figures: []Figure{{Title: "Time of one iteration on the LAN", X: "set", Y: "LAN", LogY: true, Bars: true}},
		Run: func(ctx context.Context, e *Env) {
			for _, column := range append(thesisSets[:len(thesisSets):len(thesisSets)],
				struct{ column, set string }{"synth", ""}) {
				e.newCase(ctx, "", []Label{L("set", column.column)}, func(ctx context.Context, c *Case) error {
					s, err := thesisSet(ctx, c.Env, column.set)
					if err != nil {
						return err
					}
					res, err := c.iterations(ctx, c.Env.reps(20, 3), func(run int) (engine.Job, error) {
						return p.job(s, thesisEpsilon, run, func(j *lloyd.Job) { thesisSizes(j); withoutQuality(j) })
					}, nil)
					if err != nil {
						return err
					}
					own := c.Row.value("iteration").shown()
					for i, name := range []string{"lan", "wan"} {
						network, err := FindNetwork(name)
						if err != nil {
							return err
						}
						cost := network.Cost(res.Comm.Rounds, Traffic(res.Comm)) / time.Duration(res.Iterations)
						c.number([]string{"LAN", "WAN"}[i], unitNanoseconds, own+float64(cost))
					}
					return nil
				})
			}
		},
	}
}

// thesisSet is a set of the folder, or the generated one.
func thesisSet(ctx context.Context, e *Env, name string) (*Set, error) {
	if name != "" {
		return e.set(ctx, name)
	}
	return generatedSet(ctx, "timesynth", dataset.Generator{N: 5000, D: 2, K: 2, Seed: 1})
}

func runEmptyClusters(ctx context.Context, e *Env) {
	const set = "birch2_25k"
	one := func(x setting, epsilon string) {
		e.on(ctx, set, x.table(), []Label{L("protocol", x.name), L("epsilon", epsilon)},
			func(ctx context.Context, c *Case, s *Set) error {
				r, err := c.runs(ctx, c.Env.reps(20, 3), func(run int) (engine.Job, error) { return x.job(s, epsilon, run) })
				if err != nil {
					return err
				}
				c.samples("empty", unitPlain, r.empty)
				return nil
			})
	}
	settings := append(settingsOf("NMA"), settingsOf("AMN")...)
	for _, x := range settings {
		if !x.private {
			one(x, "0")
		}
	}
	epsilons := []string{"1", "4", "2", "0.25", "0.5", "3"}
	for _, epsilon := range epsilons[:e.reps(len(epsilons), 2)] {
		for _, x := range settings {
			if x.private {
				one(x, epsilon)
			}
		}
	}
}
