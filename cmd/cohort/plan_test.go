package main

import (
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/cohort-engine/cohort/engine"
	"github.com/cohort-engine/cohort/engine/catalog"
	"github.com/cohort-engine/cohort/engine/method"
	"github.com/cohort-engine/cohort/engine/privacy"
)

// outlineOf runs cohort plan.
func outlineOf(t *testing.T, args ...string) *engine.Outline {
	t.Helper()
	return printed[*engine.Outline](t, append([]string{"plan", "--format", "json"}, args...)...)
}

// resultOf runs cohort run.
func resultOf(t *testing.T, args ...string) *engine.Result {
	t.Helper()
	return printed[*engine.Result](t, append([]string{"run", "--format", "json"}, args...)...)
}

// releasesOf are the entries of a ledger but for its notes.
func releasesOf(l *privacy.Ledger) []privacy.Entry {
	return slices.DeleteFunc(slices.Clone(l.Entries()), func(e privacy.Entry) bool { return e.Kind == privacy.Note })
}

// budgetOf are the flags of a method's budget.
func budgetOf(m *method.Method) []string {
	if m.Private {
		return []string{"--epsilon", "1"}
	}
	return nil
}

// What is one in a plan is counted as one, in words and in the ledger.
func TestPlansCountOneAsOne(t *testing.T) {
	ones := regexp.MustCompile(`(^|[^0-9.])1 [a-z]+s\b.*`)
	kinds := [][]string{{"--iterations", "1"}, {"--iterations", "1", "--clients", "2"}, {"--swaps", "1"},
		{"--iterations", "1", "--clients", "3", "--aggregator", "shares", "--servers", "2"}, {"--public-n", "2"}}
	planned := 0
	for _, m := range catalog.Methods() {
		for _, kind := range kinds {
			args := slices.Concat([]string{"plan", "--method", m.Name, "--public-n", "5000", "--k", "2", "--bounds",
				"0:1", "--d", "2"}, budgetOf(&m), kind)
			status, out, _ := cohort(t, args...)
			if status == exitDone {
				planned++
			}
			if found := ones.FindString(strings.Join(strings.Fields(out), " ")); found != "" {
				t.Errorf("%v: %.60q", args, found)
			}
		}
	}
	if planned < 30 {
		t.Errorf("%d plans", planned)
	}
}

// The plan of every method is the same with and without the data, and its ledger is
// that of a run, or bounds it where rounds follow from what was released before.
func TestPlanOfEveryMethod(t *testing.T) {
	adaptive := []string{"hybrid", "balcan", "sketch", "sketch-basic"}
	for _, m := range catalog.Methods() {
		t.Run(m.Name, func(t *testing.T) {
			args := append([]string{"--method", m.Name, "--bounds", "-30:30", "--k", "2"}, budgetOf(&m)...)
			if m.Takes("iterations") && !m.Private {
				args = append(args, "--iterations", "1") // which does not end earlier
			}
			data := append([]string{"--data", "builtin:blobs", "--n", "400", "--d", "2"}, args...)
			p := outlineOf(t, data...)
			if p.Method != m.Name || p.N != 400 || p.D != 2 || p.K != 2 || p.Rounds < 1 || len(p.Releases) == 0 ||
				p.Ledger == nil || (p.Epsilon != nil) != m.Private {
				t.Fatalf("%+v", p)
			}
			blind := outlineOf(t, append([]string{"--data", "nowhere.csv", "--public-n", "400", "--d", "2"}, args...)...)
			if !reflect.DeepEqual(blind.Releases, p.Releases) || !reflect.DeepEqual(blind.Bytes, p.Bytes) ||
				!reflect.DeepEqual(blind.Memory, p.Memory) || blind.Rounds != p.Rounds {
				t.Errorf("without data %+v, with data %+v", blind, p)
			}
			r := resultOf(t, data...)
			want, got := releasesOf(r.Ledger), releasesOf(p.Ledger)
			if slices.Contains(adaptive, m.Name) {
				for _, viewer := range r.Ledger.Viewers() {
					if real, planned := r.Ledger.TotalFor(viewer), p.Ledger.TotalFor(viewer); len(want) != len(got) ||
						*real.Epsilon > *planned.Epsilon*(1+1e-9) {
						t.Errorf("%s: epsilon %v, planned %v", viewer, *real.Epsilon, *planned.Epsilon)
					}
				}
			} else if !reflect.DeepEqual(got, want) {
				t.Errorf("planned %+v, released %+v", got, want)
			}
			crosses(t, m.Name, p, r)
			status, text, errOut := cohort(t, append([]string{"plan"}, data...)...)
			if status != exitDone || !strings.HasPrefix(text, m.Name+" would cluster 400 points") ||
				!strings.Contains(text, "Privacy ledger") || strings.Contains(text, "\nMemory\n") != (m.Name == "ckks") {
				t.Errorf("status %d, %s %s", status, errOut, text)
			}
			fits(t, m.Name, text)
		})
	}
}

// crosses checks that the bytes of a plan are those of its run, or where their number follows
// from what is released, that no more cross, and that the bound is no empty one.
func crosses(t *testing.T, what string, p *engine.Outline, r *engine.Result) {
	t.Helper()
	switch {
	case p.Bytes == nil && what == "lloyd": // starts that look at records
	case p.Bytes == nil:
		t.Errorf("%s: no bytes are planned", what)
	case !p.BytesAtMost && !reflect.DeepEqual(*p.Bytes, r.Comm):
		t.Errorf("%s: planned %+v, sent %+v", what, *p.Bytes, r.Comm)
	case p.BytesAtMost:
		for i, most := range p.Bytes.BytesSent {
			if sent := r.Comm.BytesSent[i]; sent > most || 5000*sent < most || r.Comm.Rounds > p.Bytes.Rounds {
				t.Errorf("%s: planned at most %+v, sent %+v", what, *p.Bytes, r.Comm)
			}
		}
	}
}

// The bytes of a plan are those of a run, whoever adds up and whoever fails.
func TestPlannedBytes(t *testing.T) {
	base := strings.Fields("--data builtin:blobs --n 300 --d 2 --k 3 --clients 3 --seed 1 --epsilon 1")
	for _, args := range []string{
		"--method sulloyd", "--method sulloyd --ring 32", "--method sulloyd --aggregator ring --noise local",
		"--method relative --iterations 3 --drop 2@2",
		"--method sulloyd --iterations 3 --aggregator ring --noise split --drop 1@2",
		"--method fastlloyd --proportions 4,1,1",
		"--method hybrid", "--method hybrid --branch grid",
		"--method hybrid --branch high-d", "--method hybrid --branch high-d --noise server",
		"--method hybrid --branch projected --noise local", "--method hybrid --branch mean --noise server",
	} {
		all := append(slices.Clone(base), strings.Fields(args)...)
		crosses(t, args, outlineOf(t, all...), resultOf(t, all...))
	}
	columns := strings.Fields("--data builtin:blobs --n 300 --d 6 --k 3 --parties 3 --seed 1 --epsilon 1")
	for _, args := range []string{
		"--method sketch", "--method sketch --estimator pair-mle", "--method sketch --calibration claimed",
		"--method sketch-basic --sketches 100", "--method ind-lap", "--method ldp-agg",
	} {
		all := append(slices.Clone(columns), strings.Fields(args)...)
		crosses(t, args, outlineOf(t, all...), resultOf(t, all...))
	}
	for _, args := range []string{
		"--method sulloyd", "--method fastlloyd --proportions 4,1,1",
	} {
		all := append(slices.Clone(base), strings.Fields(args)...)
		p, r := outlineOf(t, all...), resultOf(t, all...)
		crosses(t, args, p, r)
		if unassigned := strings.Contains(args, "fastlloyd"); (p.UnassignedAtLeast > 0) != unassigned ||
			(p.ClusterSizes != nil) != unassigned {
			t.Errorf("%s: %d unassigned, sizes %v", args, p.UnassignedAtLeast, p.ClusterSizes)
		}
	}
	// Clusters of 25 to 41 records: a client of 200 has 3 of at most 41.
	if p := outlineOf(t, append(slices.Clone(base), "--method", "fastlloyd", "--proportions",
		"4,1,1")...); p.UnassignedAtLeast != 200-3*41 {
		t.Errorf("%d unassigned in clusters of %v", p.UnassignedAtLeast, *p.ClusterSizes)
	}
}

// Noise is stated beside the box: that of a mean of n/k records, all shares together.
func TestPlannedNoise(t *testing.T) {
	for _, c := range []struct {
		args    string
		times   float64 // the entry's scale
		records float64
	}{
		{"--method sulloyd", 1.4142135623730951, 250},
		{"--method sulloyd --mechanism gaussian", 1, 250},
		{"--method sulloyd --mechanism gaussian --clients 4 --noise local", 2, 250},
		{"--method fastlloyd", 1, 1},
		{"--method fastlloyd --mechanism laplace", 1.4142135623730951, 1},
		{"--method sketch --parties 2 --local-k 2", 1, 500},
	} {
		p := outlineOf(t, append(strings.Fields("--public-n 1000 --d 2 --k 4 --bounds 0:1 --epsilon 1"),
			strings.Fields(c.args)...)...)
		i := slices.IndexFunc(p.Releases, func(r engine.PlannedRelease) bool { return r.OfBox != nil })
		if i < 0 {
			t.Fatalf("%s: no noise on centroids in %+v", c.args, p.Releases)
		}
		r := p.Releases[i]
		deviation := c.times * r.Scale
		if share := deviation / c.records / 2; *r.Deviation < deviation*0.999 || *r.Deviation > deviation*1.001 ||
			*r.OfBox < share*0.999 || *r.OfBox > share*1.001 {
			t.Errorf("%s: scale %v, deviation %v, of the box %v", c.args, r.Scale, *r.Deviation, *r.OfBox)
		}
	}
}

// Wrong requests of a plan end with status 2 and one line that names the thing.
func TestPlanRefusals(t *testing.T) {
	for _, c := range []struct{ args, want string }{
		{"--public-n 100 --d 2 --bounds 0:1", "--k"},
		{"--public-n 0 --d 2 --bounds 0:1 --k 2", "--public-n"},
		{"--public-n 100 --d 0 --bounds 0:1 --k 2", "--d"},
		{"--public-n 100 --d 2000000000 --bounds 0:1 --k 2", "--d"},
		{"--public-n 2000000000 --d 2 --bounds 0:1 --k 60000 --method csulloyd --epsilon 1", "ties"},
		{"--public-n 100 --d 2 --bounds 0:1 --k 2 --columns 1", "--columns"},
		{"--public-n 1 --d 2 --bounds 0:1 --k 2", "k"},
		{"--method fastlloyd --epsilon 1 --mode two-party", "--mode"},
		{"--out x", "unknown flag"},
	} {
		status, out, errOut := cohort(t, append([]string{"plan"}, strings.Fields(c.args)...)...)
		if status != exitWrong || out != "" || strings.Count(errOut, "\n") != 1 || !strings.Contains(errOut, c.want) {
			t.Errorf("%s: status %d, stdout %.80q, stderr %q", c.args, status, out, errOut)
		}
	}
}
