package synopsis

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/cohort-engine/cohort/engine"
	"github.com/cohort-engine/cohort/internal/elementary"
)

func randomWeighted(rng *rand.Rand, n, d int) *Weighted {
	w := &Weighted{D: d}
	for range n {
		x := make([]float64, d)
		for h := range x {
			x[h] = 2*rng.Float64() - 1
		}
		w.Append(x, rng.Float64())
	}
	return w
}

// optimum finds the least k-means loss by trying every assignment.
func optimum(w *Weighted, k int) float64 {
	best := math.Inf(1)
	labels := make([]int, w.Len())
	var visit func(i int)
	visit = func(i int) {
		if i < len(labels) {
			for j := range k {
				labels[i] = j
				visit(i + 1)
			}
			return
		}
		loss := 0.0
		for j := range k {
			mean, weight := make([]float64, w.D), 0.0
			for i, l := range labels {
				if l == j {
					weight += w.Weights[i]
					for h := range mean {
						mean[h] += w.Weights[i] * w.Points[i*w.D+h]
					}
				}
			}
			for h := range mean {
				mean[h] /= max(weight, 1e-300)
			}
			for i, l := range labels {
				if l == j {
					loss += w.Weights[i] * elementary.SquaredDistance(w.Points[i*w.D:(i+1)*w.D], mean)
				}
			}
		}
		best = min(best, loss)
	}
	visit(0)
	return best
}

// TestSearchFindsOptimum compares the search with all assignments of nine
// points. Ten starts and 200 swaps find the optimum of all these instances.
func TestSearchFindsOptimum(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	for trial := range 8 {
		w := randomWeighted(rng, 9, 1+trial%3)
		want := optimum(w, 3)
		s, err := Search(context.Background(), nil, w, 3, SearchOptions{}, rng)
		if err != nil {
			t.Fatal(err)
		}
		if math.Abs(s.Loss-want) > 1e-5*(want+1) {
			t.Errorf("trial %d: loss %v, optimum %v", trial, s.Loss, want)
		}
	}
}

// TestSearchIsLocalOptimum checks labels, weights, loss and centres directly.
func TestSearchIsLocalOptimum(t *testing.T) {
	rng := rand.New(rand.NewPCG(2, 2))
	for _, d := range []int{2, 5, 20} {
		w := randomWeighted(rng, 600, d)
		w.Weights[7], w.Weights[8] = 0, -3
		const k = 12
		s, err := Search(context.Background(), nil, w, k, SearchOptions{Starts: 3, Swaps: 30, Steps: 1000}, rng)
		if err != nil {
			t.Fatal(err)
		}
		sums, weights, loss := make([]float64, k*d), make([]float64, k), 0.0
		for i := range w.Len() {
			x := w.Points[i*d : (i+1)*d]
			nearest := math.Inf(1)
			for j := range k {
				nearest = min(nearest, elementary.SquaredDistance(x, s.Centers[j*d:(j+1)*d]))
			}
			j := int(s.Labels[i])
			if own := elementary.SquaredDistance(x, s.Centers[j*d:(j+1)*d]); own > nearest+1e-5 {
				t.Fatalf("d=%d: point %d is at %v from its centre, at %v from the nearest", d, i, own, nearest)
			}
			weight := max(w.Weights[i], 0)
			loss += weight * nearest
			weights[j] += weight
			for h := range d {
				sums[j*d+h] += weight * x[h]
			}
		}
		if math.Abs(loss-s.Loss) > 1e-5*loss {
			t.Errorf("d=%d: loss is %v, directly %v", d, s.Loss, loss)
		}
		for j := range k {
			if math.Abs(weights[j]-s.Weights[j]) > 1e-9*weights[j] {
				t.Errorf("d=%d: cluster %d weighs %v, directly %v", d, j, s.Weights[j], weights[j])
			}
			for h := range d {
				if got, want := s.Centers[j*d+h], sums[j*d+h]/weights[j]; math.Abs(got-want) > 1e-4 {
					t.Errorf("d=%d: centre %d is %v at axis %d, mean %v", d, j, got, h, want)
				}
			}
		}
	}
}

// TestSwapRemovesCheapest compares the centre that swap drops with the direct
// loss of every possible exchange.
func TestSwapRemovesCheapest(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 3))
	w := randomWeighted(rng, 300, 3)
	const k = 7
	p := newProblem(w)
	s := p.newDescent(k)
	s.seed(2, rng)
	trial := newSwaps(s)
	trial.rough = nil // every swap is made
	for range 20 {
		before := append([]float32(nil), s.centers...)
		trial.try(0, rng)
		changed := -1
		for j := range k {
			for h := range 3 {
				if trial.centers[j*3+h] != before[j*3+h] {
					changed = j
				}
			}
		}
		if changed < 0 {
			continue // the drawn point is a centre already
		}
		added := trial.centers[changed*3 : changed*3+3]
		for j := range k {
			exchanged := append([]float32(nil), before...)
			copy(exchanged[j*3:], added)
			loss := 0.0
			for i := range w.Len() {
				nearest := math.Inf(1)
				for c := range k {
					sum := 0.0
					for h := range 3 {
						x := p.points[i*3+h] - float64(exchanged[c*3+h])
						sum += x * x
					}
					nearest = min(nearest, sum)
				}
				loss += p.weights[i] * nearest
			}
			if loss < trial.loss-1e-4 {
				t.Fatalf("dropping centre %d gives %v, swap dropped %d for %v", j, loss, changed, trial.loss)
			}
		}
	}
}

// TestSearchWorkers checks that a seed gives the same bits on any number of
// workers.
func TestSearchWorkers(t *testing.T) {
	w := randomWeighted(rand.New(rand.NewPCG(4, 4)), 500, 2)
	var first *Solution
	for _, workers := range []int{1, 2, 3} {
		pool := engine.NewPool(workers)
		s, err := Search(context.Background(), pool, w, 9, SearchOptions{Starts: 5, Swaps: 40}, rand.New(rand.NewPCG(5, 5)))
		pool.Close()
		if err != nil {
			t.Fatal(err)
		}
		if first == nil {
			first = s
			continue
		}
		for i := range s.Centers {
			if math.Float64bits(s.Centers[i]) != math.Float64bits(first.Centers[i]) {
				t.Fatalf("centres differ with %d workers", workers)
			}
		}
	}
}

func TestSearchFewPoints(t *testing.T) {
	rng := rand.New(rand.NewPCG(6, 6))
	w := &Weighted{D: 2}
	for _, weights := range [][]float64{nil, {0, 0}, {2}, {2, 3, 0}} {
		w.Points, w.Weights = nil, nil
		for i, x := range weights {
			w.Append([]float64{float64(i) / 4, -0.5}, x)
		}
		s, err := Search(context.Background(), nil, w, 4, SearchOptions{}, rng)
		if err != nil {
			t.Fatal(err)
		}
		if want := 4 - positiveWeights(w); s.TopUp != want || len(s.Centers) != 8 {
			t.Errorf("weights %v: %d centres topped up of %d, want %d of 4", weights, s.TopUp, len(s.Centers)/2, want)
		}
		for _, x := range s.Centers {
			if !(x >= -1 && x <= 1) {
				t.Errorf("centre coordinate %v", x)
			}
		}
	}
	if _, err := Search(context.Background(), nil, w, 0, SearchOptions{}, rng); err == nil {
		t.Error("k = 0 is accepted")
	}
}

func BenchmarkSearch(b *testing.B) {
	w := randomWeighted(rand.New(rand.NewPCG(7, 7)), 4000, 2)
	for b.Loop() {
		if _, err := Search(context.Background(), nil, w, 100, SearchOptions{}, rand.New(rand.NewPCG(8, 8))); err != nil {
			b.Fatal(err)
		}
	}
}

// blobs are n weighted points about k centres.
func blobs(rng *rand.Rand, n, d, k int) *Weighted {
	w := &Weighted{D: d, Points: make([]float64, n*d), Weights: make([]float64, n)}
	for i := range n {
		blob := float64(i % k)
		for h := range d {
			w.Points[i*d+h] = min(max(math.Sin(blob*float64(3*h+1))+rng.NormFloat64()/50, -1), 1)
		}
		w.Weights[i] = rng.ExpFloat64()
	}
	return w
}

// TestSwapsAssign moves a few centres of a state, by little and by much, and compares
// what is found near them with the assignment of all points, in both forms of distances,
// and the centres that follow with the means of their points.
func TestSwapsAssign(t *testing.T) {
	local := 0
	for _, d := range []int{1, 2, 5, 17} {
		rng := rand.New(rand.NewPCG(31, uint64(d)))
		const n, k = 2000, 40
		p := newProblem(blobs(rng, n, d, k))
		s, want := p.newDescent(k), p.newDescent(k)
		s.seed(4, rng)
		s.lloyd(5, 0)
		w := newSwaps(s)
		for round := range 60 {
			copy(w.centers, s.centers)
			w.moved = w.moved[:0]
			for range 1 + round%3 {
				j, i := rng.IntN(k), rng.IntN(n)
				for h := range d {
					x := s.points[i*d+h]
					if round%2 == 0 { // a small step
						x = float64(s.centers[j*d+h]) + math.Ldexp(rng.Float64()-0.5, -rng.IntN(20))
					}
					w.centers[j*d+h] = toGrid(x)
				}
				if !slices.Contains(w.moved, int32(j)) {
					w.moved = append(w.moved, int32(j))
				}
			}
			for range 3 {
				copy(want.centers, w.centers)
				want.assign(false)
				w.assign()
				if len(w.looked) <= n/2 {
					local++
				}
				for i := range n {
					if w.dist[i] != want.dist[i] || w.labels[i] != want.labels[i] && p.distance(i, w.centers, w.labels[i]) !=
						p.distance(i, w.centers, want.labels[i]) {
						t.Fatalf("d=%d, round %d: point %d is at %v from %d, want %v from %d", d, round, i, w.dist[i],
							w.labels[i], want.dist[i], want.labels[i])
					}
				}
				if math.Abs(w.loss-want.loss) > 1e-12*want.loss {
					t.Fatalf("d=%d, round %d: loss %v, want %v", d, round, w.loss, want.loss)
				}
				want.update()
				w.update()
				for _, j := range w.moved {
					for h := int(j) * d; h < int(j+1)*d; h++ {
						if want.acc.Weights[j] > 0 && math.Abs(float64(w.centers[h]-want.centers[h])) > 1.0/(1<<searchFractionBits) {
							t.Fatalf("d=%d, round %d: centre %d is %v, want %v", d, round, j, w.centers[h], want.centers[h])
						}
					}
				}
			}
		}
	}
	if local < 300 {
		t.Errorf("%d of 720 assignments were local, want at least 300", local)
	}
}

// distance is that of point i from a centre.
func (p *problem) distance(i int, centers []float32, j uint16) float64 {
	row := make([]float64, p.d)
	for h := range row {
		row[h] = float64(centers[int(j)*p.d+h])
	}
	return elementary.SquaredDistance(p.points[i*p.d:(i+1)*p.d], row)
}

// A swap that is kept leaves the state that it promised.
func TestSwapsKeep(t *testing.T) {
	for _, d := range []int{1, 2, 20} {
		rng := rand.New(rand.NewPCG(7, uint64(d)))
		p, kept := newProblem(randomWeighted(rng, 1500, d)), 0
		s := p.newDescent(30)
		s.seed(1, rng)
		w := newSwaps(s)
		for range 300 {
			before := s.loss
			if !w.try(2, rng) {
				continue
			}
			kept++
			promised := w.loss
			w.keep()
			whole := p.newDescent(s.k)
			copy(whole.centers, s.centers)
			whole.assign(true)
			if !slices.Equal(s.labels, whole.labels) || !slices.Equal(s.dist, whole.dist) ||
				!slices.Equal(s.second, whole.second) || s.loss != whole.loss {
				t.Fatalf("d=%d: the state is not what all its points have", d)
			}
			if !(s.loss < before) || math.Abs(s.loss-promised) > 1e-12*promised {
				t.Fatalf("d=%d: loss %v, promised %v, before %v", d, s.loss, promised, before)
			}
		}
		if kept < 10 {
			t.Errorf("d=%d: %d swaps of 300 were kept", d, kept)
		}
	}
}

// TestSwapsHopeless compares swaps with those that are not tried on all points first, on scattered points, on blobs and
// on a lattice, where many points are as far from one centre as from another.
func TestSwapsHopeless(t *testing.T) {
	hopeless, kept := 0, 0
	for seed := range uint64(60) {
		rng := rand.New(rand.NewPCG(seed, 12))
		n, d, k := 50+rng.IntN(1000), 1+rng.IntN(6), 2+rng.IntN(roughMost-1)
		points := randomWeighted(rng, n, d)
		switch seed % 3 {
		case 0:
			points = blobs(rng, n, d, k)
		case 1:
			for i, x := range points.Points {
				points.Points[i] = math.Round(x*4) / 4
			}
		}
		p := newProblem(points)
		var w [2]*swaps
		var rngs [2]*rand.Rand
		for i := range w {
			rngs[i] = rand.New(rand.NewPCG(seed, 13))
			s := p.newDescent(k)
			s.seed(1, rngs[i])
			w[i] = newSwaps(s)
		}
		w[1].rough = nil
		for range 300 {
			better := w[0].try(2, rngs[0])
			if w[1].try(2, rngs[1]) != better {
				t.Fatalf("seed %d: a swap is better where it is not, or the other way round", seed)
			}
			if better {
				w[0].keep()
				w[1].keep()
				kept++
			} else if w[0].loss != w[1].loss {
				hopeless++
			}
			if !slices.Equal(w[0].s.centers, w[1].s.centers) {
				t.Fatalf("seed %d: centres differ", seed)
			}
		}
	}
	if kept < 300 || hopeless < 6000 {
		t.Errorf("%d swaps were kept and %d found hopeless, want at least 300 and 6000", kept, hopeless)
	}
}

// A point that was drawn before in the same state is no better again.
func TestSwapsTriedAgain(t *testing.T) {
	rng := rand.New(rand.NewPCG(8, 8))
	p, again := newProblem(randomWeighted(rng, 100, 2)), 0
	var w [2]*swaps
	var rngs [2]*rand.Rand
	for i := range w {
		rngs[i] = rand.New(rand.NewPCG(9, 9))
		s := p.newDescent(5)
		s.seed(1, rngs[i])
		w[i] = newSwaps(s)
	}
	for range 500 {
		tried := slices.Clone(w[0].tried)
		clear(w[1].tried)
		better := w[0].try(2, rngs[0])
		if w[1].try(2, rngs[1]) != better {
			t.Fatal("a swap is better where it was not, or the other way round")
		}
		if better {
			w[0].keep()
			w[1].keep()
		} else if slices.Equal(tried, w[0].tried) {
			again++
		}
		if !slices.Equal(w[0].s.centers, w[1].s.centers) {
			t.Fatal("centres differ")
		}
	}
	if again < 100 {
		t.Errorf("%d of 500 draws were repeated, want at least 100", again)
	}
}

// TestSample draws points by weight: one that weighs many parts in all of those that it fills, and in two more at most.
func TestSample(t *testing.T) {
	rng := rand.New(rand.NewPCG(9, 9))
	w := randomWeighted(rng, 3000, 2)
	w.Weights[0], w.Weights[1000], w.Weights[2999] = -1, 90, 0
	const n = 500
	total := w.positiveTotal()
	drawn := make(map[[2]float64]float64)
	const trials = 400
	for range trials {
		s := w.sample(n, rng)
		if s.Len() != n || math.Abs(s.Total()-total) > 1e-9*total {
			t.Fatalf("%d points that weigh %v, want %d and %v", s.Len(), s.Total(), n, total)
		}
		heavy := 0.0
		for i := range n {
			at := [2]float64{s.Points[2*i], s.Points[2*i+1]}
			drawn[at]++
			if at == [2]float64(w.Points[2000:2002]) {
				heavy++
			}
		}
		if want := 90 / total * n; math.Abs(heavy-want) >= 2 {
			t.Fatalf("the heavy point is drawn %v times, want %v to less than 2", heavy, want)
		}
	}
	// Sums of independent draws, so that 8 deviations and 5 are passed with probability below 1e-11 each (Chernoff).
	for i := range w.Len() {
		got, want := drawn[[2]float64(w.Points[2*i:2*i+2])], max(w.Weights[i], 0)/total*n*trials
		if math.Abs(got-want) > 8*math.Sqrt(want)+5 {
			t.Errorf("point %d of weight %v is drawn %v times, want about %v", i, w.Weights[i], got, want)
		}
	}
}

// TestSearchSample compares a search on a sample with one on all points, which finds the same separated clusters, and
// one of fewer points than a sample with one without.
func TestSearchSample(t *testing.T) {
	rng := rand.New(rand.NewPCG(10, 10))
	w := blobs(rng, 20_000, 5, 12)
	o := SearchOptions{Starts: 5, Swaps: 40}
	whole, err := Search(context.Background(), nil, w, 12, o, rng)
	if err != nil {
		t.Fatal(err)
	}
	o.Sample = 1000
	s, err := Search(context.Background(), nil, w, 12, o, rng)
	if err != nil {
		t.Fatal(err)
	}
	if s.Loss > 1.001*whole.Loss || len(s.Labels) != w.Len() {
		t.Errorf("loss %v with labels of %d points, on all points %v", s.Loss, len(s.Labels), whole.Loss)
	}
	if total := w.positiveTotal(); math.Abs((&Weighted{Weights: s.Weights}).Total()-total) > 1e-9*total {
		t.Errorf("clusters weigh %v, points %v", (&Weighted{Weights: s.Weights}).Total(), total)
	}
	few := &Weighted{D: w.D, Points: w.Points[:999*w.D], Weights: w.Weights[:999]}
	all, err := Search(context.Background(), nil, few, 12, o, rand.New(rand.NewPCG(1, 2)))
	if err != nil {
		t.Fatal(err)
	}
	o.Sample = 0
	want, err := Search(context.Background(), nil, few, 12, o, rand.New(rand.NewPCG(1, 2)))
	if err != nil || !slices.Equal(all.Centers, want.Centers) {
		t.Errorf("a search of fewer points than a sample differs, %v", err)
	}
}
