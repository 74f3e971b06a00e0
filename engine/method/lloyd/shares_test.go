package lloyd

import (
	"slices"
	"testing"

	"github.com/cohort-engine/cohort/engine/dataset"
	"github.com/cohort-engine/cohort/engine/dataset/datasettest"
	"github.com/cohort-engine/cohort/engine/enginetest"
	"github.com/cohort-engine/cohort/engine/privacy"
	"github.com/cohort-engine/cohort/engine/protocol"
	"github.com/cohort-engine/cohort/internal/fault"
)

// unevenParts are clients of 8:4:2:1.
func unevenParts(t *testing.T, shares []float64) []dataset.Part {
	t.Helper()
	norm, _ := datasettest.Builtin(t, "blobs", dataset.Generator{N: 3000, D: 2, K: 5, Seed: 3})
	parts, err := norm.Split(len(shares), shares, 1)
	if err != nil {
		t.Fatal(err)
	}
	return parts
}

// Sizes by public shares of the clients leave no record out, every client keeps its own, and noise is for
// the client whose clusters are smallest.
func TestSizesByClientShare(t *testing.T) {
	shares := []float64{8, 4, 2, 1}
	parts := unevenParts(t, shares)
	eng := enginetest.New(t)
	for _, m := range []Method{CLloyd, CSuLloyd, FastLloyd} {
		seed := uint64(1)
		job := &Job{Method: m, ClientShares: shares, EtaMinAlpha: 2, EtaMaxAlpha: 2, Problem: protocol.Problem{
			Clients: parts, K: 5, Seed: &seed, Iterations: 3}}
		if m.Private() {
			job.Budget = privacy.Budget{Epsilon: 1, Delta: -1}
		}
		p := planOf(t, job)
		if p.Unassigned != 0 {
			t.Errorf("%s: %d records find no place", m, p.Unassigned)
		}
		// 3000 records, 5 clusters: 600/15 of a share, halved and doubled.
		if want := [][2]int{{160, 640}, {80, 320}, {40, 160}, {20, 80}}; !slices.Equal(p.sizes, want) {
			t.Errorf("%s: sizes %v, want %v", m, p.sizes, want)
		}
		if m == FastLloyd {
			if lo := p.bound(&p.parts[0], 0).Shape.Lo; lo != 4*20 {
				t.Errorf("noise is for clusters of %d, want 4 times the least of one client", lo)
			}
		}
		var counts [4][]int64
		views := &protocol.Views{}
		job.Views = views
		enginetest.Run(t, eng, job)
		for _, v := range views.Seen {
			if m != FastLloyd && v.Viewer == v.Of && v.Viewer >= 0 && v.Round == 0 && len(v.Values) == 5*3 {
				counts[v.Viewer] = v.Values[10:]
			}
		}
		for i, c := range counts {
			unit := int64(1)
			if m == CSuLloyd {
				unit = 1 << dataset.DefaultFractionBits // Gaussian counts are on the fine grid
			}
			for _, x := range c {
				if x < int64(p.sizes[i][0])*unit || x > int64(p.sizes[i][1])*unit {
					t.Errorf("%s: client %d has a cluster of %d records, outside %v", m, i+1, x/unit, p.sizes[i])
				}
			}
			if m != FastLloyd && c == nil {
				t.Errorf("%s: client %d was not seen", m, i+1)
			}
		}
	}
	alike := &Job{Method: CSuLloyd, Problem: protocol.Problem{Clients: parts, K: 5,
		Budget: privacy.Budget{Epsilon: 1, Delta: -1}}}
	if p, err := alike.check(); err != nil || p.Unassigned == 0 {
		t.Errorf("sizes that are alike have a place for all: %v, %v", p, err)
	}
	for name, edit := range map[string]func(*Job){
		"too few":       func(j *Job) { j.ClientShares = shares[:3] },
		"zero":          func(j *Job) { j.ClientShares = []float64{1, 1, 1, 0} },
		"no sizes":      func(j *Job) { j.Method = SuLloyd },
		"released code": func(j *Job) { j.Calibration = privacy.Published },
	} {
		job := &Job{Method: CSuLloyd, ClientShares: shares, Problem: protocol.Problem{Clients: parts, K: 5,
			Budget: privacy.Budget{Epsilon: 1, Delta: -1}}}
		edit(job)
		if _, err := job.Plan(); !fault.IsRequest(err) {
			t.Errorf("%s: error %v", name, err)
		}
	}
}
