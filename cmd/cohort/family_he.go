package main

import (
	"fmt"

	"github.com/spf13/pflag"

	"github.com/cohort-engine/cohort/engine"
	"github.com/cohort-engine/cohort/engine/fault"
	"github.com/cohort-engine/cohort/engine/privacy"
	"github.com/cohort-engine/cohort/engine/vertical"
	"github.com/cohort-engine/cohort/engine/vertical/he"
)

// heFamily is the clustering of encrypted columns of CKKS-V.
func heFamily() family {
	return family{
		name: "Vertical, under homomorphic encryption",
		methods: []method{
			{name: "ckks", about: "Lloyd's algorithm on encrypted columns, noisy sums and counts", private: true, vertical: true},
		},
		flags: func(fs *pflag.FlagSet, _ *options) {
			fs.String("mode", "", "ckks: two-party, server-aided or multiparty (default by the number of parties)")
			fs.Int("threshold", 0, "ckks multiparty: key holders that a decryption needs (default all)")
			fs.IntSlice("online", nil, "ckks multiparty: key holders that decrypt, such as 1,3 (default the first ones)")
			fs.String("argmin", "pairs", "ckks: pairs, or rank (the paper's way: k^2 comparisons, rank and indicator)")
			fs.Bool("keep-pairs", false, "ckks: compare all pairs of clusters, also those that cannot meet")
			fs.String("he-network", "", "ckks: network whose transfer time is modelled (default all ten presets)")
		},
		check: checkHE,
		job:   heJob,
	}
}

// checkHE refuses what can be refused without the data.
func checkHE(o *options) error {
	if o.method != "ckks" {
		return nil
	}
	if o.mechanism == "laplace" {
		return fault.Request("--mechanism", "laplace is not what ckks is calibrated with", "leave it out")
	}
	if err := oneOf("mode", o.text("mode"), "", string(he.TwoParty), string(he.ServerAided), string(he.Multiparty)); err != nil {
		return err
	}
	if err := oneOf("argmin", o.text("argmin"), string(he.Pairs), string(he.Rank)); err != nil {
		return err
	}
	if o.calibration == string(privacy.Published) {
		return fault.Request("--calibration", "published needs released code and ckks has none", "use proven or claimed")
	}
	if o.given("delta") && o.delta == 0 {
		return fault.Request("--delta", "is 0 and ckks adds Gaussian noise", "give a delta, or use ind-lap, which has a pure guarantee")
	}
	if name := o.text("he-network"); name != "" {
		_, err := he.FindNetwork(name)
		return err
	}
	return nil
}

func heJob(o *options, in *input) (engine.Job, error) {
	rounds, err := o.iterationCount()
	if err != nil {
		return nil, err
	}
	parties := o.parties
	if o.split != "" && !o.given("parties") && !vertical.IsPreset(o.split) {
		parties = 0 // the split says how many
	}
	split, err := vertical.ParseSplit(o.split, parties, in.table.D, in.table.Columns)
	if err != nil {
		return nil, err
	}
	threshold, _ := o.set.GetInt("threshold")
	if o.given("threshold") && threshold < 1 {
		return nil, fault.Range("--threshold", fmt.Sprint(threshold), "at least 1")
	}
	online, _ := o.set.GetIntSlice("online")
	keep, _ := o.set.GetBool("keep-pairs")
	budget := o.budget()
	job := &he.Job{
		Data: in.norm, Columns: split, K: in.k, Rounds: rounds, Budget: &budget,
		Calibration: privacy.Calibration(o.calibration), Neighbours: privacy.Neighbours(o.neighbours),
		Mode: he.Mode(o.text("mode")), Threshold: threshold, Online: online, Argmin: he.Argmin(o.text("argmin")), KeepPairs: keep,
		Init: o.init, Post: o.post, Seed: o.seedPointer(), NoQuality: o.quality == "off", Labels: in.table.Labels,
	}
	if name := o.text("he-network"); name != "" {
		n, err := he.FindNetwork(name)
		if err != nil {
			return nil, err
		}
		job.Networks = []he.Network{n}
	}
	return job, nil
}
