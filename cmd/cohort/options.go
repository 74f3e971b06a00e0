package main

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math"
	"os"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"github.com/cohort-engine/cohort/engine/fault"
	"github.com/cohort-engine/cohort/engine/privacy"
	"github.com/cohort-engine/cohort/kernels"
)

// options are the flags that run, profile and audit share. Flags of a single
// family live beside its methods; see family.flags.
type options struct {
	set *pflag.FlagSet

	data, columns, labels  string
	dataSeed               uint64
	genN, genD             int
	genSeparation          float64
	bounds, boundsFile     string
	fractionBits           int
	k                      int
	method                 string
	epsilon, delta         float64
	calibration            string
	neighbours, mechanism  string
	clients, parties       int
	proportions, split     string
	iterations, init, post string
	seed                   uint64
	workers, runs          int
	format, out            string
	ledger, ledgerBudget   string
	quality                string
}

// bind declares the shared flags and those of every family.
func (o *options) bind(fs *pflag.FlagSet) {
	o.set = fs
	fs.SortFlags = false
	fs.StringVar(&o.data, "data", "builtin:s1-like", "file, comma-separated list of one file per client, MNIST folder, or builtin:NAME")
	fs.StringVar(&o.columns, "columns", "", "columns to use, by number from 0 or by name, comma-separated (default all)")
	fs.StringVar(&o.labels, "labels", "", "file of true labels, one per row, for label scores")
	fs.IntVar(&o.k, "k", 0, "number of clusters (default: what the built-in set was made with)")
	fs.StringVar(&o.method, "method", "", "method, see below (default: hybrid with --epsilon, lloyd without)")
	fs.Float64Var(&o.epsilon, "epsilon", 0, "privacy budget epsilon of the whole run")
	fs.Float64Var(&o.delta, "delta", 0, "privacy budget delta (default 1/(n ln n) where the mechanism needs one)")
	fs.StringVar(&o.calibration, "calibration", "proven", "proven, claimed (the paper's theorem) or published (its released code)")
	fs.StringVar(&o.mechanism, "mechanism", "", "laplace or gaussian (default: the method's)")
	fs.StringVar(&o.neighbours, "neighbours", "add-remove", "neighbour relation: add-remove or replace-one")
	fs.IntVar(&o.clients, "clients", 1, "number of clients that share the rows")
	fs.StringVar(&o.proportions, "proportions", "", "relative sizes of the clients' shares, such as 3,2,1 (default equal)")
	fs.IntVar(&o.parties, "parties", 2, "number of parties that share the columns (vertical methods)")
	fs.StringVar(&o.split, "split", "", `columns of each party, such as "0,2,5;1,3,4" (default contiguous)`)
	fs.StringVar(&o.iterations, "iterations", "auto", "auto (the method's rule) or a number")
	fs.StringVar(&o.init, "init", "sphere", "sphere, random, or kmeans++ (non-private methods)")
	fs.StringVar(&o.post, "post", "fold", "post-processing of noisy centroids: fold, truncate or none")
	fs.StringVar(&o.bounds, "bounds", "", "public bounds lo:hi of every column (default: from the data, with a ledger note)")
	fs.StringVar(&o.boundsFile, "bounds-file", "", "file of public bounds, one lo,hi line per column")
	fs.IntVar(&o.fractionBits, "fraction-bits", 16, "bits after the point of the fixed-point grid, 4 to 22")
	fs.Uint64Var(&o.seed, "seed", 0, "simulation seed: the run is reproducible and not private")
	fs.IntVar(&o.workers, "workers", 0, "worker threads (default all cores)")
	fs.IntVar(&o.runs, "runs", 1, "repetitions, each of which spends a full epsilon")
	fs.StringVar(&o.quality, "quality", "on", "on, or off to leave out what is computed from the private data")
	fs.StringVar(&o.ledger, "ledger", "", "ledger file that several runs on one data set spend one budget from")
	fs.StringVar(&o.ledgerBudget, "ledger-budget", "", "EPSILON[:DELTA] of a new ledger file in all (default: what this run asks for)")
	fs.StringVar(&o.format, "format", "text", "text or json")
	fs.StringVar(&o.out, "out", "", "folder to write result.json, centroids.csv and ledger.txt to")
	fs.Uint64Var(&o.dataSeed, "data-seed", 1, "seed of a built-in generator")
	fs.IntVar(&o.genN, "n", 0, "rows of a built-in generator (default: its own)")
	fs.IntVar(&o.genD, "d", 0, "columns of a built-in set that lets them be chosen (default: its own)")
	fs.Float64Var(&o.genSeparation, "separation", 0, "separation of the clusters of builtin:blobs, synth and timesynth (default: their own)")
	for _, f := range families() {
		f.flags(fs, o)
	}
}

// given reports whether the user set the flag.
func (o *options) given(flag string) bool { return o.set.Changed(flag) }

// seedPointer is the simulation seed, or nil if none was given.
func (o *options) seedPointer() *uint64 {
	if !o.given("seed") {
		return nil
	}
	return &o.seed
}

// forRun returns a copy of o for repetition r, counted from 1. Run 1 has the
// seed that was given; the others have seeds derived from it.
func (o *options) forRun(r int) *options {
	c := *o
	if r > 1 {
		var b [16]byte
		binary.LittleEndian.PutUint64(b[:8], o.seed)
		binary.LittleEndian.PutUint64(b[8:], uint64(r))
		h := sha256.Sum256(append([]byte("cohort run"), b[:]...))
		c.seed = binary.LittleEndian.Uint64(h[:8])
	}
	return &c
}

// defaultPrivateMethod is used when an epsilon is given and no method.
const defaultPrivateMethod = "hybrid"

// budget is the budget given, with a negative delta for "the default".
func (o *options) budget() privacy.Budget {
	b := privacy.Budget{Epsilon: o.epsilon, Delta: -1}
	if o.given("delta") {
		b.Delta = o.delta
	}
	return b
}

// iterationCount is 0 for auto.
func (o *options) iterationCount() (int, error) {
	if o.iterations == "auto" {
		return 0, nil
	}
	n, err := strconv.Atoi(o.iterations)
	if err != nil || n < 1 || n > 1_000_000 {
		return 0, fault.Range("--iterations", strconv.Quote(o.iterations), `"auto" or a number from 1 to 1000000`)
	}
	return n, nil
}

// proportionList parses --proportions; nil means equal shares.
func (o *options) proportionList() ([]float64, error) {
	if o.proportions == "" {
		return nil, nil
	}
	var list []float64
	for _, s := range strings.Split(o.proportions, ",") {
		x, err := strconv.ParseFloat(strings.TrimSpace(s), 64)
		if err != nil || !(x > 0) || math.IsInf(x, 0) {
			return nil, fault.Range("--proportions", strconv.Quote(s), "positive numbers such as 3,2,1")
		}
		list = append(list, x)
	}
	return list, nil
}

// resolve fills in the defaults that depend on other flags and refuses values
// that no method accepts. It reads no data.
func (o *options) resolve() (family, method, error) {
	fail := func(err error) (family, method, error) { return family{}, method{}, err }
	if o.method == "" {
		o.method = "lloyd"
		if o.given("epsilon") {
			o.method = defaultPrivateMethod
		}
	}
	f, m, err := findMethod(o.method)
	if err != nil {
		return fail(err)
	}
	if err := checkFormat(o.format, "text", "json"); err != nil {
		return fail(err)
	}
	for _, c := range []struct {
		flag, value string
		allowed     []string
	}{
		{"calibration", o.calibration, []string{"proven", "claimed", "published"}},
		{"neighbours", o.neighbours, []string{"add-remove", "replace-one"}},
		{"init", o.init, []string{"sphere", "random", "kmeans++"}},
		{"post", o.post, []string{"fold", "truncate", "none"}},
		{"quality", o.quality, []string{"on", "off"}},
	} {
		if err := oneOf(c.flag, c.value, c.allowed...); err != nil {
			return fail(err)
		}
	}
	if o.mechanism != "" {
		if err := oneOf("mechanism", o.mechanism, "laplace", "gaussian"); err != nil {
			return fail(err)
		}
	}
	switch {
	case o.given("k") && o.k < 1:
		return fail(fault.Range("--k", o.k, "at least 1"))
	case !o.given("k") && !strings.HasPrefix(o.data, "builtin:"):
		return fail(fault.Request("--k", "is not given", "say how many clusters to look for, such as --k 8"))
	case o.given("epsilon") && (!(o.epsilon > 0) || math.IsInf(o.epsilon, 0)):
		return fail(fault.Range("--epsilon", o.epsilon, "a positive number"))
	case o.given("delta") && !(o.delta >= 0 && o.delta < 1):
		return fail(fault.Range("--delta", o.delta, "in [0, 1)"))
	case m.private && !o.given("epsilon"):
		return fail(fault.Request("--epsilon", "is not given", o.method+" is private and needs a budget, such as --epsilon 1"))
	case m.private && o.init == "kmeans++":
		return fail(fault.Request("--init", "kmeans++ looks at the data, which "+o.method+" does not pay for",
			"use sphere or random, or a non-private method"))
	case o.clients < 1:
		return fail(fault.Range("--clients", o.clients, "at least 1"))
	case m.vertical && o.given("clients") && o.clients != 1:
		return fail(fault.Request("--clients", o.method+" splits the data by columns", "use --parties"))
	case !m.vertical && (o.given("parties") || o.given("split")):
		return fail(fault.Request("--parties", o.method+" splits the data by rows", "use --clients"))
	case o.given("bounds") && o.given("bounds-file"):
		return fail(fault.Request("--bounds", "is given together with --bounds-file", "give one of them"))
	case o.fractionBits < 4 || o.fractionBits > 22:
		return fail(fault.Range("--fraction-bits", o.fractionBits, "4 to 22"))
	case o.runs < 1:
		return fail(fault.Range("--runs", o.runs, "at least 1"))
	case o.given("workers") && o.workers < 1:
		return fail(fault.Range("--workers", o.workers, "at least 1"))
	}
	if o.out != "" {
		if err := checkOut(o.out); err != nil {
			return fail(err)
		}
	}
	if _, err := o.iterationCount(); err != nil {
		return fail(err)
	}
	if _, err := o.proportionList(); err != nil {
		return fail(err)
	}
	if err := selectKernels(); err != nil {
		return fail(err)
	}
	if err := o.checkLedger(m); err != nil {
		return fail(err)
	}
	return f, m, f.check(o)
}

// checkOut refuses an output folder that could not be written, before a long
// run rather than after it.
func checkOut(dir string) error {
	info, err := os.Stat(dir)
	switch {
	case err == nil && !info.IsDir():
		return fault.Request("--out", fmt.Sprintf("%s is a file", dir), "name a folder")
	case err != nil && !os.IsNotExist(err):
		return fault.Request("--out", err.Error(), "name a folder that can be written")
	}
	return nil
}

func checkFormat(value string, allowed ...string) error { return oneOf("format", value, allowed...) }

// selectKernels chooses the instruction set, which fails if COHORT_ISA asks for
// one that the CPU lacks.
func selectKernels() error {
	if err := kernels.Select(); err != nil {
		return fault.Request("COHORT_ISA", err.Error(), "unset it or choose one that this CPU has")
	}
	return nil
}
