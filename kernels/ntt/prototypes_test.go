package ntt

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"testing"
	"time"
)

var prototypes = flag.String("prototypes", "",
	"folder of lattice32.c: build it and print our transforms beside its own and Lattigo's")

// TestPrototypes prints the times of transforms of degree 2^14 here, in C and in
// Lattigo, taking turns. It needs -prototypes and gcc, and judges nothing.
func TestPrototypes(t *testing.T) {
	if *prototypes == "" {
		t.Skip("a comparison with C: run make prototypes")
	}
	programs := map[path]string{}
	for p, flags := range map[path][]string{avx512: {"-march=native"}, avx2: {"-mavx2", "-mfma"}} {
		out := filepath.Join(t.TempDir(), "lattice32")
		cc := exec.Command("gcc", append([]string{"-O3", filepath.Join(*prototypes, "lattice32.c"), "-o", out, "-lm",
			"-lpthread"}, flags...)...)
		if text, err := cc.CombinedOutput(); err != nil {
			t.Skipf("skipped: the prototype lattice32 does not build here: %v: %s", err, text)
		}
		programs[p] = out
	}
	rng := rand.New(rand.NewPCG(1, 2))
	fmt.Printf("transforms of degree 2^14, least microseconds\n%-10s %-22s %8s %8s %8s\n", "path", "transform", "C",
		"ours", "Lattigo")
	for i, prime := range map[string]int{"q29": 1, "q30": 0} {
		r, err := NewRing(ConjugateInvariant, 14, testPrimes[prime])
		if err != nil {
			t.Fatal(err)
		}
		l := lattigoRing(t, r)
		x, y := words(rng, r.n, 0, int64(r.q)), make([]uint32, r.n)
		wide := make([]uint64, r.n)
		one := r.Constant(1)
		onEveryPath(t, func(p path) {
			if programs[p] == "" {
				return
			}
			for _, f := range []struct {
				name, theirs  string
				ours, lattigo func()
			}{
				{"forward", "ntt_ci_14 " + i, func() { r.Forward(y, x) }, func() { l.NTT(wide, wide) }},
				{"inverse", "intt_ci_14 " + i, func() { r.Inverse(y, x, one) }, func() { l.INTT(wide, wide) }},
			} {
				least := [3]time.Duration{1 << 62, 1 << 62, 1 << 62}
				for range 3 {
					least[0] = min(least[0], prototypeTime(t, programs[p], f.theirs))
					for range 300 {
						least[1], least[2] = min(least[1], took(f.ours)), min(least[2], took(f.lattigo))
					}
				}
				fmt.Printf("%-10s %-22s %8.1f %8.1f %8.1f\n", p, f.name+" "+i, us(least[0]), us(least[1]), us(least[2]))
			}
		})
	}
}

func took(f func()) time.Duration {
	start := time.Now()
	f()
	return time.Since(start)
}

func us(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1e3 }

// prototypeTime runs the C program and reads one of its times.
func prototypeTime(t *testing.T, program, name string) time.Duration {
	t.Helper()
	out, err := exec.Command(program).Output()
	if err != nil {
		t.Fatalf("%s: %v", program, err)
	}
	var times []float64
	for _, m := range regexp.MustCompile(`C\d+ `+regexp.QuoteMeta(name)+
		` +([0-9.]+) us`).FindAllStringSubmatch(string(out), -1) {
		x, err := strconv.ParseFloat(m[1], 64)
		if err != nil {
			t.Fatal(err)
		}
		times = append(times, x)
	}
	if len(times) == 0 {
		t.Fatalf("%s prints no time of %s", program, name)
	}
	return time.Duration(slices.Min(times) * 1e3)
}
