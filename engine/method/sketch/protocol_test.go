package sketch

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cohort-engine/cohort/engine"
	"github.com/cohort-engine/cohort/engine/dataset"
	"github.com/cohort-engine/cohort/engine/enginetest"
	"github.com/cohort-engine/cohort/engine/privacy"
	"github.com/cohort-engine/cohort/engine/protocol"
	"github.com/cohort-engine/cohort/engine/protocol/protocoltest"
	"github.com/cohort-engine/cohort/internal/fault"
	"github.com/cohort-engine/cohort/kernels"
)

// mixture makes n records of three well separated clusters in d columns.
func mixture(t testing.TB, n, d int) *dataset.Normalised {
	rng := rand.New(rand.NewPCG(21, 22))
	table := &dataset.Table{N: n, D: d}
	centers := [][]float64{{-0.6, 0.5}, {0.6, 0.6}, {0.1, -0.7}}
	for i := range n {
		c := centers[i%3]
		for h := range d {
			table.Rows = append(table.Rows, max(-1, min(1, c[h%2]+0.08*rng.NormFloat64())))
		}
	}
	b := dataset.Bounds{Lo: make([]float64, d), Hi: make([]float64, d)}
	for h := range d {
		b.Lo[h], b.Hi[h] = -1, 1
	}
	norm, err := dataset.Normalise(table, b, dataset.DefaultFractionBits)
	if err != nil {
		t.Fatal(err)
	}
	return norm
}

func runJob(t testing.TB, workers int, j *Job) *engine.Result {
	t.Helper()
	return enginetest.RunOn(t, workers, j)
}

func seed(x uint64) *uint64 { return &x }

func TestProtocols(t *testing.T) {
	data := mixture(t, 3000, 6)
	type setting struct {
		protocol    Method
		calibration privacy.Calibration
		estimator   Estimator
		parties     int
	}
	var settings []setting
	for _, parties := range []int{2, 3} {
		settings = append(settings, setting{protocol: Plain, parties: parties})
		for _, c := range []privacy.Calibration{privacy.Proven, privacy.Claimed} {
			for _, p := range []Method{Independent, LocalReports, SketchBasic} {
				settings = append(settings, setting{p, c, "", parties})
			}
			for _, e := range []Estimator{"", EstimatorPaper, EstimatorPair} {
				settings = append(settings, setting{Sketch, c, e, parties})
			}
		}
	}
	for _, s := range settings {
		t.Run(fmt.Sprintf("%s/%s/%s/S=%d", s.protocol, s.calibration, s.estimator, s.parties), func(t *testing.T) {
			j := &Job{Method: s.protocol, Problem: protocol.Problem{Calibration: s.calibration,
				Clients: data.Table(), Bounds: data.Bounds, Columns: EqualSplit(6, s.parties), K: 3, Seed: seed(1)},
				Estimator: s.estimator, LocalK: LocalK{N: 3}, Sketches: 201}
			if s.protocol.private() {
				j.Budget = privacy.Budget{Epsilon: 2, Delta: -1}
			}
			one, three := runJob(t, 1, j), runJob(t, 3, j)
			if a, b := enginetest.JSON(t, one), enginetest.JSON(t, three); a != b {
				t.Errorf("results of 1 and 3 workers differ:\n%s\n%s", a, b)
			}
			if len(one.Centroids) != 3 || len(one.Centroids[0]) != 6 || one.NICV == nil || !(*one.NICV < 4) {
				t.Errorf("%d centroids, NICV %v", len(one.Centroids), one.NICV)
			}
			if s.protocol == Plain {
				if *one.NICV > 0.05 {
					t.Errorf("NICV %v without noise, the clusters' variance is 0.0384", *one.NICV)
				}
				return
			}
			total := one.Ledger.TotalFor("server")
			if total.Epsilon == nil || *total.Epsilon > 2+1e-9 {
				t.Errorf("ledger total %v, budget 2", total.Epsilon)
			}
			if s.calibration == privacy.Proven && total.Unbounded {
				t.Error("the proven ledger has no bound")
			}
			if s.calibration == privacy.Claimed && s.protocol.sketches() && !total.Unbounded {
				t.Error("the claimed ledger does not say that the joint release of sketches has no such bound")
			}
		})
	}
}

func TestBytesOnTheWire(t *testing.T) {
	data := mixture(t, 2000, 6)
	for _, c := range []struct {
		estimator Estimator
		parties   int
		want      int // sketch bytes per party, M = 100, k' = 4
	}{
		{EstimatorPaper, 2, 100 * 4},
		{EstimatorEM, 2, 2 * 100 * 4},
		{EstimatorEM, 3, 2 * 100 * 4},
		{EstimatorPair, 3, 2 * 2 * 100 * 4}, // keys of its own with each of two others
	} {
		j := &Job{Method: Sketch, Problem: protocol.Problem{Clients: data.Table(), Bounds: data.Bounds,
			Columns: EqualSplit(6, c.parties), K: 3, Budget: privacy.Budget{Epsilon: 1, Delta: 1e-4}, Seed: seed(2),
			NoQuality: true}, Estimator: c.estimator, LocalK: LocalK{N: 4}, Sketches: 100}
		r := runJob(t, 2, j)
		columns := 6 / c.parties
		for l, sent := range r.Comm.BytesSent {
			if want := messageHeader + 4*4*columns + 8*4 + c.want; sent != int64(want) {
				t.Errorf("%s S=%d: party %d sent %d bytes, want header, centres, sizes and sketches: %d", c.estimator, c.parties,
					l, sent, want)
			}
		}
		if r.NICV != nil || r.Details["relative_intersection_error"] != nil {
			t.Error("quality off, and still there")
		}
	}
}

// At a generous budget the sketches lose next to nothing against exact counts.
func TestSketchIsCloseToPlain(t *testing.T) {
	data := mixture(t, 6000, 6)
	plain := runJob(t, 2, &Job{Method: Plain, Problem: protocol.Problem{Clients: data.Table(), Bounds: data.Bounds,
		Columns: EqualSplit(6, 2), K: 3, Seed: seed(3)}, LocalK: LocalK{N: 3}})
	r := runJob(t, 2, &Job{Method: Sketch, Problem: protocol.Problem{Clients: data.Table(), Bounds: data.Bounds,
		Columns: EqualSplit(6, 2), K: 3, Seed: seed(3), Budget: privacy.Budget{Epsilon: 2, Delta: -1}},
		LocalK: LocalK{N: 3}, Sketches: 1024})
	if *r.NICV > 1.05**plain.NICV {
		t.Errorf("NICV %v, without noise %v", *r.NICV, *plain.NICV)
	}
	if e := r.Details["relative_intersection_error"].(float64); e > 0.05 {
		t.Errorf("relative intersection error %v", e)
	}
	if *r.Delta != privacy.DefaultDelta(6000) {
		t.Errorf("default delta %v, want 1/(n ln n)", *r.Delta)
	}
}

func TestOrderOfPartiesAndColumns(t *testing.T) {
	data := mixture(t, 2000, 6)
	var want string
	for _, split := range []Split{{{0, 3, 5}, {1, 2, 4}}, {{1, 2, 4}, {0, 3, 5}}, {{5, 0, 3}, {4, 2, 1}}} {
		r := runJob(t, 2, &Job{Method: Sketch, Problem: protocol.Problem{Clients: data.Table(), Bounds: data.Bounds,
			Columns: split, K: 3, Seed: seed(4), Budget: privacy.Budget{Epsilon: 1, Delta: -1}}, Sketches: 100})
		got := enginetest.JSON(t, r)
		if want == "" {
			want = got
		}
		if got != want {
			t.Errorf("split %v changes the result", split)
		}
	}
}

func TestBadRequests(t *testing.T) {
	data := mixture(t, 1000, 6)
	good := func() *Job {
		return &Job{Method: Sketch, Problem: protocol.Problem{Clients: data.Table(), Bounds: data.Bounds,
			Columns: EqualSplit(6, 2), K: 3, Budget: privacy.Budget{Epsilon: 1, Delta: -1}}, LocalK: LocalK{N: 3},
			Sketches: 64}
	}
	if err := good().check(); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		change func(*Job)
		says   string
	}{
		"one party":             {func(j *Job) { j.Columns = Split{{0, 1, 2, 3, 4, 5}} }, "at least 2"},
		"column twice":          {func(j *Job) { j.Columns = Split{{0, 1, 2, 3}, {3, 4, 5}} }, "column 4"},
		"column missing":        {func(j *Job) { j.Columns = Split{{0, 1, 2}, {3, 4}} }, "column 6"},
		"too few ids":           {func(j *Job) { j.IDs = []string{"a"} }, "for 1000 records"},
		"an id twice":           {func(j *Job) { j.IDs = make([]string, 1000) }, "not distinct"},
		"local k of 1":          {func(j *Job) { j.LocalK.N = 1 }, "from 2"},
		"local k beyond a byte": {func(j *Job) { j.LocalK.N = 300 }, "255"},
		"k beyond n":            {func(j *Job) { j.K = 1001 }, "1000"},
		"no epsilon":            {func(j *Job) { j.Budget.Epsilon = 0 }, "epsilon"},
		"pure sketches":         {func(j *Job) { j.Budget.Delta = 0 }, "ind-lap"},
		"published":             {func(j *Job) { j.Calibration = privacy.Published }, "proven or claimed"},
		"small gamma claimed":   {func(j *Job) { j.Calibration, j.Gamma = privacy.Claimed, 0.5 }, ".46"},
		"em claimed":            {func(j *Job) { j.Calibration, j.Estimator = privacy.Claimed, EstimatorEM }, "share"},
		"beyond the lemma": {func(j *Job) { j.Calibration, j.Budget.Epsilon = privacy.Claimed, 100 },
			"2 ln(1/delta_2)"},
		"em with gamma 1":          {func(j *Job) { j.Gamma = 1 }, "1/64"},
		"gamma too small":          {func(j *Job) { j.Gamma = 1e-5 }, "1/1450"},
		"too many events":          {func(j *Job) { j.Sketches, j.LocalK.N = 1<<20, 60 }, "fewer sketches"},
		"sketch share":             {func(j *Job) { j.Share = 1 }, "between 0 and 1"},
		"sketches":                 {func(j *Job) { j.Sketches = -1 }, "from 1"},
		"replace-one":              {func(j *Job) { j.Neighbours = privacy.ReplaceOne }, "add-remove"},
		"tree start for baselines": {func(j *Job) { j.Method, j.LocalStart = Independent, StartTree }, "lsf"},
		"return":                   {func(j *Job) { j.Return = "all" }, "server, noised"},
		"noised, claimed": {func(j *Job) { j.Return, j.Calibration, j.Gamma = Noised, privacy.Claimed, 1 },
			"calibration proven"},
		"noised, basic":     {func(j *Job) { j.Return, j.Method = Noised, SketchBasic }, "method sketch"},
		"noised, estimator": {func(j *Job) { j.Return, j.Estimator = Noised, EstimatorEM }, "leave out"},
		"noised, gamma":     {func(j *Job) { j.Return, j.Gamma = Noised, 1 }, "1/64"},
		"noised, exact":     {func(j *Job) { j.Return, j.ExactCenters = Noised, true }, "exact"},
		"noise of rounds":   {func(j *Job) { j.Budget = privacy.Budget{Epsilon: 1e-9, Delta: 1e-9} }, "of party 1: "},
		"noise of sums": {func(j *Job) { j.Method, j.Budget.Epsilon = Independent, 1e-9 },
			"sums of the forest's leaves is too large to be drawn"},
		"noise of counts": {func(j *Job) { j.Method, j.Budget.Epsilon = LocalReports, 1e-15 },
			"counts of the forest is too large to be drawn"},
		"large grid": {func(j *Job) { j.Method, j.Columns, j.LocalK.N = SketchBasic, EqualSplit(6, 6), 30 },
			"use local-k 10, the largest that fits 6 parties"},
	} {
		j := good()
		c.change(j)
		_, err := j.Plan()
		if err == nil || !fault.IsRequest(err) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: error %v, want a wrong request that says %q", name, err, c.says)
		}
	}
}

// More phantoms than records is worth a warning, with the numbers.
func TestWarnsOfTooManyPhantoms(t *testing.T) {
	r := runJob(t, 2, &Job{Method: Sketch, Problem: protocol.Problem{Clients: mixture(t, 300, 4).Table(),
		Bounds: mixture(t, 300, 4).Bounds, Columns: EqualSplit(4, 2), K: 3, Seed: seed(5),
		Budget: privacy.Budget{Epsilon: 0.1, Delta: 1e-4}}, LocalK: LocalK{N: 3}, Sketches: 256})
	phantoms := fmt.Sprintf("%.0f phantoms", r.Details["phantoms"])
	if !slices.ContainsFunc(r.Notes, func(n string) bool { return strings.Contains(n, phantoms) }) {
		t.Errorf("notes %q do not mention %s", r.Notes, phantoms)
	}
}

func TestCancellation(t *testing.T) {
	e := enginetest.New(t)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	j := &Job{Method: Sketch, Problem: protocol.Problem{Clients: mixture(t, 1000, 4).Table(),
		Bounds: mixture(t, 1000, 4).Bounds, Columns: EqualSplit(4, 2), K: 3,
		Budget: privacy.Budget{Epsilon: 1, Delta: -1}}}
	if _, err := e.Run(ctx, j); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want context.Canceled", err)
	}
}

// encodings are the labels of records whose registers several ways of encoding must agree on.
type encodings struct {
	secret   Secret
	rng      *rand.Rand
	labels   []uint16
	phantoms cellPhantoms
}

const encodedClusters, encodedSketches = 4, 333

// newEncodings draws the labels of small clusters and a large one.
func newEncodings() *encodings {
	e := &encodings{secret: Secret{1, 2, 3}, rng: rand.New(rand.NewPCG(23, 24)), labels: make([]uint16, 20_000),
		phantoms: cellPhantoms{2, 1, 7}}
	for i := range e.labels {
		e.labels[i] = uint16(min(e.rng.IntN(40), encodedClusters-1))
	}
	return e
}

// id is the name of a record, which of every other is too long to be a digest.
func (*encodings) id(row int, dst []byte) []byte {
	dst = binary.LittleEndian.AppendUint64(dst, uint64(row))
	if row%2 == 0 {
		dst = append(dst, "of some length"...)
	}
	return dst
}

func (e *encodings) sketcher(t *testing.T) *sketcher {
	t.Helper()
	sk, err := newSketcher(context.Background(), inline{}, e.secret, len(e.labels), e.id)
	if err != nil {
		t.Fatal(err)
	}
	return sk
}

// encode has a run encode the labels.
func (e *encodings) encode(t *testing.T, sk *sketcher) *encoder {
	t.Helper()
	got, err := sk.encode(context.Background(), 5, encodedSketches, e.labels, encodedClusters, e.phantoms)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// exhaustive puts every record and phantom in by itself.
func (e *encodings) exhaustive() *encoder {
	x, keys := newEncoder(e.secret, encodedSketches, encodedClusters), newArrivalKeys(e.secret, 5)
	put := func(key *kernels.ArrivalKey, digest Digest, rate float64, a int) {
		kernels.Arrivals(key, []Digest{digest}, rate, 0.05, 0.05, x.registers[a], nil, &x.scratch)
	}
	for row, a := range e.labels {
		put(keys[0], x.hash.record(e.id(row, nil)), 1, int(a))
	}
	for a := range encodedClusters {
		for other := range encodedClusters {
			digest := make([]Digest, 1)
			phantomDigests(encodedClusters, e.phantoms.parties, e.phantoms.at, a, other, digest)
			put(keys[1], digest[0], e.phantoms.perCell, a)
		}
	}
	return x
}

// The registers of a run are the first arrivals of every record by itself, from stored digests and
// from those computed on the way, however early generation stops at first, and however far it is
// known where the records stand.
func TestEncodersAgree(t *testing.T) {
	e := newEncodings()
	sk, want := e.sketcher(t), e.exhaustive()
	sameRegisters(t, "a run", e.encode(t, sk), want)
	sk.stored = nil
	sameRegisters(t, "digests on the way", e.encode(t, sk), want)
	for _, early := range []float64{0.02, 0.3} {
		for _, horizon := range []float64{0, 0.05, 1} {
			encoding := sk.newEncoding(5, encodedSketches, e.labels, encodedClusters, e.phantoms)
			for a := range encoding.clusters {
				c := &encoding.clusters[a]
				c.Limit *= early
				c.horizon = c.Limit + horizon*c.horizon
			}
			again, err := encoding.encode(context.Background())
			if err != nil {
				t.Fatal(err)
			}
			sameRegisters(t, fmt.Sprintf("first limit x %v, horizon x %v", early, horizon), again, want)
		}
	}
}

func sameRegisters(t *testing.T, what string, got, want *encoder) {
	t.Helper()
	for a := range want.registers {
		if !slices.Equal(got.registers[a], want.registers[a]) {
			t.Errorf("%s: cluster %d has other registers", what, a)
		}
	}
}

// A short id is its own digest, a long one is hashed under the secret; no two are
// alike.
func TestDigestsOfIDs(t *testing.T) {
	if d := newHasher(Secret{1}).record(binary.LittleEndian.AppendUint64(nil, 1<<40+7)); rowDigest(1<<40+7) != d {
		t.Errorf("digest %x of a row number, %x of its bytes", rowDigest(1<<40+7), d)
	}
	seen := map[Digest]string{}
	one, two := newHasher(Secret{1}), newHasher(Secret{2})
	for n := range 20 {
		for _, x := range []byte{0, 1, 255} {
			id := bytes.Repeat([]byte{x}, n)
			d := one.record(id)
			if other, ok := seen[d]; ok && n > 0 {
				t.Errorf("ids %x and %s have one digest", id, other)
			}
			seen[d] = fmt.Sprintf("%x", id)
			if (two.record(id) == d) != (n <= shortID) {
				t.Errorf("id %x: digests under two secrets: equal is %t", id, two.record(id) == d)
			}
		}
	}
}

// Parties put the same phantoms into their clusters: the first arrival of a party's
// clusters is the same for all, and each cluster's is exponential with the rate of
// its cells' phantoms.
func TestPhantomsAreShared(t *testing.T) {
	const parties, clusters, sketches, count = 3, 4, 2000, 25.0
	var all []*encoder
	for i := range parties + 1 { // the last with other keys
		sk, err := newSketcher(t.Context(), inline{}, Secret{4}, 0, nil)
		if err != nil {
			t.Fatal(err)
		}
		e, err := sk.encode(t.Context(), i/parties, sketches, nil, clusters, cellPhantoms{parties, i % parties, count})
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, e)
		sum := 0.0
		for _, r := range e.registers {
			for _, x := range r {
				sum += x
			}
		}
		const n = sketches * clusters
		if mean := sum / n * count * clusters * clusters; math.Abs(mean-1) > 6/math.Sqrt(n) {
			t.Errorf("party %d: mean arrival %v of its expectation", i, mean)
		}
	}
	if slices.Equal(all[0].registers[0], all[parties].registers[0]) {
		t.Error("two key sets have the same phantoms")
	}
	for j := range sketches {
		least := func(e *encoder) float64 {
			x := math.Inf(1)
			for _, r := range e.registers {
				x = min(x, r[j])
			}
			return x
		}
		for l := 1; l < parties; l++ {
			if x, first := least(all[l]), least(all[0]); x != first {
				t.Fatalf("sketch %d: the first phantom of party %d is at %v, of party 0 at %v", j, l, x, first)
			}
		}
	}
}

// What the worst pair shows: under the claimed calibration an observer of the
// height at which two parties' sketches agree is more certain than claimed;
// under the proven one he is not. The excess of the best event is about
// 1e-2 under claimed (T3: eps_2^2/(32 gamma ln(1/delta_2) (e^eps-1))), against a
// claimed 1e-3. The seeds are fixed; for fresh ones the decision is wrong with
// probability below 1e-7 (six standard errors at each of the heights).
func TestWorstCase(t *testing.T) {
	const trials = 30_000
	budget := privacy.Budget{Epsilon: 1.6, Delta: 1e-3}
	pool := engine.NewPool(1)
	defer pool.Close()
	rt := engine.NewRuntime(pool)
	for _, c := range []struct {
		calibration privacy.Calibration
		violated    bool
	}{{privacy.Claimed, true}, {privacy.Proven, false}} {
		w, err := NewWorstCase(WorstCase{Calibration: c.calibration, Budget: budget, Parties: 2, Clusters: 2, Sketches: 2,
			Gamma: 0.05})
		if err != nil {
			t.Fatal(err)
		}
		var counts [2][1000]float64 // by presence and height
		st := privacy.NewStreams(seed(7)).Stream(0, 0, "worst case")
		for range trials {
			for present := range 2 {
				sketches, err := w.Draw(context.Background(), rt, st, present == 1)
				if err != nil {
					t.Fatal(err)
				}
				counts[present][EqualHeight(sketches)]++
			}
		}
		violated := false
		factor := math.Exp(budget.Epsilon)
		var tail [2]float64
		for h := 999; h > 0; h-- {
			for present := range tail {
				tail[present] += counts[present][h] / trials
			}
			margin := 6 * math.Sqrt((tail[1]+factor*factor*tail[0]+10.0/trials)/trials)
			violated = violated || tail[1]-factor*tail[0]-budget.Delta > margin
		}
		if violated != c.violated {
			t.Errorf("%s: violated is %v, want %v", c.calibration, violated, c.violated)
		}
	}
}

func TestMessage(t *testing.T) {
	rng := rand.New(rand.NewPCG(25, 26))
	for _, heightBytes := range []int{1, 2} {
		m := &message{Party: 3, Clusters: 4, Columns: 300, FractionBits: 16, Sizes: []int64{5, -2, 1 << 40, 0}, SizeBits: 30}
		for range m.Clusters * m.Columns {
			m.Centers = append(m.Centers, int32(rng.IntN(1<<17)-1<<16))
		}
		for range 2 {
			s := newSketches(7, 4)
			for i := range s.Heights {
				s.Heights[i] = uint16(rng.IntN(1 << (8 * heightBytes)))
			}
			m.Sets = append(m.Sets, s)
		}
		b := m.encode(heightBytes)
		if want := messageHeader + 4*1200 + 8*4 + 2*7*4*heightBytes; len(b) != want {
			t.Fatalf("%d bytes, want %d: nothing but header, centres, sizes and sketches", len(b), want)
		}
		d, err := decodeMessage(b)
		if err != nil {
			t.Fatal(err)
		}
		// Every byte is accounted for by what was decoded.
		if !bytes.Equal(d.encode(heightBytes), b) {
			t.Error("a decoded message encodes to other bytes")
		}
		for n := range messageHeader + 40 {
			if _, err := decodeMessage(b[:n]); err == nil {
				t.Fatalf("%d of %d bytes were accepted", n, len(b))
			}
		}
		if _, err := decodeMessage(append(slices.Clone(b), 0)); err == nil {
			t.Error("a byte too many was accepted")
		}
	}
}

// The server takes of a party what the plan says that it sends, in every field, and
// reads no heights that no sketch has.
func TestServerReadsThePlanOnly(t *testing.T) {
	data := mixture(t, 500, 6)
	for _, parties := range []int{2, 3} {
		j := &Job{Method: Sketch, Problem: protocol.Problem{Clients: data.Table(), Bounds: data.Bounds,
			Columns: EqualSplit(6, parties), K: 3, Budget: privacy.Budget{Epsilon: 1, Delta: 1e-4}},
			Estimator: EstimatorPair, LocalK: LocalK{N: 4}, Sketches: 10}
		r, err := j.prepare()
		if err != nil {
			t.Fatal(err)
		}
		good := func() *message {
			m := &message{Party: 1, Clusters: 4, Columns: 6 / parties, FractionBits: r.bits, Sizes: make([]int64, 4)}
			for range parties - 1 {
				s := newSketches(10, 4)
				for i := range s.Heights {
					s.Heights[i] = uint16(1 + i*(r.plan.distribution.max()-1)/(len(s.Heights)-1))
				}
				m.Sets = append(m.Sets, s)
			}
			return m
		}
		if !r.fits(good(), 1) {
			t.Fatalf("%d parties: a message by the plan is refused", parties)
		}
		for name, spoil := range map[string]func(*message){
			"party":     func(m *message) { m.Party = 0 },
			"clusters":  func(m *message) { m.Clusters = 5 },
			"columns":   func(m *message) { m.Columns++ },
			"grid":      func(m *message) { m.FractionBits-- },
			"sizes":     func(m *message) { m.Sizes = nil },
			"sets":      func(m *message) { m.Sets = m.Sets[1:] },
			"more":      func(m *message) { m.Sets = append(m.Sets, m.Sets[0]) },
			"keys":      func(m *message) { m.Sets[0].Keys = 9 },
			"no height": func(m *message) { m.Sets[0].Heights[7] = 0 },
			"too high":  func(m *message) { m.Sets[0].Heights[7] = uint16(r.plan.distribution.max() + 1) },
		} {
			m := good()
			if spoil(m); r.fits(m, 1) {
				t.Errorf("%d parties: %s: read all the same", parties, name)
			}
		}
	}
}

// A party's message is a function of what the ledger lists: the same releases
// of other records give the same bytes.
func TestMessageHasNothingElse(t *testing.T) {
	set := &Sketches{Keys: 1, Clusters: 2, Heights: []uint16{3, 4}}
	var encoded [][]byte
	for _, n := range []int{100, 777} {
		data := mixture(t, n, 2)
		p := &party{run: &run{plan: &plan{clusters: 2}, bits: 16}, points: data.Points,
			centers: []float32{0.5, -0.25, 0.125, 1}, labels: make([]uint16, n)}
		onParty(t, p, func(context.Context) error {
			encoded = append(encoded, p.encode(&message{Sizes: []int64{10, 20}, Sets: []*Sketches{set}}))
			return nil
		})
	}
	if !bytes.Equal(encoded[0], encoded[1]) {
		t.Errorf("messages differ: %v and %v", encoded[0], encoded[1])
	}
}

// onParty lets one party run with the plan that it has.
func onParty(t *testing.T, p *party, run func(ctx context.Context) error) {
	t.Helper()
	pool := engine.NewPool(2)
	defer pool.Close()
	pl := p.run.Plan
	if pl == nil {
		pl = &protocol.Plan{Parties: 2}
	}
	program := func(ctx context.Context, q *protocol.Party) (*protocol.Outcome, error) {
		p.Party = q
		return nil, run(ctx)
	}
	if err := protocol.Start(engine.NewRuntime(pool), pl, []protocol.Program{program}, nil,
		protocol.Options{}).Run(context.Background()); err != nil {
		t.Fatal(err)
	}
}

// Every protocol, with each role in a goroutine of its own that shares nothing but
// bytes with the others, gives the bits of the roles that share a process.
func TestRolesApart(t *testing.T) {
	data := mixture(t, 1500, 6)
	pool := engine.NewPool(2)
	defer pool.Close()
	for _, c := range []struct {
		name string
		job  Job
	}{
		{"plain", Job{Method: Plain, Problem: protocol.Problem{Columns: EqualSplit(6, 3)}}},
		{"ind-lap", Job{Method: Independent, Problem: protocol.Problem{Columns: EqualSplit(6, 2)}}},
		{"ldp-agg", Job{Method: LocalReports, Problem: protocol.Problem{Columns: EqualSplit(6, 2)}}},
		{"sketch", Job{Method: Sketch, Problem: protocol.Problem{Columns: EqualSplit(6, 2)}, Sketches: 256}},
		{"sketch of six, pair keys", Job{Method: Sketch, Problem: protocol.Problem{Columns: EqualSplit(6, 6)},
			Sketches: 256, Estimator: EstimatorPair}},
		{"sketch, claimed", Job{Method: Sketch, Problem: protocol.Problem{Columns: EqualSplit(6, 2),
			Calibration: privacy.Claimed}, Sketches: 256}},
		{"sketch, noised", Job{Method: Sketch, Problem: protocol.Problem{Columns: EqualSplit(6, 2)}, Return: Noised}},
		{"sketch-basic", Job{Method: SketchBasic, Problem: protocol.Problem{Columns: EqualSplit(6, 2)},
			Sketches: 256}},
		{"exact centres and weights", Job{Method: Sketch, Problem: protocol.Problem{Columns: EqualSplit(6, 2)},
			Sketches: 256, ExactCenters: true, ExactWeights: true}},
	} {
		j := c.job
		j.Clients, j.Bounds, j.K, j.Seed, j.NoQuality = data.Table(), data.Bounds, 3, seed(4), true
		if j.Method.private() {
			j.Budget = privacy.Budget{Epsilon: 2, Delta: 1e-4}
		}
		r, err := j.prepare()
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		var got [2]string
		for i := range got {
			var o protocol.Options
			if i == 1 {
				o = protocoltest.Apart(r.Plan)
			}
			var roles protocoltest.Roles
			o.Joined = roles.Join
			res, err := r.Connect(context.Background(), engine.NewRuntime(pool), o)
			if err != nil {
				t.Fatalf("%s: %v", c.name, err)
			}
			roles.Check(t, r.Parties+1)
			b, err := json.MarshalIndent(res, "", " ")
			if err != nil {
				t.Fatal(err)
			}
			got[i] = string(b)
		}
		if diff := cmp.Diff(got[0], got[1]); diff != "" {
			t.Errorf("%s: roles apart differ:\n%s", c.name, diff)
		}
	}
}

func TestSplits(t *testing.T) {
	names := []string{"a", "b", "c", "d", "e"}
	for text, want := range map[string]Split{
		"":            {{0, 1, 2}, {3, 4}},
		"1,3;2,4-5":   {{0, 2}, {1, 3, 4}},
		"e, a ;b,c,d": {{4, 0}, {1, 2, 3}},
		"2-4;1,5":     {{1, 2, 3}, {0, 4}},
	} {
		s, err := ParseSplit(text, 2, 5, names)
		if err != nil || !slices.EqualFunc(s, want, slices.Equal) {
			t.Errorf("%q: %v, %v, want %v", text, s, err, want)
		}
	}
	for _, text := range []string{"1,2;3,4", "1,2;2,3,4,5", "1,2,3,4,5", "1;x,2,3,4,5", "1,2,3,4,5;", "0,1;2,3,4",
		"1,2;3,4,9", "1-2;5-3", "1-9;2", "taxi"} {
		if s, err := ParseSplit(text, 2, 5, names); !fault.IsRequest(err) {
			t.Errorf("%q: %v, %v, want a wrong request", text, s, err)
		}
	}
	for _, parties := range []int{-1, 0, 1, 6} {
		if s, err := ParseSplit("", parties, 5, nil); !fault.IsRequest(err) {
			t.Errorf("%d parties: %v, %v, want a wrong request", parties, s, err)
		}
	}
	for name, columns := range map[string]int{"letter": 16, "taxi": 8} {
		for _, parties := range []int{2, 4} {
			if _, err := ParseSplit(name, parties, columns, nil); err != nil {
				t.Errorf("preset %s for %d parties: %v", name, parties, err)
			}
		}
		if _, err := ParseSplit(name, 3, columns, nil); !fault.IsRequest(err) {
			t.Errorf("preset %s for 3 parties: %v, want a wrong request", name, err)
		}
	}
}

func TestJoin(t *testing.T) {
	ids := [][]string{{"u1", "u2", "u3", "u4", "u4"}, {"u3", "u1", "u5", "u4", "u2"}}
	if _, report, err := join(Secret{}, ids, false); err == nil || fault.IsRequest(err) ||
		!slices.Equal(report.Unmatched, []int{0, 1}) || !slices.Equal(report.Duplicate, []int{2, 0}) {
		t.Errorf("report %+v, error %v", report, err)
	}
	rows, report, err := join(Secret{}, ids, true)
	if err != nil || report.Matched != 3 {
		t.Fatalf("report %+v, error %v", report, err)
	}
	for i := range rows[0] {
		if ids[0][rows[0][i]] != ids[1][rows[1][i]] {
			t.Errorf("record %d joins %s with %s", i, ids[0][rows[0][i]], ids[1][rows[1][i]])
		}
	}
	clean := [][]string{{"a", "b"}, {"b", "a"}, {"a", "b"}}
	if _, report, err := join(Secret{9}, clean, false); err != nil || report.Matched != 2 {
		t.Errorf("report %+v, error %v", report, err)
	}
	if _, _, err := join(Secret{}, [][]string{{"a"}, {"b"}}, true); err == nil {
		t.Error("a join without a match succeeded")
	}
	if text := fmt.Sprintf("%v %s %#v", Secret{7}, Secret{7}, Secret{7}); strings.Count(text, "redacted") != 3 {
		t.Errorf("a secret prints as %s", text)
	}
}

// Joins of ids of all lengths against maps of them, in any order of the rows.
func TestJoinAgainstMaps(t *testing.T) {
	rng := rand.New(rand.NewPCG(31, 32))
	const parties, n = 3, 20_000
	ids, counts := make([][]string, parties), make([]map[string]int, parties)
	for l := range ids {
		counts[l] = map[string]int{}
		for range n {
			id := strings.Repeat("x", rng.IntN(20)) + fmt.Sprint(rng.IntN(n/4))
			ids[l] = append(ids[l], id)
			counts[l][id]++
		}
	}
	want := JoinReport{Unmatched: make([]int, parties), Duplicate: make([]int, parties)}
	for id := range counts[0] {
		if counts[0][id] == 1 && counts[1][id] == 1 && counts[2][id] == 1 {
			want.Matched++
		}
	}
	for l := range ids {
		for id, c := range counts[l] {
			if c > 1 {
				want.Duplicate[l] += c
			}
			if counts[0][id] == 0 || counts[1][id] == 0 || counts[2][id] == 0 {
				want.Unmatched[l] += c
			}
		}
	}
	rows, report, err := join(Secret{3}, ids, true)
	if err != nil || report.Matched != want.Matched || !slices.Equal(report.Unmatched, want.Unmatched) ||
		!slices.Equal(report.Duplicate, want.Duplicate) {
		t.Fatalf("report %+v, error %v, want %+v", report, err, want)
	}
	matched := make([]string, 0, report.Matched)
	for i, row := range rows[0] {
		matched = append(matched, ids[0][row])
		if ids[1][rows[1][i]] != ids[0][row] || ids[2][rows[2][i]] != ids[0][row] {
			t.Fatalf("record %d joins %s, %s and %s", i, ids[0][row], ids[1][rows[1][i]], ids[2][rows[2][i]])
		}
	}
	for _, list := range ids {
		rng.Shuffle(n, func(i, j int) { list[i], list[j] = list[j], list[i] })
	}
	if rows, _, err = join(Secret{3}, ids, true); err != nil {
		t.Fatal(err)
	}
	for i, row := range rows[0] {
		if ids[0][row] != matched[i] {
			t.Fatalf("record %d is %s after another order of the rows, was %s", i, ids[0][row], matched[i])
		}
	}
}

// BenchmarkJoin joins a million ids of two parties.
func BenchmarkJoin(b *testing.B) {
	const n = 1_000_000
	ids := make([][]string, 2)
	for l := range ids {
		for i := range n {
			ids[l] = append(ids[l], fmt.Sprint("user", i*7919%n))
		}
	}
	for b.Loop() {
		if _, _, err := join(Secret{}, ids, false); err != nil {
			b.Fatal(err)
		}
	}
}

func TestLocalK(t *testing.T) {
	for _, c := range []struct{ k, parties, records, want int }{
		{5, 2, 20_000, 15}, {5, 4, 20_000, 6}, {5, 2, 100, 5}, {1, 2, 1000, 3}, {5, 4, 100_000, 9},
	} {
		if got := autoLocalK(c.k, c.parties, c.records); got != c.want {
			t.Errorf("auto rule for k=%d S=%d n=%d: %d, want %d", c.k, c.parties, c.records, got, c.want)
		}
	}
	// Sketch-V, section 5.2, by hand for n = 20000, M = 4096, delta = 2.5e-5 and
	// eps_2 = .245: sigma is 221, 318, 397, 471 at k0 = 2, 3, 4, 5 against cells
	// of 5000, 2222, 1250, 800, so 2 sigma first exceeds the cell at k0 = 5.
	if got := paperLocalK(5, 2, 20_000, 4096, 0.245, 2.5e-5); got != 5 {
		t.Errorf("paper's rule at eps_2 = .245: %d, want 5", got)
	}
	if got := paperLocalK(100, 2, 20_000, 4096, 0.245, 2.5e-5); got != 10 {
		t.Errorf("paper's rule for k = 100: %d, want sqrt(100)", got)
	}
	for text, want := range map[string]LocalK{"": {Rule: RuleAuto}, "auto": {Rule: RuleAuto}, "paper": {Rule: RulePaper},
		"7": {N: 7}} {
		if got, err := parseLocalK(text); err != nil || got != want {
			t.Errorf("parseLocalK(%q) = %v, %v", text, got, err)
		}
	}
	for _, text := range []string{"1", "0", "-3", "many"} {
		if _, err := parseLocalK(text); !fault.IsRequest(err) {
			t.Errorf("parseLocalK(%q): %v, want a wrong request", text, err)
		}
	}
}

// Two files in different orders, joined, give the clusters of the table they
// were cut from.
func TestJoinTables(t *testing.T) {
	data := mixture(t, 1200, 4)
	rng := rand.New(rand.NewPCG(27, 28))
	tables := []*dataset.Table{{D: 2, Columns: []string{"a", "b"}}, {D: 2, Columns: []string{"c", "d"}}}
	for l, table := range tables {
		order := rng.Perm(1200)
		for _, i := range order {
			x := data.Points.Point(i, nil)
			table.Rows = append(table.Rows, float64(x[2*l]), float64(x[2*l+1]))
			table.IDs = append(table.IDs, fmt.Sprint("record ", i))
			table.N++
		}
	}
	joined, split, report, err := JoinTables(Secret{5}, tables, false)
	if err != nil || report.Matched != 1200 || !slices.EqualFunc(split, Split{{0, 1}, {2, 3}}, slices.Equal) ||
		len(joined.Columns) != 4 {
		t.Fatalf("split %v, report %+v, error %v", split, report, err)
	}
	norm, err := dataset.Normalise(joined, data.Bounds, dataset.DefaultFractionBits)
	if err != nil {
		t.Fatal(err)
	}
	for i := range joined.N {
		var row int
		if _, err := fmt.Sscanf(joined.IDs[i], "record %d", &row); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(norm.Points.Point(i, nil), data.Points.Point(row, nil)) {
			t.Fatalf("record %d was put together from several", row)
		}
	}
	j := &Job{Method: Sketch, Problem: protocol.Problem{Clients: norm.Table(), Bounds: norm.Bounds, Columns: split,
		IDs: joined.IDs, K: 3, Seed: seed(6), Budget: privacy.Budget{Epsilon: 4, Delta: 1e-4}}, LocalK: LocalK{N: 3},
		Sketches: 256}
	if r := runJob(t, 2, j); *r.NICV > 0.06 || !strings.Contains(report.String(), "unmatched") {
		t.Errorf("NICV %v, report %q", *r.NICV, report.String())
	}
}

// The number of sketches that is planned grows with the budget while it buys less
// noise, and does not where the phantoms outnumber the records.
func TestPlannedSketches(t *testing.T) {
	data := mixture(t, 20_000, 8)
	for _, c := range []struct {
		epsilon          float64
		parties, k, want int
	}{{1, 2, 5, mostPlanned}, {1, 2, 15, 8192}, {0.05, 2, 5, leastPlanned}, {1, 4, 5, 4096}} {
		p, err := newPlan((&Job{Method: Sketch, Problem: protocol.Problem{Clients: data.Table(), Bounds: data.Bounds,
			Columns: EqualSplit(8, c.parties), K: c.k, Budget: privacy.Budget{Epsilon: c.epsilon, Delta: 5e-5}},
			LocalK: LocalK{N: c.k}}).withDefaults())
		if err != nil {
			t.Fatal(err)
		}
		if p.sketches != c.want {
			t.Errorf("epsilon %v, %d parties: %d sketches, want %d", c.epsilon, c.parties, p.sketches, c.want)
		}
	}
}

// The local centres get more of a budget that is small for the number of records, and
// never another share than was asked for; a planned share plans what the same one does that
// is given.
func TestPlannedShare(t *testing.T) {
	data := mixture(t, 20_000, 8)
	for _, c := range []struct {
		epsilon, share float64
		records        int
		want           float64
	}{{1, 0, 0, defaultShare}, {0.05, 0, 0, smallShare}, {0.05, 0, 200_000, defaultShare}, {1, 0, 400, smallShare},
		{0.05, 0.4, 0, 0.4}} {
		j := &Job{Method: Sketch, Problem: protocol.Problem{Clients: data.Table(), Bounds: data.Bounds, Records: c.records,
			Columns: EqualSplit(8, 2), K: 5, Budget: privacy.Budget{Epsilon: c.epsilon, Delta: 5e-5}}, LocalK: LocalK{N: 5},
			Share: c.share}
		p, err := newPlan(j.withDefaults())
		if err != nil {
			t.Fatal(err)
		}
		if p.share != c.want {
			t.Errorf("epsilon %v, %d records: a share of %v, want %v", c.epsilon, c.records, p.share, c.want)
		}
		j.Share = c.want
		if same, err := newPlan(j.withDefaults()); err != nil || same.localMu != p.localMu || same.phantoms != p.phantoms {
			t.Errorf("epsilon %v: planned and given shares of %v differ: %v", c.epsilon, c.want, err)
		}
	}
}

// With reports that are all true both estimators of ldp-agg find the grid; at a budget
// of use that of all parties together is far from it, as the paper says.
func TestReportsOfAllParties(t *testing.T) {
	data := mixture(t, 6000, 6)
	miss := func(e Estimator, epsilon float64) float64 {
		r := runJob(t, 2, &Job{Method: LocalReports,
			Problem: protocol.Problem{Clients: data.Table(), Bounds: data.Bounds, Columns: EqualSplit(6, 3), K: 3,
				Seed: seed(3), Budget: privacy.Budget{Epsilon: epsilon}}, LocalK: LocalK{N: 3}, Estimator: e})
		return r.Details["relative_intersection_error"].(float64)
	}
	for _, e := range []Estimator{EstimatorReports, EstimatorReportPairs} {
		if x := miss(e, 100); x > 1e-3 {
			t.Errorf("%s: intersection error %v of true reports", e, x)
		}
	}
	if all, pairs := miss(EstimatorReports, 3), miss(EstimatorReportPairs, 3); all < pairs {
		t.Errorf("intersection error %v from all parties, %v from pairs", all, pairs)
	}
	j := &Job{Method: LocalReports,
		Problem: protocol.Problem{Clients: data.Table(), Bounds: data.Bounds, Columns: EqualSplit(6, 3), K: 3,
			Budget: privacy.Budget{Epsilon: 1}}, Estimator: EstimatorEM}
	if _, err := j.Plan(); !fault.IsRequest(err) {
		t.Errorf("error %v, want a wrong request: em is for sketches", err)
	}
}
