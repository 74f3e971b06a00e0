package lloyd

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/cohort-engine/cohort/engine"
	"github.com/cohort-engine/cohort/engine/dataset"
	"github.com/cohort-engine/cohort/engine/privacy"
	"github.com/cohort-engine/cohort/engine/protocol"
	"github.com/cohort-engine/cohort/engine/step"
	"github.com/cohort-engine/cohort/kernels"
)

// gridParts are n random records of d coordinates on a coarse grid, so that
// records and distances repeat, dealt to m clients.
func gridParts(t *rapid.T, n, d, m int) []dataset.Part {
	norm := &dataset.Normalised{Points: kernels.NewPanels(n, d), FractionBits: 16}
	row := make([]float32, d)
	steps := float32(rapid.SampledFrom([]int{2, 8, 1 << 15}).Draw(t, "steps"))
	r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
	for i := range n {
		for h := range row {
			row[h] = float32(r.IntN(2*int(steps)+1))/steps - 1
		}
		norm.Points.Set(i, row)
	}
	parts, err := norm.Split(m, nil, 1)
	if err != nil {
		t.Fatal(err)
	}
	return parts
}

// firstRound runs one round of a job.
func firstRound(t *rapid.T, job Job) *trial {
	pool := engine.NewPool(1)
	defer pool.Close()
	seed := uint64(1)
	job.Seed, job.Iterations = &seed, 1
	p, err := job.check()
	if err != nil {
		t.Fatal(err)
	}
	s := &trial{Plan: p}
	s.session, s.clients = p.start(engine.NewRuntime(pool), protocol.Options{})
	if err := s.session.Run(context.Background()); err != nil {
		t.Fatal(err)
	}
	return s
}

// offset returns the integer offset of record i of client c from centroid j and
// its squared length.
func (m *model) offset(c *client, i, j int) (v []int64, length int64) {
	for h, x := range c.points.Point(i, nil) {
		t := c.units(x) - c.units(m.centres.Row(j)[h])
		v = append(v, t)
		length += t * t
	}
	return v, length
}

// Relative sums equal those of a plain loop over the records, far ones clipped
// or left out, and no record contributes more than R_t (THEOREMS.md T2).
func TestRelativeSums(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := rapid.SampledFrom([]int{1, 2, 3, 6, 17, 33}).Draw(t, "d")
		job := Job{Method: Relative, Problem: protocol.Problem{K: rapid.IntRange(1, 7).Draw(t, "k"),
			Clients: gridParts(t, 200, d, 2), Budget: privacy.Budget{Epsilon: 1, Delta: 1e-6}}, Init: step.Random,
			Beyond:   rapid.SampledFrom([]Beyond{Clip, Exclude}).Draw(t, "beyond"),
			Schedule: rapid.SampledFrom([]Schedule{Geometric, Sqrt, LaterCode}).Draw(t, "schedule")}
		s := firstRound(t, job)
		first := s.atStart()
		limit := int64(math.Floor(s.radius[0] * s.scale * s.radius[0] * s.scale))
		for _, c := range s.clients {
			sums, counts := make([]int64, s.k*d), make([]int64, s.k)
			labels := make([]uint16, c.points.N)
			kernels.Assign(c.points, first.centres, labels, nil)
			for i, j := range labels {
				v, length := first.offset(c, i, int(j))
				if s.job.Beyond == Exclude {
					// On the rim of the radius the kernel's rounding may leave a record out.
					out := int(c.labels[i]) == s.k
					if rim := float64(length) > float64(limit)*(1-float64(d+2)*0x1p-22); out != (length > limit) &&
						!(out && rim) {
						t.Fatalf("record %d of client %d at squared distance %d, limit %d: left out is %t", i,
							c.party.Role, length, limit, out)
					}
					if out {
						continue
					}
				}
				if length > limit {
					clipped := int64(0)
					f := math.Sqrt(float64(limit) / float64(length))
					for h, x := range v {
						v[h] = int64(float64(x) * f)
						clipped += v[h] * v[h]
					}
					if clipped > limit {
						t.Fatalf("a clipped offset of squared length %d, limit %d", clipped, limit)
					}
				}
				counts[j]++
				for h, x := range v {
					sums[int(j)*d+h] += x
				}
			}
			if !slices.Equal(sums, c.acc.Sums) || !slices.Equal(counts, c.acc.Counts) {
				t.Fatalf("client %d: sums %v counts %v, want %v and %v", c.party.Role, c.acc.Sums, c.acc.Counts, sums,
					counts)
			}
		}
	})
}

// Nonexclusive assignment takes the nearest records of each cluster, ties by the
// keyed hash, as a plain sort finds them.
func TestNonExclusiveTakesTheNearest(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := rapid.IntRange(1, 4).Draw(t, "d")
		s := firstRound(t, Job{Method: CLloyd, Problem: protocol.Problem{K: rapid.IntRange(1, 5).Draw(t, "k"),
			Clients: gridParts(t, 2*rapid.IntRange(5, 60).Draw(t, "n/2"), d, 2)}, NonExclusive: true, Init: step.Random,
			EtaMinAlpha: rapid.Float64Range(1, 4).Draw(t, "alpha")})
		first := s.atStart()
		var st privacy.Stream
		for _, c := range s.clients {
			key := tieKey(c.party, 0, &st)
			if key == tieKey(c.party, 1, &st) {
				t.Fatal("two rounds have one key for ties")
			}
			for j := range s.k {
				type candidate struct {
					length int64
					hash   [sha256.Size]byte
					row    []int64
				}
				var all []candidate
				for i := range c.points.N {
					_, length := first.offset(c, i, j)
					b := binary.LittleEndian.AppendUint32(slices.Clone(key[:]), uint32(j))
					var row []int64
					for _, x := range c.points.Point(i, nil) {
						row = append(row, c.units(x))
						b = binary.LittleEndian.AppendUint32(b, uint32(int32(c.units(x))))
					}
					all = append(all, candidate{length, sha256.Sum256(b), row})
				}
				slices.SortFunc(all, func(x, y candidate) int {
					if x.length != y.length {
						return int(x.length - y.length)
					}
					return bytes.Compare(x.hash[:], y.hash[:])
				})
				want := make([]int64, d)
				for _, x := range all[:s.lo] {
					for h := range want {
						want[h] += x.row[h]
					}
				}
				if got := c.acc.Sums[j*d : (j+1)*d]; !slices.Equal(got, want) || c.acc.Counts[j] != int64(s.lo) {
					t.Fatalf("cluster %d: sums %v of %d, want %v of %d", j, got, c.acc.Counts[j], want, s.lo)
				}
			}
		}
	})
}

func TestSelectSmallest(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x := rapid.SliceOfN(rapid.Int64Range(0, 20), 1, 60).Draw(t, "x")
		m := rapid.IntRange(1, len(x)).Draw(t, "m")
		sorted := slices.Sorted(slices.Values(x))
		if got := selectSmallest(x, m); got != sorted[m-1] {
			t.Fatalf("the %d-th smallest is %d, want %d", m, got, sorted[m-1])
		}
	})
}

// With exclusivity E a record may fill several clusters, so minima that add up
// to more than the records are met, and no record is in more than E clusters.
func TestExclusivityFillsMinima(t *testing.T) {
	parts := blobs(t, 100, 2, 4, 2, 3)
	seed := uint64(1)
	job := Job{Method: CLloyd, Problem: protocol.Problem{K: 4, Clients: parts, Seed: &seed}, EtaMinAlpha: 1,
		EtaMaxAlpha: 2, Exclusivity: 2}
	s, seen := transcribed(t, job)
	for _, e := range seen {
		if e.What != s.release.Name || e.Viewer != e.Of {
			continue
		}
		sum := int64(0)
		for _, n := range e.Values[s.k*s.d:] {
			if n < int64(s.lo) {
				t.Errorf("a cluster of %d records, at least %d wanted", n, s.lo)
			}
			sum += n
		}
		if n := int64(parts[e.Of].Points.N); sum < n || sum > 2*n {
			t.Errorf("%d memberships of %d records", sum, n)
		}
	}
}

// k-means++ draws records, and far apart blobs one each: with 6 blobs of radius
// 0.05 at distances above 0.5 the chance to hit one twice is below 1% per draw,
// so over 40 seeds of 6 centres 20 repetitions have a probability below 1e-9.
func TestKMeansPlusPlusSpreads(t *testing.T) {
	parts := blobs(t, 1200, 2, 6, 3, 4)
	repeats := 0
	for seed := range uint64(40) {
		s := begin(t, 1, Job{Method: Lloyd, Problem: protocol.Problem{K: 6, Clients: parts, Seed: &seed,
			NoQuality: true}, Init: KMeansPlusPlus})
		s.step(t)
		grid := make([]float32, 12) // before the first round
		for i, x := range s.clients[0].previous {
			grid[i] = float32(x)
		}
		for a := range s.k {
			row := grid[a*2 : a*2+2]
			found := false
			for _, p := range parts {
				for i := range p.Points.N {
					found = found || slices.Equal(p.Points.Point(i, nil), row)
				}
			}
			if !found {
				t.Fatalf("centre %v is no record", row)
			}
			for b := range a {
				dx, dy := float64(row[0]-grid[b*2]), float64(row[1]-grid[b*2+1])
				if math.Hypot(dx, dy) < 0.25 {
					repeats++
				}
			}
		}
	}
	if repeats > 20 {
		t.Errorf("%d repetitions in 40 draws", repeats)
	}
}

// A trial with another seed releases what a plan with that seed does.
func TestTrial(t *testing.T) {
	a, b := uint64(1), uint64(2)
	parts, three := blobs(t, 300, 2, 3, 2, 1), blobs(t, 300, 2, 3, 3, 1)
	pool := engine.NewPool(2)
	defer pool.Close()
	for _, job := range []Job{
		{Method: Relative}, {Method: FastLloyd}, {Method: CSuLloyd, NonExclusive: true, Drops: []Drop{{1, 1}}},
		{Method: SuLloyd, Problem: protocol.Problem{Mechanism: protocol.Gaussian, Noise: protocol.InShares, Clients: three},
			Drops: []Drop{{0, 1}}},
		{Method: SuLloyd, Problem: protocol.Problem{Noise: protocol.InShares, Clients: three}},
	} {
		job.K, job.Seed, job.Budget, job.NoQuality = 3, &a, privacy.Budget{Epsilon: 1, Delta: 1e-6}, true
		if job.Clients == nil {
			job.Clients = parts
		}
		p := planOf(t, &job)
		again := new(protocol.Views)
		if err := p.Trial(context.Background(), engine.NewRuntime(pool), b,
			protocol.Options{Views: again}); err != nil {
			t.Fatal(err)
		}
		job.Seed = &b
		if _, fresh := transcribed(t, job); !reflect.DeepEqual(fresh, again.Seen) {
			t.Errorf("%s: a trial shows other values than a run of its own", job.Method)
		}
	}
}
