package profile

import (
	"encoding/json"
	"io"
	"time"
)

// chromeEvent is one event of the Chrome trace format ("JSON array format").
type chromeEvent struct {
	Name  string         `json:"name"`
	Phase string         `json:"ph"`
	TS    float64        `json:"ts"`            // microseconds
	Dur   float64        `json:"dur,omitempty"` // microseconds
	PID   int            `json:"pid"`
	TID   int            `json:"tid"`
	Args  map[string]any `json:"args,omitempty"`
}

// Process numbers of a timeline: the parties' phases and the workers.
const (
	chromeParties = 1
	chromeWorkers = 2
)

// WriteChrome writes a run as Chrome trace events, for chrome://tracing or
// Perfetto: phases by party, regions by worker, and the iterations.
func WriteChrome(w io.Writer, r *Run) error {
	micro := func(d time.Duration) float64 { return float64(d) / 1e3 }
	named := func(kind string, pid, tid int, name string) chromeEvent {
		return chromeEvent{Name: kind, Phase: "M", PID: pid, TID: tid, Args: map[string]any{"name": name}}
	}
	events := []chromeEvent{named("process_name", chromeParties, 0, "parties"),
		named("process_name", chromeWorkers, 0, "workers")}
	seen := make(map[[2]int]bool)
	thread := func(pid, tid int, name string) {
		if key := [2]int{pid, tid}; !seen[key] {
			seen[key] = true
			events = append(events, named("thread_name", pid, tid, name))
		}
	}
	const iterationThread = 1 << 20
	for _, it := range r.iterations() {
		if it.index == restIndex {
			continue
		}
		thread(chromeParties, iterationThread, "iterations")
		events = append(events, chromeEvent{Name: "iteration", Phase: "X", TS: micro(it.begin), Dur: micro(it.end - it.begin),
			PID: chromeParties, TID: iterationThread, Args: map[string]any{"index": it.index + 1}})
	}
	for _, s := range r.Spans {
		tid := s.Party + 1 // the server is 0
		thread(chromeParties, tid, party(s.Party))
		events = append(events, chromeEvent{Name: s.Phase.String(), Phase: "X", TS: micro(s.Begin),
			Dur: micro(s.End - s.Begin),
			PID: chromeParties, TID: tid, Args: map[string]any{"iteration": s.Iteration + 1}})
	}
	for _, s := range r.Stays {
		thread(chromeWorkers, s.Worker, "worker")
		events = append(events, chromeEvent{Name: "region", Phase: "X", TS: micro(s.Begin), Dur: micro(s.End - s.Begin),
			PID: chromeWorkers, TID: s.Worker})
	}
	return json.NewEncoder(w).Encode(map[string]any{"traceEvents": events, "displayTimeUnit": "ns"})
}
