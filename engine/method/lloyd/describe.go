package lloyd

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/cohort-engine/cohort/engine"
	"github.com/cohort-engine/cohort/engine/method"
	"github.com/cohort-engine/cohort/engine/privacy"
	"github.com/cohort-engine/cohort/engine/protocol"
	"github.com/cohort-engine/cohort/engine/step"
)

const (
	masked    = "others' records: clients and outsiders see noisy centroids, the server masked values"
	summed    = "others' records: clients and outsiders see noisy sums and counts, the server masked values"
	onePass   = "one pass over the records and one secure sum a round"
	oneFlow   = "an exact flow over the records at each client and one secure sum a round"
	exactSums = "no one: clients see exact sums or means, all see exact centroids; the server sees masked values only"
)

// sizes is why methods with bounds on the sizes of clusters take no weights.
const sizes = "bounds on the sizes of clusters count records, and weights would change in every cluster with one record"

// Describe lists the methods of this package.
func Describe() method.List {
	return method.List{
		{Name: string(Lloyd), About: "plain k-means over masked sums, without noise: the best of several starts",
			Holds: method.Rows,
			Against: "no one: clients see exact sums and the records that centroids start at, all see exact " +
				"centroids; the server sees masked values only",
			When: "no privacy is needed, or as what a private run is compared with",
			Cost: onePass + ", for each start", Starts: true, Weighs: true, Make: Lloyd.make},
		{Name: string(CLloyd), About: "the papers' Lloyd with bounds on the sizes of clusters, without noise",
			Holds: method.Rows, Against: exactSums,
			When: "clusters must have about equal sizes, and no privacy is needed", Cost: oneFlow, Starts: true,
			Unweighed: sizes, Make: CLloyd.make},
		{Name: string(SuLloyd), About: "noisy sums and counts, nearest assignment (DPLloyd after Su et al.)",
			Holds: method.Rows, Private: true, Against: summed,
			When: "a plain baseline is wanted, or a pure epsilon", Cost: onePass, Starts: true, Weighs: true,
			Make: SuLloyd.make},
		{Name: string(CSuLloyd), About: "sulloyd with bounds on the sizes of clusters", Holds: method.Rows,
			Private: true, Against: summed,
			When: "to reproduce FastLloyd's ablation", Cost: oneFlow, Starts: true, Unweighed: sizes,
			Make: CSuLloyd.make},
		{Name: string(FastLloyd), About: "noisy centroids with bounds on the sizes of clusters (FastLloyd)",
			Holds: method.Rows, Private: true, Against: masked,
			When: "clusters have about equal sizes and there are few columns; to reproduce FastLloyd", Cost: oneFlow,
			Starts: true, Unweighed: sizes, Make: FastLloyd.make},
		{Name: string(Relative), About: "noisy moves of the centroids, from the records within a radius",
			Holds: method.Rows, Private: true, Against: summed,
			When: "few rounds of plain k-means are wanted with little noise", Cost: onePass, Starts: true,
			Weighs: true, Make: Relative.make},
	}
}

// make returns a job of the method and its options.
func (m Method) make(p protocol.Problem) (engine.Job, method.Options) {
	j := &Job{Method: m, Problem: p}
	options := method.Shared(string(m), &j.Problem, m.takes())
	if m.Private() {
		mechanism := "laplace"
		switch {
		case m == Relative:
			mechanism = "gaussian; laplace with --delta 0"
		case m.gaussian(privacy.Proven):
			mechanism = "gaussian under proven; laplace elsewhere and with --delta 0"
		}
		options.Reword("mechanism", mechanism, "")
		options.Reword("noise", "split under proven with several clients, else server; local in a ring; servers "+
			"with shares",
			"who adds the noise: server, local, split, or the servers of --aggregator shares")
		options.Reword("colluders", "",
			"clients, or servers, that may read along with a viewer under --noise split or "+
				"servers, itself included: all shares but so many make up the noise")
	}
	return j, append(options, j.own()...)
}

// own are the options of the job's method that are not the problem's, with the rules of the fields that they
// write to.
func (j *Job) own() (options method.Options) {
	m := j.Method
	options = make(method.Options, 0, 20)
	if m.Private() {
		options = append(options, j.noiseOptions()...)
	} else {
		options = append(options, j.startOptions()...)
		options = append(options,
			method.Option{Name: "calibration", Default: "none",
				About: "published: an empty cluster's centroid becomes the origin, as in FastLloyd's released code",
				Value: method.Text(func(text string) error {
					j.Calibration = privacy.Calibration(text)
					return nil
				}, string(privacy.None), string(privacy.Published))})
	}
	if m == Lloyd || m == CLloyd || m == SuLloyd {
		options = append(options, method.Option{Name: "release", Default: string(SumCount),
			About: "what is added up: sumcount, or centroid (sulloyd: outside proven only)",
			Value: method.Choice(&j.Release, SumCount, Centroid)})
	}
	if m.Constrained() {
		options = append(options, j.sizeOptions()...)
	}
	if m.Constrained() || m == Relative {
		byDefault := "no radius"
		if m == Relative {
			byDefault = string(Geometric)
		}
		options = append(options, method.Option{Name: "radius-schedule", Default: byDefault,
			About: "a radius for each round: geometric, sqrt or later-code",
			Value: method.Choice(&j.Schedule, Geometric, Sqrt, LaterCode)})
	}
	if m == Relative {
		options = append(options, method.Option{Name: "beyond", Default: "clip; exclude under later-code",
			About: "clip the offset of a record beyond the radius, or exclude it",
			Value: method.Choice(&j.Beyond, Clip, Exclude)})
	}
	options = append(options, method.Option{Name: "init-by", Default: string(ByClients),
		About: "who draws sphere and random centroids: clients (all the same), or server (sends them)",
		Value: method.Choice(&j.InitBy, ByClients, ByTheirServer)})
	return append(options, j.partyOptions()...)
}

// startOptions are those of where runs without noise start and end.
func (j *Job) startOptions() []method.Option {
	tolerance := method.Option{Name: "tolerance", Default: "0",
		About: "end when no centroid moves further than this, in the normalised box",
		Value: method.Real(&j.Tolerance, 0, math.MaxFloat64)}
	change := method.Option{Name: "wcss-change", Default: "0",
		About: "end when the WCSS changes by less than this in a round, in the normalised box",
		Value: method.Real(&j.WCSSChange, 0, math.MaxFloat64)}
	if j.Method != Lloyd {
		return []method.Option{method.Init(&j.Init, step.Sphere, step.Random, KMeansPlusPlus, Oversampled, SomeRecords),
			tolerance, change}
	}
	tolerance.Default = "0; with kmeans++ 1e-8 of the variance, summed over squared moves"
	return []method.Option{
		method.Init(&j.Init, KMeansPlusPlus, Oversampled, SomeRecords, step.Sphere, step.Random),
		{Name: "n-init", Default: "10 while n k d < 10^7, falling to 1 at 10^9",
			About: "starts of kmeans++, kmeans|| or records, of which the best is returned",
			Value: method.Int(&j.NInit, 1, 10000)},
		tolerance, change,
		{Name: "rest", Default: "0", About: "kmeans++: a start ends when the squared moves of all centroids " +
			"together are at most this share of the variance of a column (scikit-learn's tol)",
			Value: method.Real(&j.Rest, 0, math.MaxFloat64)},
		{Name: "metric", Default: string(Euclidean), About: "euclidean, or cosine: spherical k-means of the records' " +
			"directions", Value: method.Choice(&j.Metric, Euclidean, Cosine)},
		{Name: "max-points-per-centroid", Default: "0 (all)",
			About: "train on at most so many records for each cluster, drawn at random", Value: method.Int(&j.MaxPoints, 0,
				math.MaxInt32)},
		{Name: "batch-size", Default: "0 (all)", About: "mini-batch rounds on so many records, two passes over the " +
			"records or --iterations of them, and a last round over all", Value: method.Int(&j.Batch, 0, math.MaxInt32)},
	}
}

// noiseOptions are those of private methods.
func (j *Job) noiseOptions() []method.Option {
	options := []method.Option{
		method.Init(&j.Init, step.Sphere, step.Random),
		method.Post(&j.Post, step.Fold, step.Truncate, step.Keep),
	}
	if j.Method != FastLloyd {
		options = append(options,
			method.Option{Name: "post-sum", Default: "none",
				About: "post-processing of noisy sums: fold, truncate or none",
				Value: method.Choice(&j.PostSum, step.Fold, step.Truncate, step.Keep)},
			method.Option{Name: "post-count", Default: "none",
				About: "post-processing of noisy counts: fold, truncate or none",
				Value: method.Choice(&j.PostCount, step.Fold, step.Truncate, step.Keep)})
	}
	return options
}

// sizeOptions are those of constrained methods.
func (j *Job) sizeOptions() []method.Option {
	alpha := fmt.Sprint(DefaultAlpha)
	return []method.Option{
		{Name: "eta-min-alpha", Default: alpha, About: "clusters have at least n/(alpha k) records",
			Value: method.Real(&j.EtaMinAlpha, 1, 1e9)},
		{Name: "eta-max-alpha", Default: alpha, About: "clusters have at most alpha n/k records",
			Value: method.Real(&j.EtaMaxAlpha, 1, 1e9)},
		{Name: "client-shares", Default: "equal",
			About: "public: the part of the records that each client holds, such as 8,4,2,1; sizes follow it",
			Value: method.Items(func(item string) error {
				x, err := strconv.ParseFloat(item, 64)
				if err != nil || !(x > 0) {
					return errors.New("positive numbers, one for each client, such as 8,4,2,1")
				}
				j.ClientShares = append(j.ClientShares, x)
				return nil
			})},
		{Name: "exclusivity", Default: "1",
			About: "clusters that a record may join where a minimum demands it: a number, " +
				"one for each client such as 1,2,1, or nonexclusive", Value: method.Text(j.setExclusivity)},
		{Name: "radius", Default: "0 (none)",
			About: "largest distance of a record from its centroid, in the normalised box",
			Value: method.Real(&j.Radius, 0, math.MaxFloat64)},
		{Name: "flow", Default: string(Fast),
			About: "solver: fast, reference, or verified (fast, each certificate checked)",
			Value: method.Choice(&j.Flow, Fast, Reference, Verified)},
	}
}

// setExclusivity reads a number for all clients, or one for each, or "nonexclusive".
func (j *Job) setExclusivity(text string) error {
	if j.NonExclusive = text == "nonexclusive"; j.NonExclusive {
		return nil
	}
	var each []int
	for _, item := range strings.Split(text, ",") {
		e, err := strconv.Atoi(item)
		if err != nil || e < 1 {
			return errors.New(`a number of at least 1, one for each client, or "nonexclusive"`)
		}
		each = append(each, e)
	}
	if j.Exclusivity = each[0]; len(each) > 1 {
		j.ExclusivityOf = each
	}
	return nil
}

// partyOptions are those of how the clients add up.
func (j *Job) partyOptions() []method.Option {
	aggregators := []Aggregator{ByServer, ByRing, ByShares}
	about := "who adds up: server (masked), ring (no server), or shares (several servers, secret sharing)"
	if !j.Method.Private() {
		aggregators, about = append(aggregators, Naive),
			"who adds up: server (masked), ring (no server), shares (several "+
				"servers, secret sharing), or naive (unmasked)"
	}
	return []method.Option{
		{Name: "aggregator", Default: string(ByServer), About: about,
			Value: method.Choice(&j.Aggregator, aggregators...)},
		{Name: "servers", Default: "2 with --aggregator shares", About: "servers that values are shared among: 2 or 3",
			Value: method.Int(&j.Servers, 2, 3)},
		{Name: "ring", Default: "64", About: "bits of the ring that sums are taken in: 32 or 64",
			Value: method.Text(func(text string) (err error) {
				j.RingBits, err = strconv.Atoi(text)
				return err
			}, "32", "64")},
		{Name: "drop", Default: "none", About: "clients that fail, as client@round counted from 1, such as 2@3,3@5",
			Value: method.Items(func(item string) error {
				client, round, ok := strings.Cut(item, "@")
				c, errC := strconv.Atoi(client)
				r, errR := strconv.Atoi(round)
				if !ok || errC != nil || errR != nil {
					return errors.New("client@round, such as 2@3")
				}
				j.Drops = append(j.Drops, Drop{Client: c - 1, Iteration: r - 1})
				return nil
			})},
	}
}
