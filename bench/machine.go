package bench

import (
	"bufio"
	"cmp"
	"math"
	"os"
	"runtime"
	"runtime/debug"
	"strings"
	"sync/atomic"
	"time"

	"github.com/klauspost/cpuid/v2"

	"github.com/cohort-engine/cohort/bench/chart"
	"github.com/cohort-engine/cohort/engine"
	"github.com/cohort-engine/cohort/kernels"
)

// Machine says where and with what the figures were taken.
type Machine struct {
	Version string `json:"version"`
	// Revision is the commit that the binary was built from, if it says so.
	Revision string `json:"revision,omitempty"`
	Go       string `json:"go"`
	OS       string `json:"os"`
	Arch     string `json:"arch"`
	CPU      string `json:"cpu"`
	Cores    int    `json:"cores"`
	Workers  int    `json:"workers"`
	// MHz is the clock that the system reports when the run begins, 0 if none.
	MHz    float64 `json:"mhz,omitempty"`
	L2     int     `json:"l2_bytes,omitempty"`
	ISA    string  `json:"isa"`
	Pinned bool    `json:"pinned"`
	// Together is the multiply-adds of all workers at once over those of one: less than their number where workers
	// share cores or the clock falls. 0 where it is not measured.
	Together float64 `json:"together,omitempty"`
	// Between is the time in nanoseconds in which a word goes from one core to another and back: what workers wait for
	// each other, and for what the other has written, grows with it. 0 where it is not measured.
	Between float64 `json:"between_ns,omitempty"`
	// Peers are the checkouts of the authors' code that runs in turns with ours; empty for none.
	Peers string `json:"peers,omitempty"`
	Time  string `json:"time"`
	// NoiseFloor is the relative difference that the timing method finds
	// between a piece of code and itself; Spread is its 99th percentile over its
	// median, minus 1.
	NoiseFloor float64 `json:"noise_floor"`
	Spread     float64 `json:"spread"`
}

// describeMachine looks at the machine. It takes a fifth of a second, for the noise
// floor and the workers' arithmetic.
func describeMachine(workers int) *Machine {
	m := &Machine{
		Version: engine.Version, Revision: revision(), Go: runtime.Version(), OS: runtime.GOOS, Arch: runtime.GOARCH,
		CPU: cmp.Or(cpuid.CPU.BrandName, "unnamed"), Cores: runtime.NumCPU(), Workers: workers, MHz: clock(),
		L2:  max(cpuid.CPU.Cache.L2, 0),
		ISA: kernels.ISA(), Pinned: canPin(), Time: time.Now().UTC().Format(time.RFC3339),
	}
	unpin := pin()
	m.NoiseFloor, m.Spread = noiseFloor()
	one := kernels.MeasureFMA(1)
	unpin()
	if one > 0 && workers > 1 {
		m.Together = kernels.MeasureFMA(workers) / one
	}
	if min(workers, runtime.GOMAXPROCS(0)) > 1 {
		m.Between = betweenCores()
	}
	return m
}

// betweenCores measures Machine.Between: the least of some runs of trips counts, as other work on the machine only
// adds to it. It ends early where that takes the cores away, and a trip lasts until they come back.
func betweenCores() float64 {
	const trips, longest = 100, 20 * time.Millisecond
	var words [2]struct {
		atomic.Int64
		_ [2*64 - 8]byte // neighbouring cache lines may be fetched together
	}
	go func() {
		for i := int64(1); ; i++ {
			for x := words[0].Load(); x < i; x = words[0].Load() {
				if x < 0 {
					return
				}
			}
			words[1].Store(i)
		}
	}()
	least, begin, i := math.Inf(1), time.Now(), int64(0)
	for range 100 {
		start := time.Now()
		if start.Sub(begin) > longest {
			break
		}
		for range trips {
			i++
			words[0].Store(i)
			for words[1].Load() < i {
			}
		}
		least = min(least, float64(time.Since(start))/trips)
	}
	words[0].Store(-1)
	return least
}

// clock is the core clock in MHz as Linux reports it.
func clock() float64 {
	f, err := os.Open("/proc/cpuinfo")
	if err != nil {
		return 0
	}
	defer f.Close()
	for s := bufio.NewScanner(f); s.Scan(); {
		name, value, ok := strings.Cut(s.Text(), ":")
		if ok && strings.TrimSpace(name) == "cpu MHz" {
			return chart.ParseNumber(strings.TrimSpace(value))
		}
	}
	return 0
}

// revision is the abbreviated commit that the build records.
func revision() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" {
			return s.Value[:min(12, len(s.Value))]
		}
	}
	return ""
}
