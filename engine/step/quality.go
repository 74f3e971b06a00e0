package step

import (
	"context"
	"math"
	"math/bits"
	"slices"

	"github.com/cohort-engine/cohort/engine"
	"github.com/cohort-engine/cohort/engine/dataset"
	"github.com/cohort-engine/cohort/engine/metrics"
	"github.com/cohort-engine/cohort/engine/protocol"
	"github.com/cohort-engine/cohort/internal/elementary"
	"github.com/cohort-engine/cohort/internal/fault"
	"github.com/cohort-engine/cohort/kernels"
)

// Quality compares the centroids of a run with the records of all parties: each
// measures its own loss, the sizes of its clusters and, where labels are known,
// how often each label falls into each cluster, and the parties add these up. No
// budget covers what comes out.
//
// A record's squared distance is rounded to a multiple of a unit that follows from
// public values, so that the sum does not depend on how the records are split.
type Quality struct {
	release *protocol.Release
	groups  []protocol.Group
	k, d    int
	unit    float64
	limb    uint // bits of a part of the loss
	limbs   int
	classes []int32 // distinct labels, in order
}

const (
	// lossBits is what a record's loss has at most, in units.
	lossBits = 62
	// countBits is what the number of records has at most.
	countBits = 40
	// mostClasses bounds the table of labels and clusters.
	mostClasses = 1 << 16
)

// Records are what a party measures: its own.
type Records struct {
	Part dataset.Part
	// Labels has the true label of each row of the table (Part.Rows), or nil.
	Labels []int32
	// Clamped counts coordinates of the party's records outside the bounds.
	Clamped int
}

// PlanQuality adds to a plan the release of the quality of centroids whose
// coordinates stay within [-limit, limit]. labels are those of all rows, or nil:
// the distinct ones are taken to be public.
func PlanQuality(plan *protocol.Plan, limit float64, labels []int32) (*Quality, error) {
	side := 1 + limit
	_, most := math.Frexp(float64(plan.D) * side * side)
	q := &Quality{k: plan.K, d: plan.D, unit: math.Ldexp(1, most-lossBits), limb: uint(plan.Capacity.Ring.Bits() / 2)}
	q.limbs = (lossBits + countBits + int(q.limb) - 1) / int(q.limb)
	if labels != nil {
		q.classes = slices.Compact(slices.Sorted(slices.Values(labels)))
		if len(q.classes) > mostClasses {
			return nil, fault.Range("labels", len(q.classes), "at most 65536 different ones: classes, no identifiers")
		}
	}
	q.groups = []protocol.Group{{Values: q.words()}}
	q.release = plan.Add(&protocol.Release{Name: "quality", Words: q.words(), Uncovered: true})
	plan.Notes = append(plan.Notes, "the quality figures (NICV, WCSS, empty clusters, clamped count, label scores) "+
		"are computed from the records")
	return q, nil
}

// words is the length of a party's vector: the loss in parts, the sizes, the
// clamped coordinates, and the table of labels and clusters.
func (q *Quality) words() int { return q.limbs + q.k + 1 + len(q.classes)*q.k }

// loss is a sum of records' losses in units: 128 bits.
type loss struct{ hi, lo uint64 }

func (l *loss) add(o loss) {
	var carry uint64
	l.lo, carry = bits.Add64(l.lo, o.lo, 0)
	l.hi += o.hi + carry
}

// shardQuality is what a shard of records comes to.
type shardQuality struct {
	loss   loss
	counts []int64 // sizes, then the table of labels and clusters
}

// Measure releases the quality of centroids (at most k rows of d, in the normalised box)
// on the records of all parties, after round.
func (q *Quality) Measure(ctx context.Context, p *protocol.Party, round int, own Records,
	centroids []float64) (engine.Quality, error) {
	if err := p.Meet(ctx); err != nil {
		return engine.Quality{}, err
	}
	private := protocol.NewPrivate(q.words())
	if err := private.Fill(func(words []int64) error { return q.local(ctx, p, own, centroids, words) }); err != nil {
		return engine.Quality{}, err
	}
	sum, err := p.Sum(ctx, q.release, round, q.groups, private)
	if err != nil {
		return engine.Quality{}, err
	}
	return protocol.Once(p, "quality", round, func() (engine.Quality, error) { return q.read(sum, len(centroids)/q.d) })
}

// local fills in a party's own vector.
func (q *Quality) local(ctx context.Context, p *protocol.Party, own Records, centroids []float64, words []int64) error {
	grid := make([]float32, len(centroids))
	for i, c := range centroids {
		grid[i] = dataset.Truncate(c, own.Part.FractionBits)
	}
	prepared := kernels.NewCentroids(len(centroids)/q.d, q.d)
	prepared.Set(grid)
	shards := engine.Shards(own.Part.Points.N, q.d)
	parts := make([]shardQuality, len(shards))
	measure := func(_, index int) {
		parts[index] = q.shard(own, shards[index].Lo, shards[index].Hi, prepared, centroids)
	}
	var err error
	if len(shards) == 1 {
		err = p.Abreast(ctx, func(context.Context) error { measure(0, 0); return nil })
	} else {
		err = p.Pool().Run(ctx, len(shards), measure)
	}
	if err != nil {
		return err
	}
	var total loss
	for _, s := range parts {
		total.add(s.loss)
		for j, n := range s.counts[:q.k] {
			words[q.limbs+j] += n
		}
		for j, n := range s.counts[q.k:] {
			words[q.limbs+q.k+1+j] += n
		}
	}
	for i := range q.limbs {
		words[i] = int64(total.lo & (1<<q.limb - 1))
		total.lo = total.lo>>q.limb | total.hi<<(64-q.limb)
		total.hi >>= q.limb
	}
	words[q.limbs+q.k] = int64(own.Clamped)
	return nil
}

// shard measures the records [lo, hi).
func (q *Quality) shard(own Records, lo, hi int, prepared *kernels.Centroids, centroids []float64) shardQuality {
	s := shardQuality{counts: make([]int64, q.k+len(q.classes)*q.k)}
	labels, row := make([]uint16, hi-lo), make([]float32, q.d)
	view := own.Part.Points.Slice(lo, hi)
	kernels.Assign(view, prepared, labels, nil)
	for i, j := range labels {
		s.counts[j]++
		units := math.RoundToEven(elementary.SquaredDistance(view.Point(i, row), centroids[int(j)*q.d:]) / q.unit)
		s.loss.add(loss{lo: uint64(min(units, 1<<lossBits))})
		if q.classes != nil {
			class, _ := slices.BinarySearch(q.classes, own.Labels[own.Part.Row(lo+i)])
			s.counts[q.k+class*q.k+int(j)]++
		}
	}
	return s
}

// read turns the sum over all parties into figures of k centroids.
func (q *Quality) read(sum []int64, k int) (engine.Quality, error) {
	total := 0.0
	for i := q.limbs - 1; i >= 0; i-- {
		total = math.Ldexp(total, int(q.limb)) + float64(sum[i])
	}
	wcss, n, empty := total*q.unit, int64(0), 0
	for _, c := range sum[q.limbs : q.limbs+k] {
		n += c
		if c == 0 {
			empty++
		}
	}
	nicv, clamped := wcss/float64(max(n, 1)), int(sum[q.limbs+q.k]) // 0 of no records
	out := engine.Quality{NICV: &nicv, WCSS: &wcss, EmptyClusters: &empty, Clamped: &clamped}
	if q.classes == nil {
		return out, nil
	}
	a, err := metrics.CompareTable(sum[q.limbs+q.k+1:], len(q.classes), q.k)
	if err != nil {
		return engine.Quality{}, err
	}
	out.ARI, out.NMI, out.FMI, out.VMeasure, out.Accuracy = &a.ARI, &a.NMI, &a.FMI, &a.VMeasure, &a.Accuracy
	return out, nil
}
