package ckks

import (
	"go/ast"
	"go/parser"
	"go/token"
	"math/big"
	"math/rand/v2"
	"testing"
)

func TestResiduesEqualBigIntegers(t *testing.T) {
	p := smallParameters(t)
	rng := rand.New(rand.NewPCG(1, 2))
	for _, m := range p.aggregate {
		q := new(big.Int).SetUint64(m.q)
		mod := func(x *big.Int) uint64 { return new(big.Int).Mod(x, q).Uint64() }
		for i := range 100000 {
			x, z := rng.Uint64(), int64(rng.Uint64())
			if i < 8 {
				x, z = []uint64{0, m.q - 1, m.q, m.q + 1, 2*m.q - 1, 1<<64 - 1, m.q * m.q, 1 << 63}[i],
					[]int64{0, -1, -int64(m.q), int64(m.q), 1<<63 - 1, -1 << 63, 1, -int64(m.q) - 1}[i]
			}
			a, b := x%m.q, uint64(z)%m.q
			if got := m.reduce(x); got != x%m.q {
				t.Fatalf("%d modulo %d is %d", x, m.q, got)
			}
			if got := m.signed(z); got != mod(big.NewInt(z)) {
				t.Fatalf("%d modulo %d is %d", z, m.q, got)
			}
			if m.add(a, b) != (a+b)%m.q || m.multiply(a, b) != a*b%m.q {
				t.Fatalf("%d and %d modulo %d", a, b, m.q)
			}
		}
	}
	half := int64(p.Q()[0]) * int64(p.Q()[1]) / 2
	for i := range 10000 {
		z := rng.Int64N(2*half) - half
		if i < 5 {
			z = []int64{0, 1, -1, half, -half}[i]
		}
		if got := crt(p, splitInteger(p, z)); got != z {
			t.Fatalf("%d comes back as %d", z, got)
		}
	}
}

// secretFunctions handle coefficients of keys, decrypted totals or noise.
var secretFunctions = map[string][]string{
	"residue.go":                    {"below", "reduce", "add", "multiply", "inner", "signed"},
	"decrypt.go":                    {"product", "crt", "splitInteger"},
	"../../../kernels/ntt/prime.go": {"mont", "divide", "reduce", "canonical"},
	"../../../kernels/ntt/transform.go": {"butterfly", "unbutterfly", "foldAt", "unfoldAt", "forward2Portable",
		"forward4Portable", "forwardTailPortable", "inverseTailPortable", "inverse2Portable", "inverse4Portable",
		"scaleWordsPortable"},
	"../../../kernels/ntt/vector.go": {"addWordsPortable", "subWordsPortable", "addScalarPortable",
		"scaleAddPortable", "subScalePortable", "multiplyPortable", "multiplyAddPortable", "cross", "productPortable",
		"productAddPortable", "convertPortable", "wholePortable", "innerPortable"},
	"rns/division.go": {"divide", "remainder", "quotient"},
	"rns/rounding.go": {"whole"},
	"rns/workspace.go": {"Product", "ProductAdd", "Finish", "RelineariseHead", "Rotate", "Rescale", "inner",
		"takeApart", "extend"},
}

// TestSecretsMeetNoDivision reads the source: functions that handle secrets have
// no % or /, but of loop counters, and no switch; what they branch on is a public
// flag or a number of terms.
func TestSecretsMeetNoDivision(t *testing.T) {
	public := map[string]bool{"lanes": true, "block": true, "t": true, "terms": true, "n": true, "d": true, "to": true,
		"i": true, "h": true, "len": true, "src": true, "a": true, "2": true, "4": true, "q": true}
	for name, functions := range secretFunctions {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		found := map[string]bool{}
		for _, decl := range file.Decls {
			f, ok := decl.(*ast.FuncDecl)
			if !ok {
				continue
			}
			for _, want := range functions {
				if f.Name.Name == want {
					found[want] = true
					checkDivisions(t, name, f, public)
				}
			}
		}
		for _, want := range functions {
			if !found[want] {
				t.Errorf("%s has no function %s", name, want)
			}
		}
	}
}

// checkDivisions fails on a division whose divisor is not a public name.
func checkDivisions(t *testing.T, file string, f *ast.FuncDecl, public map[string]bool) {
	ast.Inspect(f, func(n ast.Node) bool {
		e, ok := n.(*ast.BinaryExpr)
		if !ok || e.Op != token.REM && e.Op != token.QUO {
			return true
		}
		safe := true
		ast.Inspect(e, func(n ast.Node) bool {
			switch x := n.(type) {
			case *ast.Ident:
				safe = safe && public[x.Name]
			case *ast.BasicLit:
				safe = safe && public[x.Value]
			}
			return true
		})
		if !safe {
			t.Errorf("%s: %s divides", file, f.Name.Name)
		}
		return true
	})
}
