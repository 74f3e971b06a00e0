package main

import (
	"context"
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"github.com/cohort-engine/cohort/bench"
	"github.com/cohort-engine/cohort/engine/study"
	"github.com/cohort-engine/cohort/engine/study/page"
	"github.com/cohort-engine/cohort/internal/fault"
)

// studyProfile is where the time of a study's sums goes.
type studyProfile struct {
	ID    string             `json:"id"`
	Sums  int                `json:"sums"`
	Steps []study.StepStatus `json:"steps"`
	// MeasuredMS is a whole sum, of all steps' mean answers; Bytes what all parties sent
	// and received for it, on average.
	MeasuredMS float64           `json:"measured_ms"`
	Bytes      int64             `json:"bytes"`
	Networks   []studyPrediction `json:"networks"`
}

// studyPrediction is what a network model says of the transfer of a sum.
type studyPrediction struct {
	Name        string  `json:"name"`
	About       string  `json:"about"`
	PredictedMS float64 `json:"predicted_ms"`
}

// profileStudy tells how long the steps of a running study's sums take.
func profileStudy(ctx context.Context, state, format string, out io.Writer) error {
	c, err := page.Find(state)
	if err != nil {
		return err
	}
	s, err := c.Ask(ctx, "status")
	if err != nil {
		return err
	}
	if s.Sums == 0 || len(s.Steps) == 0 {
		return fault.Failed("study "+s.ID, "has no sum yet that a coordinator could tell of",
			"ask again when some are done", nil)
	}
	p := studyProfile{ID: s.ID, Sums: s.Sums, Steps: s.Steps}
	for _, step := range s.Steps {
		p.MeasuredMS += step.Mean
	}
	for _, party := range s.Parties {
		if !party.Server && (s.Party == "" || s.Party == party.Name) { // each byte once
			p.Bytes += (party.Sent + party.Received) / int64(s.Sums)
		}
	}
	for _, n := range bench.Networks() {
		cost := n.Cost(len(s.Steps), p.Bytes)
		p.Networks = append(p.Networks, studyPrediction{n.Name, n.About, float64(cost) / float64(time.Millisecond)})
	}
	return show(out, format, p, func() error { return p.text(out) })
}

func (p *studyProfile) text(out io.Writer) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "study %s, %d sums\n\nstep\tanswers\tmean\tslowest\n", p.ID, p.Sums)
	for _, s := range p.Steps {
		fmt.Fprintf(w, "%s\t%d\t%.3g ms\t%.3g ms\n", s.Step, s.Answers, s.Mean, s.Most)
	}
	fmt.Fprintf(w, "a sum\t\t%.3g ms\t\n\n", p.MeasuredMS)
	fmt.Fprintf(w, "An answer has the network there and back in it, and the party's own work and padding.\n")
	fmt.Fprintf(w, "Messages of a sum have %d bytes; their transfer alone would take, in a network such as\n", p.Bytes)
	for _, n := range p.Networks {
		fmt.Fprintf(w, "%s\t%s\t%.3g ms\n", n.Name, n.About, n.PredictedMS)
	}
	return w.Flush()
}
