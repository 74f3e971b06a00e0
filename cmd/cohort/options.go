package main

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/spf13/pflag"

	"github.com/cohort-engine/cohort/engine/catalog"
	"github.com/cohort-engine/cohort/engine/catalog/standard"
	"github.com/cohort-engine/cohort/engine/dataset"
	"github.com/cohort-engine/cohort/engine/method"
	"github.com/cohort-engine/cohort/engine/method/lloyd"
	"github.com/cohort-engine/cohort/engine/privacy"
	"github.com/cohort-engine/cohort/engine/protocol"
	"github.com/cohort-engine/cohort/internal/fault"
	"github.com/cohort-engine/cohort/kernels"
)

// options are the flags that run, profile and audit share, and the settings of
// the methods' own options.
type options struct {
	set *pflag.FlagSet

	fileOptions
	data                                       string
	dataSeed                                   uint64
	genN, genD                                 int
	genSeparation                              float64
	id, join                                   string
	bounds, boundsFile                         string
	fractionBits                               int
	k, kLeast                                  int // kLeast is 0 where k is no range
	method                                     string
	epsilon, delta                             float64
	clients, parties                           int
	proportions, split                         string
	seed                                       uint64
	boundsShare, countShare                    float64
	planned                                    bool // no run: nothing is released
	workers, runs                              int
	format, out                                string
	outFormat                                  string
	ledger, ledgerBudget                       string
	ledgerComposition, ledgerKey, ledgerAnchor string
	quality                                    string
	timings                                    bool
	labelsOut, start, report, weights          string
}

// bind declares the shared flags and a flag for every option of every method.
func (o *options) bind(fs *pflag.FlagSet) {
	o.set = fs
	fs.SortFlags = false
	o.data = "builtin:s1-like"
	fs.Var(&paths{&o.data, false}, "data",
		"file, - for standard input, comma-separated list of one file per client, MNIST folder, or builtin:NAME")
	o.fileOptions.bind(fs)
	fs.Var(&clusters{most: &o.k, least: &o.kLeast}, "k", "number of clusters, or auto:2-30 for one that hybrid chooses "+
		"by what it has released (default: what the built-in set was made with)")
	fs.StringVar(&o.method, "method", "", "method (default: hybrid with --epsilon, lloyd without)")
	fs.Float64Var(&o.epsilon, "epsilon", 0, "privacy budget epsilon of the whole run")
	fs.Float64Var(&o.delta, "delta", 0, "privacy budget delta (default 1/(n ln n) where the mechanism needs one)")
	fs.IntVar(&o.clients, "clients", 1, "number of clients that share the rows")
	fs.StringVar(&o.proportions, "proportions", "", "relative sizes of the clients' shares, such as 3,2,1 (default equal)")
	fs.IntVar(&o.parties, "parties", 2, "number of parties that share the columns")
	fs.StringVar(&o.split, "split", "", `columns of each party, such as "1,3,6;2,4,5" (default contiguous)`)
	fs.StringVar(&o.id, "id", "",
		"id column of --data, which is then one file per party: --data a.csv,b.csv --id customer")
	choose(fs, &o.join, "join", "strict refuses ids that are unmatched or duplicate, inner leaves them out",
		"strict", "inner")
	fs.StringVar(&o.bounds, "bounds", "",
		"public bounds lo:hi of every column (default: from the data, which epsilon does not cover)")
	fs.StringVar(&o.boundsFile, "bounds-file", "", "file of public bounds, one lo,hi line per column")
	fs.Float64Var(&o.boundsShare, "private-bounds", 0,
		"share of epsilon, such as 0.1, that finds the bounds of the columns")
	fs.Float64Var(&o.countShare, "private-n", 0,
		"share of epsilon, such as 0.02, for a noisy number of records, which every parameter follows")
	fs.IntVar(&o.fractionBits, "fraction-bits", 16, "bits after the point of the fixed-point grid, 4 to 22")
	fs.StringVar(&o.weights, "weights", "",
		"file of what each record weighs, one number per row, 0 or more; private methods count up to --weight-cap")
	fs.Uint64Var(&o.seed, "seed", 0, "simulation seed: the run is reproducible and not private")
	fs.IntVar(&o.workers, "workers", 0, "worker threads (default all cores)")
	fs.IntVar(&o.runs, "runs", 1, "repetitions, each of which spends a full epsilon")
	choose(fs, &o.quality, "quality",
		"on, off, or full with silhouette, Dunn, Davies-Bouldin and BCSS: figures computed from the private "+
			"data\n(default off in a private run, that is with a budget and no --seed)", "", "on", "off", "full")
	fs.BoolVar(&o.timings, "timings", false, "show times in a private run too, although they depend on the records")
	fs.StringVar(&o.start, "start", "",
		"file of first centroids in the data's units: CSV, or model.json of an earlier run")
	fs.StringVar(&o.ledger, "ledger", "", "ledger file that several runs on one data set spend one budget from")
	fs.StringVar(&o.ledgerBudget, "ledger-budget", "",
		"EPSILON[:DELTA] of a new ledger file in all (default: what this run asks for)")
	fs.StringVar(&o.ledgerComposition, "ledger-composition", "",
		"how a new ledger file adds up runs: basic, zcdp, gdp or rdp (default basic)")
	fs.StringVar(&o.ledgerKey, "ledger-key", "", "16 random bytes or more that key the ledger file's chain and digests")
	fs.StringVar(&o.ledgerAnchor, "ledger-anchor", "",
		"LINE:HASH that a run or cohort ledger show printed earlier: a file that lost lines since is refused")
	choose(fs, &o.format, "format", "text or json", "text", "json")
	fs.StringVar(&o.out, "out", "", "folder to write result.json, model.json, centroids.csv and ledger.txt to")
	fs.StringVar(&o.report, "report", "", "file for one HTML page with the clusters, the budget and who saw what")
	choose(fs, &o.outFormat, "out-format", "csv or parquet, for the centroids in --out", "csv", "parquet")
	fs.StringVar(&o.labelsOut, "labels-out", "",
		"file for each record's cluster, .csv, .npy or .parquet; with a file per client, one for each")
	fs.Uint64Var(&o.dataSeed, "data-seed", 1, "seed of a built-in generator")
	fs.IntVar(&o.genN, "n", 0, "rows of a built-in generator (default: its own)")
	fs.IntVar(&o.genD, "d", 0, "columns of a built-in set that lets them be chosen (default: its own)")
	fs.Float64Var(&o.genSeparation, "separation", 0,
		"separation of the clusters of builtin:blobs, synth and timesynth (default: their own)")
	for _, option := range methodOptions() {
		if fs.Lookup(option.name) != nil {
			continue
		}
		f := fs.VarPF(&setting{kind: option.kind}, option.name, "", option.about())
		if option.kind == "bool" {
			f.NoOptDefVal = "true"
		}
	}
}

// methodOption is an option that some methods take, by what it is to them.
type methodOption struct {
	name, kind string
	uses       []optionUse
}

// optionUse is what an option is to those methods.
type optionUse struct {
	about  string
	takers []string
}

// about says what the option is, and to which methods.
func (o *methodOption) about() string {
	var all []string
	for _, u := range o.uses {
		all = append(all, u.about+" ("+strings.Join(u.takers, ", ")+")")
	}
	return strings.Join(all, "; ")
}

// methodOptions are the options of all methods, each once: several commands have them, and methods make a job to
// tell theirs.
var methodOptions = sync.OnceValue(func() []methodOption {
	var all []methodOption
	at := make(map[string]int)
	for _, m := range catalog.Methods() {
		for _, option := range m.Options() {
			i, ok := at[option.Name]
			if !ok {
				i = len(all)
				at[option.Name] = i
				all = append(all, methodOption{name: option.Name, kind: option.Type()})
			}
			uses := &all[i].uses
			u := slices.IndexFunc(*uses, func(u optionUse) bool { return u.about == option.About })
			if u < 0 {
				u = len(*uses)
				*uses = append(*uses, optionUse{about: option.About})
			}
			(*uses)[u].takers = append((*uses)[u].takers, m.Name)
		}
	}
	return all
})

// isMethodOption tells whether some method takes an option.
func isMethodOption(name string) bool {
	return slices.ContainsFunc(methodOptions(), func(o methodOption) bool { return o.name == name })
}

// bindSome declares those of the flags that a command makes use of, so that the others are refused.
func (o *options) bindSome(fs *pflag.FlagSet, uses func(flag string) bool) {
	all := pflag.NewFlagSet("", pflag.ContinueOnError)
	o.bind(all)
	o.set = fs
	fs.SortFlags = false
	all.VisitAll(func(f *pflag.Flag) {
		if uses(f.Name) {
			fs.AddFlag(f)
		}
	})
}

// paths is the flag of files, which may be listed, or given in several flags.
type paths struct {
	text  *string
	given bool
}

func (p *paths) String() string { return *p.text }
func (p *paths) Type() string   { return "string" }

// Set takes what is given first in the place of the default, and adds what is given then.
func (p *paths) Set(text string) error {
	if p.given {
		text = *p.text + "," + text
	}
	*p.text, p.given = text, true
	return nil
}

// setting is the flag of a method's option: its text, which the method reads.
type setting struct{ text, kind string }

func (s *setting) String() string { return s.text }
func (s *setting) Type() string   { return s.kind }

// Set takes the text; a list may be given in several flags.
func (s *setting) Set(text string) error {
	if s.kind == "list" && s.text != "" {
		text = s.text + "," + text
	}
	s.text = text
	return nil
}

// leastOption is the option of a method that chooses the number of clusters.
const leastOption = "k-least"

// clusters is the flag of the number of clusters, or of a range of it.
type clusters struct {
	most, least *int
	text        string
}

func (c *clusters) Type() string { return "number" }

func (c *clusters) String() string { return c.text }

// Set reads a number, or auto:LEAST-MOST.
func (c *clusters) Set(text string) error {
	rule := errors.New("a number such as 8, or a range such as auto:2-30")
	most, least := text, ""
	span, isRange := strings.CutPrefix(text, "auto:")
	if isRange {
		var both bool
		if least, most, both = strings.Cut(span, "-"); !both {
			return rule
		}
	}
	var err error
	c.text = text
	if *c.most, err = strconv.Atoi(most); err != nil {
		return rule
	}
	if *c.least = 0; isRange {
		if *c.least, err = strconv.Atoi(least); err != nil || *c.least < 1 || *c.least > *c.most {
			return rule
		}
	}
	return nil
}

// settings are the options of methods that were given.
func (o *options) settings() method.Settings {
	given := make(method.Settings)
	if o.kLeast > 0 {
		given[leastOption] = strconv.Itoa(o.kLeast)
	}
	o.set.Visit(func(f *pflag.Flag) {
		if s, ok := f.Value.(*setting); ok && f.Changed {
			given[f.Name] = s.text
		}
	})
	return given
}

// withdraw takes a method's option back.
func (o *options) withdraw(name string) { o.set.Lookup(name).Changed = false }

// setting is the text of a method's option, empty if it was not given.
func (o *options) setting(name string) string { return o.settings()[name] }

// scalesToUnit tells whether records are scaled to length 1.
func (o *options) scalesToUnit() bool { return o.setting("metric") == string(lloyd.Cosine) }

// calibration is the one given, or the method's default.
func (o *options) calibration(m *method.Method) privacy.Calibration {
	if c := o.setting("calibration"); c != "" {
		return privacy.Calibration(c)
	}
	return m.Calibrations()[0]
}

// scope says which methods take a shared flag, nil for all.
func scope(flag string) func(*method.Method) bool {
	switch flag {
	case "epsilon", "delta", "ledger", "ledger-budget", "ledger-composition", "ledger-key", "ledger-anchor":
		return func(m *method.Method) bool { return m.Private }
	case "clients", "proportions":
		return func(m *method.Method) bool { return m.Holds == method.Rows }
	case "start":
		return func(m *method.Method) bool { return m.Starts }
	case "weights":
		return func(m *method.Method) bool { return m.Weighs }
	case "parties", "split", "id", "join":
		return func(m *method.Method) bool { return m.Holds == method.Columns }
	}
	return nil
}

// checkScope refuses shared flags that the method does not take.
func (o *options) checkScope(methods method.List, m *method.Method) (err error) {
	o.set.Visit(func(f *pflag.Flag) {
		takes := scope(f.Name)
		switch {
		case err != nil || takes == nil || takes(m):
		case f.Name == "epsilon" || f.Name == "delta":
			err = fault.Request("--"+f.Name, m.Name+" is not private and spends none", "choose a private method, or leave --"+
				f.Name+" out")
		default:
			err = methods.Foreign(m, f.Name, takes)
		}
	})
	return err
}

// refuseZero refuses flags whose zero would stand for their default.
func refuseZero(fs *pflag.FlagSet, rule string, flags ...string) error {
	for _, flag := range flags {
		if fs.Changed(flag) && fs.Lookup(flag).Value.String() == "0" {
			return fault.Range("--"+flag, 0, rule)
		}
	}
	return nil
}

// given reports whether the user set the flag.
func (o *options) given(flag string) bool { return o.set.Changed(flag) }

// private reports whether what is printed must not depend on the records but by what is paid for.
func (o *options) private(m *method.Method) bool { return m.Private && !o.given("seed") }

// showsQuality reports whether figures that no budget covers are computed.
func (o *options) showsQuality(m *method.Method) bool {
	return o.quality == "on" || o.quality == "full" || o.quality == "" && !o.private(m) && o.weights == ""
}

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

// budget is the budget given, with a negative delta for "the default".
func (o *options) budget() privacy.Budget {
	if !o.given("epsilon") {
		return privacy.Budget{}
	}
	b := privacy.Budget{Epsilon: o.epsilon * (1 - o.boundsShare - o.countShare), Delta: -1}
	if o.given("delta") {
		b.Delta = o.delta
	}
	return b
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

// methodName is the method that was asked for, or the default.
func (o *options) methodName() string {
	if o.method != "" {
		return o.method
	}
	return standard.Default(o.given("epsilon"))
}

// resolve fills in the defaults that depend on other flags and refuses what can
// be refused without data: values, and flags that the method does not take.
func (o *options) resolve() (*method.Method, error) {
	methods := catalog.Methods()
	o.method = o.methodName()
	m, err := methods.Find(o.method)
	if err != nil {
		return nil, err
	}
	if m = m.With(o.settings()); m.Quiet && !m.Private && o.given("epsilon") {
		return nil, fault.Request("--epsilon", "is given with --calibration none, which adds no noise",
			"leave one of them out")
	}
	if o.scalesToUnit() && !o.given("fraction-bits") {
		o.fractionBits = dataset.MaxFractionBits
	}
	switch {
	case o.given("k") && o.k < 1:
		return nil, fault.Range("--k", o.k, "at least 1")
	case !o.given("k") && !strings.HasPrefix(o.data, "builtin:"):
		return nil, fault.Request("--k", "is not given", "say how many clusters to look for, such as --k 8")
	case o.kLeast > 0 && !m.Takes(leastOption):
		return nil, methods.Foreign(m, "--k auto", func(m *method.Method) bool { return m.Takes(leastOption) })
	case o.clients < 1:
		return nil, fault.Range("--clients", o.clients, "at least 1")
	case o.given("join") && !o.given("id"):
		return nil, fault.Request("--join", "is given without --id", "name the id column of each party's file with --id")
	case o.given("bounds") && o.given("bounds-file"):
		return nil, fault.Request("--bounds", "is given together with --bounds-file", "give one of them")
	case o.fractionBits < 4 || o.fractionBits > 22:
		return nil, fault.Range("--fraction-bits", o.fractionBits, "4 to 22")
	case o.runs < 1:
		return nil, fault.Range("--runs", o.runs, "at least 1")
	}
	_, proportions := o.proportionList()
	_, memory := o.memory()
	for _, err := range []error{
		o.checkScope(methods, m), o.checkNumbers(), proportions, memory, o.checkMissing(m), o.checkBoundsShare(m),
		o.checkCountShare(m), checkOut(o.out), selectKernels(),
	} {
		if err != nil {
			return nil, err
		}
	}
	if _, err := methods.Job(m.Name, protocol.Problem{Budget: o.budget()}, o.settings()); err != nil {
		return nil, err
	}
	return m, o.checkLedger(m)
}

// checkMissing refuses to leave out records where neighbours have as many: what is
// missing in one record must not change how many there are.
func (o *options) checkMissing(m *method.Method) error {
	if o.missing == dataset.DropRow.String() && m.Private && o.setting("neighbours") == string(privacy.ReplaceOne) {
		return fault.Request("--missing",
			"drop-row lets one record change how many there are, and --neighbours is replace-one",
			"use mean-of-bounds, or --neighbours add-remove")
	}
	return nil
}

// checkBoundsShare refuses a share of epsilon for the bounds that cannot be spent.
func (o *options) checkBoundsShare(m *method.Method) error {
	refuse := func(why, do string) error { return fault.Request("--private-bounds", why, do) }
	switch {
	case !o.given("private-bounds"):
		return nil
	case !(o.boundsShare > 0 && o.boundsShare < 1):
		return fault.Range("--private-bounds", o.boundsShare, "between 0 and 1, such as 0.1")
	case !m.Private:
		return refuse(m.Name+" is not private and spends nothing", "leave it out, or choose a private method")
	case o.given("bounds") || o.given("bounds-file"):
		return refuse("is given together with bounds", "give one of them")
	case o.calibration(m) != privacy.Proven:
		return refuse("is proven, and the calibration is "+string(o.calibration(m)), "state bounds with --bounds")
	}
	return nil
}

// ownNumber tells whether the number of records that a run follows is the data's own.
func (o *options) ownNumber() bool { return o.setting("public-n") == "" && !o.given("private-n") }

// checkCountShare refuses a share of epsilon for the number of records that cannot be spent.
func (o *options) checkCountShare(m *method.Method) error {
	refuse := func(why, do string) error { return fault.Request("--private-n", why, do) }
	switch {
	case !o.given("private-n"):
		return nil
	case !(o.countShare > 0 && o.countShare+o.boundsShare < 1):
		return fault.Range("--private-n", o.countShare,
			"between 0 and 1, such as 0.02, together with --private-bounds below 1")
	case !m.Private:
		return refuse(m.Name+" is not private and spends nothing", "leave it out, or choose a private method")
	case !m.Takes("public-n"):
		return refuse("is of no use: all parties of "+m.Name+" know the number of records", "leave it out")
	case o.given("public-n"):
		return refuse("is given together with --public-n", "give one of them")
	case m.Neighbours(method.Settings{"neighbours": o.setting("neighbours")}) == privacy.ReplaceOne:
		return refuse("hides nothing: neighbours that differ in one record have as many",
			"leave it out, or use --neighbours add-remove")
	case o.calibration(m) != privacy.Proven:
		return refuse("is proven, and the calibration is "+string(o.calibration(m)), "state a number with --public-n")
	case o.ledger != "" && !o.given("delta"):
		return refuse("keeps the number of records from all, and the default delta, which a ledger file has, follows it",
			"give --delta")
	}
	return nil
}

// checkNumbers refuses a budget and a number of workers that nothing accepts.
func (o *options) checkNumbers() error {
	switch {
	case o.given("epsilon") && (!(o.epsilon > 0) || math.IsInf(o.epsilon, 0)):
		return fault.Range("--epsilon", o.epsilon, "a positive number")
	case o.given("delta") && !(o.delta >= 0 && o.delta < 1):
		return fault.Range("--delta", o.delta, "in [0, 1)")
	case o.given("workers") && o.workers < 1:
		return fault.Range("--workers", o.workers, "at least 1")
	}
	return nil
}

// selectKernels chooses the instruction set, which fails if COHORT_ISA asks for
// one that the CPU lacks.
func selectKernels() error {
	if err := kernels.Select(); err != nil {
		return fault.Request("COHORT_ISA", err.Error(), "choose one of these or unset it")
	}
	return nil
}
