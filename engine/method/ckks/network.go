package ckks

import (
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/cohort-engine/cohort/internal/fault"
)

// Network is a model of the links between the parties (CKKS-V, Table 1).
type Network struct {
	Name  string `json:"name"`
	About string `json:"about"`
	// Mbps is the bandwidth of each party's link, in 10^6 bits per second.
	Mbps float64 `json:"mbps"`
	// DelayMS and JitterMS are the one-way delay and its variation, LossPercent
	// the share of packets that are lost and sent again.
	DelayMS     float64 `json:"delay_ms"`
	JitterMS    float64 `json:"jitter_ms"`
	LossPercent float64 `json:"loss_percent"`
	// BurstKB, Quantum and R2Q are the traffic shaper's settings in the paper's
	// experiments; they smooth queues and do not enter the model.
	BurstKB int `json:"burst_kb,omitempty"`
	Quantum int `json:"quantum"`
	R2Q     int `json:"r2q"`
}

// Networks returns the ten configurations of CKKS-V, Table 1.
func Networks() []Network {
	return []Network{
		{"LAN500", "LAN (low)", 500, 1, 0.2, 0, 0, 1500, 10},
		{"LAN1000", "LAN (medium)", 1000, 0.3, 0.02, 0, 0, 3000, 15},
		{"LAN10000", "LAN (high)", 10000, 0.1, 0.01, 0, 0, 9000, 25},
		{"regWAN100", "Regional WAN (low)", 100, 20, 15, 0.1, 500, 1200, 10},
		{"regWAN250", "Regional WAN (medium)", 250, 15, 5, 0.1, 1000, 1500, 20},
		{"regWAN500", "Regional WAN (high)", 500, 10, 2, 0.1, 1500, 1500, 25},
		{"ccWAN50", "Cross-continental WAN (low)", 50, 150, 25, 0.5, 500, 1000, 10},
		{"ccWAN100", "Cross-continental WAN (medium)", 100, 120, 15, 0.3, 1000, 1000, 15},
		{"ccWAN200", "Cross-continental WAN (high)", 200, 100, 10, 0.2, 2000, 1200, 20},
		{"crpWAN500", "Corporate WAN (high resilience)", 500, 50, 5, 0.1, 1000, 1500, 15},
	}
}

// findNetwork returns the preset called name.
func findNetwork(name string) (Network, error) {
	return fault.Named("network", name, Networks(), func(n Network) string { return n.Name })
}

// Envelope records one message: who sent how many bytes of what to whom, and
// in which step. Messages of one step travel at the same time.
type Envelope struct {
	Step, Round, From, To int
	Kind                  Kind
	Bytes                 int
}

// transcript is the record of a run's messages.
type transcript struct {
	Parties  int
	Messages []Envelope
	// Tap, if set, sees every message's bytes.
	Tap func(Envelope, []byte)

	mu sync.Mutex
}

// record notes a message.
func (t *transcript) record(e Envelope, b []byte) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.Messages = append(t.Messages, e)
	if t.Tap != nil {
		t.Tap(e, b)
	}
}

// total is the number of bytes of all messages.
func (t *transcript) total() int64 {
	var s int64
	for _, m := range t.Messages {
		s += int64(m.Bytes)
	}
	return s
}

// steps is the number of steps that had a message.
func (t *transcript) steps() int {
	steps := make(map[int]bool)
	for _, m := range t.Messages {
		steps[m.Step] = true
	}
	return len(steps)
}

// transferTime models the time that the messages take on a network: per step
// one delay and jitter, and the bytes of the busiest link (in or out of one
// party) at the bandwidth less what is lost and sent again.
func (t *transcript) transferTime(n Network) time.Duration {
	var total float64
	goodput := n.Mbps * 1e6 / 8 * (1 - n.LossPercent/100)
	loads := make(map[int][]int64) // by step, in and out of each party
	for _, m := range t.Messages {
		if loads[m.Step] == nil {
			loads[m.Step] = make([]int64, 2*t.Parties)
		}
		loads[m.Step][2*m.From] += int64(m.Bytes)
		loads[m.Step][2*m.To+1] += int64(m.Bytes)
	}
	for _, step := range slices.Sorted(maps.Keys(loads)) {
		total += (n.DelayMS+n.JitterMS)/1e3 + float64(slices.Max(loads[step]))/goodput
	}
	return time.Duration(total * float64(time.Second))
}
