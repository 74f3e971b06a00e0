//go:build linux

package kernels

import (
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

var (
	prototypes = flag.String("prototypes", "",
		"folder of kmeans_ref.c and ordered.c: build them and print our figures beside theirs")
	peer = flag.String("peer", "", "Python with scikit-learn: print its Lloyd iteration too")
)

// TestPrototypes prints the speed of the C prototypes and ours on the same data,
// taking turns. It needs -prototypes, gcc and a CPU with AVX-512, and judges
// nothing: a timing is not a test.
func TestPrototypes(t *testing.T) {
	if *prototypes == "" {
		t.Skip("a comparison with C: run make prototypes")
	}
	folder := t.TempDir()
	kmeans, ordered := compile(t, folder, "kmeans_ref"), compile(t, folder, "ordered", "-ffast-math", "-lmvec")
	fmt.Printf("best times; ours on %s\n%-22s %21s %21s %9s %12s\n", ISA(), "n, d, k", "assign C / ours",
		"with sums C / ours", "C / ours", "pack ours")
	for _, s := range lloydShapes {
		compareLloyd(t, folder, kmeans, s[0], s[1], s[2])
	}
	compareArrivals(t, ordered)
}

// compile builds a prototype with the flags that its head names.
func compile(t *testing.T, folder, name string, flags ...string) string {
	t.Helper()
	out := filepath.Join(folder, name)
	args := []string{"-O3", "-march=native", "-mprefer-vector-width=512", filepath.Join(*prototypes, name+".c"),
		"-o", out, "-lm"}
	cc := exec.Command("gcc", append(args, flags...)...)
	if text, err := cc.CombinedOutput(); err != nil {
		t.Skipf("skipped: the prototype %s does not build here: %v: %s", name, err, text)
	}
	return out
}

// numbers runs a program and returns the submatches of a pattern in its output.
func numbers(t *testing.T, pattern string, program string, args ...string) [][]float64 {
	t.Helper()
	out, err := exec.Command(program, args...).Output()
	if err != nil {
		t.Fatalf("%s: %v", program, err)
	}
	var all [][]float64
	for _, m := range regexp.MustCompile(pattern).FindAllStringSubmatch(string(out), -1) {
		var row []float64
		for _, s := range m[1:] {
			x, err := strconv.ParseFloat(s, 64)
			if err != nil {
				t.Fatalf("%s: %v", program, err)
			}
			row = append(row, x)
		}
		all = append(all, row)
	}
	if len(all) == 0 {
		t.Fatalf("%s printed nothing that matches %s", program, pattern)
	}
	return all
}

// compareLloyd writes one shape as the inputs of the prototype, which passes
// over shapes without files.
func compareLloyd(t *testing.T, folder, program string, n, d, k int) {
	rng := rand.New(rand.NewPCG(1, uint64(n+d+k)))
	rows := make([]float32, n*d)
	for i := range rows {
		rows[i] = float32(int32(min(max(rng.NormFloat64()/8, -1), 1)*(1<<16))) / (1 << 16)
	}
	write := func(kind string, values []float32) {
		name := filepath.Join(folder, fmt.Sprintf("%s_%d_%d_%d.f32", kind, n, d, k))
		bytes := unsafe.Slice((*byte)(unsafe.Pointer(&values[0])), 4*len(values))
		if err := os.WriteFile(name, bytes, 0o600); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = os.Remove(name) })
	}
	write("x", rows)
	write("c", rows[:k*d])
	defer os.Remove(filepath.Join(folder, fmt.Sprintf("x_%d_%d_%d.f32", n, d, k)))

	p, c := NewPanels(n, d), NewCentroids(k, d)
	Pack(p, rows)
	c.Set(rows[:k*d])
	labels, acc := make([]uint16, n), NewAccumulator(k, d, 16)
	theirs, ours, packing := [2]float64{1e9, 1e9}, [2]float64{1e9, 1e9}, 1e9
	for range 3 {
		for _, row := range numbers(t, `: assign ([0-9.]+)/\S+ ms.*?; assign\+update ([0-9.]+)/`, program, folder) {
			theirs[0], theirs[1] = min(theirs[0], row[0]), min(theirs[1], row[1])
		}
		for start := time.Now(); time.Since(start) < 300*time.Millisecond; {
			ours[0] = min(ours[0], milliseconds(func() { Assign(*p, c, labels, nil) }))
			ours[1] = min(ours[1], milliseconds(func() { AssignAccumulate(*p, c, labels, acc) }))
		}
		for range 20 {
			packing = min(packing, milliseconds(func() { Pack(p, rows) }))
		}
	}
	fmt.Printf("%-22s %8.4f / %8.4f ms %8.4f / %8.4f ms %9.2f %9.4f ms", fmt.Sprintf("%d, %d, %d", n, d, k),
		theirs[0], ours[0], theirs[1], ours[1], theirs[1]/ours[1], packing)
	if *peer != "" {
		lloyd := peerLloyd(t, filepath.Join(folder, fmt.Sprintf("x_%d_%d_%d.f32", n, d, k)), n, d, k)
		fmt.Printf("  scikit-learn %.4f ms, %.1f times ours", lloyd, lloyd/ours[1])
	}
	fmt.Println()
}

func milliseconds(fn func()) float64 {
	start := time.Now()
	fn()
	return float64(time.Since(start).Nanoseconds()) / 1e6
}

// peerScript times one Lloyd iteration of scikit-learn on one thread: the
// difference of a short and a longer run, over the iterations between them.
const peerScript = `
import sys, time, warnings
import numpy as np
from sklearn.cluster import KMeans
from threadpoolctl import threadpool_limits
warnings.filterwarnings("ignore")
name, n, d, k = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])
X = np.fromfile(name, dtype=np.float32).reshape(n, d)
extra = 20 if n * d * k < 2e8 else 6
def run(m):
    t = time.process_time()
    km = KMeans(k, init=X[:k].copy(), n_init=1, max_iter=m, tol=0, algorithm="lloyd", copy_x=False).fit(X.copy())
    return time.process_time() - t, km.n_iter_
best = 1e9
with threadpool_limits(1):
    run(2)
    for _ in range(3):
        a, i = run(2)
        b, j = run(2 + extra)
        if j > i and b > a: best = min(best, (b - a) / (j - i))
print("lloyd", best * 1e3)
`

func peerLloyd(t *testing.T, data string, n, d, k int) float64 {
	t.Helper()
	args := []string{"-c", peerScript, data, strconv.Itoa(n), strconv.Itoa(d), strconv.Itoa(k)}
	return numbers(t, `lloyd ([0-9.]+)`, *peer, args...)[0][0]
}

// compareArrivals makes 4096 registers for each cluster of records until none is without
// an arrival, as the prototype does, and compares medians of CPU times; the prototype's
// form with a hash for each record and register stands beside them up to a million records.
func compareArrivals(t *testing.T, program string) {
	const m = 4096
	rng := rand.New(rand.NewPCG(1, 1))
	key, scratch := NewArrivalKey(randomBlocks(rng, 1)[0]), new(ArrivalScratch)
	reg := make([]float64, m)
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	for _, shape := range [][2]int{{20_000, 8}, {100_000, 5}, {1_000_000, 5}, {10_000_000, 5}} {
		n, clusters := shape[0], shape[1]
		digests, states := randomBlocks(rng, n), make([]ArrivalState, (n+clusters-1)/clusters)
		var theirs, ours []float64
		old := 0.0
		for turn := range 3 {
			args := []string{fmt.Sprint(m), fmt.Sprint(n), fmt.Sprint(clusters), "3", "0"}
			if turn == 0 && n <= 1_000_000 {
				args[4] = "1"
				row := numbers(t, `median ([0-9.]+) ms min(?s:.*)baseline AES both halves: median ([0-9.]+) ms`,
					program, args...)[0]
				theirs, old = append(theirs, row[0]), row[1]
			} else {
				theirs = append(theirs, numbers(t, `median ([0-9.]+) ms min`, program, args...)[0][0])
			}
			for range 15 { // as often as the prototype
				used := threadTime(t)
				for a := range clusters {
					fillArrivals(key, digests[a*n/clusters:(a+1)*n/clusters], reg, states, scratch)
				}
				ours = append(ours, float64(threadTime(t)-used)/1e6)
			}
		}
		slices.Sort(theirs)
		slices.Sort(ours)
		c, own := theirs[len(theirs)/2], ours[len(ours)/2]
		fmt.Printf("%-22s %8.2f / %8.2f ms, ours / C %.2f", fmt.Sprintf("arrivals %d, %d", n, clusters), c, own, own/c)
		if n >= 100_000 {
			fmt.Print(" (at most 1.25)")
		}
		if old > 0 {
			fmt.Printf(", a hash for each register %.0f ms, %.0f times ours", old, old/own)
		}
		fmt.Println()
	}
}

// threadTime is the CPU time of the thread.
func threadTime(t *testing.T) int64 {
	t.Helper()
	var at unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &at); err != nil {
		t.Fatal(err)
	}
	return at.Nano()
}

// fillArrivals gives a set of records arrivals until every register has one.
func fillArrivals(key *ArrivalKey, digests [][16]byte, reg []float64, states []ArrivalState, scratch *ArrivalScratch) {
	for i := range reg {
		reg[i] = math.Inf(1)
	}
	rate := float64(len(digests))
	r := NewReach(rate, len(reg))
	kept := Arrivals(key, digests, 1, r.Limit, r.Limit+KeptReach/rate, reg, states, scratch)
	for slices.Max(reg) > r.Limit {
		r.Extend()
		Continue(key, states[:kept], 1, r.Limit, reg, scratch)
	}
}
