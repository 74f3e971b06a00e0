// Command mca prints what LLVM's machine-code analyser makes of the inner loops of
// the kernels: cycles for each dimension, and the share of the multiply-add pipes that
// the loop keeps busy. It needs llvm-objdump and llvm-mca (Debian: llvm-19). The
// figures for arm64 come from LLVM's scheduling tables alone; those for amd64 stand
// beside the shares that `cohort bench kernels embeddings` measures, which shows how
// far to trust the method.
package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
)

// loop is a kernel whose innermost loop with the most multiply-adds is analysed.
type loop struct {
	arch, symbol, triple string
	dims                 float64 // dimensions of a pass of the loop
	cpus                 []cpu
}

// cpu is a scheduling table: its name for LLVM, its multiply-add pipes for the
// loop's vectors, and what the table stands for.
type cpu struct {
	name  string
	pipes float64
	note  string
}

var arm = []cpu{
	{"neoverse-n2", 2, ""},
	{"neoverse-v2", 4, ""},
	{"apple-m1", 3, "LLVM schedules it by its table for Cyclone"},
}

// loops lists the kernels with the dimensions that a pass of their loop takes.
var loops = []loop{
	{"arm64", "AssignDot4NEON", "aarch64", 1, arm},
	{"arm64", "AssignSubNEON", "aarch64", 1, arm},
	{"arm64", "Project4NEON", "aarch64", 1, arm},
	{"arm64", "FilterBytes1DOT", "aarch64", 4, arm},
	{"arm64", "FilterBytes1I8MM", "aarch64", 8, []cpu{arm[0], arm[1], {"apple-m2", 3, arm[2].note}}},
	{"amd64", "AssignDot6AVX512", "x86_64", 1, []cpu{{"znver4", 1, "512 bits in two halves"}}},
	{"amd64", "AssignDot6AVX2", "x86_64", 1, []cpu{{"znver3", 2, ""}, {"znver4", 2, ""}}},
	{"amd64", "FilterScore1AVX2", "x86_64", 2, []cpu{{"znver3", 2, ""}}},
	{"amd64", "FilterRunsAVX2", "x86_64", 8, []cpu{{"znver3", 2, ""}}},
	{"amd64", "FilterScore3VNNI", "x86_64", 2, []cpu{{"znver4", 1, "512 bits in two halves"}}},
}

// multiplyAdd finds the instructions that the multiply-add pipes take.
var multiplyAdd = regexp.MustCompile(`\b(fml[as]|vfn?m(add|sub)\d+ps|vpdpwssd|vpmaddwd|vpmaddubsw|sdot|usmmla)\b`)

func main() {
	if err := run(); err != nil {
		fmt.Fprintf(os.Stderr, "mca: %v\n", err)
		os.Exit(1)
	}
}

func run() error {
	folder, err := os.MkdirTemp("", "mca")
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder)
	fmt.Printf("%-20s %-12s %10s %12s %8s  %s\n", "kernel", "model", "cycles/dim", "multiply-adds", "of pipes", "note")
	built := map[string]string{}
	for _, l := range loops {
		if built[l.arch] == "" {
			path := filepath.Join(folder, l.arch)
			build := exec.Command("go", "test", "-c", "-o", path, "./kernels")
			build.Env = append(os.Environ(), "GOARCH="+l.arch)
			if out, err := build.CombinedOutput(); err != nil {
				return fmt.Errorf("building for %s: %w: %s", l.arch, err, out)
			}
			built[l.arch] = path
		}
		body, err := innerLoop(built[l.arch], l.symbol)
		if err != nil {
			return err
		}
		for _, c := range l.cpus {
			cycles, err := analyse(body, l.triple, c.name)
			if err != nil {
				return err
			}
			count := float64(len(multiplyAdd.FindAllString(strings.Join(body, "\n"), -1)))
			fmt.Printf("%-20s %-12s %10.2f %12.0f %7.0f%%  %s\n", l.symbol, c.name, cycles/l.dims, count,
				100*count/c.pipes/cycles, c.note)
		}
	}
	return nil
}

// tool finds a program of LLVM, of version 19 where there are several.
func tool(name string) string {
	if path, err := exec.LookPath(name + "-19"); err == nil {
		return path
	}
	return name
}

var (
	line   = regexp.MustCompile(`^\s*([0-9a-f]+):\s+(.*)$`)
	target = regexp.MustCompile(`^(?:b\.\w+|cbn?z|tbn?z|j\w+)\s.*?0x([0-9a-f]+)`)
)

// innerLoop returns the instructions of the loop of a routine that has the most
// multiply-adds and no loop inside.
func innerLoop(binary, symbol string) ([]string, error) {
	out, err := exec.Command(tool("llvm-objdump"), "-d", "--no-show-raw-insn",
		"--disassemble-symbols=github.com/cohort-engine/cohort/asm."+symbol+".abi0", binary).Output()
	if err != nil {
		return nil, fmt.Errorf("llvm-objdump (Debian: llvm-19): %w", err)
	}
	var text []string
	at := map[uint64]int{}
	var best []string
	most, after := 0, -1 // no loop that begins at or before after is innermost
	for _, l := range strings.Split(string(out), "\n") {
		m := line.FindStringSubmatch(l)
		if m == nil {
			continue
		}
		address, err := strconv.ParseUint(m[1], 16, 64)
		if err != nil {
			return nil, err
		}
		instruction, _, _ := strings.Cut(strings.ReplaceAll(m[2], "\t", " "), "<")
		at[address] = len(text)
		text = append(text, instruction)
		jump := target.FindStringSubmatch(instruction)
		if jump == nil {
			continue
		}
		to, err := strconv.ParseUint(jump[1], 16, 64)
		if err != nil {
			return nil, err
		}
		from, ok := at[to]
		if !ok || from <= after {
			continue // forward, or around another loop
		}
		after = from
		body := append([]string{"again:"}, text[from:]...)
		body[len(body)-1] = strings.Replace(instruction, "0x"+jump[1], "again", 1)
		if count := len(multiplyAdd.FindAllString(strings.Join(body, "\n"), -1)); count > most {
			best, most = body, count
		}
	}
	if most == 0 {
		return nil, fmt.Errorf("%s: no loop with multiply-adds found", symbol)
	}
	return best, nil
}

// analyse returns the cycles of a pass of the loop.
func analyse(body []string, triple, name string) (float64, error) {
	const passes = 200
	cmd := exec.Command(tool("llvm-mca"), "-mtriple="+triple, "-mcpu="+name, "-iterations="+strconv.Itoa(passes))
	cmd.Stdin = strings.NewReader(strings.Join(body, "\n") + "\n")
	out, err := cmd.CombinedOutput()
	if err != nil {
		return 0, fmt.Errorf("llvm-mca for %s: %w: install LLVM 19 (Debian: llvm-19): %s", name, err, out)
	}
	m := regexp.MustCompile(`Total Cycles:\s+(\d+)`).FindSubmatch(out)
	if m == nil {
		return 0, fmt.Errorf("llvm-mca for %s: no total in its answer", name)
	}
	cycles, err := strconv.ParseFloat(string(m[1]), 64)
	return cycles / passes, err
}
