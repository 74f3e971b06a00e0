package audit

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"math/bits"
	"slices"
	"time"

	"github.com/cohort-engine/cohort/engine"
	"github.com/cohort-engine/cohort/engine/dataset"
	"github.com/cohort-engine/cohort/engine/method/eugkm"
	"github.com/cohort-engine/cohort/engine/method/hybrid"
	"github.com/cohort-engine/cohort/engine/method/lloyd"
	"github.com/cohort-engine/cohort/engine/privacy"
	"github.com/cohort-engine/cohort/engine/protocol"
	"github.com/cohort-engine/cohort/internal/fault"
)

// field is a whole run with many records put in at once, the canaries, each by a fair coin of its own. Who reads what
// the run gave away guesses the coins (Steinke, Nasr and Jagielski 2023; for trade-off functions Mahloujifar, Melis
// and Chaudhuri 2024; THEOREMS.md T13).
type field struct {
	Case
	canaries int
	// runs are made by default.
	runs int
	// play runs once and returns for each canary a score that is large where it is likely to be in, as the viewer sees it,
	// and how many numbers the run released.
	play func(ctx context.Context, rt *engine.Runtime, st *privacy.Stream, in []bool) (
		scores []float64, numbers int, err error)
}

// Reached is the epsilon that an audit proves of a method beside the one that it claims.
type Reached struct {
	Method  string `json:"method"`
	Case    string `json:"case"`
	About   string `json:"about"`
	Watched string `json:"watched"`
	// Runs were made. Of canaries each had Canaries, and in all runs Guessed coins were guessed and Right of them right;
	// of a pair all are 0, and Runs counts those on either side.
	Runs     int `json:"runs"`
	Canaries int `json:"canaries,omitempty"`
	Guessed  int `json:"guessed,omitempty"`
	Right    int `json:"right,omitempty"`
	// Numbers is how many a run releases, 0 if it was not counted.
	Numbers int `json:"numbers_a_run,omitempty"`
	// Epsilon is the ledger's at Delta; Lower what is proved of a mechanism of the family that is claimed: a Gaussian one,
	// of which Mu is claimed and MuLower proved, one of pure epsilon, or, of a pair, any.
	Epsilon  float64 `json:"epsilon"`
	Delta    float64 `json:"delta"`
	Lower    float64 `json:"lower_bound"`
	Mu       float64 `json:"mu,omitempty"`
	MuLower  float64 `json:"mu_lower_bound,omitempty"`
	Violated bool    `json:"violated"`
	Seconds  float64 `json:"-"`
}

// enough is the number of canaries of all runs together.
const enough = 10000

// guessed is how many of the coins of a run are guessed: those whose scores are farthest from even.
func guessed(canaries int) int { return min(canaries/2, int(8*math.Sqrt(float64(canaries)))) }

// judge makes the runs and judges them, wrong with probability at most alpha.
func (f *field) judge(ctx context.Context, rt *engine.Runtime, st *privacy.Stream, runs int, alpha float64) (
	*Reached, error) {
	start := time.Now()
	c := guessed(f.canaries)
	g := &Reached{Case: f.Name, About: f.About, Watched: f.Watched, Runs: runs, Canaries: f.canaries, Guessed: c * runs,
		Epsilon: f.Epsilon, Delta: f.Delta, Mu: f.Mu}
	for range runs {
		in := make([]bool, f.canaries)
		for i := range in {
			in[i] = st.Uint64()&1 == 1
		}
		scores, numbers, err := f.play(ctx, rt, st, in)
		if err != nil {
			return nil, err
		}
		g.Numbers = numbers
		order := make([]int, f.canaries)
		for i := range order {
			order[i] = i
		}
		slices.SortFunc(order, func(a, b int) int { return cmp.Compare(math.Abs(scores[b]), math.Abs(scores[a])) })
		for _, i := range order[:c] {
			if scores[i] > 0 == in[i] {
				g.Right++
			}
		}
	}
	claim := &pureFamily
	if f.Mu > 0 {
		claim = &gaussianFamily
	}
	least := claim.guessedAtLeast(f.canaries, c, runs, g.Right, alpha)
	g.Lower, g.Violated = least, least > f.Epsilon
	if f.Mu > 0 {
		g.MuLower, g.Lower, g.Violated = least, privacy.EpsilonOfMu(least, f.Delta, 0), least > f.Mu
	}
	g.Seconds = time.Since(start).Seconds()
	return g, nil
}

// canaryConfidence is the confidence of a bound by canaries where none is asked for: what a single run can show is
// little at a higher one, as a mechanism may tell all coins at once with the probability that is left.
const canaryConfidence = 0.95

// Canaries proves lower bounds on the epsilon of methods under the proven calibration: by whole runs with many
// canaries of those whose runs release many numbers, of the others by their worst pairs, of which it returns the one
// that shows most. runs and trials replace the defaults of either where they are not 0.
func Canaries(ctx context.Context, pool *engine.Pool, methods []string, s Settings, runs int, o Options) (
	[]Reached, error) {
	confidence := cmp.Or(o.Confidence, canaryConfidence)
	if !(confidence > 0 && confidence < 1) {
		return nil, fault.Range("confidence", confidence, "in (0, 1)")
	}
	var all []Reached
	for i, method := range methods {
		if !slices.Contains(privacy.Calibrations(method), privacy.Proven) {
			continue
		}
		list, err := fields(method, s)
		if err != nil {
			return nil, err
		}
		st := privacy.NewStreams(o.Seed).Stream(0, i, "canaries")
		for _, f := range list {
			r, err := f.judge(ctx, engine.NewRuntime(pool), st, cmp.Or(runs, f.runs), 1-confidence)
			if err != nil {
				return nil, err
			}
			r.Method = method
			all = append(all, *r)
		}
		if len(list) > 0 {
			continue
		}
		r, err := pairReached(ctx, pool, method, s, Options{Trials: o.Trials, Confidence: confidence, Seed: o.Seed})
		if err != nil {
			return nil, err
		}
		all = append(all, *r)
	}
	if len(all) == 0 {
		return nil, fault.Request("audit", "no method named has a proven calibration", "choose another method")
	}
	return all, nil
}

// pairReached is what the worst pairs of a method show, with Gaussian noise where it has it.
func pairReached(ctx context.Context, pool *engine.Pool, method string, s Settings, o Options) (*Reached, error) {
	if slices.Contains([]string{"csulloyd", "fastlloyd"}, method) && s.Mechanism == "" {
		s.Mechanism = "gaussian"
	}
	cases, err := Cases(method, privacy.Proven, s)
	if err != nil {
		return nil, err
	}
	report, err := Run(ctx, pool, method, privacy.Proven, cases, o)
	if err != nil {
		return nil, err
	}
	var best *Reached
	for i, f := range report.Cases {
		r := &Reached{Method: method, Case: f.Case, About: f.About, Watched: f.Watched, Runs: f.Trials,
			Epsilon: cases[i].Epsilon, Delta: f.Delta, Lower: f.Lower, Violated: f.Violated}
		if g := f.Gaussian; g != nil {
			r.Lower, r.Mu, r.MuLower = max(f.Lower, g.Epsilon), g.Mu, g.Lower
		}
		if best == nil || r.Lower > best.Lower || r.Violated {
			best = r
		}
	}
	best.Seconds = report.Seconds
	return best, nil
}

// crowd is a field of records: a method whose releases add up records, so that what each canary moves can be told by
// running the others' releases on parts of the canaries alone.
type crowd struct {
	pair     Pair        // the records that are always there, in Records
	canaries [][]float64 // rows
	clients  int
	job      func(p *Pair, parts []dataset.Part, seed *uint64, tape *privacy.Tape) engine.Job
	tape     privacy.Tape
}

// rows are the always present records, if asked for, and the canaries chosen, dealt to the clients.
func (c *crowd) rows(always bool, chosen func(i int) bool) []dataset.Part {
	p := Pair{D: c.pair.D}
	if always {
		p.Records = slices.Clone(c.pair.Records)
	}
	for i, row := range c.canaries {
		if chosen(i) {
			p.Records = append(p.Records, row...)
		}
	}
	return (&way{clients: c.clients}).deal(p.parts(false, privacy.AddRemove))
}

// begin makes the field, with the ledger's claim for its viewer: a client, who knows its own noise, or an outsider.
func (c *crowd) begin(name, about string) (*field, error) {
	f := &field{Case: Case{Name: name, About: about, Weight: 1}, canaries: len(c.canaries),
		runs: (enough + len(c.canaries) - 1) / len(c.canaries)}
	f.Watched = "every number that a whole run releases"
	viewer := privacy.Outsider
	if c.clients > 1 {
		viewer = privacy.Clients
		f.Watched += ", less the client's own noise"
	}
	c.tape.Records = len(c.pair.Records)/c.pair.D + len(c.canaries)
	plan, err := c.job(&c.pair, c.rows(true, func(int) bool { return true }), new(uint64), &c.tape).Plan()
	if err != nil {
		return nil, err
	}
	ledger, err := plan.(protocol.Runner).Core().Ledger(nil)
	if err != nil {
		return nil, err
	}
	f.play = c.play
	return f, f.state(ledger, viewer)
}

// part runs on the tape with some of the records.
func (c *crowd) part(ctx context.Context, rt *engine.Runtime, seed uint64, draws *protocol.Draws,
	parts []dataset.Part) error {
	_, err := connect(ctx, rt, c.job(&c.pair, parts, &seed, &c.tape), draws, &c.tape)
	return err
}

// play runs the field once. A number of which one canary alone has a part is known to be its by the binary digits of
// the canaries' places: what the run would have released is computed for the half with a digit and for the half
// without, and one of them is nothing.
func (c *crowd) play(ctx context.Context, rt *engine.Runtime, st *privacy.Stream, in []bool) ([]float64, int, error) {
	seed := st.Uint64()
	var draws protocol.Draws
	c.tape.Record()
	if err := c.part(ctx, rt, seed, &draws, c.rows(true, func(i int) bool { return in[i] })); err != nil {
		return nil, 0, err
	}
	seen, err := c.exact(ctx, rt, seed, c.rows(true, func(int) bool { return false }))
	if err != nil {
		return nil, 0, err
	}
	residual := make([]float64, len(seen)) // what is left to explain by canaries and noise
	for i, x := range seen {
		residual[i] = float64(x.Released - x.Second)
	}
	if err := c.less(residual, &draws); err != nil {
		return nil, 0, err
	}
	owner, move := make([]int, len(seen)), make([]float64, len(seen))
	for digit := range bits.Len(uint(len(c.canaries) - 1)) {
		var halves [2][]privacy.Number
		for value := range halves {
			halves[value], err = c.exact(ctx, rt, seed, c.rows(false, func(i int) bool { return i>>digit&1 == value }))
			if err != nil {
				return nil, 0, err
			}
		}
		for i := range owner {
			without, with := float64(halves[0][i].Second), float64(halves[1][i].Second)
			moved := without + with
			if (without == 0) == (with == 0) || digit > 0 && moved != move[i] {
				owner[i] = nobody // or several
			}
			if move[i] = moved; with != 0 && owner[i] != nobody {
				owner[i] |= 1 << digit
			}
		}
	}
	return c.score(seen, residual, owner, move), len(seen), nil
}

// nobody owns a number in which no canary, or more than one, has a part.
const nobody = -1

// exact computes what the run would have released of some records, without noise, had it released the same before.
func (c *crowd) exact(ctx context.Context, rt *engine.Runtime, seed uint64, parts []dataset.Part) (
	[]privacy.Number, error) {
	c.tape.Replay()
	if err := c.part(ctx, rt, seed, nil, parts); err != nil {
		return nil, err
	}
	if _, err := c.tape.Loss(); err != nil {
		return nil, err
	}
	var all []privacy.Number
	c.tape.Numbers(func(x privacy.Number) { all = append(all, x) })
	return all, nil
}

// less takes off the noise that the viewer, the last of several clients, drew itself.
func (c *crowd) less(residual []float64, draws *protocol.Draws) error {
	if c.clients < 2 {
		return nil
	}
	at := 0
	for _, d := range draws.Seen {
		if d.Role != protocol.Role(c.clients-1) {
			continue
		}
		for _, z := range d.Values {
			if at < len(residual) {
				residual[at] -= float64(z)
			}
			at++
		}
	}
	if at != len(residual) {
		return fault.Failed("audit", fmt.Sprintf("a client drew noise for %d numbers of %d", at, len(residual)), "", nil)
	}
	return nil
}

// score adds up, for each canary, the log ratio of how likely the numbers that it alone moves are with it and without.
func (c *crowd) score(seen []privacy.Number, residual []float64, owner []int, move []float64) []float64 {
	scores := make([]float64, len(c.canaries))
	for i, x := range seen {
		if owner[i] == nobody || owner[i] >= len(scores) {
			continue
		}
		z, q := residual[i], move[i]
		if x.Gaussian {
			scores[owner[i]] += q / x.Scale * (z - q/2) / x.Scale
		} else {
			scores[owner[i]] += (math.Abs(z) - math.Abs(z-q)) / x.Scale
		}
	}
	return scores
}

// corners are the first k of the 2^d corners of the cube [-side,side]^d.
func corners(d, k int, side float64) (rows [][]float64) {
	for j := range k {
		row := make([]float64, d)
		for h := range row {
			row[h] = side * float64(2*(j>>h&1)-1)
		}
		rows = append(rows, row)
	}
	return rows
}

// lattice are the side^2 middles of the cells of a square lattice on [-1,1]^2, each moved by shift.
func lattice(side int, shift float64) (rows [][]float64) {
	for j := range side * side {
		at := func(i int) float64 { return (2*float64(i)+1)/float64(side) - 1 + shift }
		rows = append(rows, []float64{at(j % side), at(j / side)})
	}
	return rows
}

// around repeats rows.
func around(rows [][]float64, times int) (all []float64) {
	for _, r := range rows {
		for range times {
			all = append(all, r...)
		}
	}
	return all
}

// fields are the runs with canaries of a method, none for those whose runs release few numbers or where a record moves
// others.
func fields(method string, s Settings) ([]*field, error) {
	budget := privacy.Budget{Epsilon: s.epsilon(), Delta: cmp.Or(s.Delta, 1e-5)}
	var c *crowd
	var name, about string
	switch method {
	case "sulloyd":
		c, name, about = lloydCrowd(lloyd.SuLloyd, 12, budget)
	case "relative":
		c, name, about = lloydCrowd(lloyd.Relative, 11, budget)
	case "eugkm":
		c = &crowd{pair: Pair{D: 2, K: 8, Records: around(lattice(100, 0), 40)}, canaries: lattice(100, 0), clients: 1}
		name = "a grid of canaries"
		about = "a canary in each of 10,000 places of two dimensions, beside 40 records that are always there"
	case "hybrid":
		c = &crowd{pair: Pair{D: 2, K: 8, Records: around(lattice(64, 0), 60)}, canaries: lattice(64, 0), clients: 3}
		name = "canaries in a tree"
		about = "4096 places of 60 records in two dimensions, a canary in each; a tree alone, three clients, split noise"
	case "sketch", "sketch-basic":
		return sketchFields(s)
	default:
		return nil, nil
	}
	if c.job == nil {
		c.job = func(p *Pair, parts []dataset.Part, seed *uint64, tape *privacy.Tape) engine.Job {
			problem := central(p, parts, budget, Settings{Mechanism: "gaussian"}, seed, tape)
			if method == "eugkm" {
				return &eugkm.Job{Problem: problem}
			}
			problem.Iterations = -1 // none: all of the budget goes to the tree
			return &hybrid.Job{Problem: problem, Branch: "tree"}
		}
	}
	f, err := c.begin(name, about)
	return []*field{f}, err
}

// lloydCrowd has a cluster at each corner of a cube of d dimensions and a canary in each corner of the box.
func lloydCrowd(m lloyd.Method, d int, budget privacy.Budget) (c *crowd, name, about string) {
	records, side := 150, 0.5
	if m == lloyd.Relative { // farther off, as offsets count, and more records to hold the centroids
		records, side = 400, 0.25
	}
	k := 1 << d
	starts := corners(d, k, side)
	c = &crowd{pair: Pair{D: d, K: k, Records: around(starts, records), Start: around(starts, 1)},
		canaries: corners(d, k, 1), clients: 3}
	c.job = func(p *Pair, parts []dataset.Part, seed *uint64, tape *privacy.Tape) engine.Job {
		return &lloyd.Job{Method: m, Post: lloyd.Fold, Problem: protocol.Problem{K: p.K, Start: p.Start,
			Mechanism: lloyd.Gaussian, Budget: budget, Clients: parts, Records: tape.Records, Iterations: 2,
			NoQuality: true, Noise: lloyd.Split, Seed: seed}}
	}
	return c, "a canary in each cluster", fmt.Sprintf("%d clusters of %d records in %d dimensions, "+
		"a canary in the corner of the box beyond each; two rounds, three clients, split noise", k, records, d)
}
