package bench

import (
	"context"
	"slices"
	"testing"

	"github.com/cohort-engine/cohort/engine"
	"github.com/cohort-engine/cohort/engine/dataset"
	"github.com/cohort-engine/cohort/engine/method/balcan"
	"github.com/cohort-engine/cohort/engine/method/ckks"
	"github.com/cohort-engine/cohort/engine/method/lloyd"
	"github.com/cohort-engine/cohort/engine/privacy"
)

// TestJobsOfSuitesHavePlans: no job that a suite builds is refused. A refusal would stand in a
// row of its results alone.
func TestJobsOfSuitesHavePlans(t *testing.T) {
	s, err := generatedSet(context.Background(), "timesynth", dataset.Generator{N: 3000, D: 4, K: 3, Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	planned := func(name string, job engine.Job, err error) {
		t.Helper()
		if err == nil {
			_, err = job.Plan()
		}
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	variants := append(byColumns(), plainLloyd, plainCode, plainCLloyd, suLloyd, csuLloyd, csuLloydCode, fastLloyd,
		fastLloydCode, relativeLater, hybridProven, lsfProven, balcanProven)
	for _, p := range variants {
		job, err := p.job(s, 1, 1, nil)
		planned(p.name(), job, err)
	}
	for _, m := range lloyd.Methods() {
		job, err := horizontalJob(s, m, claimedOf(m), 1, 1, withoutQuality)
		planned("horizontal "+string(m), job, err)
	}
	for _, x := range append(settingsOf("NMA"), settingsOf("AMN")...) {
		job, err := x.p.job(s, 1, 1, func(j *lloyd.Job) {
			thesisSizes(j)
			if x.edit != nil {
				x.edit(j)
			}
		})
		planned(x.name, job, err)
	}
	for _, name := range slices.Concat(comparedMethods, ablations, privateMethods) {
		job := sketchJob(s.Norm, s.Labels, 2, paperK, 1, 1)
		editMethod(job, name)
		planned(name, job, nil)
	}
	for _, name := range []string{"balcan-edler", "balcan", "hybrid", "k-means++"} {
		job, err := centralJob(name, s, 3, privacy.Budget{Epsilon: 1, Delta: 1e-5}, 1, true)
		planned(name, job, err)
	}
	for _, edit := range []func(*balcan.Edler){chapter4, section53, withoutKMeans} {
		job := edlerJob(s, 3, 1, 1)
		edit(job)
		planned("balcan-edler", job, nil)
	}
	for _, mode := range []ckks.Mode{ckks.ServerAided, ckks.Multiparty} {
		job, err := ckksColumns(s, 3, 4, 1, 1)
		job.Mode = mode
		planned("ckks "+string(mode), job, err)
	}
}
