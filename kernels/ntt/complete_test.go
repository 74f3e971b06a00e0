package ntt

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// notKernels are the exported functions and methods that do no work on vectors;
// constructors are not kernels either.
var notKernels = []string{"Q", "N", "Constant", "Power", "Invert", "Canonical", "Fraction", "Set", "String",
	"Paths", "Prepare", "IsPrime"}

// TestEveryKernelIsProved reads the source: each exported operation is compared on
// every path with its portable form, run beside guard pages, and timed.
func TestEveryKernelIsProved(t *testing.T) {
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	used := map[string]map[string]bool{"equality_test.go": {}, "guard_test.go": {}, "bench_test.go": {}}
	defined := map[string]bool{}
	var kernels []string
	for _, name := range files {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		if set := used[name]; set != nil {
			ast.Inspect(file, func(n ast.Node) bool {
				switch call := n.(type) {
				case *ast.SelectorExpr:
					set[call.Sel.Name] = true
				case *ast.Ident:
					set[call.Name] = true
				}
				return true
			})
		}
		for _, decl := range file.Decls {
			f, ok := decl.(*ast.FuncDecl)
			if !ok {
				continue
			}
			if !strings.HasSuffix(name, "_test.go") {
				defined[f.Name.Name] = true
			}
			if f.Name.IsExported() && !strings.HasSuffix(name, "_test.go") && !strings.HasPrefix(f.Name.Name, "New") &&
				!slices.Contains(notKernels, f.Name.Name) {
				kernels = append(kernels, f.Name.Name)
			}
		}
	}
	if len(kernels) < 15 {
		t.Errorf("only %d kernels found: %v", len(kernels), kernels)
	}
	for _, k := range kernels {
		for file, set := range used {
			if !set[k] && !(k == "Permute" && file == "equality_test.go") {
				t.Errorf("%s is missing from %s", k, file)
			}
		}
	}
	listed := append([]string{"Permute"}, operations[:]...)
	slices.Sort(listed)
	slices.Sort(kernels)
	if !slices.Equal(listed, kernels) {
		t.Errorf("Paths lists %v, the kernels are %v", listed, kernels)
	}
	// Each portable form has a dispatched one.
	for name := range defined {
		if twin, ok := strings.CutSuffix(name, "Portable"); ok && !defined[twin] {
			t.Errorf("%s has no dispatched form", name)
		}
	}
}
