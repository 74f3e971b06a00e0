package main

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"github.com/cohort-engine/cohort/engine"
	"github.com/cohort-engine/cohort/engine/fault"
	"github.com/cohort-engine/cohort/engine/horizontal"
	"github.com/cohort-engine/cohort/engine/privacy"
)

// horizontalFamily is the methods of clients that share the rows.
func horizontalFamily() family {
	about := map[horizontal.Method]string{
		horizontal.Lloyd:     "Lloyd's algorithm over masked sums, without noise",
		horizontal.CLloyd:    "the same with bounds on the sizes of clusters",
		horizontal.SuLloyd:   "noisy sums and counts, nearest assignment (DPLloyd after Su et al.)",
		horizontal.CSuLloyd:  "sulloyd with bounds on the sizes of clusters",
		horizontal.FastLloyd: "noisy centroids with bounds on the sizes of clusters (FastLloyd)",
		horizontal.Relative:  "noisy moves of the centroids, from the records within a radius",
	}
	f := family{name: "Horizontal (clients share the rows)", flags: horizontalFlags, check: checkHorizontal, job: horizontalJob}
	for _, m := range horizontal.Methods() {
		f.methods = append(f.methods, method{name: string(m), about: about[m], private: m.Private()})
	}
	return f
}

func horizontalFlags(fs *pflag.FlagSet, _ *options) {
	fs.Float64("eta-min-alpha", horizontal.DefaultAlpha, "clusters have at least n/(alpha k) records (constrained methods)")
	fs.Float64("eta-max-alpha", horizontal.DefaultAlpha, "clusters have at most alpha n/k records (constrained methods)")
	fs.String("exclusivity", "1", "clusters that a record may join where a minimum demands it, or nonexclusive (constrained methods)")
	fs.Float64("radius", 0, "largest distance of a record from its centroid in the normalised box, 0 for none (constrained methods)")
	fs.String("flow", "fast", "solver of the size-constrained assignment: fast, reference, or verified (fast, each certificate checked)")
	fs.String("radius-schedule", "", "a radius for each round: geometric, sqrt or later-code (default geometric for relative, none for constrained methods)")
	fs.String("beyond", "", "relative: clip the offset of a record beyond the radius, or exclude it (default clip; exclude under later-code)")
	fs.String("release", "sumcount", "what lloyd, clloyd and, outside proven, sulloyd aggregate: sumcount or centroid")
	fs.String("post-sum", "none", "post-processing of noisy sums: fold, truncate or none")
	fs.String("post-count", "none", "post-processing of noisy counts: fold, truncate or none")
	fs.Float64("tolerance", 0, "end a run without noise when no centroid moves further than this")
	fs.String("aggregator", "server", "who adds up: server (masked), ring (no server), or naive (unmasked, without noise only)")
	fs.String("noise", "", "who adds the noise: server, local or split (default server; local in a ring)")
	fs.Float64("honest", 0.5, "fraction of clients assumed honest under --noise split")
	fs.Int("ring", 64, "bits of the ring that sums are taken in: 32 or 64")
	fs.StringSlice("drop", nil, "clients that fail, as client@round counted from 1, such as 2@3")
}

// checkHorizontal refuses what can be refused without the data.
func checkHorizontal(o *options) error {
	for flag, allowed := range map[string][]string{
		"flow":            {"fast", "reference", "verified"},
		"radius-schedule": {"", "geometric", "sqrt", "later-code"},
		"beyond":          {"", "clip", "exclude"},
		"release":         {"sumcount", "centroid"},
		"post-sum":        {"fold", "truncate", "none"},
		"post-count":      {"fold", "truncate", "none"},
		"aggregator":      {"server", "ring", "naive"},
		"noise":           {"", "server", "local", "split"},
	} {
		if err := oneOf(flag, o.text(flag), allowed...); err != nil {
			return err
		}
	}
	if _, _, err := o.exclusivity(); err != nil {
		return err
	}
	_, err := o.drops()
	return err
}

// number is the value of a float flag of a family.
func (o *options) number(flag string) float64 {
	x, _ := o.set.GetFloat64(flag)
	return x
}

// exclusivity parses --exclusivity.
func (o *options) exclusivity() (e int, none bool, err error) {
	s := o.text("exclusivity")
	if s == "nonexclusive" {
		return 1, true, nil
	}
	if e, err = strconv.Atoi(s); err != nil || e < 1 {
		return 0, false, fault.Range("--exclusivity", strconv.Quote(s), `a number from 1 or "nonexclusive"`)
	}
	return e, false, nil
}

// drops parses --drop.
func (o *options) drops() ([]horizontal.Drop, error) {
	list, _ := o.set.GetStringSlice("drop")
	var drops []horizontal.Drop
	for _, s := range list {
		client, round, ok := strings.Cut(s, "@")
		c, errC := strconv.Atoi(client)
		r, errR := strconv.Atoi(round)
		if !ok || errC != nil || errR != nil {
			return nil, fault.Range("--drop", strconv.Quote(s), "client@round, such as 2@3")
		}
		drops = append(drops, horizontal.Drop{Client: c - 1, Iteration: r - 1})
	}
	return drops, nil
}

func horizontalJob(o *options, in *input) (engine.Job, error) {
	parts, err := in.shares(o)
	if err != nil {
		return nil, err
	}
	iterations, err := o.iterationCount()
	if err != nil {
		return nil, err
	}
	e, nonExclusive, err := o.exclusivity()
	if err != nil {
		return nil, err
	}
	drops, err := o.drops()
	if err != nil {
		return nil, err
	}
	for _, flag := range []string{"eta-min-alpha", "eta-max-alpha"} {
		if !(o.number(flag) >= 1) {
			return nil, fault.Range("--"+flag, fmt.Sprint(o.number(flag)), "1 or more")
		}
	}
	if o.given("honest") && !(o.number("honest") > 0) {
		return nil, fault.Range("--honest", o.number("honest"), "above 0, at most 1")
	}
	ring, _ := o.set.GetInt("ring")
	job := horizontal.Job{
		Algorithm: horizontal.Method(o.method), K: in.k, Clients: parts, Bounds: in.norm.Bounds,
		Budget: o.budget(), Calibration: privacy.Calibration(o.calibration), Neighbours: privacy.Neighbours(o.neighbours),
		Mechanism: horizontal.Mechanism(o.mechanism), Iterations: iterations, Tolerance: o.number("tolerance"),
		Init: horizontal.Init(o.init), Post: horizontal.Post(o.post), PostSum: horizontal.Post(o.text("post-sum")),
		PostCount: horizontal.Post(o.text("post-count")), Release: horizontal.Release(o.text("release")),
		EtaMinAlpha: o.number("eta-min-alpha"), EtaMaxAlpha: o.number("eta-max-alpha"), Exclusivity: e, NonExclusive: nonExclusive,
		Radius: o.number("radius"), Schedule: horizontal.Schedule(o.text("radius-schedule")), Beyond: horizontal.Beyond(o.text("beyond")),
		Flow:       horizontal.Solver(o.text("flow")),
		Aggregator: horizontal.Aggregator(o.text("aggregator")), Noise: horizontal.Noise(o.text("noise")), Honest: o.number("honest"),
		RingBits: ring, Drops: drops, Seed: o.seedPointer(), NoQuality: o.quality == "off", Labels: in.table.Labels, Clamped: in.norm.Clamped,
	}
	if job.Algorithm == horizontal.FastLloyd {
		job.Release = ""
	}
	return job, nil
}
