//go:build amd64 && !purego

package kernels

import (
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestTilesSurviveThreadsAndSignals labels points on many threads, more than there are cores, by way of the filter with
// AMX, while signals arrive, the collector stops the world and goroutines change threads: the system has to save and
// restore the tiles each time.
func TestTilesSurviveThreadsAndSignals(t *testing.T) {
	if !slices.Contains(supportedPaths(), amx) {
		t.Skip("skipped: the processor or the system does not grant the tile registers of AMX, which no emulator at hand has")
	}
	defer forcePath(amx)()
	const n, d, k = 330, 100, 210
	rng := rand.New(rand.NewPCG(19, 18))
	p := packed(gridRows(rng, n, d, 16), n, d)
	p.addFilter(4, inOrder)
	c := NewCentroids(k, d)
	c.PrepareFilter(p)
	c.Set(gridRows(rng, k, d, 16))
	if call, ok := p.filter.call(c); !ok || call.c.chunk == 1 {
		t.Fatal("the filter has no tiles")
	}
	want := make([]uint16, n)
	assignPortable(p, c, want, nil, nil)
	quit := make(chan struct{})
	var disturbance, work sync.WaitGroup
	disturbance.Go(func() {
		for {
			select {
			case <-quit:
				return
			default:
				// The signal that Go itself preempts by: its handler runs on whatever thread the system picks.
				if err := unix.Kill(os.Getpid(), unix.SIGURG); err != nil {
					t.Error(err)
					return
				}
				runtime.GC()
			}
		}
	})
	until := time.Now().Add(300 * time.Millisecond)
	for g := range 4 * runtime.GOMAXPROCS(0) {
		work.Go(func() {
			if g%2 == 0 {
				runtime.LockOSThread()
				defer runtime.UnlockOSThread()
			}
			got := make([]uint16, n)
			for round := 0; round < 3 || time.Now().Before(until); round++ {
				clear(got)
				Assign(*p, c, got, nil)
				if !slices.Equal(got, want) {
					t.Errorf("goroutine %d, round %d: labels differ", g, round)
					return
				}
				runtime.Gosched()
			}
		})
	}
	work.Wait()
	close(quit)
	disturbance.Wait()
}
