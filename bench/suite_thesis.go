package bench

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"gonum.org/v1/gonum/stat"

	"github.com/cohort-engine/cohort/bench/chart"
	"github.com/cohort-engine/cohort/engine"
	"github.com/cohort-engine/cohort/engine/dataset"
	"github.com/cohort-engine/cohort/engine/method/lloyd"
	"github.com/cohort-engine/cohort/engine/privacy"
)

// thesisSets are the sets of Thesis-H's tables, by the names of its columns.
var thesisSets = []struct{ column, set string }{{"s1", "s1"}, {"house", "house"}, {"iris", "iris"}, {"image", "image"}, {"adult", "adult"}, {"birch2", "birch2_25k"}}

// thesisEpsilon and the factors of thesisSizes are the defaults of Thesis-H,
// Table 7.1.
const thesisEpsilon = 4

func thesisSizes(j *lloyd.Job) { j.EtaMinAlpha, j.EtaMaxAlpha = 1.5, 3 }

// strategy is a row of an ablation: what it is called, how it changes the job,
// and what the thesis prints for each of thesisSets.
type strategy struct {
	name    string
	edit    func(*lloyd.Job)
	printed [6]float64
}

var posts = map[string]lloyd.Post{"none": lloyd.Keep, "fold": lloyd.Fold, "trunc": lloyd.Truncate}

// post is a row of Table 8.2: post-processing of sums, counts and centroids.
func post(sum, count, centroid string, printed ...float64) strategy {
	return strategy{fmt.Sprintf("(%s, %s, %s)", sum, count, centroid), func(j *lloyd.Job) {
		j.PostSum, j.PostCount, j.Post = posts[sum], posts[count], posts[centroid]
	}, [6]float64(printed)}
}

func start(name string, init lloyd.Init, printed ...float64) strategy {
	return strategy{name, func(j *lloyd.Job) { j.Init = init }, [6]float64(printed)}
}

// randomStart is the row of random starts. The released code draws them in [0, 1]^d,
// one corner of the box.
func randomStart(printed ...float64) strategy {
	return strategy{"random", func(j *lloyd.Job) {
		r := rand.New(rand.NewPCG(*j.Seed, 0x7374617274))
		j.Start = make([]float64, j.K*j.Clients[0].Points.D)
		for i := range j.Start {
			j.Start[i] = r.Float64()
		}
	}, [6]float64(printed)}
}

func thesisSuites() []Suite {
	var needs []string
	for _, s := range thesisSets {
		needs = append(needs, s.set)
	}
	centroid := func(name string, printed ...float64) strategy {
		return strategy{name, func(j *lloyd.Job) { j.Post = posts[name] }, [6]float64(printed)}
	}
	ablation := func(number, title string, p protocol, rows []strategy) Suite {
		return Suite{
			Name: "thesis-" + number, Group: GroupThesisH, Title: "Thesis-H Table " + number + ": " + title,
			About: "WCSS at epsilon 4 with the thesis's bounds on cluster sizes, means of 10 runs, two clients. NMA is csulloyd, AMN is fastlloyd; " +
				"both run as the released code (published), which folds and truncates the sums and counts of all clients at the sizes of one and draws " +
				"random starts in [0, 1]^d. Mean WCSS/n is " +
				"the thesis's score over all sets (TNW), here over those that are there; it prints no spread, and for Table 8.2 the best 13 of 27 strategies.",
			Source: "Thesis-H, Table " + number, Needs: needs,
			Figures: []Figure{{Title: "Mean WCSS/n by strategy", X: "strategy", Y: "mean WCSS/n", Bars: true}, {Title: "WCSS on s1 by strategy", X: "strategy", Y: "s1 WCSS", Bars: true}},
			Run:     func(ctx context.Context, e *Env) error { return e.ablate(ctx, p, rows, "Thesis-H, Table "+number) },
		}
	}
	return []Suite{
		ablation("8.2", "post-processing under NMA", csuLloydCode, []strategy{
			post("none", "none", "fold", 82.8, 286.3, 33.7, 3559.5, 12295.4, 45.7),
			post("fold", "none", "fold", 83.0, 287.1, 33.9, 3559.4, 12294.6, 482.5),
			post("none", "none", "trunc", 82.8, 288.6, 33.3, 3559.8, 12295.2, 45.3),
			post("trunc", "fold", "trunc", 103.2, 288.1, 32.8, 3559.6, 12294.8, 181.3),
			post("fold", "fold", "trunc", 104.4, 286.4, 33.1, 3559.5, 12295.0, 175.7),
			post("fold", "none", "none", 82.9, 286.3, 33.1, 3559.6, 12295.3, 475.4),
			post("fold", "none", "trunc", 83.0, 287.9, 32.9, 3559.7, 12295.2, 477.7),
			post("none", "fold", "fold", 102.8, 291.0, 34.7, 3559.6, 12294.9, 325.0),
			post("none", "fold", "trunc", 102.8, 289.2, 32.9, 3559.7, 12295.1, 179.7),
			post("none", "none", "none", 83.2, 294.8, 33.0, 3559.6, 12295.5, 45.5),
			post("trunc", "fold", "none", 112.6, 289.8, 33.0, 3559.4, 12295.3, 174.6),
			post("trunc", "none", "none", 82.9, 288.1, 33.2, 3559.4, 12295.5, 298.7),
			post("trunc", "none", "trunc", 82.8, 287.0, 33.5, 3559.5, 12295.3, 295.9),
		}),
		ablation("8.3", "post-processing under AMN", fastLloydCode, []strategy{
			centroid("fold", 81.7, 284.4, 32.1, 3560.2, 12296.8, 42.0),
			centroid("trunc", 81.6, 284.6, 32.5, 3560.0, 12296.8, 42.1),
			centroid("none", 81.7, 284.7, 32.7, 3560.0, 12296.7, 42.3),
		}),
		ablation("8.4", "initialisation under NMA", csuLloydCode, []strategy{
			start("sphere-packing", lloyd.Sphere, 83.2, 294.8, 32.8, 3558.8, 12178.3, 47.0),
			randomStart(117.3, 285.0, 36.7, 3558.8, 12145.4, 96.7),
		}),
		ablation("8.5", "initialisation under AMN", fastLloydCode, []strategy{
			start("sphere-packing", lloyd.Sphere, 81.7, 284.7, 32.4, 3558.9, 12180.1, 43.5),
			randomStart(115.6, 283.8, 33.3, 3557.9, 12145.7, 92.8),
		}),
		thesisTimes("8.6", "NMA", csuLloyd, map[string][4]float64{
			"iris": {60, 16, 155, 15}, "image": {75, 8, 197, 6}, "house": {46, 8, 148, 9}, "adult": {263, 10, 389, 7},
			"birch2": {1029, 11, 1126, 9}, "s1": {33, 6, 141, 3}, "synth": {9, 2, 122, 1}}),
		thesisTimes("8.7", "AMN", fastLloydCode, map[string][4]float64{
			"iris": {68, 15, 143, 14}, "image": {71, 9, 197, 5}, "house": {42, 5, 150, 5}, "adult": {259, 8, 387, 8},
			"birch2": {1045, 23, 1135, 17}, "s1": {31, 4, 140, 2}, "synth": {7, 1, 123, 1}}),
		{
			Name: "thesis-fig8.8", Group: GroupThesisH, Title: "Thesis-H Figure 8.8: empty clusters on Birch2",
			About: "Average number of the 100 clusters that attract no point, against epsilon, 20 runs. The figure prints no numbers; the " +
				"thesis's text gives about 15 (NMA) and 20 (AMN) without constraint and noise, 0 with the constraint, with noise about 10 (NMA) and " +
				"22 to 25 (AMN) without it, and about 4 (NMA) and 2 (AMN) with it at epsilon 1. The means of unconstrained clusters (AMN) take the " +
				"noise of section 6.3.1 for a cluster of one record, as the released code draws it. All noisy centroids are folded (Table 7.1).",
			Source: "Thesis-H, Figure 8.8 and section 8.5.3", Needs: []string{"birch2_25k"},
			Figures: []Figure{{Table: "private", Title: "Empty clusters by epsilon", X: "epsilon", Y: "empty", Series: []string{"protocol"}, Level: withoutNoise}},
			Run:     runEmptyClusters,
		},
	}
}

// ablate measures the WCSS of strategies on all sets, one row per strategy. A
// set that is missing leaves its column out.
func (e *Env) ablate(ctx context.Context, p protocol, rows []strategy, source string) error {
	for _, r := range rows {
		err := e.Case(ctx, "", []Label{L("strategy", r.name)}, func(ctx context.Context, c *Case) error {
			var ours, printed, sets float64
			for i, column := range thesisSets {
				if !c.Env.sets.Has(column.set) {
					continue
				}
				s, err := c.Env.Set(ctx, column.set)
				if err != nil {
					return err
				}
				count := c.Env.Reps(10, 3)
				scores, err := c.runs(ctx, count, func(run int) (engine.Job, error) {
					return p.job(s, thesisEpsilon, run, func(j *lloyd.Job) { thesisSizes(j); r.edit(j) })
				})
				if err != nil {
					return err
				}
				c.Samples(column.column+" WCSS", Plain, scores.wcss, Reference{Name: "Thesis-H", Kind: Published, Value: Number(r.printed[i]), Source: source})
				ours += stat.Mean(scores.wcss, nil) / float64(s.N)
				printed += r.printed[i] / float64(s.N)
				sets++
			}
			if sets == 0 {
				return &MissingSetError{thesisSets[0].set, c.Env.sets.dir}
			}
			c.Number("mean WCSS/n", Plain, ours/sets, Reference{Name: "Thesis-H", Kind: Published, Value: Number(printed / sets), Source: source + ", from the same columns"})
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// thesisTimes is Table 8.6 or 8.7: milliseconds and half widths on LAN and WAN.
func thesisTimes(number, protocolName string, p protocol, printed map[string][4]float64) Suite {
	var needs []string
	for _, s := range thesisSets {
		needs = append(needs, s.set)
	}
	source := "Thesis-H, Table " + number
	return Suite{
		Name: "thesis-" + number, Group: GroupThesisH, Title: source + ": time per iteration under " + protocolName,
		About: "One iteration at epsilon 4, two clients; the network's part is the thesis's model, one round trip of 1 ms (LAN) or 100 ms (WAN), " +
			"added to our measured computation. The thesis ran on a Macbook Pro M2 Max. synth is generated: 5000 points, 2 dimensions, 2 clusters.",
		Source: source, Needs: needs,
		Figures: []Figure{{Title: "Time of one iteration on the LAN", X: "set", Y: "LAN", LogY: true, Bars: true}},
		Run: func(ctx context.Context, e *Env) error {
			for _, column := range append(thesisSets[:len(thesisSets):len(thesisSets)], struct{ column, set string }{"synth", ""}) {
				err := e.Case(ctx, "", []Label{L("set", column.column)}, func(ctx context.Context, c *Case) error {
					s, err := thesisSet(ctx, c.Env, column.set)
					if err != nil {
						return err
					}
					res, err := c.Iterations(ctx, c.Env.Reps(20, 3), func(run int) (engine.Job, error) {
						return p.job(s, thesisEpsilon, run, func(j *lloyd.Job) { thesisSizes(j); withoutQuality(j) })
					})
					if err != nil {
						return err
					}
					own := c.Row.Value("iteration").Shown()
					for i, name := range []string{"lan", "wan"} {
						network, err := FindNetwork(name)
						if err != nil {
							return err
						}
						ms := float64(time.Millisecond)
						v := printed[column.column]
						cost := network.Cost(res.Comm.Rounds, Traffic(res.Comm)) / time.Duration(res.Iterations)
						c.Number([]string{"LAN", "WAN"}[i], Nanoseconds, own+float64(cost),
							Reference{Name: "Thesis-H", Kind: Published, Value: Number(v[2*i] * ms), Half: Number(v[2*i+1] * ms), Source: source})
					}
					return nil
				})
				if err != nil {
					return err
				}
			}
			return nil
		},
	}
}

// thesisSet is a set of the folder, or the generated one.
func thesisSet(ctx context.Context, e *Env, name string) (*Set, error) {
	if name != "" {
		return e.Set(ctx, name)
	}
	return GeneratedSet(ctx, "timesynth", dataset.Generator{N: 5000, D: 2, K: 2, Seed: 1})
}

func runEmptyClusters(ctx context.Context, e *Env) error {
	const set = "birch2_25k"
	one := func(table string, p protocol, name, epsilon string, edit func(*lloyd.Job)) error {
		return e.Case(ctx, table, []Label{L("protocol", name), L("epsilon", epsilon)}, func(ctx context.Context, c *Case) error {
			s, err := c.Env.Set(ctx, set)
			if err != nil {
				return err
			}
			r, err := c.runs(ctx, c.Env.Reps(20, 3), func(run int) (engine.Job, error) {
				return p.job(s, max(chart.ParseNumber(epsilon), 1e-9), run, func(j *lloyd.Job) {
					thesisSizes(j)
					if edit != nil {
						edit(j)
					}
				})
			})
			if err != nil {
				return err
			}
			c.Samples("empty", Plain, r.empty)
			return nil
		})
	}
	meansCode := protocol{lloyd.SuLloyd, privacy.Published}
	folded := func(j *lloyd.Job) { j.Post = lloyd.Fold }
	byFoldedMean := func(j *lloyd.Job) { j.Release, j.Post = lloyd.Centroid, lloyd.Fold }
	byCentroid := func(j *lloyd.Job) { j.Release = lloyd.Centroid }
	for _, x := range []struct {
		p    protocol
		name string
		edit func(*lloyd.Job)
	}{{plainCode, "NMA unconstrained", nil}, {plainLloyd, "AMN unconstrained", byCentroid}, {plainCLloyd, "NMA constrained", nil}, {plainCLloyd, "AMN constrained", byCentroid}} {
		if err := one(withoutNoise, x.p, x.name, "0", x.edit); err != nil {
			return err
		}
	}
	epsilons := []string{"1", "4", "2", "0.25", "0.5", "3"}
	for _, epsilon := range epsilons[:e.Reps(len(epsilons), 2)] {
		for _, x := range []struct {
			p    protocol
			name string
			edit func(*lloyd.Job)
		}{{suLloyd, "NMA unconstrained", folded}, {csuLloyd, "NMA constrained", nil}, {meansCode, "AMN unconstrained", byFoldedMean}, {fastLloydCode, "AMN constrained", nil}} {
			if err := one("private", x.p, x.name, epsilon, x.edit); err != nil {
				return err
			}
		}
	}
	return nil
}
