package bench

import (
	"context"
	"os"
	"slices"

	"github.com/cohort-engine/cohort/engine/study"
)

func networkSuites() []Suite {
	return []Suite{{
		Name: "network", Group: GroupPerformance, Title: "Sums of parties on machines of their own, over the loopback interface",
		About: "A coordinator and its parties, each with a TLS connection, links and a journal of its own, in one process on this machine's cores. " +
			"A round is from the coordinator's readiness to the sum on its way to every party. Plain sums have the group's masks alone; those by pairs are " +
			"the whole protocol of Bonawitz et al. 2017 (keys, shares, signatures), with a hundred neighbours above 200 parties (Bell et al. 2020). " +
			"Journals are in memory where the machine has /dev/shm, so that figures are of the network and the processor; a disk adds the time of its syncs.",
		Run: runNetwork,
	}}
}

// networkCase is one measurement.
type networkCase struct {
	parties, words, rounds int
	plain, quick           bool
}

var networkCases = []networkCase{
	{3, 45, 300, true, true}, {3, 45, 60, false, true}, {100, 45, 30, true, true}, {100, 45, 2, false, true},
	{1000, 45, 20, true, true}, {1000, 7850, 5, true, false}, {1000, 45, 1, false, false},
}

func runNetwork(ctx context.Context, e *Env) error {
	for _, n := range networkCases {
		if e.Quick && !n.quick {
			continue
		}
		sums := "by pairs"
		if n.plain {
			sums = "plain"
		}
		labels := []Label{L("parties", n.parties), L("bytes", 8*n.words), L("sums", sums)}
		if err := e.Case(ctx, "rounds", labels, n.measure); err != nil {
			return err
		}
	}
	return nil
}

func (n networkCase) measure(ctx context.Context, c *Case) error {
	dir, err := os.MkdirTemp("/dev/shm", "cohort-bench")
	if err != nil {
		if dir, err = os.MkdirTemp("", "cohort-bench"); err != nil {
			return err
		}
	}
	defer os.RemoveAll(dir)
	watched := resetPeak()
	took, err := (&study.Sums{Parties: n.parties, Words: n.words, Rounds: n.rounds, Plain: n.plain, Dir: dir}).Measure(ctx)
	if err != nil {
		return err
	}
	if len(took) > 4 {
		took = took[2:] // the first rounds make connections' buffers and keys
	}
	samples := make([]float64, len(took))
	for i, d := range took {
		samples[i] = float64(d)
	}
	c.Durations("round", samples)
	slices.Sort(took)
	c.Number("aggregated", "/s", float64(8*n.words*n.parties)/(took[len(took)/2].Seconds()))
	if watched {
		c.Number("memory of all roles", Bytes, peak())
	}
	return nil
}
