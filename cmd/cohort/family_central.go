package main

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"github.com/cohort-engine/cohort/engine"
	"github.com/cohort-engine/cohort/engine/central"
	"github.com/cohort-engine/cohort/engine/fault"
	"github.com/cohort-engine/cohort/engine/privacy"
)

// centralFamily is the methods for one data set, and hybrid for any number of
// clients.
func centralFamily() family {
	return family{
		name: "Central, and hybrid over rows",
		methods: []method{
			{name: "hybrid", about: "private synopsis, free search, relative refinement; one client or many (recommended)", private: true},
			{name: "balcan", about: "projection, private cubes and swaps, recovery, refinement; correct accounting", private: true},
			{name: "balcan-edler", about: "Thesis-B's form of it under its own claim (--calibration claimed)", private: true},
			{name: "lsf", about: "LSH-forest coreset (Sketch-V's DPLSF)", private: true},
			{name: "pca", about: "k-means on principal components, without noise: a reference for projections"},
		},
		flags: func(fs *pflag.FlagSet, _ *options) {
			fs.String("branch", "auto", "hybrid: tree, projected, high-d, or auto (the rule)")
			fs.Float64("balance", 0, "hybrid: clusters of n/(B k) to B n/k records, on the private synopsis: the records nearest to a centroid can be more or fewer (default: any size)")
			fs.String("projection", "dense", "balcan, balcan-edler: dense (Gaussian) or sparse (Achlioptas)")
			fs.String("selection", "permute-and-flip", "balcan, balcan-edler: permute-and-flip or exponential")
			fs.Int("swaps", 0, "balcan, balcan-edler: local swaps (default 2; min(k, 20) for balcan-edler)")
			fs.Float64("gamma-factor", 1, "balcan-edler: factor of the threshold gamma (20, 2 or 1)")
			fs.Float64("failure-probability", 0.1, "balcan-edler: the thesis's delta, which is no privacy parameter")
			fs.Int("rounds", 1, "balcan-edler: T of its Algorithm 8")
			fs.Int("partitions", 3, "balcan-edler: T of its Algorithm 9")
			fs.String("candidate-reduction", "on", "balcan-edler: keep the deepest cubes only, on or off")
			fs.String("budget-split", "", "balcan-edler: shares of candidates, swap, recovery, k-means, choice (default 0.7,0.01,0.04,0.2,0.05)")
			fs.Int("levels", 12, "lsf: number of hyperplanes")
			fs.Int("components", 0, "pca: number of principal components (default ln(n)/2)")
		},
		check: checkCentral,
		job:   centralJob,
	}
}

// text is the value of a flag of this family.
func (o *options) text(flag string) string {
	s, _ := o.set.GetString(flag)
	return s
}

// centralOnly lists the methods that each of the family's flags belongs to.
var centralOnly = map[string]string{
	"branch": "hybrid", "balance": "hybrid", "projection": "balcan balcan-edler", "selection": "balcan balcan-edler", "swaps": "balcan balcan-edler",
	"gamma-factor": "balcan-edler", "failure-probability": "balcan-edler", "rounds": "balcan-edler", "partitions": "balcan-edler",
	"candidate-reduction": "balcan-edler", "budget-split": "balcan-edler", "levels": "lsf", "components": "pca",
}

func checkCentral(o *options) error {
	for _, flag := range slices.Sorted(maps.Keys(centralOnly)) {
		methods := centralOnly[flag]
		if o.given(flag) && !slices.Contains(strings.Fields(methods), o.method) {
			return fault.Request("--"+flag, "belongs to "+strings.ReplaceAll(methods, " ", " and "), "leave it out")
		}
	}
	if o.text("projection") == "pca" {
		return fault.Request("--projection", "pca looks at the data, which "+o.method+" does not pay for", "use dense or sparse, or the non-private --method pca")
	}
	if x := o.integer("components"); o.given("components") && x < 1 {
		return fault.Range("--components", x, "at least 1")
	}
	edler := o.method == "balcan-edler"
	switch {
	case edler && o.given("calibration") && o.calibration != "claimed":
		return fault.Request("--calibration", "balcan-edler is the thesis's method under its own claim", "use --calibration claimed, or --method balcan")
	case !edler && o.calibration != "proven":
		return fault.Request("--calibration", "is "+o.calibration+", and "+o.method+" has "+noCalibration(o.method, privacy.Calibration(o.calibration)), "leave it out")
	case edler && o.mechanism == "gaussian":
		return fault.Request("--mechanism", "balcan-edler adds Laplace noise", "leave it out")
	case edler && o.neighbours != "add-remove":
		return fault.Request("--neighbours", "balcan-edler's claim is for add-remove", "leave it out, or use a method with a proof for replace-one: "+strings.Join(privacy.Provers(privacy.ReplaceOne), ", "))
	case o.mechanism == "gaussian" && o.given("delta") && o.delta == 0:
		return fault.Request("--mechanism", "gaussian noise needs a positive --delta", "give a delta, or --mechanism laplace")
	case o.given("balance") && !(o.real("balance") >= 1):
		return fault.Range("--balance", o.real("balance"), "at least 1")
	case o.method != "hybrid" && o.clients != 1:
		return fault.Request("--clients", o.method+" is for one data set", "leave it out, or use --method hybrid")
	}
	for _, c := range []struct {
		flag    string
		allowed []string
	}{
		{"branch", []string{"auto", "tree", "projected", "high-d"}},
		{"projection", []string{"dense", "sparse"}},
		{"selection", []string{"permute-and-flip", "exponential"}},
		{"candidate-reduction", []string{"on", "off"}},
	} {
		if err := oneOf(c.flag, o.text(c.flag), c.allowed...); err != nil {
			return err
		}
	}
	for _, flag := range []string{"rounds", "partitions", "levels"} {
		if x := o.integer(flag); x < 1 {
			return fault.Range("--"+flag, x, "at least 1")
		}
	}
	if x := o.integer("swaps"); o.given("swaps") && x < 0 || edler && o.given("swaps") && x < 1 {
		return fault.Range("--swaps", x, "at least 0; at least 1 for balcan-edler")
	}
	for _, flag := range []string{"gamma-factor", "failure-probability"} {
		if x := o.real(flag); !(x > 0) {
			return fault.Range("--"+flag, x, "positive")
		}
	}
	_, err := o.edlerSplit()
	return err
}

// noCalibration is why a method lacks a calibration, from the table of them.
func noCalibration(method string, c privacy.Calibration) string {
	for _, r := range privacy.Rules(method, c) {
		if r.None != "" {
			return r.None
		}
	}
	return "no released code"
}

// integer and real are the values of flags of this family.
func (o *options) integer(flag string) int {
	x, _ := o.set.GetInt(flag)
	return x
}

func (o *options) real(flag string) float64 {
	x, _ := o.set.GetFloat64(flag)
	return x
}

// edlerSplit parses --budget-split; the zero Split is the default.
func (o *options) edlerSplit() (central.Split, error) {
	text := o.text("budget-split")
	if text == "" {
		return central.Split{}, nil
	}
	var x [5]float64
	parts := strings.Split(text, ",")
	for i, p := range parts {
		v, err := strconv.ParseFloat(strings.TrimSpace(p), 64)
		if err != nil || len(parts) != len(x) {
			return central.Split{}, fault.Range("--budget-split", strconv.Quote(text), "five numbers such as 0.7,0.01,0.04,0.2,0.05")
		}
		x[i] = v
	}
	return central.Split{Candidates: x[0], Swap: x[1], Recover: x[2], KMeans: x[3], Choice: x[4]}, nil
}

func centralJob(o *options, in *input) (engine.Job, error) {
	parts, err := in.shares(o)
	if err != nil {
		return nil, err
	}
	iterations, err := o.iterationCount()
	if err != nil {
		return nil, err
	}
	data := central.Data{Clients: parts, Bounds: in.norm.Bounds, Labels: in.table.Labels, Clamped: in.norm.Clamped, NoQuality: o.quality == "off"}
	budget, laplace, neighbours := o.budget(), o.mechanism == "laplace", privacy.Neighbours(o.neighbours)
	projection, exponential := central.Projection(o.text("projection")), o.text("selection") == "exponential"
	switch o.method {
	case "balcan":
		swaps := o.integer("swaps")
		if o.given("swaps") && swaps == 0 {
			swaps = -1
		}
		return &central.Balcan{Data: data, K: in.k, Budget: budget, Laplace: laplace, Neighbours: neighbours, Projection: projection,
			Swaps: swaps, Exponential: exponential, Rounds: iterations, Seed: o.seedPointer()}, nil
	case "balcan-edler":
		split, err := o.edlerSplit()
		return &central.Edler{Data: data, K: in.k, Budget: budget, GammaFactor: o.real("gamma-factor"), Failure: o.real("failure-probability"),
			Rounds: o.integer("rounds"), Partitions: o.integer("partitions"), Swaps: o.integer("swaps"), KMeans: iterations, Exponential: exponential,
			AllCubes: o.text("candidate-reduction") == "off", Split: split, Projection: projection, Seed: o.seedPointer()}, err
	case "pca":
		return &central.PCA{Data: data, K: in.k, Components: o.integer("components"), Seed: o.seedPointer()}, nil
	case "lsf":
		return &central.LSF{Data: data, K: in.k, Budget: budget, Laplace: laplace, Neighbours: neighbours, Levels: o.integer("levels"), Seed: o.seedPointer()}, nil
	}
	return &central.Hybrid{Data: data, K: in.k, Budget: budget, Laplace: laplace, Neighbours: neighbours,
		Branch: o.text("branch"), Balance: o.real("balance"), Rounds: iterations, Seed: o.seedPointer()}, nil
}
