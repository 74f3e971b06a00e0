package audit

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/cohort-engine/cohort/engine"
	"github.com/cohort-engine/cohort/engine/bounds"
	"github.com/cohort-engine/cohort/engine/catalog"
	"github.com/cohort-engine/cohort/engine/census"
	"github.com/cohort-engine/cohort/engine/dataset"
	"github.com/cohort-engine/cohort/engine/enginetest"
	"github.com/cohort-engine/cohort/engine/method"
	"github.com/cohort-engine/cohort/engine/privacy"
	"github.com/cohort-engine/cohort/engine/protocol"
	"github.com/cohort-engine/cohort/kernels"
)

// pair is a random request and two neighbouring data sets of it.
type pair struct {
	method   string
	settings method.Settings
	d, k     int
	clients  int
	bits     int
	columns  [][]int // of the parties of a method over columns
	records  int     // public
	weighted bool
	budget   privacy.Budget
	seed     uint64
	sides    [2][]holding
	sketches int // that the record has moved
}

// holding is a record and who has it.
type holding struct {
	row    []float32
	weight float64
	client int
}

func (p *pair) String() string {
	return fmt.Sprintf("%s %v, d=%d, k=%d, n=%d, records=%d, clients=%d, bits=%d, weights=%v, %+v", p.method, p.settings,
		p.d, p.k, len(p.sides[0]), p.records, p.clients, p.bits, p.weighted, p.budget)
}

// one draws a value.
func one[T any](rng *rand.Rand, of ...T) T { return of[rng.IntN(len(of))] }

// newPair draws the request for one of the methods, of about so many records, and its data: the last record is away
// from the second set, or another one there.
func newPair(rng *rand.Rand, methods []string, dims []int, n int) *pair {
	p := &pair{method: one(rng, methods...), settings: method.Settings{}, d: one(rng, dims...), k: 1 + rng.IntN(6),
		clients: one(rng, 1, 1, 2, 3), bits: one(rng, 8, 12, 16, 20, 22), seed: rng.Uint64(),
		budget: privacy.Budget{Epsilon: math.Exp(7*rng.Float64() - 3), Delta: one(rng, 0, 1e-5, 1e-5)}}
	replaced := rng.IntN(3) == 0
	if replaced {
		p.settings["neighbours"] = string(privacy.ReplaceOne)
	}
	p.weighted = !slices.Contains([]string{"balcan", "csulloyd", "fastlloyd"}, p.method) && rng.IntN(3) == 0
	for range n + 1 {
		p.sides[0] = append(p.sides[0], holding{p.row(rng), one(rng, 0, 1, .3, rng.Float64(), 5), rng.IntN(p.clients)})
	}
	p.sides[1] = slices.Clone(p.sides[0][:n])
	if last := p.sides[0][n]; replaced {
		other := holding{p.row(rng), one(rng, 0, 1, rng.Float64()), last.client}
		if rng.IntN(2) == 0 {
			for h, x := range last.row {
				other.row[h] = -x
			}
		}
		p.sides[1] = append(p.sides[1], other)
	}
	p.records = max(p.k, one(rng, n, n+1, n, rng.IntN(3*n+1)))
	return p
}

// row draws a record on the grid: a corner, the centre, or one of clusters.
func (p *pair) row(rng *rand.Rand) []float32 {
	row, kind := make([]float32, p.d), rng.IntN(6)
	for h := range row {
		x := [...]float64{float64(2*rng.IntN(2) - 1), 2*rng.Float64() - 1, 0, 1, .02 * rng.NormFloat64(),
			.7 + .1*rng.NormFloat64()}[kind]
		row[h] = float32(math.Ldexp(math.Trunc(math.Ldexp(min(max(x, -1), 1), p.bits)), -p.bits))
	}
	return row
}

// parts are the clients' records on one side.
func (p *pair) parts(side int) []dataset.Part {
	parts := make([]dataset.Part, p.clients)
	for client := range parts {
		var rows []float32
		part, weights := &parts[client], []float64{}
		for _, x := range p.sides[side] {
			if x.client == client {
				rows, weights = append(rows, x.row...), append(weights, x.weight)
				part.Rows = append(part.Rows, len(part.Rows))
			}
		}
		part.Points, part.FractionBits = kernels.NewPanels(len(part.Rows), p.d), p.bits
		kernels.Pack(part.Points, rows)
		if p.weighted {
			part.Weights = weights
		}
	}
	return parts
}

// run runs the request on both sides, with the released values of the first as those of the second, and returns by what
// part of what the ledger has for it the exact values of a release differ, at most; false if the request is refused.
// All else that leaves is the same on both sides.
func (p *pair) run(ctx context.Context, rt *engine.Runtime) (share float64, ran bool, err error) {
	replay := &privacy.Replay{Records: p.records}
	var told [2]string
	var made [2][]string
	var heights [2][][]int
	var core *protocol.Plan
	for side := range p.sides {
		job, err := catalog.Methods().Job(p.method, protocol.Problem{Clients: p.parts(side), Columns: p.columns, K: p.k,
			Records: p.records, Budget: p.budget, Seed: &p.seed, NoQuality: true, Bounds: dataset.SameBounds(p.d, -1, 1)},
			p.settings)
		if err != nil {
			return 0, false, nil
		}
		plan, err := job.Plan()
		if err != nil {
			return 0, false, nil
		}
		if side == 0 {
			replay.Record()
		} else {
			replay.Replay()
		}
		runner, views := plan.(protocol.Runner), new(protocol.Views)
		core = runner.Core()
		res, err := runner.Connect(ctx, rt, protocol.Options{Replay: replay, Views: views})
		if err != nil {
			return 0, false, err
		}
		told[side], made[side], heights[side] = outcomeOf(res), releasesOf(views), heightsOf(views)
	}
	if err := p.sketched(heights); err != nil {
		return 0, false, err
	}
	if _, err := replay.Loss(); err != nil {
		return 0, false, err
	}
	if told[0] != told[1] || !slices.Equal(made[0], made[1]) {
		return 0, false, fmt.Errorf("the same values were released, and %s and %s came of %v and %v", told[0], told[1],
			made[0], made[1])
	}
	ledger, err := core.Ledger(nil)
	if err != nil {
		return 0, false, err
	}
	if total := ledger.TotalFor(privacy.Server).Epsilon; total == nil || *total > p.budget.Epsilon*(1+1e-9) {
		return 0, false, fmt.Errorf("the ledger has %v in all", ledger.TotalFor(privacy.Server))
	}
	share, err = largestShare(core, replay, made[0])
	return share, true, err
}

// outcomeOf is all that a result says but for times.
func outcomeOf(r *engine.Result) string {
	c := *r
	c.Timings = nil
	b, err := json.Marshal(&c)
	return fmt.Sprint(string(b), err)
}

// heightsOf has the heights of the sketches that parties send, by party and key.
func heightsOf(views *protocol.Views) (keys [][]int) {
	for _, v := range views.Seen {
		if b := v.Message; v.What == "local centres and what is released beside them" && v.Viewer == protocol.Server {
			clusters, bytes, sets := int(b[1]), int(b[7]), int(b[6])
			all := b[len(b)-sets*int(binary.LittleEndian.Uint32(b[8:]))*clusters*bytes:]
			for at := 0; at < len(all); at += clusters * bytes {
				key := make([]int, clusters)
				for c := range key {
					for i := range bytes {
						key[c] += int(all[at+c*bytes+i]) << (8 * i)
					}
				}
				keys = append(keys, key)
			}
		}
	}
	return keys
}

// sketched checks that a record is in one sketch of each party and key (T3): one away leaves all others as they are,
// and none higher.
func (p *pair) sketched(heights [2][][]int) error {
	if len(heights[0]) != len(heights[1]) {
		return fmt.Errorf("%d and %d keys", len(heights[0]), len(heights[1]))
	}
	for i, with := range heights[0] {
		fewer, more := 0, 0
		for c, h := range with {
			switch without := heights[1][i][c]; {
			case without < h:
				fewer++
			case without > h:
				more++
			}
		}
		p.sketches += fewer + more
		if fewer > 1 || more > 1 || more > 0 && len(p.sides[0]) > len(p.sides[1]) {
			return fmt.Errorf("a record more or less moves sketches %v to %v", with, heights[1][i])
		}
	}
	return nil
}

// releasesOf has the name of a release for each number that it has released, in their order.
func releasesOf(views *protocol.Views) (names []string) {
	seen := map[string]bool{}
	for _, v := range views.Seen {
		if once := fmt.Sprint(v.What, v.Round); v.Values != nil && !seen[once] {
			seen[once] = true
			names = append(names, slices.Repeat([]string{v.What}, len(v.Values))...)
		}
	}
	return names
}

// largestShare is by what part of what the plan has for it the exact values of a release differ, at most. names has the
// releases of the numbers.
func largestShare(plan *protocol.Plan, replay *privacy.Replay, names []string) (share float64, err error) {
	type cost struct{ pure, mu2, laplace, gaussian float64 }
	costs := map[string]*cost{}
	for _, r := range plan.Releases {
		if costs[r.Name] != nil {
			return 0, fmt.Errorf("two releases are called %q", r.Name)
		}
		costs[r.Name] = new(cost)
		for _, e := range r.Entries {
			switch times := float64(e.Cost.Times()); e.Cost.Family {
			case "discrete-gaussian":
				costs[r.Name].mu2 += times / (e.Cost.Scale * e.Cost.Scale)
			case "discrete-laplace":
				costs[r.Name].pure += times / e.Cost.Scale
			}
		}
	}
	at := 0
	replay.Numbers(func(n privacy.Number) {
		if at < len(names) {
			change := math.Abs(float64(n.First-n.Second)) / n.Scale
			if c := costs[names[at]]; n.Gaussian {
				c.gaussian += change * change
			} else {
				c.laplace += change
			}
		}
		at++
	})
	if at != len(names) {
		return 0, fmt.Errorf("%d numbers were released, and %d were seen", at, len(names))
	}
	for name, c := range costs {
		if c.pure == 0 && c.laplace > 0 || c.mu2 == 0 && c.gaussian > 0 {
			return 0, fmt.Errorf("%s: noise of a kind that the ledger has not", name)
		}
		if c.pure > 0 {
			share = max(share, c.laplace/c.pure)
		}
		if c.mu2 > 0 {
			share = max(share, math.Sqrt(c.gaussian/c.mu2))
		}
	}
	return share, nil
}

// vertical draws the settings of a method over columns, and who has which.
func (p *pair) vertical(rng *rand.Rand) {
	p.oneTable()
	p.weighted, p.columns = false, make([][]int, 2+rng.IntN(p.d-1))
	for h := range p.d {
		at := min(h, len(p.columns)-1)
		if h >= len(p.columns) {
			at = rng.IntN(len(p.columns))
		}
		p.columns[at] = append(p.columns[at], h)
	}
	p.budget.Delta = 1e-5
	if p.method == "sketch" || p.method == "sketch-basic" {
		p.settings["sketches"], p.settings["local-start"] = "8", one(rng, "auto", "tree", "lsf", "rounds")
	}
}

// oneTable has one client hold all records.
func (p *pair) oneTable() {
	p.clients = 1
	for side := range p.sides {
		for i := range p.sides[side] {
			p.sides[side][i].client = 0
		}
	}
}

// stage draws the settings of a method of stages.
func (p *pair) stage(rng *rand.Rand) {
	if p.method != "hybrid" {
		p.oneTable()
		return
	}
	if branch := one(rng, "", "tree", "tree", "grid", "high-d", "projected", "mean"); branch != "" {
		p.settings["branch"] = branch
	}
	switch tree := p.settings["branch"] == "tree"; {
	case tree && rng.IntN(3) == 0:
		p.settings["balance"] = "2"
	case tree && rng.IntN(2) == 0:
		p.settings["frame"] = "on"
	case tree:
		p.settings["k-least"] = "1"
	}
}

// lloyd draws the settings of a Lloyd method.
func (p *pair) lloyd(rng *rand.Rand) {
	p.settings["iterations"] = strconv.Itoa(1 + rng.IntN(3))
	if p.clients > 1 {
		p.settings["aggregator"] = one(rng, "ring", "shares")
	}
	p.settings["mechanism"] = "laplace"
	if p.budget.Delta > 0 {
		p.settings["mechanism"] = one(rng, "laplace", "gaussian")
	}
	if p.method != "csulloyd" && p.method != "fastlloyd" {
		return
	}
	switch rng.IntN(5) {
	case 0:
		p.settings["exclusivity"] = strconv.Itoa(1 + rng.IntN(min(p.k, 3)))
	case 1:
		p.settings["exclusivity"] = "nonexclusive"
	case 2:
		p.settings["radius"] = strconv.FormatFloat(.05+2*rng.Float64(), 'g', 4, 64)
	case 3:
		p.settings["radius-schedule"] = one(rng, "sqrt", "geometric")
	}
	p.settings["eta-min-alpha"], p.settings["eta-max-alpha"] = one(rng, "1.25", "2", "5"), one(rng, "1.25", "2", "1")
}

// No exact values of two neighbours, of random requests on random records, differ by more than the ledger has.
func TestRandomNeighbours(t *testing.T) {
	eng := enginetest.New(t, engine.WithWorkers(1))
	rt, rng := engine.NewRuntime(eng.Pool()), rand.New(rand.NewPCG(1, 77))
	for _, x := range []struct {
		methods []string
		dims    []int
		draw    func(p *pair, rng *rand.Rand)
		pairs   int
		records int
	}{
		{[]string{"sulloyd", "relative", "csulloyd", "fastlloyd", "csulloyd", "fastlloyd"}, []int{1, 2, 3, 4, 6, 9},
			(*pair).lloyd, 400, 150},
		{[]string{"hybrid", "hybrid", "hybrid", "hybrid", "lsf", "eugkm", "evolve", "balcan"},
			[]int{1, 2, 3, 4, 6, 9, 10, 14, 55}, (*pair).stage, 80, 400},
		{[]string{"sketch", "sketch", "sketch-basic", "ind-lap"}, []int{2, 3, 4, 7, 12}, (*pair).vertical, 60, 300},
	} {
		ran, most, sketches := 0, 0.0, 0
		for range x.pairs {
			p := newPair(rng, x.methods, x.dims, 1+rng.IntN(x.records))
			x.draw(p, rng)
			share, ok, err := p.run(t.Context(), rt)
			switch {
			case err != nil:
				t.Errorf("%v: %v", p, err)
			case share > 1+1e-7: // costs in the ledger are rounded
				t.Errorf("%v: exact values differ by %.9f of what the ledger has", p, share)
			case ok:
				ran, most, sketches = ran+1, max(most, share), sketches+p.sketches
			}
		}
		if ran < x.pairs/2 || most < .99 {
			t.Errorf("%s: %d of %d pairs ran, the largest share was %.4f", x.methods, ran, x.pairs, most)
		}
		if (sketches > 0) != slices.Contains(x.methods, "sketch") {
			t.Errorf("%s: records have moved %d sketches", x.methods, sketches)
		}
	}
}

// balcan-edler, whose noise follows its own noisy counts and cannot be replayed, shows nothing of a record but in its
// centroids.
func TestEdlerShowsItsCentroidsAlone(t *testing.T) {
	eng := enginetest.New(t, engine.WithWorkers(1))
	rng, moved := rand.New(rand.NewPCG(9, 77)), 0
	for range 60 {
		p := newPair(rng, []string{"balcan-edler"}, []int{1, 2, 3, 6, 9}, 1+rng.IntN(300))
		p.oneTable()
		p.weighted, p.settings, p.budget.Delta = false, method.Settings{"calibration": "claimed"}, 0
		var told [2]string
		var centroids [2][][]float64
		for side := range p.sides {
			job, err := catalog.Methods().Job(p.method, protocol.Problem{Clients: p.parts(side), K: p.k, Records: p.records,
				Budget: p.budget, Seed: &p.seed, NoQuality: true, Bounds: dataset.SameBounds(p.d, -1, 1)}, p.settings)
			if err != nil {
				t.Fatal(err)
			}
			res, err := eng.Run(t.Context(), job)
			if err != nil {
				t.Fatal(err)
			}
			centroids[side], res.Centroids = res.Centroids, nil
			res.Notes = slices.DeleteFunc(res.Notes, func(note string) bool {
				return strings.Contains(note, "coordinates of noisy means lie outside the bounds") // so say the centroids
			})
			told[side] = outcomeOf(res)
		}
		if told[0] != told[1] {
			t.Errorf("%v: %s and %s", p, told[0], told[1])
		}
		if !reflect.DeepEqual(centroids[0], centroids[1]) {
			moved++
		}
	}
	if moved < 30 {
		t.Errorf("records moved the centroids of %d pairs", moved)
	}
}

// A record that goes to another client moves the centroids of both, by twice what is claimed here for replacing one at
// its client: the ledger says which it is.
func TestReplacedRecordsStayAtTheirClient(t *testing.T) {
	eng, err := engine.New(engine.WithWorkers(1))
	if err != nil {
		t.Fatal(err)
	}
	defer eng.Close()
	rt := engine.NewRuntime(eng.Pool())
	sides := func(to int) (sides [2][]holding) {
		others := []holding{{[]float32{-1}, 1, 1}, {[]float32{1}, 1, 2}, {[]float32{-1 + 10./(1<<16)}, 1, 0},
			{[]float32{1}, 1, 1}}
		for side, last := range []holding{{[]float32{1 - 1./(1<<16)}, 1, 1}, {[]float32{-1}, 1, to}} {
			sides[side] = append(slices.Clone(others), last)
		}
		return sides
	}
	p := &pair{method: "fastlloyd", d: 1, k: 1, clients: 3, bits: 16, records: 4, seed: 1,
		budget: privacy.Budget{Epsilon: 5}, settings: method.Settings{"neighbours": "replace-one", "mechanism": "laplace",
			"iterations": "1", "eta-min-alpha": "5", "aggregator": "shares"}}
	for to, most := range map[int]float64{1: 1, 2: 2} {
		p.sides = sides(to)
		share, ran, err := p.run(t.Context(), rt)
		if err != nil || !ran || share > most+1e-9 || share < most-.01 {
			t.Errorf("a record that is replaced at client %d moves %.5f of what the ledger has, %v, %v", to+1, share, ran,
				err)
		}
	}
	job, err := catalog.Methods().Job(p.method, protocol.Problem{Clients: p.parts(0), K: p.k, Records: p.records,
		Budget: p.budget, NoQuality: true}, p.settings)
	if err != nil {
		t.Fatal(err)
	}
	plan, err := job.Plan()
	if err != nil {
		t.Fatal(err)
	}
	ledger, err := plan.(protocol.Runner).Core().Ledger(nil)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.ContainsFunc(ledger.Entries(), func(e privacy.Entry) bool {
		return strings.Contains(strings.Join(e.Conditions, " "), "at the client that has it")
	}) {
		t.Error("the ledger does not say that a replaced record stays at its client")
	}
}

// before is what a ledger pays for before a run is planned: a number of records, or bounds of columns.
type before struct {
	parts   [][]float64 // rows by party
	d       int
	split   [][]int // who has which columns, nil for rows
	noise   protocol.NoiseBy
	replace bool
	seed    uint64
}

// neighbour is the same with one row more, or another one in its place.
func (b *before) neighbour(row []float64) *before {
	n := *b
	n.parts = slices.Clone(b.parts)
	own := slices.Clone(n.parts[0])
	if b.replace {
		own = own[b.d:]
	}
	n.parts[0] = append(own, row...)
	return &n
}

func (b *before) job(t *testing.T, count bool) engine.Job {
	var sources []dataset.Source
	var clients []dataset.Part
	for _, rows := range b.parts {
		n := len(rows) / b.d
		source, err := dataset.FromMatrix("rows", dataset.Matrix[float64]{Data: rows, N: n, D: b.d})
		if err != nil {
			t.Fatal(err)
		}
		sources, clients = append(sources, source), append(clients, dataset.Part{Points: kernels.NewPanels(n, b.d)})
	}
	if count {
		return &census.Job{Clients: clients, Epsilon: .3, Noise: b.noise, Seed: &b.seed}
	}
	j := &bounds.Job{Parties: sources, Split: b.split, Epsilon: .3, Noise: b.noise, Seed: &b.seed}
	if b.replace {
		j.Neighbours = privacy.ReplaceOne
	}
	return j
}

// Exact values of what is released before a run differ between neighbours by no more than the ledger has, and nothing
// but what is released follows from the records.
func TestNeighboursBeforeARun(t *testing.T) {
	eng, err := engine.New(engine.WithWorkers(1))
	if err != nil {
		t.Fatal(err)
	}
	defer eng.Close()
	rt, rng := engine.NewRuntime(eng.Pool()), rand.New(rand.NewPCG(3, 5))
	value := func() float64 {
		return one(rng, 0, 1, -1, 1e300, -1e300, 5e-324, math.Copysign(0, -1), math.Sqrt2, math.Exp(8*rng.NormFloat64()),
			-rng.Float64())
	}
	most := map[bool]float64{}
	for trial := range 120 {
		b := &before{d: 1 + rng.IntN(4), noise: one(rng, "", protocol.ByServer, protocol.ByEach, protocol.InShares),
			replace: trial%3 == 0, seed: rng.Uint64()}
		parties := 1 + rng.IntN(3)
		if parties == 1 {
			b.noise = ""
			if b.d > 1 && rng.IntN(2) == 0 {
				b.split = [][]int{{0}, nil}
				for h := 1; h < b.d; h++ {
					b.split[1] = append(b.split[1], h)
				}
			}
		}
		for range parties {
			rows := make([]float64, b.d*(1+rng.IntN(20)))
			for i := range rows {
				rows[i] = value()
			}
			b.parts = append(b.parts, rows)
		}
		row := make([]float64, b.d)
		for h := range row {
			row[h] = value()
		}
		count := !b.replace && b.split == nil && rng.IntN(3) == 0
		share := shareOfPair(t, rt, [2]engine.Job{b.job(t, count), b.neighbour(row).job(t, count)})
		if most[count] = max(most[count], share); share > 1+1e-9 {
			t.Errorf("%+v and %v: exact values differ by %.9f of what the ledger has", b, row, share)
		}
	}
	if most[false] < .99 || most[true] < .99 {
		t.Errorf("the largest shares are %v", most)
	}
}

// shareOfPair is largestShare of two jobs, which are to tell the same where the same is released.
func shareOfPair(t *testing.T, rt *engine.Runtime, jobs [2]engine.Job) float64 {
	t.Helper()
	replay := new(privacy.Replay)
	var told [2]string
	var core *protocol.Plan
	var names []string
	for side, job := range jobs {
		plan, err := job.Plan()
		if err != nil {
			t.Fatal(err)
		}
		if side == 0 {
			replay.Record()
		} else {
			replay.Replay()
		}
		views := new(protocol.Views)
		core = plan.(protocol.Runner).Core()
		res, err := plan.(protocol.Runner).Connect(t.Context(), rt, protocol.Options{Replay: replay, Views: views})
		if err != nil {
			t.Fatal(err)
		}
		told[side], names = outcomeOf(res), releasesOf(views)
	}
	if told[0] != told[1] {
		t.Errorf("the same values were released, and %s and %s came of them", told[0], told[1])
	}
	share, err := largestShare(core, replay, names)
	if err != nil {
		t.Error(err)
	}
	return share
}
