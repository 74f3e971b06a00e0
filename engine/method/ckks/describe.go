package ckks

import (
	"errors"
	"math"
	"strconv"

	"github.com/cohort-engine/cohort/engine"
	"github.com/cohort-engine/cohort/engine/method"
	"github.com/cohort-engine/cohort/engine/protocol"
	"github.com/cohort-engine/cohort/engine/step"
)

// Describe describes the method of this package.
func Describe() method.List {
	return method.List{{
		Name: "ckks", About: "Lloyd's algorithm on encrypted columns, noisy sums and counts", Holds: method.Columns,
		Private: true,
		Against: "other parties and outsiders: the computing party sees ciphertexts, all see noisy centroids",
		When:    "parties hold different columns and the sketches' loss is too high; n and k are small",
		Cost:    "homomorphic comparisons: seconds to minutes a round, megabytes to gigabytes of messages", Starts: true,
		Quiet: true, Make: describe,
		Unweighed: "under encryption a record is in a cluster or not",
	}}
}

func describe(p protocol.Problem) (engine.Job, method.Options) {
	j := &Job{Problem: p}
	options := method.Shared(name, &j.Problem, takes)
	options.Reword("colluders", "",
		"parties that may pool the noise they drew: that of all the others makes up the whole")
	return j, append(options, j.own()...)
}

// own are the options that are not the problem's, with the rules of the fields that they write to.
func (j *Job) own() method.Options {
	return method.Options{
		method.Init(&j.Init, step.Sphere, step.Random),
		method.Post(&j.Post, step.Fold, step.Truncate, step.Keep),
		{Name: "mode", Default: "two-party for two parties, else server-aided",
			About: "two-party, server-aided or multiparty", Value: method.Choice(&j.Mode, TwoParty, ServerAided, Multiparty)},
		{Name: "threshold", Default: "all", About: "multiparty: key holders that a decryption needs",
			Value: method.Int(&j.Threshold, 1, math.MaxInt)},
		{Name: "online", Default: "the first ones", About: "multiparty: key holders that decrypt, such as 1,3",
			Value: method.Items(func(item string) error {
				x, err := strconv.Atoi(item)
				if err != nil {
					return errors.New("numbers such as 1,3")
				}
				j.Online = append(j.Online, x)
				return nil
			})},
		{Name: "argmin", Default: string(Pairs),
			About: "pairs, or rank (the paper's way: k^2 comparisons, rank and indicator)",
			Value: method.Choice(&j.Argmin, Pairs, Rank)},
		{Name: "keep-pairs", Default: "false", About: "compare all pairs of clusters, also those that cannot meet",
			Value: method.Bool(&j.KeepPairs)},
		{Name: "he-network", Default: "all ten presets", About: "network whose transfer time is modelled",
			Value: method.Text(func(text string) error {
				n, err := findNetwork(text)
				j.Networks = []Network{n}
				return err
			})},
	}
}
