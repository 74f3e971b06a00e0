package lloyd

import (
	"cmp"
	"context"
	"math"
	"slices"

	"github.com/cohort-engine/cohort/engine/step/seeding"
	"github.com/cohort-engine/cohort/internal/elementary"
	"github.com/cohort-engine/cohort/kernels"
)

// Plain k-means: what a run without a budget does unless the papers' form is asked
// for.
const (
	// maxStarts is the number of starts of problems below smallWork products of
	// records, clusters and columns. Each factor startStep, the ninth root of a hundred,
	// takes one away, so there is one at a hundred times as many products.
	maxStarts = 10
	smallWork = 1e7
	startStep = 1.6681005372000588
	// maxExchanges is how often 1/exchangedShare of the clusters of the best start is
	// tried elsewhere where there are fewer starts, or from manyClusters on, of which every start has some in
	// the wrong place, for up to mostExchanged clusters.
	maxExchanges   = 3
	manyClusters   = 100
	exchangedShare = 40
	mostExchanged  = 2048
	// plainIterations is the most rounds from a start, as scikit-learn has it.
	plainIterations = 300
	// A start ends when the squared movements of all centroids together are at most
	// startRest times the variance of a column, which is scikit-learn's rule, and the
	// best one goes on to bestRest.
	startRest = 1e-4
	bestRest  = 1e-8
	// A start ends without being the best one if it would stay behind were it to gain, from here on,
	// giveUp times what its last round has: rounds whose gains shrink by a fifth each bring that much.
	giveUp = 4
)

// search is plain k-means under way at a client: starts, of which the best so far is
// kept. All clients compute it from the same releases.
type search struct {
	*client
	start    int
	squares  float64 // of all records' lengths
	variance float64 // of a column, on average
	rest     float64 // share of the variance
	replaced int     // centroids of this start
	moved    float64 // in the last round: the squares of all centroids' ways

	gain      float64 // of the last round: what its means take from the squares
	bestGain  float64
	bestGrid  []float64 // the centroids that the best start goes on from
	bestMeans []float64 // the means that they come from
	bestSizes []float64 // of its clusters
	bestStart int
	bestEnd   int // rounds that the best start has left
}

// kMeans runs plain k-means: rounds from several starts, the best of which goes on
// until it rests. It returns the number of rounds.
func (c *client) kMeans(ctx context.Context) (int, error) {
	s := &search{client: c, bestGain: math.Inf(-1)}
	var err error
	if s.squares, err = c.seeder.squares(ctx); err != nil {
		return 0, err
	}
	t := 0
	for s.start = range c.starts {
		if s.tries(s.start); s.start > 0 {
			if err := c.seeder.draw(ctx, s.start); err != nil {
				return t, err
			}
			c.setGrid()
		}
		from := t
		s.gain = math.Inf(-1) // of no round
		if s.rest, s.replaced = startRest, 0; c.starts == 1 && c.batch == 0 {
			s.rest = bestRest
		}
		if c.job.Rest > 0 {
			s.rest = c.job.Rest
		}
		if t, err = s.train(ctx, t); err != nil {
			return t, err
		}
		if left := c.perStart - (t - from); c.batch == 0 {
			s.keep(left)
		} else {
			s.keep(0)
		}
	}
	if t, err = s.exchange(ctx, t); err != nil {
		return t, err
	}
	if s.start > 0 && s.bestEnd > 0 {
		s.tries(s.bestStart)
		copy(c.centroids, s.bestGrid)
		c.setGrid()
	}
	if s.rest = bestRest; c.job.Rest > 0 {
		s.rest = c.job.Rest
	}
	if t, err = c.iterate(ctx, t, t+s.bestEnd, s.after); err != nil {
		return t, err
	}
	s.keep(0)
	copy(c.centroids, s.bestMeans)
	return t, nil
}

// tries tells observers which start the next rounds go on from, where there are several.
func (s *search) tries(start int) {
	if s.starts+s.exchanges > 1 {
		s.party.Tries(start + 1)
	}
}

// exchange tries whether the best start is better with a few clusters elsewhere: those
// that cost least to do without begin again at records, as in k-means++, and rounds go on
// from there (after Fränti, Efficiency of random swap clustering, Journal of Big Data
// 2018, with both choices greedy). It returns the next round.
func (s *search) exchange(ctx context.Context, t int) (int, error) {
	move := s.k/exchangedShare + 1
	for range s.exchanges {
		s.start++
		s.tries(s.start)
		copy(s.centroids, s.bestGrid)
		before, from := s.bestGain, t
		n, err := s.begin(ctx, s.dispensable(move))
		if n == 0 || err != nil {
			return t, err
		}
		s.gain, s.rest, s.replaced = math.Inf(-1), startRest, 0
		if t, err = s.iterate(ctx, t, from+s.perStart, s.after); err != nil {
			return t, err
		}
		if s.keep(s.perStart - (t - from)); s.bestGain <= before {
			move = max(1, move/2)
		}
	}
	return t, nil
}

// dispensable names clusters of the best start whose records lose least by going to the
// next centroid, none of which is that of another.
func (s *search) dispensable(count int) []int {
	loss, next := make([]float64, s.k), make([]int, s.k)
	order := make([]int, s.k)
	for j := range s.k {
		loss[j], order[j] = math.Inf(1), j
		for a := range s.k {
			length := 0.0
			for h, x := range s.bestGrid[j*s.d : (j+1)*s.d] {
				length += float64((x - s.bestGrid[a*s.d+h]) * (x - s.bestGrid[a*s.d+h]))
			}
			if a != j && length < loss[j] {
				loss[j], next[j] = length, a
			}
		}
		// The loss of a merge, by the sizes of both.
		own, other := s.bestSizes[j], s.bestSizes[next[j]]
		loss[j] *= own * other / max(own+other, 1)
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(loss[a], loss[b]) })
	taken, list := make([]bool, s.k), []int(nil)
	for _, j := range order {
		if len(list) < count && !taken[j] {
			taken[j], taken[next[j]] = true, true
			list = append(list, j)
		}
	}
	return list
}

// keep makes the present centroids the best ones if they are.
func (s *search) keep(roundsLeft int) {
	if s.gain < s.bestGain {
		return
	}
	if s.bestGain, s.bestEnd = s.gain, roundsLeft; s.moved <= max(bestRest, s.job.Rest)*s.variance {
		s.bestEnd = 0
	}
	s.bestStart = s.start
	s.bestGrid = append(s.bestGrid[:0], s.centroids...)
	s.bestMeans = append(s.bestMeans[:0], s.centroids...)
	s.bestSizes = append(s.bestSizes[:0], s.counts...)
	for j, count := range s.counts {
		s.mean(s.bestMeans[j*s.d:(j+1)*s.d], s.sums[j*s.d:(j+1)*s.d], count)
	}
}

// after closes a round: it places empty clusters anew, and tells whether the
// centroids rest.
func (s *search) after(ctx context.Context) (bool, error) {
	before := s.gain
	s.measure()
	if s.gain+giveUp*(s.gain-before) < s.bestGain {
		return true, nil
	}
	if replaced, err := s.replaceEmpty(ctx); replaced || err != nil {
		return false, err
	}
	return s.rests(before), nil
}

// rests tells whether the centroids rest; before is what the last round but one has gained.
func (s *search) rests(before float64) bool {
	if s.job.Tolerance > 0 {
		if s.moved = math.Inf(1); s.still() {
			s.moved = 0
		}
	}
	if s.job.WCSSChange > 0 {
		if s.moved = math.Inf(1); s.gain-before < s.job.WCSSChange {
			s.moved = 0
		}
	}
	return s.moved <= s.rest*s.variance
}

// measure sets what the last round has moved and gained, and the variance from the
// first one.
func (s *search) measure() {
	s.gain, s.moved = 0, elementary.SquaredDistance(s.centroids, s.previous)
	mean, n := make([]float64, s.d), 0.0
	for j, count := range s.counts {
		if count == 0 {
			continue
		}
		n += count
		sums := s.sums[j*s.d : (j+1)*s.d]
		for h, x := range sums {
			mean[h] += x
		}
		length := elementary.SquaredLength(sums)
		if s.job.Metric == Cosine { // of centroids of length 1
			s.gain += 2*math.Sqrt(length) - count
		} else {
			s.gain += length / count
		}
	}
	if s.variance == 0 {
		length, all := 0.0, n
		for _, x := range mean {
			length += float64(x / n * x / n)
		}
		if s.running != nil { // a batch stands for all
			all = seeding.Sum(s.seeder.weights)
		}
		s.variance = max(s.squares/all-length, 0) / float64(s.d)
	}
}

// replaceEmpty draws a record as the centroid of each empty cluster, at most as many
// from a start as there are clusters.
func (s *search) replaceEmpty(ctx context.Context) (bool, error) {
	var empty []int
	for j, count := range s.counts {
		if count == 0 {
			empty = append(empty, j)
		}
	}
	if len(empty) == 0 || s.replaced+len(empty) > s.k {
		return false, nil
	}
	n, err := s.begin(ctx, empty)
	if n == 0 || err != nil {
		s.replaced = s.k // there are too few distinct records: no use in trying again
		return false, err
	}
	s.replaced += n
	return true, nil
}

// begin lets clusters begin again at records, and returns how many do.
func (s *search) begin(ctx context.Context, which []int) (int, error) {
	s.setGrid()
	stay := make([]float32, 0, s.k*s.d)
	for j := range s.k {
		if !slices.Contains(which, j) {
			stay = append(stay, s.grid[j*s.d:(j+1)*s.d]...)
		}
	}
	centres := kernels.NewCentroids(len(stay)/s.d, s.d)
	centres.Set(stay)
	n, err := s.seeder.replace(ctx, which, centres, s.start)
	s.setGrid()
	return n, err
}

// Sums of squares are told in multiples of 2^-20, in pieces of 16 bits.
const (
	squaresUnit  = 0x1p-20
	pieceSize    = 1 << 16
	squarePieces = 6
)

// squares is the sum of the squared lengths of all clients' records, of which the
// clients learn the sum alone.
func (s *seeder) squares(ctx context.Context) (float64, error) {
	words, err := s.sum(ctx, squarePieces, func(words []int64) error {
		x := math.Floor(s.own.Squares() / (s.weightUnit * squaresUnit))
		for i := range words {
			words[i] = int64(math.Mod(x, pieceSize))
			x = math.Floor(x / pieceSize)
		}
		return nil
	})
	if err != nil {
		return 0, err
	}
	sum, unit := 0.0, squaresUnit
	for _, x := range words {
		sum += float64(float64(x) * unit)
		unit *= pieceSize
	}
	return sum, nil
}
