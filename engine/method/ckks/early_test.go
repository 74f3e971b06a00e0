package ckks

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/cohort-engine/cohort/engine/enginetest"
	"github.com/cohort-engine/cohort/engine/privacy"
	"github.com/cohort-engine/cohort/engine/protocol"
)

// degrees are those of the signs of a run's rounds.
func degrees(t *testing.T, j *Job, workers int) (out []int, result string) {
	t.Helper()
	res := runJob(t, j, workers)
	for _, r := range res.Details["rounds"].([]Round) {
		out = append(out, r.Degree)
	}
	return out, enginetest.JSON(t, res)
}

// Rounds before the last three take the sign of a lower degree where centroids are far apart: on any number of workers,
// with less work, the bytes of others, and centroids from which the last rounds find what they find after others.
func TestEarlyRoundsTakeALowerDegree(t *testing.T) {
	data := sample(t, "blobs", 400, 2, 2, 1)
	chain := &Chain{LogN: 11, Levels: signDepth, LogLevel: 30, LogP: []int{30, 30, 30}}
	job := func(start ...float64) *Job {
		return &Job{Problem: protocol.Problem{Clients: data.Table(), Bounds: data.Bounds, Columns: [][]int{{0}, {1}}, K: 2,
			Iterations: 5, Calibration: privacy.None, Seed: seed(9), Start: start}, chain: chain}
	}
	far, wide := degrees(t, job(-0.5, 0, 0.5, 0), 2)
	if want := []int{15, 15, 75, 75, 75}; !slices.Equal(far, want) {
		t.Errorf("from centroids far apart degrees %v, want %v", far, want)
	}
	if _, narrow := degrees(t, job(-0.5, 0, 0.5, 0), 1); narrow != wide {
		t.Errorf("one worker gives %s, two %s", narrow, wide)
	}
	if near, _ := degrees(t, job(0, 0, 0.1, 0), 1); near[0] != 75 {
		t.Errorf("from centroids near each other the first degree is %d", near[0])
	}
	mean := func(rounds int) float64 {
		j := job(-0.5, 0, 0.5, 0)
		j.Iterations = rounds
		return *runJob(t, j, 1).Quality.NICV
	}
	if got, want := mean(5), mean(3); got > 1.0001*want {
		t.Errorf("loss %g after two rounds of a lower degree, %g without", got, want)
	}
}

// A record's membership in another cluster than its nearest costs at most .068 of the squared distance of the two
// centroids in a round of a lower degree, and what the rounding of a gain moves a comparison by.
func TestEarlyMembershipsCostLittle(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	tried, dearest, rounding := 0, 0.0, 0.0
	for tried < 40 {
		d, k := 1+r.IntN(3), 2+r.IntN(2)
		start := make([]float64, d*k)
		for i := range start {
			start[i] = 2*r.Float64() - 1
		}
		cols := [][]int{nil, {d - 1}}
		for h := range d - 1 {
			cols[0] = append(cols[0], h)
		}
		s := planned(t, &Job{Problem: protocol.Problem{Clients: sample(t, "blobs", 100, d, 2, 3).Table(), Columns: cols, K: k,
			Calibration: privacy.None, Seed: seed(1), Start: start}, chain: &Chain{LogN: 9, Levels: signDepth + 1,
			LogLevel: 30, LogP: []int{30, 30}}})
		plan, err := s.comparisons(0, s.start)
		if err != nil {
			t.Fatal(err)
		}
		if late, err := s.comparisons(s.Rounds-lastRounds, s.start); err != nil || late.sign != pairSign {
			t.Fatalf("one of the last rounds has degree %d (error %v)", late.sign.degree(), err)
		}
		if plan.sign == pairSign {
			continue
		}
		tried++
		rounding = max(rounding, 0.5/plan.unit/(1.25*earlyUndecided))
		x := make([]float64, d)
		for range 1000 {
			for h := range x {
				x[h] = 2*r.Float64() - 1
			}
			for _, p := range plan.pairs {
				var nearer, apart float64 // by how much j is nearer than i; of the centroids
				for h, v := range x {
					ci, cj := s.start[p.i][h], s.start[p.j][h]
					nearer += (v-ci)*(v-ci) - (v-cj)*(v-cj)
					apart += (ci - cj) * (ci - cj)
				}
				member := 0.5 - math.Copysign(1, nearer)*plan.sign.at(p.at(x)) // in the one further away
				dearest = max(dearest, member*math.Abs(nearer)/apart)
			}
		}
	}
	if dearest > 0.068+rounding || dearest < 0.03 || rounding > 0.068 {
		t.Errorf("a membership costs up to %g of the squared distance, roundings %g", dearest, rounding)
	}
}
