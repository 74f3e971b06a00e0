package kernels

import (
	"go/ast"
	"go/build"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// proofs names, for each exported kernel, the portable twins that define its
// result, the test that compares all paths with them, and its benchmark.
var proofs = map[string]struct {
	portable  []string
	equality  string
	benchmark string
}{
	"Pack":     {[]string{"packPortable"}, "TestPackEqualsPortable", "BenchmarkPack"},
	"Quantise": {[]string{"quantisePortable"}, "TestQuantiseEqualsPortable", "BenchmarkQuantise"},
	"Extend":   {[]string{"extendPortable"}, "TestExtendEqualsPortable", "BenchmarkExtend"},
	"Assign":   {[]string{"assignPortable"}, "TestAssignEqualsPortable", "BenchmarkAssign"},
	"AssignRadius": {[]string{"assignPortable", "cutPortable"}, "TestAssignEqualsPortable",
		"BenchmarkAssignRadius"},
	"Assign2":   {[]string{"assignPortable"}, "TestAssignEqualsPortable", "BenchmarkAssign2"},
	"Distances": {[]string{"distancesPortable"}, "TestDistancesEqualPortable", "BenchmarkDistances"},
	"AssignAccumulate": {[]string{"assignAccumulatePortable"}, "TestAccumulateEqualsPortable",
		"BenchmarkAssignAccumulate"},
	"Accumulate": {[]string{"accumulatePortable"}, "TestAccumulateEqualsPortable", "BenchmarkAccumulate"},
	"AccumulateOffsets": {[]string{"accumulateOffsetsPortable"}, "TestAccumulateOffsetsEqualsPortable",
		"BenchmarkAccumulateOffsets"},
	"WeightedCost": {[]string{"addCostsPortable"}, "TestAccumulateWeightedEqualsPortable", "BenchmarkWeightedCost"},
	"AddMembers":   {[]string{"addMembersPortable"}, "TestAccumulateWeightedEqualsPortable", "BenchmarkAddMembers"},
	"AssignAccumulateWeighted": {[]string{"assignPortable", "accumulateWeightedPortable"},
		"TestAccumulateWeightedEqualsPortable", "BenchmarkAssignAccumulateWeighted"},
	"UpdateSums":      {[]string{"updateSumsPortable"}, "TestUpdateSumsEqualsPortable", "BenchmarkUpdateSums"},
	"Stale":           {[]string{"stalePortable"}, "TestStaleEqualsPortable", "BenchmarkStale"},
	"StaleByDistance": {[]string{"staleByDistancePortable"}, "TestStaleEqualsPortable", "BenchmarkStaleByDistance"},
	"BoundKeys":       {[]string{"boundKeysPortable"}, "TestBoundKeysEqualPortable", "BenchmarkBoundKeys"},
	"Reassign":        {[]string{"reassignPortable"}, "TestReassignEqualsPortable", "BenchmarkReassign"},
	"MeasureBounds":   {[]string{"assignPortable"}, "TestMeasureBoundsEqualsPortable", "BenchmarkMeasureBounds"},
	"AssignAccumulateRadius": {[]string{"assignPortable", "distancesPortable"},
		"TestAssignAccumulateRadiusEqualsPortable", "BenchmarkAssignAccumulateRadius"},
	"Exchange": {[]string{"exchangePortable"}, "TestExchangeEqualsPortable", "BenchmarkExchange"},
	"PointLosses": {[]string{"pointLossesPortable"}, "TestExchangeEqualsPortable",
		"BenchmarkPointLosses"},
	"CostRows":    {[]string{"costRowsPortable"}, "TestCostRowsEqualPortable", "BenchmarkCostRows"},
	"TopTwo":      {[]string{"topTwoPortable"}, "TestTopTwoEqualsPortable", "BenchmarkTopTwo"},
	"LeastDot":    {[]string{"leastDotPortable"}, "TestLeastDotEqualsPortable", "BenchmarkLeastDot"},
	"Lower":       {[]string{"lowerPortable"}, "TestPotentialsEqualPortable", "BenchmarkLower"},
	"Potentials":  {[]string{"potentialsPortable"}, "TestPotentialsEqualPortable", "BenchmarkPotentials"},
	"NearestSums": {[]string{"nearestSumsPortable"}, "TestNearestSumsEqualPortable", "BenchmarkNearestSums"},
	"Nearer":      {[]string{"nearerPortable"}, "TestNearestSumsEqualPortable", "BenchmarkNearer"},
	"Project":     {[]string{"projectPortable"}, "TestProjectEqualsPortable", "BenchmarkProject"},
	"Arrivals":    {[]string{"arrivalsPortable"}, "TestArrivalsEqualPortable", "BenchmarkArrivals"},
	"Continue":    {[]string{"advancePortable"}, "TestArrivalsEqualPortable", "BenchmarkContinue"},
	"ShareCounts": {[]string{"shareCountsPortable"}, "TestShareCountsEqualsPortable", "BenchmarkShareCounts"},
	"SumMaxima":   {[]string{"sumMaximaPortable"}, "TestSumMaximaEqualsPortable", "BenchmarkSumMaxima"},
	"CountCells":  {[]string{"labelCellsPortable"}, "TestCellsEqualPortable", "BenchmarkCountCells"},
	"CountGrid":   {[]string{"gridCellsPortable"}, "TestGridCellsEqualPortable", "BenchmarkCountGrid"},
	"WeighGrid":   {[]string{"gridCellsPortable"}, "TestGridCellsEqualPortable", "BenchmarkWeighGrid"},
	"AddUint64":   {[]string{"addUint64Portable"}, "TestAddUint64EqualsPortable", "BenchmarkAddUint64"},
}

// notKernels are the exported functions that do no work on points or vectors, or copy
// them in the same code on every path; constructors (New...) are not kernels either.
var notKernels = []string{"ISA", "Select", "Supported", "Paths", "OnPath", "MeasureLimits", "MeasureFMA",
	"MeasureRead", "TopTwoBits", "RowCells", "Gather", "PanelsIn", "DotSquare"}

// TestEveryKernelIsProved reads the source of the package: an exported function
// without an entry in proofs and in the list of paths fails, and so does an entry
// whose portable form, equality test or benchmark does not exist or does not
// mention the kernel.
func TestEveryKernelIsProved(t *testing.T) {
	calls := map[string]map[string]bool{} // function -> identifiers in its body
	exported := map[string]bool{}
	names, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, decl := range file.Decls {
			f, ok := decl.(*ast.FuncDecl)
			if !ok || f.Recv != nil {
				continue
			}
			used := map[string]bool{}
			ast.Inspect(f, func(n ast.Node) bool {
				if id, ok := n.(*ast.Ident); ok {
					used[id.Name] = true
				}
				return true
			})
			if old := calls[f.Name.Name]; old != nil {
				maps.Copy(used, old)
			}
			calls[f.Name.Name] = used
			if f.Name.IsExported() && !strings.HasSuffix(name, "_test.go") &&
				!strings.HasPrefix(f.Name.Name, "New") && !slices.Contains(notKernels, f.Name.Name) {
				exported[f.Name.Name] = true
			}
		}
	}
	listed := map[string]bool{}
	for _, k := range kernelTable {
		if listed[k.name] {
			t.Errorf("%s is twice in the list of paths", k.name)
		}
		listed[k.name] = true
	}
	for kernel := range exported {
		proof, ok := proofs[kernel]
		if !ok {
			t.Errorf("%s has no entry in proofs", kernel)
			continue
		}
		if !listed[kernel] {
			t.Errorf("%s is missing from the list of paths", kernel)
		}
		for _, twin := range proof.portable {
			if calls[twin] == nil {
				t.Errorf("%s: the portable form %s does not exist", kernel, twin)
			}
			if !calls[proof.equality][twin] {
				t.Errorf("%s: %s does not compare with %s", kernel, proof.equality, twin)
			}
		}
		if !calls[proof.equality][kernel] {
			t.Errorf("%s: the equality test %s does not exist or does not call it", kernel, proof.equality)
		}
		if !calls[proof.benchmark][kernel] {
			t.Errorf("%s: the benchmark %s does not exist or does not call it", kernel, proof.benchmark)
		}
	}
	for kernel := range proofs {
		if !exported[kernel] {
			t.Errorf("proofs has an entry for %s, which is not an exported kernel", kernel)
		}
	}
}

// TestPathsAreWritten follows the calls in the source for each processor: a kernel
// reaches an assembly routine of every path that the list gives it, and none of the
// others, but for those of the candidate filter, which a caller may bypass by its
// arguments. The checks of arguments do not count.
func TestPathsAreWritten(t *testing.T) {
	for arch, suffixes := range map[string]map[path]string{
		"amd64": {avx2: "AVX2", avx512: "AVX512", avx512vnni: "VNNI", amx: "AMX"},
		"arm64": {neon: "NEON", neondot: "DOT", neoni8mm: "I8MM"},
	} {
		calls := callsOn(t, arch)
		for _, k := range kernelTable {
			reached := map[string]bool{}
			var follow func(name string)
			follow = func(name string) {
				if reached[name] || strings.HasPrefix(name, "check") {
					return
				}
				reached[name] = true
				for _, next := range calls[name] {
					follow(next)
				}
			}
			follow(k.name)
			for p, suffix := range suffixes {
				found := false
				for name := range reached {
					found = found || strings.HasPrefix(name, "asm.") && strings.HasSuffix(name, suffix)
				}
				if listed := slices.Contains(k.paths, p); found != listed && (listed || slices.Contains(all, p)) {
					t.Errorf("%s on %s: assembly called is %t, listed is %t", k.name, p, found, listed)
				}
			}
		}
	}
}

// callsOn maps each function of the package, as built for a processor, to those that
// its body calls; methods have a dot before their name.
func callsOn(t *testing.T, arch string) map[string][]string {
	ctx := build.Default
	ctx.GOARCH, ctx.BuildTags = arch, nil
	names, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	calls := map[string][]string{}
	for _, name := range names {
		if match, err := ctx.MatchFile(".", name); err != nil {
			t.Fatal(err)
		} else if !match || strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, decl := range file.Decls {
			f, ok := decl.(*ast.FuncDecl)
			if !ok {
				continue
			}
			from := f.Name.Name
			if f.Recv != nil {
				from = "." + from
			}
			ast.Inspect(f, func(n ast.Node) bool {
				call, ok := n.(*ast.CallExpr)
				if !ok {
					return true
				}
				switch fun := call.Fun.(type) {
				case *ast.Ident:
					calls[from] = append(calls[from], fun.Name)
				case *ast.SelectorExpr:
					to := "." + fun.Sel.Name
					if x, ok := fun.X.(*ast.Ident); ok && x.Name == "asm" {
						to = "asm" + to
					}
					calls[from] = append(calls[from], to)
				}
				return true
			})
		}
	}
	return calls
}

// TestPathsListsWhatRuns checks the listing that the version command prints.
func TestPathsListsWhatRuns(t *testing.T) {
	for _, p := range supportedPaths() {
		restore := forcePath(p)
		for i, k := range Paths() {
			want := generic
			for _, q := range supportedPaths() { // the best last
				if slices.Contains(kernelTable[i].paths, q) && q <= p {
					want = q
				}
			}
			if k.Kernel != kernelTable[i].name || k.Path != want.String() {
				t.Errorf("on %s, %s is listed as %s, want %s", p, k.Kernel, k.Path, want)
			}
		}
		restore()
	}
}

// TestSelectedPathIsInUse fails where COHORT_ISA names a path that this CPU or build
// lacks: the other tests would quietly run on what there is.
func TestSelectedPathIsInUse(t *testing.T) {
	if err := Select(); err != nil {
		t.Fatal(err)
	}
	if name := os.Getenv("COHORT_ISA"); name != "" && name != ISA() {
		t.Errorf("COHORT_ISA=%s, but the path is %s", name, ISA())
	}
}

func TestChooseRefusesWhatIsMissing(t *testing.T) {
	for _, p := range supportedPaths() {
		if got, err := choose(p.String()); err != nil || got != p {
			t.Errorf("choose(%s) = %v, %v", p, got, err)
		}
	}
	best, err := choose("")
	if supported := supportedPaths(); err != nil || best != supported[len(supported)-1] {
		t.Errorf("choose() = %v, %v, want the best path", best, err)
	}
	for _, name := range []string{"neon128", "AVX2", "sse"} {
		if _, err := choose(name); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("choose(%s): error %v, want one that names it", name, err)
		}
	}
}
