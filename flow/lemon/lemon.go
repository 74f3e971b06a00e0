// Package lemon solves problems of size-constrained assignment by LEMON's network simplex and cost
// scaling (https://lemon.cs.elte.hu), for comparisons: it compiles a program of its own where g++ and
// liblemon-dev are installed.
package lemon

import (
	"context"
	_ "embed"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/cohort-engine/cohort/flow"
	"github.com/cohort-engine/cohort/kernels"
)

//go:embed program/lemon.cc
var source []byte

// ErrMissing says that there is no compiler or no LEMON.
var ErrMissing = errors.New("lemon: g++ or liblemon-dev is missing: apt-get install g++ liblemon-dev")

// Program is the compiled program, in a folder of its own.
type Program struct{ folder string }

// Build compiles the program with flags such as -O3; it returns ErrMissing where it cannot.
func Build(ctx context.Context, flags ...string) (*Program, error) {
	if _, err := exec.LookPath("g++"); err != nil {
		return nil, ErrMissing
	}
	probe := exec.CommandContext(ctx, "g++", "-fsyntax-only", "-x", "c++", "-")
	probe.Stdin = strings.NewReader("#include <lemon/core.h>\n")
	if probe.Run() != nil {
		return nil, errors.Join(ctx.Err(), ErrMissing)
	}
	folder, err := os.MkdirTemp("", "cohort-lemon")
	if err != nil {
		return nil, err
	}
	p := &Program{folder}
	if err := os.WriteFile(p.path("lemon.cc"), source, 0o600); err != nil {
		return nil, errors.Join(err, p.Close())
	}
	build := exec.CommandContext(ctx, "g++", append(flags, p.path("lemon.cc"), "-o", p.path("lemon"), "-llemon")...)
	if out, err := build.CombinedOutput(); err != nil {
		return nil, errors.Join(fmt.Errorf("lemon: %w: %s", err, out), p.Close())
	}
	return p, nil
}

func (p *Program) path(name string) string { return filepath.Join(p.folder, name) }

// Close removes the program; nil has none.
func (p *Program) Close() error {
	if p == nil {
		return nil
	}
	return os.RemoveAll(p.folder)
}

// Solution is what LEMON finds: the CPU time of the faster algorithm to build and solve, and the
// least total cost by each.
type Solution struct {
	Time             time.Duration
	Simplex, Scaling uint64
}

// Solve solves a problem without exclusivity, penalty and radius on one thread.
func (p *Program) Solve(ctx context.Context, problem *flow.Problem) (Solution, error) {
	var s Solution
	file := p.path("problem")
	if err := os.WriteFile(file, explicit(problem), 0o600); err != nil {
		return s, err
	}
	out, err := exec.CommandContext(ctx, p.path("lemon"), file).Output()
	if err != nil {
		return s, fmt.Errorf("lemon: %w", err)
	}
	var milliseconds float64
	if _, err := fmt.Sscan(string(out), &milliseconds, &s.Simplex, &s.Scaling); err != nil {
		return s, fmt.Errorf("lemon: it answers %q: %w", out, err)
	}
	s.Time = time.Duration(milliseconds * float64(time.Millisecond))
	return s, nil
}

// explicit is a problem with its costs, as lemon.cc reads it.
func explicit(p *flow.Problem) []byte {
	n, k := p.Points.N, len(p.Lo)
	c := kernels.NewCentroids(k, p.Points.D)
	c.Set(p.Centroids)
	costs := make([]int64, n*k)
	kernels.CostRows(p.Points, 0, n, c, p.FractionBits, costs)
	data := make([]byte, 0, 8*(2+2*k+n*k))
	add := func(x int64) { data = binary.LittleEndian.AppendUint64(data, uint64(x)) }
	add(int64(n))
	add(int64(k))
	for _, sizes := range [][]int{p.Lo, p.Hi} {
		for _, x := range sizes {
			add(int64(x))
		}
	}
	for _, x := range costs {
		add(x)
	}
	return data
}
