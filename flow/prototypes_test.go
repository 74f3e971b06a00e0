package flow_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cohort-engine/cohort/flow"
	"github.com/cohort-engine/cohort/flow/instance"
	"github.com/cohort-engine/cohort/flow/lemon"
)

var prototypes = flag.String("prototypes", "", "folder with flow.cc, which needs g++ and liblemon-dev")

var lemonLine = regexp.MustCompile(`(\w+)\s+build ([0-9.]+)/[0-9.]+ ms\s+solve ([0-9.]+)/[0-9.]+ ms\s+cost (\d+)`)

// TestPrototypes runs LEMON's network simplex and cost scaling on the measured
// instances and prints our times beside theirs, in turns. The optima must agree up
// to the grid, which is coarser here.
func TestPrototypes(t *testing.T) {
	if *prototypes == "" {
		t.Skip("a comparison: run make prototypes")
	}
	dir := t.TempDir()
	program := filepath.Join(dir, "flow")
	build := exec.Command("g++", "-O3", "-march=native", "-mprefer-vector-width=512",
		filepath.Join(*prototypes, "flow.cc"), "-o", program, "-llemon")
	if out, err := build.CombinedOutput(); err != nil {
		t.Skipf("flow.cc does not build (it needs g++, liblemon-dev and AVX-512): %v\n%s", err, out)
	}
	for name, file := range map[string]string{"s1": "s1.csv", "birch2": "birch2_25k.csv", "adult": "adult.csv"} {
		rows, n, d := read(t, file)
		var b strings.Builder
		for i := range n {
			for j := range d {
				b.WriteString(strconv.FormatFloat(rows[i*d+j], 'g', -1, 64))
				b.WriteByte("\n "[min(1, d-1-j)])
			}
		}
		if err := os.WriteFile(filepath.Join(dir, name+".txt"), []byte(b.String()), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	fmt.Printf("%-16s %14s %14s %10s %10s %8s %8s\n", "instance", "NetworkSimplex", "CostScaling", "cold", "warm",
		"ratio", "warm")
	for _, set := range sets(t) {
		for _, start := range []struct {
			name  string
			steps int
		}{{"bad", 0}, {"good", 3}} {
			name := set.Name + "/" + start.name
			best, times := 0.0, map[string]float64{}
			var optimum float64
			for _, algorithm := range []string{"NetworkSimplex", "CostScaling"} {
				out, err := exec.Command(program, dir, name, algorithm).CombinedOutput()
				m := lemonLine.FindStringSubmatch(string(out))
				if err != nil || m == nil {
					t.Fatalf("%s %s: %v\n%s", name, algorithm, err, out)
				}
				built, _ := strconv.ParseFloat(m[2], 64)
				solved, _ := strconv.ParseFloat(m[3], 64)
				optimum, _ = strconv.ParseFloat(m[4], 64)
				times[algorithm] = built + solved
				if best == 0 || built+solved < best {
					best = built + solved
				}
			}
			p := set.Problem(set.Centroids(start.steps))
			cold, warm, distance := ours(t, set, p)
			if ratio := distance / optimum; ratio < 0.998 || ratio > 1.002 {
				t.Errorf("%s: our optimum %.0f, LEMON's %.0f", name, distance, optimum)
			}
			fmt.Printf("%-16s %11.3f ms %11.3f ms %7.3f ms %7.3f ms %7.1fx %7.1fx\n", name, times["NetworkSimplex"],
				times["CostScaling"], cold, warm, best/cold, best/warm)
		}
	}
}

// ours returns the least times in milliseconds of p, cold, and of the Lloyd step
// after it, warm, and the optimum at LEMON's scale of 2^16.
func ours(t *testing.T, set *instance.Set, p *flow.Problem) (cold, warm, distance float64) {
	var res flow.Result
	solve := func(s *flow.Solver, p *flow.Problem) float64 {
		from := time.Now()
		if err := s.Solve(context.Background(), nil, p, &res); err != nil {
			t.Fatal(err)
		}
		return float64(time.Since(from).Nanoseconds()) / 1e6
	}
	c, w := flow.NewSolver(), flow.NewSolver()
	solve(c, p)
	distance = flow.Distance(p, &res).Float() / (1 << 16)
	prices, next := slices.Clone(res.Prices), set.Problem(set.Means(&res))
	for rep := range 7 {
		c.Forget()
		a := solve(c, p)
		w.StartFrom(prices)
		b := solve(w, next)
		if rep == 0 {
			cold, warm = a, b
		}
		cold, warm = min(cold, a), min(warm, b)
	}
	return cold, warm, distance
}

// TestFamiliesAgainstLEMON prints our times beside LEMON's best on instances of the
// families, whose optima must agree.
func TestFamiliesAgainstLEMON(t *testing.T) {
	if *prototypes == "" {
		t.Skip("a comparison: run make prototypes")
	}
	program := buildLEMON(t, "-O3", "-march=native")
	const n, k = 20000, 100
	fmt.Printf("%-22s %14s %12s %8s\n", "family", "LEMON", "cold", "ratio")
	for _, f := range families() {
		p := f.make(n, k)
		cold := math.Inf(1)
		var res flow.Result
		for range 5 {
			from := time.Now()
			if err := (&flow.Solver{}).Solve(context.Background(), nil, p, &res); err != nil {
				t.Fatal(err)
			}
			cold = min(cold, float64(time.Since(from).Nanoseconds())/1e6)
		}
		best := sameOptimum(t, program, f.name, p, &res)
		fmt.Printf("%-22s %11.3f ms %9.3f ms %7.1fx\n", f.name, best, cold, best/cold)
	}
}

// TestFamiliesCostWhatLEMONFinds compares optima with those of LEMON's two algorithms,
// exactly.
func TestFamiliesCostWhatLEMONFinds(t *testing.T) {
	program := buildLEMON(t, "-O1")
	for _, f := range families() {
		for _, n := range []int{300, 1200} {
			p := f.make(n, n/60)
			var res flow.Result
			if err := flow.NewSolver().Solve(context.Background(), nil, p, &res); err != nil {
				t.Fatal(err)
			}
			sameOptimum(t, program, fmt.Sprintf("%s, n=%d", f.name, n), p, &res)
		}
	}
}

// buildLEMON compiles the program, or skips the test.
func buildLEMON(t *testing.T, flags ...string) *lemon.Program {
	t.Helper()
	program, err := lemon.Build(context.Background(), flags...)
	if errors.Is(err, lemon.ErrMissing) {
		t.Skip("LEMON is missing: apt-get install g++ liblemon-dev")
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { program.Close() })
	return program
}

// sameOptimum fails unless LEMON's algorithms find the cost of res. It returns the
// milliseconds of the faster one.
func sameOptimum(t *testing.T, program *lemon.Program, name string, p *flow.Problem, res *flow.Result) float64 {
	t.Helper()
	s, err := program.Solve(context.Background(), p)
	if err != nil {
		t.Fatal(err)
	}
	if d := flow.Distance(p, res); d != (flow.Sum{Lo: s.Simplex}) || s.Simplex != s.Scaling {
		t.Errorf("%s: our optimum %v, LEMON's %d and %d", name, d, s.Simplex, s.Scaling)
	}
	return float64(s.Time) / 1e6
}
