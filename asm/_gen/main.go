// Command _gen writes the amd64 assembly of the package asm with avo, one file
// of kernels per run, chosen by -kernels; and, with -dispatch, the functions of the
// package kernels that choose among the routines. generate.go lists all runs.
package main

import (
	"flag"
	"fmt"
	"os"
	"sort"

	. "github.com/mmcloughlin/avo/build"
)

// files maps a name to the function that emits its kernels.
var files = map[string]func(){
	"accumulate_avx512": func() { accumulateFile(avx512) },
	"accumulate_avx2":   func() { accumulateFile(avx2) },
	"pack_avx2":         packFile,
	"assign_avx512":     func() { assignFile(avx512) },
	"assign_avx2":       func() { assignFile(avx2) },
	"dot_avx512":        func() { dotFile(avx512) },
	"dot_avx2":          func() { dotFile(avx2) },
	"cost_avx512":       func() { costFile(avx512) },
	"cost_avx2":         func() { costFile(avx2) },
	"ring_avx512":       func() { ringFile(avx512) },
	"ring_avx2":         func() { ringFile(avx2) },
	"label_avx512":      func() { labelFile(avx512) },
	"label_avx2":        func() { labelFile(avx2) },
	"reassign_avx512":   func() { reassignFile(avx512) },
	"reassign_avx2":     func() { reassignFile(avx2) },
	"leastdot_avx512":   func() { leastDotFile(avx512) },
	"leastdot_avx2":     func() { leastDotFile(avx2) },
	"toptwo_avx512":     func() { topTwoFile(avx512) },
	"toptwo_avx2":       func() { topTwoFile(avx2) },
	"limits_avx512":     func() { limitsFile(avx512) },
	"limits_avx2":       func() { limitsFile(avx2) },
	"limits_vnni":       func() { limitsFile(vnni) },
	"limits_amx":        peakTilesFile,
	"arrivals_avx512":   func() { drawFile(avx512) },
	"arrivals_avx2":     func() { drawFile(avx2) },
	"project_avx512":    func() { projectFile(avx512) },
	"project_avx2":      func() { projectFile(avx2) },
	"potential_avx512":  func() { potentialFile(avx512) },
	"potential_avx2":    func() { potentialFile(avx2) },
	"filter_vnni":       func() { filterFile(vnni) },
	"filter_avx2":       func() { filterFile(avx2) },
	"filter_amx":        filterTilesFile,
	"exchange_avx512":   func() { exchangeFile(avx512) },
	"exchange_avx2":     func() { exchangeFile(avx2) },
	"share_avx512":      func() { shareFile(avx512) },
	"share_avx2":        func() { shareFile(avx2) },
	"cells_avx512":      func() { cellsFile(avx512) },
	"cells_avx2":        func() { cellsFile(avx2) },
	"quantise_avx512":   func() { quantiseFile(avx512) },
	"quantise_avx2":     func() { quantiseFile(avx2) },
	"ntt_avx512":        func() { nttFile(avx512) },
	"ntt_avx2":          func() { nttFile(avx2) },
	"narrow_vnni":       narrowFile,
	"rank_vnni":         func() { rankFile(vnni) },
	"rank_avx2":         func() { rankFile(avx2) },
	"weighted_avx512":   func() { weightedFile(avx512) },
	"weighted_avx2":     func() { weightedFile(avx2) },
}

func main() {
	kernels := flag.String("kernels", "", "kernels to emit")
	dispatch := flag.String("dispatch", "", "architecture whose dispatch functions to write")
	to := flag.String("to", "", "file of the dispatch functions")
	flag.Parse()
	if *dispatch != "" {
		if err := dispatchFile(*dispatch, "..", *to); err != nil {
			fmt.Fprintf(os.Stderr, "_gen: %v\n", err)
			os.Exit(1)
		}
		return
	}
	emit, ok := files[*kernels]
	if !ok {
		names := make([]string, 0, len(files))
		for name := range files {
			names = append(names, name)
		}
		sort.Strings(names)
		fmt.Fprintf(os.Stderr, "_gen: -kernels is %q, must be one of %q\n", *kernels, names)
		os.Exit(2)
	}
	ConstraintExpr("amd64,!purego")
	emit()
	Generate()
}
