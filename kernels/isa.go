package kernels

import (
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/cpu"
)

// path is an instruction set that kernels can run on.
type path int

const (
	generic path = iota
	avx2
	avx512
	avx512vnni
	amx
	neon
	neondot
	neoni8mm
)

var pathNames = [...]string{generic: "generic", avx2: "avx2", avx512: "avx512", avx512vnni: "avx512vnni", amx: "amx",
	neon: "neon", neondot: "neondot", neoni8mm: "neoni8mm"}

// noRoutine is what a call panics with that asks for a number of which the path in
// use has no routine: its data were made for another path.
func noRoutine(name string, number int) string {
	return fmt.Sprintf("kernels: %s has no routine %s of number %d: the data were made for another instruction set",
		current, name, number)
}

func (p path) String() string { return pathNames[p] }

// current is the path in use, and selectErr why it is not the one asked for.
// Both are set once, before main; tests alone change current.
var current, selectErr = choose(os.Getenv("COHORT_ISA"))

// wideUnits says that two multiply-adds of whole vectors of AVX-512 begin in each cycle, as on Zen 5 and on servers
// from Sapphire Rapids on. CPUs before them have no AVX-VNNI beside AVX-512; a unit of Zen 4 takes two cycles for a
// vector. Tests alone change it.
var wideUnits = cpu.X86.HasAVX512VNNI && cpu.X86.HasAVXVNNI

// choose returns the best path of this CPU, or the named one.
func choose(name string) (path, error) {
	supported := supportedPaths()
	best := supported[len(supported)-1]
	if name == "" {
		return best, nil
	}
	names := make([]string, len(supported))
	for i, p := range supported {
		if p.String() == name {
			return p, nil
		}
		names[i] = p.String()
	}
	return best, fmt.Errorf("%s is not among what this CPU and build support: %s", name, strings.Join(names, ", "))
}

// ISA names the instruction set in use: generic, avx2, avx512, avx512vnni (AVX-512
// with products of small integers), amx (and of tiles of them), neon, neondot (NEON with
// products of small integers) or neoni8mm (and of matrices of them).
func ISA() string { return current.String() }

// Supported names the instruction sets that this CPU and build support, the
// best last.
func Supported() []string {
	var names []string
	for _, p := range supportedPaths() {
		names = append(names, p.String())
	}
	return names
}

// Select reports an error when the environment variable COHORT_ISA asks for an
// instruction set that this CPU or build lacks. The kernels then run on the
// best one there is; a program should refuse to start instead.
func Select() error { return selectErr }

// OnPath runs fn with the kernels on another instruction set that this CPU and build
// support, to measure it. Nothing else may use the package meanwhile, and what fn makes
// for a kernel (Centroids, filters) serves that path alone.
func OnPath(name string, fn func()) error {
	p, err := choose(name)
	if err != nil {
		return err
	}
	own := current
	defer func() { current = own }()
	current = p
	fn()
	return nil
}

// KernelPath says on which instruction set a kernel runs.
type KernelPath struct {
	Kernel string `json:"kernel"`
	Path   string `json:"path"`
}

// Paths lists the exported kernels and the instruction set each of them runs
// on: the one in use, or a lesser one where the kernel has no form for it.
func Paths() []KernelPath {
	list := make([]KernelPath, len(kernelTable))
	for i, k := range kernelTable {
		p := generic
		for _, q := range k.paths {
			if q <= current && (q < neon) == (current < neon) {
				p = max(p, q)
			}
		}
		list[i] = KernelPath{Kernel: k.name, Path: p.String()}
	}
	return list
}

// all lists the instruction sets with assembly, and ranked those of the kernels
// whose labels may come from the candidate filter.
var (
	all    = []path{avx2, avx512, neon}
	ranked = []path{avx2, avx512, avx512vnni, amx, neon, neondot, neoni8mm}
)

// kernelTable names every exported kernel and its assembly paths.
var kernelTable = []struct {
	name  string
	paths []path
}{
	{"Pack", []path{avx2, neon}},
	{"Quantise", all},
	{"Extend", []path{avx2, avx512}},
	{"Assign", ranked},
	{"AssignRadius", all},
	{"Assign2", all},
	{"Distances", all},
	{"AssignAccumulate", ranked},
	{"Accumulate", all},
	{"AccumulateOffsets", all},
	{"AssignAccumulateWeighted", all},
	{"WeightedCost", all},
	{"AddMembers", []path{avx2}},
	{"AssignAccumulateRadius", all},
	{"Exchange", all},
	{"PointLosses", all},
	{"Reassign", ranked},
	{"MeasureBounds", all},
	{"UpdateSums", all},
	{"Stale", []path{avx2, avx512}},
	{"StaleByDistance", []path{avx2, avx512}},
	{"BoundKeys", []path{avx2, avx512}},
	{"CostRows", all},
	{"Project", all},
	{"TopTwo", all},
	{"LeastDot", all},
	{"Potentials", []path{avx2, avx512}},
	{"Lower", []path{avx2, avx512}},
	{"NearestSums", all},
	{"Nearer", all},
	{"Arrivals", all},
	{"Continue", all},
	{"ShareCounts", []path{avx2, avx512}},
	{"SumMaxima", []path{avx2, avx512}},
	{"CountCells", []path{avx2, avx512}},
	{"CountGrid", []path{avx2, avx512}},
	{"WeighGrid", []path{avx2, avx512}},
	{"AddUint64", all},
}
