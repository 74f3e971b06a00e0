package balcan

import (
	"errors"
	"math"
	"strconv"
	"strings"

	"github.com/cohort-engine/cohort/engine"
	"github.com/cohort-engine/cohort/engine/method"
	"github.com/cohort-engine/cohort/engine/protocol"
	"github.com/cohort-engine/cohort/engine/step"
	"github.com/cohort-engine/cohort/engine/step/staged"
)

// choices is why the methods take no weights.
const choices = "its private choices of cubes and swaps have no theorem for weights"

// Describe lists the methods of this package.
func Describe() method.List {
	return method.List{
		{
			Name: "balcan", Holds: method.Table, Private: true, Make: describeBalcan,
			About:   "projection, private cubes and swaps, recovery, refinement; correct accounting",
			Against: method.Outsiders,
			When:    "there are many columns, and to compare with Balcan et al.",
			Cost:    "some passes over the records, and the losses of all swaps", Unweighed: choices,
		}, {
			Name: "balcan-edler", Holds: method.Table, Private: true, Make: describeEdler,
			About:   "Thesis-B's form of it under its own claim",
			Against: method.Outsiders + ", as the thesis claims; the ledger has the true epsilon",
			When:    "to reproduce Thesis-B",
			Cost:    "as balcan", Unweighed: choices,
		},
	}
}

// choosing are the options of the choice of candidates by private swaps.
func choosing(projection *staged.Projection, exponential *bool) []method.Option {
	return []method.Option{
		{Name: "projection", Default: string(staged.Dense), About: "dense (Gaussian) or sparse (Achlioptas)",
			Value: method.Choice(projection, staged.Dense, staged.Sparse)},
		{Name: "selection", Default: "permute-and-flip", About: "permute-and-flip or exponential",
			Value: method.Text(func(text string) error {
				*exponential = text == "exponential"
				return nil
			}, "permute-and-flip", "exponential")},
	}
}

func describeBalcan(p protocol.Problem) (engine.Job, method.Options) {
	j := &Job{Problem: p}
	return j, append(method.Shared(name, &j.Problem, takes), j.own()...)
}

// own are the options that are not the problem's, with the rules of the fields that they write to.
func (j *Job) own() method.Options {
	return append(choosing(&j.Projection, &j.Exponential),
		method.Option{Name: "swaps", Default: "2", About: "number of local swaps",
			Value: method.Text(func(text string) error {
				if text == "0" {
					j.Swaps = -1
					return nil
				}
				return method.Int(&j.Swaps, 0, math.MaxInt).Set(text)
			})})
}

func describeEdler(p protocol.Problem) (engine.Job, method.Options) {
	j := &Edler{Problem: p}
	return j, append(method.Shared(edlerName, &j.Problem, edlerTakes), j.own()...)
}

func (j *Edler) own() method.Options {
	return append(choosing(&j.Projection, &j.Exponential),
		method.Post(&j.Post, step.Keep, step.Truncate),
		method.Option{Name: "scaling", Default: "columns", About: "columns of unlike widths: columns (stretched to one) or " +
			"none (one range, the widest, for all)",
			Value: method.Text(func(text string) error {
				j.OneRange = text == "none"
				return nil
			}, "columns", "none")},
		method.Option{Name: "swaps", Default: "min(k, 20)", About: "number of local swaps",
			Value: method.Int(&j.Swaps, 1, 1_000_000)},
		method.Option{Name: "gamma-factor", Default: "1", About: "factor of the threshold gamma (20, 2 or 1)",
			Value: method.Real(&j.GammaFactor, method.Positive, math.MaxFloat64)},
		method.Option{Name: "failure-probability", Default: "0.1",
			About: "the thesis's delta, which is no privacy parameter", Value: method.Real(&j.Failure, method.Positive, 1)},
		method.Option{Name: "rounds", Default: "1", About: "T of its Algorithm 8",
			Value: method.Int(&j.Rounds, 1, 1000)},
		method.Option{Name: "partitions", Default: "3", About: "T of its Algorithm 9",
			Value: method.Int(&j.Partitions, 1, 1000)},
		method.Option{Name: "candidate-reduction", Default: "on", About: "keep the deepest cubes only: on or off",
			Value: method.Text(func(text string) error {
				j.AllCubes = text == "off"
				return nil
			}, "on", "off")},
		method.Option{Name: "first-centres", Default: "distinct",
			About: "how local swap draws its first centres among the candidates: distinct or repeated (with replacement)",
			Value: method.Text(func(text string) error {
				j.Repeats = text == "repeated"
				return nil
			}, "distinct", "repeated")},
		method.Option{Name: "projection-entries", Default: "divided",
			About: "normal entries of the projection: divided (by the root of its dimension) or undivided",
			Value: method.Text(func(text string) error {
				j.Undivided = text == "undivided"
				return nil
			}, "divided", "undivided")},
		method.Option{Name: "budget-split", Default: "0.7,0.01,0.04,0.2,0.05",
			About: "shares of candidates, swap, recovery, k-means, choice", Value: method.Text(func(text string) error {
				shares := []*float64{&j.Split.Candidates, &j.Split.Swap, &j.Split.Recover, &j.Split.KMeans, &j.Split.Choice}
				parts := strings.Split(text, ",")
				for i, p := range parts {
					x, err := strconv.ParseFloat(strings.TrimSpace(p), 64)
					if err != nil || len(parts) != len(shares) {
						return errors.New("five numbers such as 0.7,0.01,0.04,0.2,0.05")
					}
					*shares[i] = x
				}
				return nil
			})})
}
