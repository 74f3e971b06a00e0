package bench

import (
	"fmt"
	"time"

	"github.com/cohort-engine/cohort/engine"
	"github.com/cohort-engine/cohort/engine/method/ckks"
	"github.com/cohort-engine/cohort/internal/fault"
)

// Network is a linear cost model: a fixed latency for each round and a
// bandwidth. What it adds to measured computation stands beside it, never in it.
type Network struct {
	Name      string
	About     string
	RoundTrip time.Duration // latency of a round: there and back
	PerSend   time.Duration // pause before each send; a round has two in a row
	Bandwidth float64       // bits per second through the server's link, 0: unlimited
}

// Networks returns the presets: those of Thesis-H section 8.1, of CKKS-V Table 1
// (whose delay is one way), and the sleep that FastLloyd's own code adds to each
// send (section 6.1), for comparing like with like.
func Networks() []Network {
	ms := func(x float64) time.Duration { return time.Duration(x * float64(time.Millisecond)) }
	out := []Network{
		{Name: "lan", About: "Thesis-H LAN: 1 ms round trip", RoundTrip: ms(1)},
		{Name: "wan", About: "Thesis-H WAN: 100 ms round trip", RoundTrip: ms(100)},
		{Name: "fastlloyd", About: "FastLloyd's own 0.5 ms sleep for every send", PerSend: ms(0.5)},
	}
	for _, n := range ckks.Networks() {
		out = append(out, Network{Name: n.Name, About: fmt.Sprintf("CKKS-V %s: %g Mbit/s, %g ms", n.About, n.Mbps, n.DelayMS),
			RoundTrip: ms(2 * n.DelayMS), Bandwidth: n.Mbps * 1e6})
	}
	return out
}

// FindNetwork returns the preset of that name.
func FindNetwork(name string) (Network, error) {
	return fault.Named("network", name, Networks(), func(n Network) string { return n.Name })
}

// Cost is the time that the network adds to some rounds with some bytes in all.
func (n Network) Cost(rounds int, bytes int64) time.Duration {
	d := time.Duration(rounds) * (n.RoundTrip + 2*n.PerSend)
	if n.Bandwidth > 0 {
		d += time.Duration(float64(bytes) * 8 / n.Bandwidth * float64(time.Second))
	}
	return d
}

// Traffic is the bytes that all parties of a run sent and received.
func Traffic(c engine.Comm) int64 {
	var sum int64
	for i := range c.BytesSent {
		sum += c.BytesSent[i] + c.BytesReceived[i]
	}
	return sum
}
