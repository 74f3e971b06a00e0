package bench

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/cohort-engine/cohort/bench/chart"
	"github.com/cohort-engine/cohort/engine"
	"github.com/cohort-engine/cohort/engine/dataset"
	"github.com/cohort-engine/cohort/engine/method/lloyd"
	"github.com/cohort-engine/cohort/engine/metrics"
	"github.com/cohort-engine/cohort/engine/privacy"
	"github.com/cohort-engine/cohort/engine/step"
	"github.com/cohort-engine/cohort/kernels"
)

// setting is a curve of Thesis-H's figures, or a level line where it has no noise.
type setting struct {
	name    string
	p       variant
	edit    func(*lloyd.Job)
	private bool
}

func (s setting) table() string {
	if s.private {
		return "private"
	}
	return withoutNoise
}

// job builds a run with the thesis's bounds on sizes.
func (s setting) job(set *Set, epsilon string, run int) (engine.Job, error) {
	return s.p.job(set, max(chart.ParseNumber(epsilon), 1e-9), run, func(j *lloyd.Job) {
		thesisSizes(j)
		if s.edit != nil {
			s.edit(j)
		}
	})
}

// settingsOf are the four settings of Thesis-H's section 8.5 under NMA or AMN. All
// noisy centroids are folded (Table 7.1). The means of unconstrained clusters (AMN)
// take the noise of section 6.3.1 for a cluster of one record, as the released code
// draws it.
func settingsOf(aggregation string) []setting {
	folded := func(j *lloyd.Job) { j.Post = step.Fold }
	byCentroid := func(j *lloyd.Job) { j.Release = lloyd.Centroid }
	byFoldedMean := func(j *lloyd.Job) { j.Release, j.Post = lloyd.Centroid, step.Fold }
	if aggregation == "NMA" {
		return []setting{
			{"NMA unconstrained", plainCode, nil, false}, {"NMA constrained", plainCLloyd, nil, false},
			{"NMA unconstrained", suLloyd, folded, true}, {"NMA constrained", csuLloyd, nil, true},
		}
	}
	return []setting{
		{"AMN unconstrained", plainLloyd, byCentroid, false}, {"AMN constrained", plainCLloyd, byCentroid, false},
		{"AMN unconstrained", variant{lloyd.SuLloyd, privacy.Published}, byFoldedMean, true},
		{"AMN constrained", fastLloydCode, nil, true},
	}
}

// thesisEpsilons are the abscissae of the figures, the most telling first.
var thesisEpsilons = []string{"1", "4", "0.25", "2", "0.5", "3"}

// silhouette is the value of Figures D.1 and D.2; silhouetteSample is the number of records that the latter compares.
const (
	silhouette       = "silhouette"
	silhouetteSample = 5000
)

// thesisFigures are Figures 8.1 to 8.7, which show parts of the appendix's, and the
// appendix's.
func thesisFigures() []Suite {
	const loss = "WCSS"
	const about = "Epsilon from .25 to 4 with the thesis's bounds on cluster sizes, means of 20 runs with 95% " +
		"intervals, two clients, under the paper's noise. The figure prints no numbers. "
	suite := func(number, title, text, y string, also []string, run func(context.Context, *Env)) Suite {
		for i, name := range also {
			also[i] = "thesis-fig" + name
		}
		return Suite{
			Name: "thesis-fig" + number, Also: also, Group: groupThesisH, Title: "Thesis-H " + title, About: about + text,
			Source: "Thesis-H, Figure " + number, Needs: thesisNeeds(), Run: run,
			Figures: []Figure{{Table: "private", Title: y + " by epsilon", X: "epsilon", Y: y, Series: []string{"setting"},
				Panel: "set",
				LogX:  true, Level: withoutNoise}},
		}
	}
	quality := func(aggregation, value string) func(context.Context, *Env) {
		return func(ctx context.Context, e *Env) {
			switch {
			case value != silhouette:
				e.thesisCurves(ctx, settingsOf(aggregation), value, 0)
			case aggregation == "NMA":
				e.silhouetteTime(ctx)
				e.thesisCurves(ctx, settingsOf(aggregation), value, metrics.ExactPoints)
			default:
				e.thesisCurves(ctx, settingsOf(aggregation), value, silhouetteSample)
			}
		}
	}
	ablation := func(p variant, rows func(*Env) []strategy) func(context.Context, *Env) {
		return func(ctx context.Context, e *Env) {
			var settings []setting
			for _, r := range rows(e) {
				settings = append(settings, setting{r.name, p, r.edit, true})
			}
			e.thesisCurves(ctx, settings, loss, 0)
		}
	}
	starts := func(*Env) []strategy { return startStrategies }
	centroids := func(*Env) []strategy { return centroidStrategies() }
	ten := func(e *Env) []strategy { return postStrategies(e.printed["thesis-8.2"])[:10] }
	const settings = "Constrained and unconstrained, private and not: lloyd, clloyd, "
	return []Suite{
		suite("C.1", "Figures 8.1, 8.2 and C.1: WCSS under NMA", settings+"sulloyd, csulloyd.", loss, []string{"8.1", "8.2"},
			quality("NMA", loss)),
		suite("C.2", "Figures 8.3, 8.4 and C.2: WCSS under AMN", settings+"sulloyd by means, fastlloyd.", loss,
			[]string{"8.3", "8.4"},
			quality("AMN", loss)),
		suite("D.1", "Figures 8.5 to 8.7 and D.1: silhouette under NMA",
			settings+"sulloyd, csulloyd; of a sample on sets of more than 50,000 records.",
			silhouette, []string{"8.5", "8.6", "8.7"}, quality("NMA", silhouette)),
		suite("D.2", "Figures 8.5 to 8.7 and D.2: silhouette under AMN",
			settings+"sulloyd by means, fastlloyd; on more than 5,000 records of as many drawn at random, others in "+
				"each run, so that the interval has what that adds.",
			silhouette, nil, quality("AMN", silhouette)),
		suite("A.1", "Figure A.1: initialisation under NMA", "csulloyd as the released code.", loss, nil,
			ablation(csuLloydCode, starts)),
		suite("A.2", "Figure A.2: initialisation under AMN", "fastlloyd as the released code.", loss, nil,
			ablation(fastLloydCode, starts)),
		suite("B.1", "Figure B.1: post-processing under NMA",
			"The first ten strategies of Table 8.2, csulloyd as the released code.", loss, nil,
			ablation(csuLloydCode, ten)),
		suite("B.2", "Figure B.2: post-processing under AMN", "fastlloyd as the released code.", loss, nil,
			ablation(fastLloydCode, centroids)),
	}
}

// thesisCurves measures settings on all sets: those without noise once, the others by
// epsilon; a silhouette is one of at most so many records.
func (e *Env) thesisCurves(ctx context.Context, settings []setting, value string, most int) {
	for i, epsilon := range thesisEpsilons {
		for _, column := range thesisSets {
			if !e.sets.Has(column.set) {
				continue
			}
			for _, x := range settings {
				labels := []Label{L("set", column.column), L("setting", x.name)}
				if x.private {
					labels = append(labels, L("epsilon", epsilon))
				} else if i > 0 {
					continue
				}
				e.newCase(ctx, x.table(), labels, func(ctx context.Context, c *Case) error {
					return c.thesisPoint(ctx, column.set, x, epsilon, value, most)
				})
			}
		}
	}
}

// thesisPoint measures one point of a curve.
func (c *Case) thesisPoint(ctx context.Context, set string, x setting, epsilon, value string, most int) error {
	s, err := c.Env.set(ctx, set)
	if err != nil {
		return err
	}
	var silhouettes []float64
	drawn := uint64(0)
	r, err := c.runs(ctx, c.Env.reps(20, 3), func(run int) (engine.Job, error) {
		return x.job(s, epsilon, run)
	}, func(res *engine.Result) error {
		if value != silhouette {
			return nil
		}
		part := s.sample(most, drawn)
		drawn++
		separation, err := engine.MeasureSeparation(ctx, c.Env.Pool, part, slices.Concat(res.Centroids...), s.K)
		if err != nil {
			return err
		}
		if separation.Silhouette != nil { // it needs two clusters with points
			silhouettes = append(silhouettes, *separation.Silhouette)
		}
		return nil
	})
	if err != nil {
		return err
	}
	if len(r.wcss) == 0 {
		return errors.New("no run has an assignment within the constraints")
	}
	if value != silhouette {
		c.samples("WCSS", unitPlain, r.wcss)
		return nil
	}
	if alone := len(r.wcss) - len(silhouettes); alone > 0 {
		c.Row.Note = fmt.Sprintf("%d of %d runs end with all records in one cluster and have no silhouette",
			alone, len(r.wcss))
	}
	c.samples("silhouette", unitPlain, silhouettes)
	return nil
}

// sample is the set's records, or so many of them, drawn with a seed, if it has more.
func (s *Set) sample(most int, seed uint64) dataset.Part {
	part := s.Norm.Table()[0]
	if s.N <= most || most >= metrics.ExactPoints {
		return part
	}
	which := make([]int32, s.N)
	for i := range which {
		which[i] = int32(i)
	}
	rand.New(rand.NewPCG(seed, 0x73616d706c65)).Shuffle(s.N, func(i, j int) { which[i], which[j] = which[j], which[i] })
	points := kernels.Gather(kernels.NewPanels(most, s.D), part.Points, which[:most])
	return dataset.Part{Points: &points, FractionBits: part.FractionBits}
}

// silhouetteTime times the silhouette of all pairs of 50,000 records.
func (e *Env) silhouetteTime(ctx context.Context) {
	e.newCase(ctx, "time", []Label{L("n", metrics.ExactPoints), L("d", 2), L("k", 20)},
		func(ctx context.Context, c *Case) error {
			s, err := generatedSet(ctx, "timesynth", dataset.Generator{N: metrics.ExactPoints, D: 2, K: 20, Seed: 1})
			if err != nil {
				return err
			}
			centroids := make([]float64, 0, 20*s.D)
			for i := range 20 {
				for _, x := range s.Norm.Points.Point(i*s.N/20, nil) {
					centroids = append(centroids, float64(x))
				}
			}
			start, cpu := time.Now(), processTime()
			if _, err := engine.MeasureSeparation(ctx, c.Env.Pool, s.Norm.Table()[0], centroids, 20); err != nil {
				return err
			}
			c.durations("all pairs", []float64{float64(time.Since(start))}, atMost(3e9)...)
			c.durations("CPU", []float64{float64(processTime() - cpu)})
			return nil
		})
}
