package protocol

import (
	"math"
	"testing"

	"github.com/cohort-engine/cohort/engine"
	"github.com/cohort-engine/cohort/engine/privacy"
)

// Observers stand outside: they see no centroids that outsiders do not, and of a private run no loss.
func TestShowWithholdsWhatOutsidersDoNotSee(t *testing.T) {
	pool := engine.NewPool(1)
	defer pool.Close()
	open := &Release{Entries: []privacy.Entry{{Viewers: []string{privacy.Clients, privacy.Outsider}},
		{Viewers: []string{privacy.Server}, Mechanism: "mask"}}}
	closed := &Release{Entries: []privacy.Entry{open.Entries[0],
		{Viewers: []string{privacy.Clients}, Mechanism: "none"}}}
	for _, c := range []struct {
		private          bool
		release          *Release
		centroids, loses bool
	}{{true, open, true, false}, {true, closed, false, false}, {false, closed, true, true}} {
		p := &Party{Plan: &Plan{Private: c.private}, rt: engine.NewRuntime(pool, new(engine.Trace))}
		p.Show(c.release, []float64{1, 2}, 7)
		if (p.seen.Centroids != nil) != c.centroids || math.IsNaN(p.seen.Loss) == c.loses {
			t.Errorf("private %t: observers see %+v", c.private, p.seen)
		}
	}
}
