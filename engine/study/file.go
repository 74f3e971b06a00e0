package study

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/cohort-engine/cohort/engine"
	"github.com/cohort-engine/cohort/engine/catalog"
	"github.com/cohort-engine/cohort/engine/dataset"
	"github.com/cohort-engine/cohort/engine/method"
	"github.com/cohort-engine/cohort/engine/privacy"
	"github.com/cohort-engine/cohort/engine/protocol"
	"github.com/cohort-engine/cohort/engine/study/bus"
	"github.com/cohort-engine/cohort/engine/study/sum"
	"github.com/cohort-engine/cohort/internal/fault"
)

// version is that of study files and messages. Others are refused.
const version = 4

// mostColumns and mostFile bound what a party takes from a study file.
const (
	mostColumns = 1 << 16
	mostFile    = 8 << 20
)

// Holder is a party as the study names it.
type Holder struct {
	Name string `json:"name"`
	// Columns is how many columns it holds, of a method over columns; they are
	// numbered in the order of the parties.
	Columns int `json:"columns,omitempty"`
}

// Deadlines are how long the coordinator waits, in seconds.
type Deadlines struct {
	// Step is how long a step of a sum waits for those who were there in the last.
	Step int `json:"step"`
	// Message is how long other messages are waited for, and the end of the study
	// for those who are away.
	Message int `json:"message"`
}

// Study is what is public of a study and does not change: its hash is what every
// party signs.
type Study struct {
	Version int    `json:"cohort_study"`
	Engine  string `json:"engine"`
	ID      string `json:"id"`
	Title   string `json:"title,omitempty"`

	Method  string          `json:"method"`
	Options method.Settings `json:"options"`
	K       int             `json:"k"`
	Epsilon float64         `json:"epsilon,omitempty"`
	// Delta is negative for the method's default.
	Delta float64 `json:"delta,omitempty"`
	// Records is the public number of records of all parties: every parameter follows
	// from it, none from how many there are.
	Records      int `json:"records"`
	FractionBits int `json:"fraction_bits"`
	// Columns are the names that a party's file has; nil takes all columns in their order.
	Columns []string     `json:"columns,omitempty"`
	Bounds  [][2]float64 `json:"bounds"`
	// IDColumn matches the rows of parties that hold columns; empty takes them in
	// their order.
	IDColumn string `json:"id_column,omitempty"`

	Parties []Holder `json:"parties"`
	// Servers are those besides the coordinator among which the parties share their
	// vectors, of a study whose aggregator is shares.
	Servers []Holder `json:"servers,omitempty"`
	// Threshold is the least number of parties in a sum.
	Threshold int       `json:"threshold"`
	Deadlines Deadlines `json:"deadlines"`
	// PlainSums leaves out the masks between pairs of parties.
	PlainSums bool `json:"plain_sums,omitempty"`
	// Quality releases figures that no budget covers.
	Quality bool `json:"quality,omitempty"`
	// PadRounds makes the rounds of every party take at least so many milliseconds.
	PadRounds int `json:"pad_rounds,omitempty"`
	// Seed makes the study a simulation: nobody's data are protected.
	Seed       *uint64             `json:"seed,omitempty"`
	PublicSeed protocol.PublicSeed `json:"public_seed"`
	// Plan is what the run will do, cost and reveal. Every role works it out anew and
	// refuses a study that says something else.
	Plan json.RawMessage `json:"plan"`
}

// Complete fills in what is drawn or follows: the id, public randomness, the plan.
func (s *Study) Complete() error {
	s.Version, s.Engine = version, engine.Version
	id := make([]byte, 8)
	rand.Read(id) // never fails since Go 1.24
	s.ID = hex.EncodeToString(id)
	s.PublicSeed = protocol.NewPublicSeed(s.Seed)
	if s.Options == nil {
		s.Options = method.Settings{}
	}
	if m, err := s.describe(); err == nil && m.Takes("survivors") && s.Threshold < len(s.Parties) &&
		s.Options["survivors"] == "" {
		s.Options["survivors"] = strconv.Itoa(s.Threshold)
	}
	if err := s.check(); err != nil {
		return err
	}
	r, err := s.run(nil)
	if err != nil {
		return err
	}
	for i := len(s.Servers) + 1; i < r.Core().Servers; i++ {
		s.Servers = append(s.Servers, Holder{Name: protocol.ServerAt(i).String()})
	}
	if s.Plan, err = s.outline(); err != nil {
		return err
	}
	return s.validate()
}

// validate checks a study, which may come from anybody, and that its plan is what
// it says.
func (s *Study) validate() error {
	if err := s.check(); err != nil {
		return err
	}
	outline, err := s.outline()
	if err != nil {
		return err
	}
	if !bytes.Equal(outline, s.Plan) {
		return fault.Request("study", "its plan is not what its method and options come to",
			"get the file again from the coordinator, and the same version of cohort")
	}
	return nil
}

// check checks every field by itself.
func (s *Study) check() error {
	id, err := hex.DecodeString(s.ID)
	switch {
	case s.Version != version:
		return fault.Request("study", fmt.Sprintf("is of version %d, and this program knows version %d", s.Version,
			version), "use the program that made it")
	case s.Engine != engine.Version:
		return fault.Request("study", fmt.Sprintf("is of cohort %s, and this is %s: results may differ in their bits",
			s.Engine, engine.Version), "use the same version everywhere")
	case err != nil || len(id) != 8:
		return fault.Request("study", "has no id", "get the file again from the coordinator")
	case len(s.Parties) < 2 || len(s.Parties) > bus.MostParties:
		return fault.Range("--parties", len(s.Parties), fmt.Sprintf("2 to %d", bus.MostParties))
	case s.Threshold < 2 || s.Threshold > len(s.Parties):
		return fault.Range("--at-least", s.Threshold, fmt.Sprintf("2 to the number of parties, %d", len(s.Parties)))
	case 2*s.Threshold <= len(s.Parties):
		return fault.Range("--at-least", s.Threshold,
			fmt.Sprintf("more than half of the %d parties: else two sets of them could be shown two sums of a round",
				len(s.Parties)))
	case s.Records < len(s.Parties) || s.Records > math.MaxInt32:
		return fault.Range("--public-n", s.Records, "at least one record for each party")
	case len(s.Bounds) < 1 || len(s.Bounds) > mostColumns:
		return fault.Range("--bounds", len(s.Bounds), fmt.Sprintf("one pair for each of 1 to %d columns", mostColumns))
	case s.Columns != nil && len(s.Columns) != len(s.Bounds):
		return fault.Request("--columns", fmt.Sprintf("are %d for %d bounds", len(s.Columns), len(s.Bounds)),
			"give one pair of bounds for each column")
	case s.FractionBits < 4 || s.FractionBits > dataset.MaxFractionBits:
		return fault.Range("--fraction-bits", s.FractionBits, fmt.Sprintf("4 to %d", dataset.MaxFractionBits))
	case s.Deadlines.Step < 1 || s.Deadlines.Message < 1 || max(s.Deadlines.Step, s.Deadlines.Message) > 1<<22:
		return fault.Range("deadlines", fmt.Sprint(s.Deadlines), "1 second to 48 days")
	case s.PadRounds < 0 || s.PadRounds > 1<<22:
		return fault.Range("--pad-rounds", s.PadRounds, "0 to 4194304 milliseconds")
	case s.PadRounds > 0 && s.ByColumns():
		return fault.Request("--pad-rounds", s.Method+" has no sums that could begin in their time", "leave it out")
	}
	if err := s.checkNames(); err != nil {
		return err
	}
	bounds := s.Box()
	return bounds.Validate("--bounds")
}

// checkNames refuses parties, servers and columns that people could not tell apart.
func (s *Study) checkNames() error {
	called := func(all []Holder) (names []string) {
		for _, h := range all {
			names = append(names, h.Name)
		}
		return names
	}
	for _, list := range []struct {
		flag  string
		names []string
	}{{"--names", called(s.Parties)}, {"--server-names", called(s.Servers)}, {"--columns", s.Columns}} {
		known := make(map[string]bool)
		for _, name := range list.names {
			switch {
			case strings.TrimSpace(name) == "":
				return fault.Request(list.flag, "one of them is empty", "give a name to each")
			case known[name]:
				return fault.Request(list.flag, fmt.Sprintf("%q is there twice", name), "give another name to each")
			}
			known[name] = true
		}
	}
	return nil
}

// Box has the bounds of all columns.
func (s *Study) Box() dataset.Bounds {
	b := dataset.Bounds{}
	for _, p := range s.Bounds {
		b.Lo, b.Hi = append(b.Lo, p[0]), append(b.Hi, p[1])
	}
	return b
}

// Method describes the study's method.
func (s *Study) describe() (*method.Method, error) {
	m, err := catalog.Methods().Find(s.Method)
	switch {
	case err != nil:
		return nil, err
	case m.Holds == method.Table:
		return nil, fault.Request("--method", m.Name+" is for one holder of all records", "run it with cohort run")
	case s.Quality && m.Holds == method.Columns:
		return nil, fault.Request("--quality", "nobody in a study of "+m.Name+" has all columns", "leave it out")
	}
	return m, nil
}

// ByColumns reports whether parties hold columns of all records.
func (s *Study) ByColumns() bool {
	m, err := s.describe()
	return err == nil && m.Holds == method.Columns
}

// masked reports whether the study has sums under masks of pairs.
func (s *Study) masked() bool { return !s.ByColumns() && !s.PlainSums && len(s.Servers) == 0 }

// Colluders is how many parties on its side a coordinator needs, at least, that breaks the rules to get more of a
// sum than one total of enough parties; at most all of them. It is all where a study has no sums under masks of pairs.
func (s *Study) Colluders() int {
	all := len(s.Parties)
	if !s.masked() {
		return all
	}
	return min(all, (&sum.Config{Parties: all, Threshold: s.Threshold}).Colluders())
}

// span is the columns of a party.
func (s *Study) span(party int) (from, to int) {
	if !s.ByColumns() {
		return 0, len(s.Bounds)
	}
	for _, h := range s.Parties[:party] {
		from += h.Columns
	}
	return from, from + s.Parties[party].Columns
}

// job makes the study's job from public values. ids are those of the records of a
// party that matched them.
func (s *Study) job(ids []string) (engine.Job, error) {
	norm, clients := dataset.Shape(s.Records, s.Box(), s.FractionBits), []dataset.Part(nil)
	if s.ByColumns() {
		clients = norm.Table()
	} else {
		var err error
		if clients, err = norm.Split(len(s.Parties), nil, 0); err != nil {
			return nil, err
		}
		for i := range clients {
			clients[i].Dealt = false // the parties' records are their own
		}
	}
	return s.jobOf(clients, norm.Bounds, ids)
}

// columnsOf are the columns of a party.
func (s *Study) columnsOf(party int) (columns []int) {
	from, to := s.span(party)
	for c := from; c < to; c++ {
		columns = append(columns, c)
	}
	return columns
}

// jobOf makes the study's job with records.
func (s *Study) jobOf(clients []dataset.Part, bounds dataset.Bounds, ids []string) (engine.Job, error) {
	m, err := s.describe()
	if err != nil {
		return nil, err
	}
	d := protocol.Problem{Clients: clients, Bounds: bounds, K: s.K, Seed: s.Seed, NoQuality: !s.Quality, IDs: ids}
	if m.Private {
		d.Budget = privacy.Budget{Epsilon: s.Epsilon, Delta: s.Delta}
	} else if s.Epsilon != 0 {
		return nil, fault.Request("--epsilon", m.Name+" is not private and spends none",
			"choose a private method, or leave --epsilon out")
	}
	if m.Holds == method.Columns {
		total := 0
		for p := range s.Parties {
			if s.Parties[p].Columns < 0 || s.Parties[p].Columns > mostColumns {
				return nil, fault.Range("columns of a party", s.Parties[p].Columns, "at least 0")
			}
			total += s.Parties[p].Columns
		}
		if total != len(s.Bounds) {
			return nil, fault.Request("parties", fmt.Sprintf("hold %d columns in all, and there are %d bounds", total,
				len(s.Bounds)), "say how many columns each holds with --party-columns")
		}
		for p := range s.Parties {
			d.Columns = append(d.Columns, s.columnsOf(p))
		}
	}
	return catalog.Methods().Job(s.Method, d, s.Options)
}

// roles are all but the coordinator, in the order of the roster.
func (s *Study) roles() []protocol.Role {
	roles := make([]protocol.Role, len(s.Parties)+len(s.Servers))
	for i := range roles {
		roles[i] = roleAt(i+1, len(s.Parties))
	}
	return roles
}

// index is where a role stands in roles, negative if it is not there.
func (s *Study) index(r protocol.Role) int {
	at := place(r, len(s.Parties)) - 1
	if !bus.Known(r) || at < 0 || at >= len(s.Parties)+len(s.Servers) {
		return -1
	}
	return at
}

// Name is what a role is called.
func (s *Study) Name(r protocol.Role) string {
	switch at := s.index(r); {
	case at < 0:
		return r.String()
	case at < len(s.Parties):
		return s.Parties[at].Name
	default:
		return s.Servers[at-len(s.Parties)].Name
	}
}

// runner is the study's plan.
func (s *Study) runner(ids []string) (protocol.Runner, error) {
	r, err := s.run(ids)
	if err != nil {
		return nil, err
	}
	switch n := r.Core().Servers; {
	case len(s.Servers) != max(n-1, 0):
		return nil, fault.Request("--server-names",
			fmt.Sprintf("are %d besides the coordinator, and sums are shared among %d servers in all", len(s.Servers), n),
			"name as many as --servers says less one, of a study with --aggregator shares")
	case n > 0 && s.Threshold < len(s.Parties):
		return nil, fault.Range("--at-least", s.Threshold,
			fmt.Sprintf("all %d parties: a sum that is shared among servers has no place for who vanished", len(s.Parties)))
	case n > 0 && s.PlainSums:
		return nil, fault.Request("--plain-sums", "sums that are shared among servers have no masks", "leave it out")
	}
	return r, nil
}

// run is the plan of the study's method.
func (s *Study) run(ids []string) (protocol.Runner, error) {
	job, err := s.job(ids)
	if err != nil {
		return nil, err
	}
	plan, err := job.Plan()
	if err != nil {
		return nil, err
	}
	r, ok := plan.(protocol.Runner)
	if !ok {
		return nil, fault.Request("--method", s.Method+" has no roles that could be apart", "run it with cohort run")
	}
	core := r.Core()
	core.PublicSeed = s.PublicSeed
	if core.Private {
		core.Notes = append(core.Notes, s.seen()...)
	}
	return r, nil
}

// seen is what others see of a party's records besides what its method sends.
func (s *Study) seen() []string {
	var all []string
	if s.IDColumn != "" && s.ByColumns() {
		all = append(all, "matching: every party sees which of its ids all others have, and the coordinator how many "+
			"each has and how many any of them have in common")
	}
	if c := (&sum.Config{Parties: len(s.Parties)}); s.masked() && !c.Whole() {
		all = append(all, fmt.Sprintf("a coordinator that breaks the protocol: with so many parties it may have a sum over "+
			"fewer than %d of them, and so with less noise than is planned", s.Threshold))
	}
	if s.PadRounds == 0 {
		return append(all, "times: others see when a party sends, so how long it computed, which depends on its records")
	}
	return append(all, fmt.Sprintf("times: others see which of a party's sums were not ready within --pad-rounds %v, "+
		"which depends on its records", time.Duration(s.PadRounds)*time.Millisecond))
}

// outline is the plan as the study file has it.
func (s *Study) outline() ([]byte, error) {
	r, err := s.runner(nil)
	if err != nil {
		return nil, err
	}
	if err := s.checkShares(r.Core()); err != nil {
		return nil, err
	}
	o, err := r.Outline()
	if err != nil {
		return nil, err
	}
	return json.Marshal(o)
}

// checkShares refuses noise in shares of which a sum of the least number of parties
// would lack some.
func (s *Study) checkShares(core *protocol.Plan) error {
	for _, r := range core.Releases {
		if r.Makers != protocol.EachShare || s.Threshold == len(s.Parties) || s.ByColumns() {
			continue
		}
		for _, e := range r.Entries {
			if e.Noise != nil && e.Noise.Shares > s.Threshold {
				return fault.Request("--at-least",
					fmt.Sprintf("is %d, and the noise of %s needs the shares of more parties", s.Threshold, r.Name),
					fmt.Sprintf("raise it to %d, or give --survivors %d with a method that has it", len(s.Parties), s.Threshold))
			}
		}
	}
	return nil
}

// Outline is what the run will do, cost and reveal at most.
func (s *Study) Outline() (*engine.Outline, error) {
	r, err := s.runner(nil)
	if err != nil {
		return nil, err
	}
	return r.Outline()
}

// long reports whether messages are mostly long by the plan; those of unknown sizes are.
func (s *Study) long() (bool, error) {
	o, err := s.Outline()
	if err != nil || o.Bytes == nil {
		return true, err
	}
	for p, sent := range o.Bytes.BytesSent {
		if max(sent, o.Bytes.BytesReceived[p]) > int64(max(o.Bytes.Rounds, 1))*bus.LongMessage {
			return true, nil
		}
	}
	return false, nil
}

// Encode is the study as its hash takes it.
func (s *Study) Encode() ([]byte, error) { return json.Marshal(s) }

// Hash is what every party signs.
func (s *Study) Hash() ([32]byte, error) {
	b, err := s.Encode()
	return sha256.Sum256(append([]byte("cohort study\x00"), b...)), err
}

// Parse reads a study file.
func Parse(b []byte) (*Study, error) {
	if len(b) > mostFile {
		return nil, fault.Request("study", "is too long", "give a study file")
	}
	s := new(Study)
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	if err := d.Decode(s); err != nil {
		return nil, fault.Failed("study", "is no study file of this version: "+err.Error(),
			"get the file again from the coordinator", err)
	}
	if d.More() {
		return nil, fault.Failed("study", "something follows it", "get the file again from the coordinator", nil)
	}
	var plan bytes.Buffer
	if err := json.Compact(&plan, s.Plan); err != nil {
		return nil, fault.Failed("study", "has no plan", "get the file again from the coordinator", err)
	}
	s.Plan = plan.Bytes()
	return s, s.validate()
}

func (d Deadlines) step() time.Duration    { return time.Duration(d.Step) * time.Second }
func (d Deadlines) message() time.Duration { return time.Duration(d.Message) * time.Second }
