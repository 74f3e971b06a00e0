package audit

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math"
	"math/bits"
	"slices"
	"time"

	"gonum.org/v1/gonum/stat"

	"github.com/cohort-engine/cohort/engine"
	"github.com/cohort-engine/cohort/engine/dataset"
	"github.com/cohort-engine/cohort/engine/method/eugkm"
	"github.com/cohort-engine/cohort/engine/method/hybrid"
	"github.com/cohort-engine/cohort/engine/method/lloyd"
	"github.com/cohort-engine/cohort/engine/privacy"
	"github.com/cohort-engine/cohort/engine/protocol"
	"github.com/cohort-engine/cohort/engine/step"
	"github.com/cohort-engine/cohort/internal/fault"
)

// field is a whole run with many records put in at once, the canaries, each by a fair coin of its own. Who reads what
// the run gave away guesses the coins (Steinke, Nasr and Jagielski 2023; for trade-off functions Mahloujifar, Melis
// and Chaudhuri 2024; THEOREMS.md T13).
type field struct {
	Case
	canaries int
	// alike is how many canaries have the same place, 0 means one.
	alike int
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
	Epsilon float64 `json:"epsilon"`
	Delta   float64 `json:"delta"`
	Lower   float64 `json:"lower_bound"`
	Mu      float64 `json:"mu,omitempty"`
	MuLower float64 `json:"mu_lower_bound,omitempty"`
	// Asymptotic is the epsilon that more runs would tend to: what records of these places, seen so, give away, judged by
	// how far the scores spread. 0 if that is not known.
	Asymptotic float64 `json:"epsilon_in_sight,omitempty"`
	Violated   bool    `json:"violated"`
	Seconds    float64 `json:"-"`
}

// enough is the number of canaries of all runs together.
const enough = 1 << 15

// guessed is how many of the coins of a run are guessed: those whose scores are farthest from even. Canaries of one
// place are guessed alike, so it takes more of them for as many places.
func (f *field) guessed() int {
	places := math.Sqrt(float64(f.canaries)) * math.Sqrt(math.Sqrt(float64(max(f.alike, 1))))
	return min(f.canaries/2, int(8*places))
}

// judge makes the runs and judges them, wrong with probability at most alpha.
func (f *field) judge(ctx context.Context, rt *engine.Runtime, st *privacy.Stream, runs int, alpha float64) (
	*Reached, error) {
	start := time.Now()
	c := f.guessed()
	g := &Reached{Case: f.Name, About: f.About, Watched: f.Watched, Runs: runs, Canaries: f.canaries, Guessed: c * runs,
		Epsilon: f.Epsilon, Delta: f.Delta, Mu: f.Mu}
	seen := 0.0
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
		seen += apart(scores, in) / float64(runs)
	}
	claim := &pureFamily
	if f.Mu > 0 {
		claim = &gaussianFamily
	}
	least := claim.guessedAtLeast(f.canaries, c, runs, g.Right, alpha)
	g.Lower, g.Violated = least, least > f.Epsilon
	if f.Mu > 0 {
		g.MuLower, g.Lower, g.Violated = least, privacy.EpsilonOfMu(least, f.Delta, 0), least > f.Mu
		g.Asymptotic = privacy.EpsilonOfMu(seen, f.Delta, 0)
	}
	g.Seconds = time.Since(start).Seconds()
	return g, nil
}

// apart is by how many deviations the scores of canaries that are in exceed the others': mu, where they come from
// Gaussian noise alone.
func apart(scores []float64, in []bool) float64 {
	var sides [2][]float64
	for i, x := range scores {
		sides[sideOf(in[i])] = append(sides[sideOf(in[i])], x)
	}
	out, deviation := stat.MeanStdDev(sides[0], nil)
	there, _ := stat.MeanStdDev(sides[1], nil)
	if !(deviation > 0) {
		return 0
	}
	return max(0, (there-out)/deviation)
}

// canaryConfidence is the confidence of a bound by canaries where none is asked for: what a single run can show is
// little at a higher one, as a mechanism may tell all coins at once with the probability that is left.
const canaryConfidence = 0.95

// Canaries proves lower bounds on the epsilon of a method under the proven calibration: by whole runs with many
// canaries where runs release many numbers, else by its worst pairs, of which it returns the one that shows most. runs
// and trials replace the defaults of either where they are not 0.
func Canaries(ctx context.Context, pool *engine.Pool, method string, s Settings, runs int, o Options) (
	all []Reached, err error) {
	o.Confidence = cmp.Or(o.Confidence, canaryConfidence)
	switch {
	case !(o.Confidence > 0 && o.Confidence < 1):
		return nil, fault.Range("confidence", o.Confidence, "in (0, 1)")
	case !slices.Contains(privacy.Calibrations(method), privacy.Proven):
		return nil, fault.Request("audit", method+" has no proven calibration", "choose another method")
	}
	list, err := fields(method, s)
	if err != nil {
		return nil, err
	}
	st := privacy.NewStreams(o.Seed).Stream(0, 0, "canaries")
	for _, f := range list {
		r, err := f.judge(ctx, engine.NewRuntime(pool), st, cmp.Or(runs, f.runs), 1-o.Confidence)
		if err != nil {
			return nil, err
		}
		r.Method = method
		all = append(all, *r)
	}
	cases, err := s.pairs(method)
	if err != nil || len(cases) == 0 {
		return all, err
	}
	r, err := pairReached(ctx, pool, method, cases, o)
	if err != nil {
		return nil, err
	}
	return append(all, *r), nil
}

// pairs are those of a method whose runs release few numbers, or where canaries hide each other, with Gaussian noise
// where it has it.
func (s Settings) pairs(method string) ([]Case, error) {
	switch method {
	case "sulloyd", "relative", "eugkm", "hybrid":
		return nil, nil
	case "sketch", "sketch-basic":
		return sketchPairs(s)
	case "csulloyd", "fastlloyd":
		s.Mechanism = cmp.Or(s.Mechanism, "gaussian")
	}
	return Cases(method, privacy.Proven, s)
}

// pairReached is what the pair shows that promises most: a fifth of the runs of each choose it, and others count, so
// that the choice costs no confidence.
func pairReached(ctx context.Context, pool *engine.Pool, method string, cases []Case, o Options) (*Reached, error) {
	start := time.Now()
	o.tradeoff = true
	if len(cases) > 1 {
		pilot := o
		pilot.Trials, pilot.Confidence = max(cmp.Or(o.Trials, DefaultTrials)/5, minTrials), 0.5
		report, err := Run(ctx, pool, method, privacy.Proven, cases, pilot)
		if err != nil {
			return nil, err
		}
		at, most := 0, 0.0
		for i := range report.Cases {
			if promise := report.Cases[i].shown(); promise > most {
				at, most = i, promise
			}
		}
		cases = cases[at : at+1]
		if o.Seed != nil {
			next := *o.Seed + 1
			o.Seed = &next
		}
	}
	report, err := Run(ctx, pool, method, privacy.Proven, cases, o)
	if err != nil {
		return nil, err
	}
	c, f := &cases[0], &report.Cases[0]
	r := &Reached{Method: method, Case: f.Case, About: f.About, Watched: f.Watched, Runs: f.Trials, Epsilon: c.Epsilon,
		Delta: c.Delta, Lower: f.shown(), Violated: f.Violated, Seconds: time.Since(start).Seconds()}
	if g := f.Gaussian; g != nil {
		r.Mu, r.MuLower, r.Asymptotic = g.Mu, g.Lower, g.Asymptotic
	}
	return r, nil
}

// shown is the epsilon that was proved of the family that is claimed.
func (f *Finding) shown() float64 {
	if f.Gaussian != nil {
		return f.Gaussian.Epsilon
	}
	return f.Lower
}

// crowd is a field of records: a method whose releases add up records, so that what each canary moves can be told by
// running the others' releases on parts of the canaries alone.
type crowd struct {
	pair     Pair        // the records that are always there, in Records
	canaries [][]float64 // rows
	alike    int         // rows that follow each other and are the same
	clients  int
	job      func(p *Pair, parts []dataset.Part, seed *uint64, replay *privacy.Replay) engine.Job
	replay   privacy.Replay
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
	f := &field{Case: Case{Name: name, About: about, Weight: 1}, canaries: len(c.canaries), alike: c.alike,
		runs: (enough + len(c.canaries) - 1) / len(c.canaries)}
	f.Watched = "every number that a whole run releases"
	viewer := privacy.Outsider
	if c.clients > 1 {
		viewer = privacy.Clients
		f.Watched += ", less the client's own noise"
	}
	c.replay.Records = len(c.pair.Records)/c.pair.D + len(c.canaries)
	plan, err := c.job(&c.pair, c.rows(true, func(int) bool { return true }), new(uint64), &c.replay).Plan()
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

// part runs with the replay with some of the records.
func (c *crowd) part(ctx context.Context, rt *engine.Runtime, seed uint64, draws *protocol.Draws,
	parts []dataset.Part) error {
	_, err := connect(ctx, rt, c.job(&c.pair, parts, &seed, &c.replay), draws, &c.replay)
	return err
}

// block is the canaries that have a part in a number: those whose places agree with base but for the digits of free,
// each the same part.
type block struct {
	base, free int
	move       float64
}

// nobody has a part in a number.
const nobody = -1

// add takes in a digit of places: what the canaries without and with it move together.
func (o *block) add(digit int, without, with float64) {
	moved := without + with
	switch {
	case o.base == nobody:
	case moved == 0 || digit > 0 && moved != o.move || without != 0 && with != 0 && without != with:
		o.base = nobody // or canaries of all sorts
	case without == with:
		o.free |= 1 << digit
	case with != 0:
		o.base |= 1 << digit
	}
	o.move = moved
}

// play runs the field once. Which canaries have a part in a number is told by the binary digits of their places: what
// the run would have released is computed for the half with a digit and for the half without. If one is nothing, the
// other has them; if both are the same, they are taken for as many on either side, with equal parts.
func (c *crowd) play(ctx context.Context, rt *engine.Runtime, st *privacy.Stream, in []bool) ([]float64, int, error) {
	seed := st.Uint64()
	var draws protocol.Draws
	c.replay.Record()
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
	if c.clients > 1 {
		if err := less(residual, protocol.Role(c.clients-1), &draws); err != nil {
			return nil, 0, err
		}
	}
	owner := make([]block, len(seen))
	for digit := range bits.Len(uint(len(c.canaries) - 1)) {
		var halves [2][]privacy.Number
		for value := range halves {
			halves[value], err = c.exact(ctx, rt, seed, c.rows(false, func(i int) bool { return i>>digit&1 == value }))
			if err != nil {
				return nil, 0, err
			}
		}
		for i := range owner {
			owner[i].add(digit, float64(halves[0][i].Second), float64(halves[1][i].Second))
		}
	}
	return c.score(seen, residual, owner), len(seen), nil
}

// exact computes what the run would have released of some records, without noise, had it released the same before.
func (c *crowd) exact(ctx context.Context, rt *engine.Runtime, seed uint64, parts []dataset.Part) (
	[]privacy.Number, error) {
	c.replay.Replay()
	if err := c.part(ctx, rt, seed, nil, parts); err != nil {
		return nil, err
	}
	if _, err := c.replay.Loss(); err != nil {
		return nil, err
	}
	var all []privacy.Number
	c.replay.Numbers(func(x privacy.Number) { all = append(all, x) })
	return all, nil
}

// tally is an estimate of how many of some canaries are in, less the half of them, and one over its variance.
type tally struct{ in, precision float64 }

// with is the tally of both.
func (t tally) with(o tally) tally {
	p := t.precision + o.precision
	return tally{(t.in*t.precision + o.in*o.precision) / p, p}
}

// score is, for each canary, the log ratio of how likely the numbers are that it moves with it and without, if noise
// and the others' coins are taken for Gaussian. A number of a block of canaries tells how many of them are in; with
// more noise, the coins of the others, so it tells of each smaller block in it, down to the canary.
func (c *crowd) score(seen []privacy.Number, residual []float64, owner []block) []float64 {
	type place struct{ base, free int }
	blocks := map[place]tally{}
	for i, x := range seen {
		o := owner[i]
		n := 1 << bits.OnesCount(uint(o.free))
		if o.base == nobody || n > mostSharing {
			continue
		}
		q, variance := o.move/float64(n), x.Scale*x.Scale
		if !x.Gaussian {
			variance *= 2
		}
		at := place{o.base, o.free}
		blocks[at] = blocks[at].with(tally{residual[i]/q - float64(n)/2, q * q / variance})
	}
	size := func(p place) int { return 1 << bits.OnesCount(uint(p.free)) }
	order := slices.SortedFunc(maps.Keys(blocks), func(a, b place) int {
		return cmp.Or(cmp.Compare(size(b), size(a)), cmp.Compare(a.base, b.base), cmp.Compare(a.free, b.free))
	})
	tallies, sizes := make([]tally, len(c.canaries)), make([]int, len(c.canaries))
	narrow := func(i, n int) { // from the block of canary i to n canaries of it
		if t := &tallies[i]; t.precision > 0 {
			t.precision = 1 / (1/t.precision + float64(sizes[i]-n)/4)
		}
		sizes[i] = n
	}
	for _, p := range order {
		for sub := p.free; ; sub = (sub - 1) & p.free {
			if i := p.base | sub; i < len(tallies) {
				narrow(i, size(p))
				tallies[i] = tallies[i].with(blocks[p])
			}
			if sub == 0 {
				break
			}
		}
	}
	scores := make([]float64, len(tallies))
	for i := range scores {
		narrow(i, 1)
		scores[i] = tallies[i].in * tallies[i].precision
	}
	return scores
}

// mostSharing is the largest number of canaries in a number that is looked at: beyond it a coin is lost among the
// others.
const mostSharing = 1 << 10

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

// middle is that of cell i of side cells that divide [-1,1].
func middle(i, side int) float64 { return (2*float64(i)+1)/float64(side) - 1 }

// lattice are the middles of the cells of a square lattice on [-1,1]^2 with side cells in a row.
func lattice(side int) (rows [][]float64) {
	for j := range side * side {
		rows = append(rows, []float64{middle(j%side, side), middle(j/side, side)})
	}
	return rows
}

// halvings is a lattice of 2^(2 depth) cells in an order in which each cell of a tree of halvings, which cuts one axis
// after the other, holds those whose places begin with the same binary digits.
func halvings(depth int) (rows [][]float64) {
	for j := range 1 << (2 * depth) {
		var at [2]int
		for digit := range 2 * depth {
			at[digit&1] |= j >> digit & 1 << (digit / 2)
		}
		rows = append(rows, []float64{middle(at[1], 1<<depth), middle(at[0], 1<<depth)})
	}
	return rows
}

// repeat has each row so often, one after the other.
func repeat(rows [][]float64, times int) (all [][]float64) {
	for _, r := range rows {
		all = append(all, slices.Repeat([][]float64{r}, times)...)
	}
	return all
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
		c, name, about = lloydCrowd(lloyd.SuLloyd, 11, 16, budget)
	case "relative":
		c, name, about = lloydCrowd(lloyd.Relative, 12, 8, budget)
	case "eugkm":
		c = &crowd{pair: Pair{D: 2, K: 8, Records: around(lattice(100), 40)}, canaries: repeat(lattice(100), 4), alike: 4,
			clients: 1}
		name = "a grid of canaries"
		about = "four canaries in each of 10,000 places of two dimensions, beside 40 records that are always there"
	case "hybrid":
		places := halvings(6)
		c = &crowd{pair: Pair{D: 2, K: 8, Records: around(places, 150)}, canaries: repeat(places, 16), alike: 16,
			clients: 3}
		name = "canaries in a tree"
		about = "4096 places of 150 records in two dimensions, 16 canaries in each; a tree alone, three clients, split noise"
	case "sketch", "sketch-basic":
		return sketchFields(s)
	default:
		return nil, nil
	}
	if c.job == nil {
		c.job = func(p *Pair, parts []dataset.Part, seed *uint64, replay *privacy.Replay) engine.Job {
			problem := central(p, parts, budget, Settings{Mechanism: "gaussian"}, seed, replay)
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

// lloydCrowd has a cluster at each corner of a cube of d dimensions and so many canaries in each corner of the box.
func lloydCrowd(m lloyd.Method, d, canaries int, budget privacy.Budget) (c *crowd, name, about string) {
	records, side := 150, 0.5
	if m == lloyd.Relative { // farther off, as offsets count, and more records to hold the centroids
		records, side = 400, 0.25
	}
	k := 1 << d
	starts := corners(d, k, side)
	c = &crowd{pair: Pair{D: d, K: k, Records: around(starts, records), Start: around(starts, 1)},
		canaries: repeat(corners(d, k, 1), canaries), alike: canaries, clients: 3}
	c.job = func(p *Pair, parts []dataset.Part, seed *uint64, replay *privacy.Replay) engine.Job {
		return &lloyd.Job{Method: m, Post: step.Fold, Problem: protocol.Problem{K: p.K, Start: p.Start,
			Mechanism: protocol.Gaussian, Budget: budget, Clients: parts, Records: replay.Records, Iterations: 2,
			NoQuality: true, Noise: protocol.InShares, Seed: seed}}
	}
	return c, "canaries in each cluster", fmt.Sprintf("%d clusters of %d records in %d dimensions, %d canaries in the "+
		"corner of the box beyond each; two rounds, three clients, split noise", k, records, d, canaries)
}
