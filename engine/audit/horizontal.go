package audit

import (
	"context"
	"fmt"

	"github.com/cohort-engine/cohort/engine"
	"github.com/cohort-engine/cohort/engine/dataset"
	"github.com/cohort-engine/cohort/engine/method/lloyd"
	"github.com/cohort-engine/cohort/engine/privacy"
	"github.com/cohort-engine/cohort/engine/protocol"
	"github.com/cohort-engine/cohort/engine/step"
	"github.com/cohort-engine/cohort/internal/fault"
	"github.com/cohort-engine/cohort/kernels"
)

// Settings are what an audit may be asked for besides method and calibration. Zero fields mean the
// method's default, epsilon 1, delta 1e-5 where the mechanism has one, add-remove.
type Settings struct {
	Epsilon, Delta float64
	Mechanism      string
	Neighbours     privacy.Neighbours
	// Pair is a pair of the user's own, instead of the library's.
	Pair *Pair
}

func (s Settings) epsilon() float64 {
	if s.Epsilon == 0 {
		return 1
	}
	return s.Epsilon
}

// Pair is two neighbouring data sets: Records, and Records with Extra. Under replace-one the former also
// has Other. Everything lies in [-1,1]^D.
type Pair struct {
	Name, About  string
	D, K         int
	Records      []float64 // row-major
	Extra, Other []float64
	// Start has the public first centroids; nil means the method's own.
	Start []float64
	// Alpha sets the least size of a cluster, n/(Alpha k); 0 means the method's default.
	Alpha float64
}

// gridBits is the grid of the library's records.
const gridBits = 16

// parts is the pair's data set with the extra record or without, as one client's.
func (p *Pair) parts(present bool, n privacy.Neighbours) []dataset.Part {
	rows := append([]float64(nil), p.Records...)
	switch {
	case present:
		rows = append(rows, p.Extra...)
	case n == privacy.ReplaceOne:
		rows = append(rows, p.Other...)
	}
	count := len(rows) / p.D
	grid := make([]float32, len(rows))
	for i, x := range rows {
		grid[i] = dataset.Truncate(x, gridBits)
	}
	part := dataset.Part{Points: kernels.NewPanels(count, p.D), FractionBits: gridBits}
	kernels.Pack(part.Points, grid)
	for i := range count {
		part.Rows = append(part.Rows, i)
	}
	return []dataset.Part{part}
}

// doubled is the one-dimensional counterexample to FastLloyd's Theorem 5.1: one added record changes
// both clusters of two, one of them by 2B/lo (T1).
func doubled() Pair {
	return Pair{Name: "doubled mean",
		About: "one dimension, two records in each of two clusters at 1; a record at -1 moves one mean by 2B/lo",
		D:     1, K: 2, Records: []float64{1, 1, 1, 1}, Extra: []float64{-1}, Other: []float64{1},
		Start: []float64{-1, -0.5}, Alpha: 1.25}
}

// everyCluster is the two-dimensional counterexample to FastLloyd's Theorem 5.1: one added record
// changes all three clusters of two, by 5.19 in L1 where the theorem has 1 (T1).
func everyCluster() Pair {
	return Pair{Name: "every cluster",
		About: "two dimensions, two records in each of three clusters; a record pushes one out of every cluster " +
			"into the next",
		D: 2, K: 3, Records: []float64{1, 0.98, -0.96, -1, 1, 0.94, 1, 0.92, -0.90, -1, -0.88, -1},
		Extra: []float64{1, 1}, Other: []float64{-1, -1},
		Start: []float64{-0.3, 0.3, -0.2, 0.2, -0.1, 0.1}, Alpha: 1.2}
}

// chain is the family of T1 in which one record moves a record out of every cluster: k clusters of lo
// records, in two opposite corners, ordered by a small rank; everybody wants the last cluster.
func chain(k, lo int) Pair {
	p := Pair{Name: fmt.Sprintf("chain of %d clusters", k), D: 2, K: k, Extra: []float64{1, 1},
		Other: []float64{-1, -1}, Alpha: 1.2,
		About: fmt.Sprintf("%d records in each of %d clusters, in two corners; a record of the lowest rank pushes one "+
			"out of every cluster", lo, k)}
	if lo > 5 {
		p.Alpha = 1 + 1/float64(2*lo)
	}
	step := 0.12 / float64(k*lo)
	for i := 1; i <= k*lo; i++ {
		rank := step * float64(i)
		// the records that move alternate between the corners, the others stay in the first
		if i%lo == 0 && i/lo%2 == 1 {
			p.Records = append(p.Records, -1+rank, -1)
		} else {
			p.Records = append(p.Records, 1, 1-rank)
		}
	}
	for j := range k {
		t := 0.1 * float64(k-j)
		p.Start = append(p.Start, -t, t)
	}
	return p
}

// corner adds a record in the far corner to a cluster that has none, whose centroid has these coordinates.
func corner(d int, from float64) Pair {
	const n = 200
	p := Pair{Name: fmt.Sprintf("lonely corner in %d dimensions", d),
		About: fmt.Sprintf("%d records in one corner, one in the other, alone in its cluster", n), D: d, K: 2, Alpha: 1.25}
	for range n {
		for range d {
			p.Records = append(p.Records, -1)
		}
	}
	for range d {
		p.Extra, p.Other = append(p.Extra, 1), append(p.Other, -1)
	}
	for range d {
		p.Start = append(p.Start, -1)
	}
	for range d {
		p.Start = append(p.Start, from)
	}
	return p
}

// swapped moves a record of one cluster to the far end of the same one, the worst case of replace-one
// for nearest assignment.
func swapped(d int) Pair {
	p := corner(d, 0)
	p.Name, p.About = "far end", "a record in its own cluster, against one as far away on the other side"
	for j := range d {
		p.Start[d+j] = 0
		p.Other[j] = -1
		p.Start[j] = -1
	}
	// both ends are nearest to the second centroid at 0 if the first is as far as the corner itself
	for j := range d {
		p.Start[j] = -1
		p.Other[j] = -0.499
		p.Extra[j] = 1
	}
	return p
}

// laterCode tells whether a calibration has the radius rule of the released code only.
func laterCode(m lloyd.Method, c privacy.Calibration) bool {
	return m == lloyd.Relative && c == privacy.Published
}

// horizontal are the cases of a horizontal method.
func horizontal(method string, c privacy.Calibration, s Settings) ([]Case, error) {
	m := lloyd.Method(method)
	var pairs []Pair
	switch {
	case s.Pair != nil:
		pairs = []Pair{*s.Pair}
	case m.Constrained():
		pairs = []Pair{doubled(), everyCluster(), chain(5, 10)}
	default:
		from := -0.25
		switch {
		case laterCode(m, c):
			from = 0.0625 // within the radius of the released code, sqrt(d)
		case m == lloyd.Relative:
			from = -0.9 // beyond the first radius, 2 sqrt(d) k^(-1/d), so cut to it
		}
		pairs = []Pair{corner(2, from), corner(4, from)}
		if s.Neighbours == privacy.ReplaceOne {
			pairs = append(pairs, swapped(2))
		}
	}
	var cases []Case
	for _, p := range pairs {
		one, err := horizontalCase(m, c, s, p, setting{clients: 1, viewer: privacy.Outsider})
		if err != nil {
			return nil, err
		}
		cases = append(cases, *one)
	}
	p := pairs[0]
	if m.Constrained() && s.Pair == nil {
		p = chain(2, 8)
		p.Alpha = 2 // each client's clusters have so few records that it can fill them
	}
	for _, by := range settings() {
		if s.Neighbours == privacy.ReplaceOne {
			break // the several clients' guarantee for it is the same theorem
		}
		one, err := horizontalCase(m, c, s, p, by)
		if err != nil {
			return nil, err
		}
		one.Name, one.Weight = p.Name+", "+by.name, 20
		cases = append(cases, *one)
	}
	if s.Neighbours == privacy.ReplaceOne {
		return cases, nil
	}
	one, err := horizontalRun(m, c, s, p)
	return append(cases, *one), err
}

// horizontalRun is a run of a horizontal method from end to end, of several rounds by three clients who
// share the noise, judged by the likelihood ratio of everything that it releases.
func horizontalRun(m lloyd.Method, c privacy.Calibration, s Settings, p Pair) (*Case, error) {
	by := setting{clients: 3, noise: protocol.InShares, viewer: privacy.Outsider}
	one, plans, err := horizontalPlans(m, c, s, p, by, 3)
	if err != nil {
		return new(Case), err
	}
	one.Name, one.Distribution, one.Weight = p.Name+", a whole run, three clients, split noise", direct, 24
	one.Ratio = true
	one.Watched = "every release of three rounds, by its likelihood ratio on the pair"
	one.Draw = byReleases(p, func(ctx context.Context, rt *engine.Runtime, seed uint64, side int,
		replay *privacy.Replay) error {
		return plans[side].Trial(ctx, rt, seed, protocol.Options{Replay: replay})
	})
	return one, nil
}

// setting is by how many clients a case is played, who draws the noise, and who looks: an outsider, or one of the
// clients, who takes its own noise off what it sees.
type setting struct {
	name       string
	clients    int
	noise      protocol.NoiseBy
	aggregator lloyd.Aggregator
	viewer     string
}

// settings are those of several clients.
func settings() []setting {
	return []setting{
		{"three clients, the server's noise, seen by a client", 3, protocol.ByServer, "", privacy.Clients},
		{"three clients, split noise, seen by a client", 3, protocol.InShares, "", privacy.Clients},
		{"three clients, split noise, seen by an outsider", 3, protocol.InShares, "", privacy.Outsider},
		{"three clients, split noise, seen by the server", 3, protocol.InShares, "", privacy.Server},
		{"three clients, local noise, seen by a client", 3, protocol.ByEach, "", privacy.Clients},
		{"three clients in a ring, split noise, seen by a client", 3, protocol.InShares, lloyd.ByRing, privacy.Clients},
		{"three clients, shares among two servers, seen by a client", 3, protocol.AmongServers, lloyd.ByShares,
			privacy.Clients},
	}
}

// horizontalCase is one round of a horizontal method on a pair. Either side is planned once, so that a
// trial pays for the round alone.
func horizontalCase(m lloyd.Method, c privacy.Calibration, s Settings, p Pair, by setting) (*Case, error) {
	one, plans, err := horizontalPlans(m, c, s, p, by, 1)
	if err != nil {
		return nil, err
	}
	one.Draw = func(ctx context.Context, rt *engine.Runtime, st *privacy.Stream, present bool) ([]float64, error) {
		var views protocol.Views
		var draws protocol.Draws
		if err := plans[sideOf(present)].Trial(ctx, rt, st.Uint64(),
			protocol.Options{Views: &views, Draws: &draws}); err != nil {
			return nil, err
		}
		out, err := by.seen(&views, &draws)
		if err == nil && len(out) == 0 {
			err = fault.Failed("audit", string(m)+" released nothing", "", nil)
		}
		return out, err
	}
	return one, nil
}

// horizontalPlans begins a case of so many rounds, with the plans of both sides.
func horizontalPlans(m lloyd.Method, c privacy.Calibration, s Settings, p Pair, by setting, rounds int) (*Case,
	[2]*lloyd.Plan, error) {
	job := lloyd.Job{Method: m, Problem: protocol.Problem{K: p.K, Start: p.Start, Calibration: c,
		Neighbours: s.Neighbours, Mechanism: protocol.Mechanism(s.Mechanism),
		Budget: privacy.Budget{Epsilon: s.epsilon(), Delta: s.Delta}, Iterations: rounds, NoQuality: true,
		Noise: by.noise}, EtaMinAlpha: p.Alpha, EtaMaxAlpha: 100, Post: step.Keep, Aggregator: by.aggregator}
	if laterCode(m, c) {
		job.Schedule = lloyd.LaterCode
	}
	gaussian := s.Mechanism == "gaussian" || s.Mechanism == "" && m == lloyd.Relative
	if job.Budget.Delta == 0 && gaussian {
		job.Budget.Delta = 1e-5
	}
	one := &Case{Name: p.Name, About: p.About, Watched: "the noisy sums and counts, or centroids, of one round",
		Distribution: laplaceNoise, Weight: max(1, p.K-2)}
	if by.viewer == privacy.Clients {
		one.Watched += ", less the client's own noise"
	}
	if gaussian {
		one.Distribution = gaussianNoise
	}
	if rounds > 1 { // a public number of records, as a run with a replay has
		job.Records = (len(p.Records) + len(p.Extra)) / p.D
	}
	var plans [2]*lloyd.Plan
	for side := range plans {
		job.Clients = (&way{clients: by.clients}).deal(p.parts(side == 1, s.Neighbours))
		plan, err := job.Plan()
		if err != nil {
			return nil, plans, err
		}
		plans[side] = plan.(*lloyd.Plan)
	}
	ledger, err := plans[1].Ledger(nil) // of the larger set
	if err != nil {
		return nil, plans, err
	}
	return one, plans, one.state(ledger, by.viewer)
}

// seen is what the viewer makes of a round. The record is the first client's, so that the last client looks.
func (by *setting) seen(views *protocol.Views, draws *protocol.Draws) ([]float64, error) {
	viewer := protocol.Role(by.clients - 1)
	var out []float64
	for _, x := range views.Seen {
		if x.Viewer == viewer && x.Of == protocol.Server {
			for _, v := range x.Values {
				out = append(out, float64(v))
			}
		}
	}
	if by.viewer != privacy.Clients || by.noise == protocol.ByServer || by.noise == protocol.AmongServers {
		return out, nil // it drew none
	}
	return out, less(out, viewer, draws)
}

// less takes off the noise that a viewer drew itself.
func less(seen []float64, viewer protocol.Role, draws *protocol.Draws) error {
	at := 0
	for _, d := range draws.Seen {
		if d.Role != viewer {
			continue
		}
		for _, z := range d.Values {
			if at < len(seen) {
				seen[at] -= float64(z)
			}
			at++
		}
	}
	if at != len(seen) {
		return fault.Failed("audit", fmt.Sprintf("%v drew noise for %d numbers of %d", viewer, at, len(seen)), "", nil)
	}
	return nil
}
