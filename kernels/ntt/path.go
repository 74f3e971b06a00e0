package ntt

import (
	"fmt"
	"strings"

	"github.com/cohort-engine/cohort/kernels"
)

// path is an instruction set that the kernels can run on.
type path int

const (
	generic path = iota
	avx2
	avx512
	neon
)

var pathNames = [...]string{generic: "generic", avx2: "avx2", avx512: "avx512", neon: "neon"}

func (p path) String() string { return pathNames[p] }

// current is the path in use; tests alone change it.
var current = pathOf(kernels.ISA())

// pathOf maps an instruction set of the package kernels to the path taken on it: a
// set with extensions has the path of the set that it extends.
func pathOf(isa string) path {
	switch {
	case strings.HasPrefix(isa, "avx512"), strings.HasPrefix(isa, "amx"):
		return avx512
	case strings.HasPrefix(isa, "avx2"):
		return avx2
	case strings.HasPrefix(isa, "neon"):
		return neon
	}
	return generic
}

// noRoutine is the message of a call with a number that no routine has.
func noRoutine(name string, number int) string {
	return fmt.Sprintf("ntt: %s has no routine %s of number %d", current, name, number)
}

// operations names the kernels, all of which have a form for every path.
var operations = [...]string{"Forward", "ForwardLazy", "Inverse", "InverseLazy", "Add", "Sub", "AddScalar", "Scale",
	"ScaleAdd", "SubScale",
	"Multiply", "MultiplyAdd", "Product", "ProductAdd", "Convert", "Whole", "Inner", "Uniform"}

// Paths lists the kernels and the instruction set that they run on. Permute is a
// portable loop everywhere: it waits for its loads.
func Paths() []kernels.KernelPath {
	list := []kernels.KernelPath{{Kernel: "ntt.Permute", Path: generic.String()}}
	for _, name := range operations {
		list = append(list, kernels.KernelPath{Kernel: "ntt." + name, Path: current.String()})
	}
	return list
}
