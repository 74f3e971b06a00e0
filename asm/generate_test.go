package asm

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// generatorRuns reads the arguments of the generator from its go:generate lines.
func generatorRuns(t *testing.T) [][]string {
	t.Helper()
	source, err := os.ReadFile("_gen/generate.go")
	if err != nil {
		t.Fatal(err)
	}
	var runs [][]string
	for _, m := range regexp.MustCompile(`(?m)^//go:generate go run \. (.*)$`).FindAllSubmatch(source, -1) {
		runs = append(runs, strings.Fields(string(m[1])))
	}
	return runs
}

// TestGeneratedFilesAreReproducible writes all generated files again, in another
// folder, and compares them byte for byte with the committed ones. It needs the
// modules of the generator.
func TestGeneratedFilesAreReproducible(t *testing.T) {
	if testing.Short() {
		t.Skip("skipped in short mode: builds the generator")
	}
	download := exec.Command("go", "mod", "download")
	download.Dir = "_gen"
	if out, err := download.CombinedOutput(); err != nil {
		t.Skipf("skipped: the generator's modules cannot be had here: %v: %s", err, out)
	}
	root := t.TempDir()
	folder := filepath.Join(root, "asm")
	inner := filepath.Join(folder, "_gen")
	for _, name := range []string{inner, filepath.Join(root, "kernels", "ntt")} {
		if err := os.MkdirAll(name, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	copyStubs(t, folder)
	program := filepath.Join(inner, "gen")
	build := exec.Command("go", "build", "-o", program, ".")
	build.Dir = "_gen"
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("building the generator: %v: %s", err, out)
	}
	for _, args := range generatorRuns(t) {
		run := exec.Command(program, args...)
		run.Dir = inner
		if out, err := run.CombinedOutput(); err != nil {
			t.Fatalf("%v: %v: %s", args, err, out)
		}
	}
	committed, err := filepath.Glob("*_amd64.*")
	if err != nil {
		t.Fatal(err)
	}
	made, err := filepath.Glob(filepath.Join(folder, "*_amd64.*"))
	if err != nil {
		t.Fatal(err)
	}
	if len(committed) == 0 || len(made) != len(committed) {
		t.Errorf("the generator writes %d files, %d are committed", len(made), len(committed))
	}
	for _, name := range []string{"dispatch_amd64.go", "dispatch_arm64.go"} {
		committed = append(committed, filepath.Join("..", "kernels", name), filepath.Join("..", "kernels", "ntt", name))
	}
	for _, name := range committed {
		want, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(filepath.Join(folder, name))
		if err != nil {
			t.Errorf("%s is committed but not generated: %v", name, err)
		} else if !bytes.Equal(got, want) {
			t.Errorf("%s differs from what the generator writes: run make generate", name)
		}
	}
}

// copyStubs copies the stubs of the assembly that is written by hand, which the
// dispatch functions are made from.
func copyStubs(t *testing.T, folder string) {
	t.Helper()
	names, err := filepath.Glob("*_arm64.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		source, err := os.ReadFile(name)
		if err == nil {
			err = os.WriteFile(filepath.Join(folder, name), source, 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// TestAVX2UsesSixteenRegisters guards against the register allocator of the
// generator, which hands out registers that only AVX-512 has.
func TestAVX2UsesSixteenRegisters(t *testing.T) {
	files, err := filepath.Glob("*_avx2_amd64.s")
	if err != nil || len(files) == 0 {
		t.Fatalf("no AVX2 assembly found: %v", err)
	}
	beyond := regexp.MustCompile(`\b[XY](1[6-9]|2[0-9]|3[01])\b|\bZ[0-9]|\bK[1-7]\b`)
	for _, name := range files {
		source, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for i, line := range strings.Split(string(source), "\n") {
			if beyond.MatchString(line) {
				t.Errorf("%s:%d: %s", name, i+1, strings.TrimSpace(line))
			}
		}
	}
}

// TestNoStrayDirectives: "// go:noescape" with a space does nothing.
func TestNoStrayDirectives(t *testing.T) {
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	stray := regexp.MustCompile(`(?m)^// +go:[a-z]`)
	for _, name := range files {
		source, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if stray.Match(source) {
			t.Errorf("%s has a directive with a space", name)
		}
	}
}
