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

// studyProfile is where the time of a study's messages goes.
type studyProfile struct {
	ID    string `json:"id"`
	State string `json:"state"`
	Sums  int    `json:"sums"`
	// TookMS is the whole run's time.
	TookMS float64            `json:"took_ms"`
	Steps  []study.StepStatus `json:"steps"`
	// MeasuredMS is a whole sum, of all steps' mean answers; Bytes its messages. Of a
	// study without sums they are the run's.
	MeasuredMS float64           `json:"measured_ms"`
	Bytes      int64             `json:"bytes"`
	Networks   []studyPrediction `json:"networks"`
}

// studyPrediction is what a network model says of the transfer of a sum, by its steps and as a whole.
type studyPrediction struct {
	Name        string    `json:"name"`
	About       string    `json:"about"`
	StepsMS     []float64 `json:"steps_ms,omitempty"`
	PredictedMS float64   `json:"predicted_ms"`
}

// statusOf is the status of the study of a coordinator's state folder: of the one that runs there, or
// as it ended.
func statusOf(ctx context.Context, state string) (*study.Status, error) {
	c, err := page.Find(state)
	if err == nil {
		var s *study.Status
		if s, err = c.Ask(ctx, "status"); err == nil {
			return s, nil
		}
	}
	if last, lastErr := study.LastStatus(state); lastErr == nil {
		return last, nil
	}
	return nil, err
}

// profileStudy tells how long the steps of a study's sums take, or have taken.
func profileStudy(ctx context.Context, state, format string, out io.Writer) error {
	s, err := statusOf(ctx, state)
	if err != nil {
		return err
	}
	p := studyProfile{ID: s.ID, State: s.State, Sums: s.Sums, TookMS: s.Took, MeasuredMS: s.Took}
	if s.Sums > 0 {
		p.sums(s)
	} else {
		p.whole(s)
	}
	if p.Bytes == 0 {
		return fault.Failed("study "+s.ID, "has no messages yet that a coordinator could tell of",
			"ask again when it has begun", nil)
	}
	return show(out, format, p, func() error { return p.text(out) })
}

// sums tells the steps of a sum.
func (p *studyProfile) sums(s *study.Status) {
	p.Steps, p.MeasuredMS = s.Steps, 0
	for _, n := range bench.Networks() {
		p.Networks = append(p.Networks, studyPrediction{Name: n.Name, About: n.About})
	}
	for _, step := range s.Steps {
		p.MeasuredMS += step.Mean
		bytes := step.Bytes / int64(s.Sums)
		p.Bytes += bytes
		for i, n := range bench.Networks() { // a step is there and back
			ms := float64(n.Cost(1, bytes)) / float64(time.Millisecond)
			p.Networks[i].StepsMS = append(p.Networks[i].StepsMS, ms)
			p.Networks[i].PredictedMS += ms
		}
	}
}

// whole tells the messages of a study without sums, each on its way in and on its way out.
func (p *studyProfile) whole(s *study.Status) {
	for _, party := range s.Parties {
		p.Bytes += party.Sent + party.Received
	}
	for _, n := range bench.Networks() {
		ms := float64(n.Cost(s.Rounds, p.Bytes)) / float64(time.Millisecond)
		p.Networks = append(p.Networks, studyPrediction{Name: n.Name, About: n.About, PredictedMS: ms})
	}
}

func (p *studyProfile) text(out io.Writer) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	h := help{w, textWidth(out)}
	h.paragraph(fmt.Sprintf("study %s, %s: %s in %.3g s", p.ID, p.State, fault.Count(p.Sums, "sum"), p.TookMS/1000))
	what := "Its messages have %d bytes on their way in and out; their transfer alone would take, in ms,"
	if len(p.Steps) > 0 {
		fmt.Fprintf(w, "\nstep\tanswers\tmean\tslowest\n")
		for _, s := range p.Steps {
			fmt.Fprintf(w, "%s\t%d\t%.3g ms\t%.3g ms\n", s.Step, s.Answers, s.Mean, s.Most)
		}
		fmt.Fprintf(w, "a sum\t\t%.3g ms\n\n", p.MeasuredMS)
		h.paragraph("An answer has the network there and back in it, and the party's own work and padding.")
		what = "Messages of a sum have %d bytes; their transfer alone would take, in ms,"
	} else {
		fmt.Fprintln(w)
	}
	h.paragraph(fmt.Sprintf(what, p.Bytes))
	fmt.Fprint(w, "\nnetwork\t")
	for _, s := range p.Steps {
		fmt.Fprintf(w, "%s\t", s.Step)
	}
	fmt.Fprintln(w, "in all")
	for _, n := range p.Networks {
		fmt.Fprintf(w, "%s\t", n.Name)
		for _, ms := range n.StepsMS {
			fmt.Fprintf(w, "%.3g\t", ms)
		}
		fmt.Fprintf(w, "%.3g\n", n.PredictedMS)
	}
	fmt.Fprintln(w)
	for _, n := range p.Networks {
		fmt.Fprintf(w, "%s\t%s\n", n.Name, n.About)
	}
	return w.Flush()
}
