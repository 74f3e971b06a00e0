package central

import (
	"errors"
	"math"
	"strconv"
	"strings"

	"github.com/cohort-engine/cohort/engine"
	"github.com/cohort-engine/cohort/engine/method"
	"github.com/cohort-engine/cohort/engine/privacy"
)

// outsiders are those whom a method on one table is private against.
const outsiders = "whoever sees the result; the holder of the table runs the method"

// Describe lists the methods of this package.
func Describe() method.List {
	return method.List{
		{Name: "hybrid", About: "private synopsis, free search, relative refinement; one client or many (recommended)", Holds: method.Rows, Private: true,
			Against: "others' records: clients and outsiders see noisy counts and sums, the server masked values",
			When:    "first: it has the best loss at most sizes, dimensions and budgets", Cost: "some passes over the records, and a search on the synopsis that grows with k", Make: makeHybrid},
		{Name: "balcan", About: "projection, private cubes and swaps, recovery, refinement; correct accounting", Holds: method.Table, Private: true,
			Against: outsiders, When: "there are many columns, and to compare with Balcan et al.", Cost: "some passes over the records, and the losses of all swaps", Make: makeBalcan},
		{Name: "balcan-edler", About: "Thesis-B's form of it under its own claim", Holds: method.Table, Private: true,
			Against: outsiders + ", as the thesis claims; the ledger has the true epsilon", When: "to reproduce Thesis-B", Cost: "as balcan", Make: makeEdler},
		{Name: "lsf", About: "LSH-forest coreset (Sketch-V's DPLSF)", Holds: method.Table, Private: true,
			Against: outsiders, When: "a fast coreset of one table is wanted, and to compare with Sketch-V's parties", Cost: "two passes over the records", Make: makeLSF},
		{Name: "pca", About: "k-means on principal components, without noise: a reference for projections", Holds: method.Table,
			Against: "no one: all see exact centroids", When: "as what a projection that looks at the data would give", Cost: "eight passes, and a search on the records", Make: makePCA},
	}
}

func data(d *method.Data) Data {
	return Data{Clients: d.Clients, Bounds: d.Bounds(), Labels: d.Labels, Clamped: d.Clamped(), NoQuality: d.NoQuality}
}

// common are the options of the methods with proofs.
func common(name string, laplace *bool, neighbours *privacy.Neighbours) []method.Option {
	return []method.Option{method.Calibration(name, new(privacy.Calibration)), method.Neighbours(name, neighbours),
		{Name: "mechanism", Default: "gaussian; laplace with --delta 0", About: "kind of noise: laplace or gaussian", Value: method.Text(func(text string) error {
			*laplace = text == "laplace"
			return nil
		}, "laplace", "gaussian")}}
}

func makeHybrid(d method.Data) (engine.Job, []method.Option) {
	j := &Hybrid{Data: data(&d), K: d.K, Budget: d.Budget, Seed: d.Seed}
	return j, append(common(j.Method(), &j.Laplace, &j.Neighbours),
		method.Iterations(&j.Rounds),
		method.Option{Name: "branch", Default: "auto", About: "tree, projected, high-d, or auto (the rule)", Value: method.Choice(&j.Branch, "auto", "tree", "projected", "high-d")},
		method.Option{Name: "balance", Default: "any size", About: "clusters of n/(B k) to B n/k records, on the private synopsis: the records nearest to a centroid can be more or fewer",
			Value: method.Real(&j.Balance, 1, math.MaxFloat64)})
}

// choosing are the options of the choice of candidates by private swaps.
func choosing(projection *Projection, exponential *bool) []method.Option {
	return []method.Option{
		{Name: "projection", Default: string(Dense), About: "dense (Gaussian) or sparse (Achlioptas)", Value: method.Choice(projection, Dense, Sparse)},
		{Name: "selection", Default: "permute-and-flip", About: "permute-and-flip or exponential", Value: method.Text(func(text string) error {
			*exponential = text == "exponential"
			return nil
		}, "permute-and-flip", "exponential")},
	}
}

func makeBalcan(d method.Data) (engine.Job, []method.Option) {
	j := &Balcan{Data: data(&d), K: d.K, Budget: d.Budget, Seed: d.Seed}
	return j, append(append(common(j.Method(), &j.Laplace, &j.Neighbours), choosing(&j.Projection, &j.Exponential)...),
		method.Iterations(&j.Rounds),
		method.Option{Name: "swaps", Default: "2", About: "number of local swaps", Value: method.Text(func(text string) error {
			if text == "0" {
				j.Swaps = -1
				return nil
			}
			return method.Int(&j.Swaps, 0, math.MaxInt).Set(text)
		})})
}

func makeEdler(d method.Data) (engine.Job, []method.Option) {
	j := &Edler{Data: data(&d), K: d.K, Budget: d.Budget, Seed: d.Seed}
	return j, append(choosing(&j.Projection, &j.Exponential),
		method.Calibration(j.Method(), new(privacy.Calibration)),
		method.Neighbours(j.Method(), new(privacy.Neighbours)),
		method.Mechanism(new(string), "laplace", "laplace"),
		method.Iterations(&j.KMeans),
		method.Option{Name: "swaps", Default: "min(k, 20)", About: "number of local swaps", Value: method.Int(&j.Swaps, 1, math.MaxInt)},
		method.Option{Name: "gamma-factor", Default: "1", About: "factor of the threshold gamma (20, 2 or 1)", Value: method.Real(&j.GammaFactor, method.Positive, math.MaxFloat64)},
		method.Option{Name: "failure-probability", Default: "0.1", About: "the thesis's delta, which is no privacy parameter", Value: method.Real(&j.Failure, method.Positive, 1)},
		method.Option{Name: "rounds", Default: "1", About: "T of its Algorithm 8", Value: method.Int(&j.Rounds, 1, math.MaxInt)},
		method.Option{Name: "partitions", Default: "3", About: "T of its Algorithm 9", Value: method.Int(&j.Partitions, 1, math.MaxInt)},
		method.Option{Name: "candidate-reduction", Default: "on", About: "keep the deepest cubes only: on or off", Value: method.Text(func(text string) error {
			j.AllCubes = text == "off"
			return nil
		}, "on", "off")},
		method.Option{Name: "budget-split", Default: "0.7,0.01,0.04,0.2,0.05", About: "shares of candidates, swap, recovery, k-means, choice", Value: method.Text(func(text string) error {
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

func makeLSF(d method.Data) (engine.Job, []method.Option) {
	j := &LSF{Data: data(&d), K: d.K, Budget: d.Budget, Seed: d.Seed}
	return j, append(common(j.Method(), &j.Laplace, &j.Neighbours),
		method.Option{Name: "levels", Default: "12", About: "number of hyperplanes", Value: method.Int(&j.Levels, 1, 64)})
}

func makePCA(d method.Data) (engine.Job, []method.Option) {
	j := &PCA{Data: data(&d), K: d.K, Seed: d.Seed}
	return j, []method.Option{{Name: "components", Default: "ln(n)/2", About: "number of principal components", Value: method.Int(&j.Components, 1, math.MaxInt)}}
}
