package audit

import (
	"context"
	"testing"

	"github.com/cohort-engine/cohort/engine"
	"github.com/cohort-engine/cohort/engine/privacy"
	"github.com/cohort-engine/cohort/engine/protocol"
)

// The noise that every private method draws is what its plan says, however it is run, and a record moves no release
// further than is charged. Seeded, so it fails always or never; by chance of the seed with probability 1e-6 a method.
func TestWhiteBox(t *testing.T) {
	pool := engine.NewPool(1)
	defer pool.Close()
	seed := uint64(6)
	for _, a := range Audits() {
		if testing.Short() && a.Calibration != privacy.Proven {
			continue
		}
		r, err := WhiteBox(context.Background(), pool, a.Method, a.Calibration, 60, &seed)
		if err != nil {
			t.Errorf("%s, %s: %v", a.Method, a.Calibration, err)
			continue
		}
		t.Logf("%s, %s: %d ways, %d releases, %d numbers, distance %.4f, %.1f s, %+v", a.Method, a.Calibration, len(r.Ways),
			r.Releases, r.Numbers, r.Distance, r.Seconds, r.Checks[0])
		if r.Verdict != Consistent || r.Numbers < 300 {
			t.Errorf("%s, %s: %d numbers, %+v", a.Method, a.Calibration, r.Numbers, r.Checks)
		}
	}
	if _, err := WhiteBox(context.Background(), pool, "pca", privacy.Proven, 120, &seed); err == nil {
		t.Error("a method that draws no noise is watched")
	}
}

// What is wrong with noise is found: its scale, its sign, a stream that is shared between coordinates,
// releases or runs.
func TestWhiteBoxFindsWrongNoise(t *testing.T) {
	seed := uint64(8)
	st := privacy.NewStreams(&seed).Stream(0, 0, "noise")
	distribution := protocol.Noise{Mechanism: protocol.Laplace, Scale: 50}
	l, err := privacy.NewDiscreteLaplace(50)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name  string
		spoil func(noise, other, before []int64)
		check string
	}{
		{"right", func(_, _, _ []int64) {}, ""},
		{"halved", func(noise, _, _ []int64) {
			for i := range noise {
				noise[i] /= 2
			}
		}, "distribution"},
		{"left off some", func(noise, _, _ []int64) { noise[0], noise[1], noise[2] = 0, 0, 0 }, "distribution"},
		{"one sign", func(noise, _, _ []int64) {
			for i := range noise {
				noise[i] = max(noise[i], -noise[i])
			}
		}, "distribution"},
		{"shared by coordinates", func(noise, _, _ []int64) { noise[1] = noise[0] }, "independence of coordinates"},
		{"shared by releases", func(noise, other, _ []int64) { copy(other, noise) }, "independence of , party 1,  1"},
		{"shared by runs", func(noise, _, before []int64) { copy(noise, before) }, "independence of runs"},
	} {
		g := &noiseSamples{st: st, failure: noiseFailure}
		var before [8]int64
		for run := range 400 {
			noise, other := make([]int64, 8), make([]int64, 8)
			l.Fill(st, noise)
			l.Fill(st, other)
			if run > 0 {
				c.spoil(noise, other, before[:])
			}
			copy(before[:], noise)
			draws := []protocol.Draw{{Noise: distribution, Values: noise}, {Noise: distribution, Values: other}}
			if err := g.add(draws); err != nil {
				t.Fatal(err)
			}
		}
		found := map[string]bool{}
		for _, x := range g.checks() {
			if x.Violated {
				found[x.Check] = true
			}
		}
		if c.check == "" && len(found) > 0 || c.check != "" && !found[c.check] {
			t.Errorf("noise %s: found %v, want %q", c.name, found, c.check)
		}
	}
	// a plan that states another scale
	g := &noiseSamples{st: st, failure: noiseFailure}
	if err := g.add([]protocol.Draw{{Noise: protocol.Noise{Mechanism: protocol.Gaussian, Scale: 1 << 20},
		Values: []int64{1}}}); err != nil {
		t.Fatal(err)
	}
	for scale, wrong := range map[float64]bool{1: false, 0.25: false, 0.3: true} {
		checks := g.planned(ledgerOf(t, privacy.Entry{What: "sums", Scale: scale,
			Cost: privacy.Spec{Family: "gaussian", Scale: 1}}))
		if len(checks) != 1 || checks[0].Violated != wrong {
			t.Errorf("planned scale %v: %+v", scale, checks)
		}
	}
}
