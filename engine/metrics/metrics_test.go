package metrics

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"github.com/cohort-engine/cohort/internal/parallel"
	"github.com/cohort-engine/cohort/kernels"
)

func panels(d int, rows ...float32) *kernels.Panels {
	p := kernels.NewPanels(len(rows)/d, d)
	kernels.Pack(p, rows)
	return p
}

func near(t *testing.T, what string, got, want float64) {
	t.Helper()
	if math.Abs(got-want) > 1e-12*max(1, math.Abs(want)) && !(math.IsNaN(got) && math.IsNaN(want)) {
		t.Errorf("%s is %v, want %v", what, got, want)
	}
}

// TestByHand checks every measure on points whose values are easily worked out:
// two clusters on a line, {0, 1} and {4, 6}, one point unassigned, one cluster
// empty.
func TestByHand(t *testing.T) {
	c := &Clustering{Points: panels(1, 0, 1, 4, 6, 100), Labels: []uint16{0, 0, 2, 2, 3},
		Centroids: []float64{0.5, 50, 5}, K: 3}
	near(t, "BCSS", c.BCSS(), 2*2.25*2.25+2*2.25*2.25) // the mean is 2.75
	near(t, "Davies-Bouldin", c.DaviesBouldin(), (0.5+1)/4.5)
	if !slices.Equal(c.clusterSizes(), []int{2, 0, 2}) {
		t.Errorf("sizes %v", c.clusterSizes())
	}
	p, err := c.Pairwise(context.Background(), parallel.Serial{}, 1, ExactPoints)
	if err != nil {
		t.Fatal(err)
	}
	near(t, "Dunn", p.Dunn, 3.0/2)
	near(t, "silhouette", p.Silhouette, ((5-1)/5.0+(4-1)/4.0+(3.5-2)/3.5+(5.5-2)/5.5)/4)
	if p.Sample != 4 {
		t.Errorf("compared %d points, want 4", p.Sample)
	}
}

func TestDegenerateClusterings(t *testing.T) {
	one := &Clustering{Points: panels(1, 0, 1, 4), Labels: []uint16{0, 0, 0}, Centroids: []float64{1, 2}, K: 2}
	p, err := one.Pairwise(context.Background(), parallel.Serial{}, 1, ExactPoints)
	if err != nil || !math.IsNaN(p.Silhouette) || !math.IsNaN(p.Dunn) || !math.IsNaN(one.DaviesBouldin()) {
		t.Errorf("one cluster: %+v, %v, error %v", p, one.DaviesBouldin(), err)
	}
	same := &Clustering{Points: panels(1, 0, 1), Labels: []uint16{0, 1}, Centroids: []float64{3, 3}, K: 2}
	if v := same.DaviesBouldin(); !math.IsInf(v, 1) {
		t.Errorf("one centroid twice: Davies-Bouldin is %v", v)
	}
	if p, err := same.Pairwise(context.Background(), parallel.Serial{}, 1, ExactPoints); err != nil || p.Silhouette != 0 {
		t.Errorf("points alone in their clusters: %+v, error %v", p, err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := same.Pairwise(ctx, parallel.Serial{}, 1, ExactPoints); err != context.Canceled {
		t.Errorf("cancelled: error is %v", err)
	}
}

// TestSampleIsCloseToExact compares a sampled silhouette with that of a part
// that is small enough to be exact. The seeds are fixed: nothing is random.
func TestSampleIsCloseToExact(t *testing.T) {
	const n, most = 12500, 10000
	rows := make([]float32, n)
	labels := make([]uint16, n)
	for i := range rows {
		labels[i] = uint16(i % 2)
		rows[i] = float32(i%2) + float32(i/2%100)/512
	}
	big := &Clustering{Points: panels(1, rows...), Labels: labels, Centroids: []float64{0, 1}, K: 2, FractionBits: 9}
	small := &Clustering{Points: panels(1, rows[:4000]...), Labels: labels[:4000], Centroids: []float64{0, 1}, K: 2,
		FractionBits: 9}
	a, err := big.Pairwise(context.Background(), parallel.Serial{}, 9, most)
	if err != nil {
		t.Fatal(err)
	}
	b, err := small.Pairwise(context.Background(), parallel.Serial{}, 9, most)
	if err != nil {
		t.Fatal(err)
	}
	if a.Sample != most || b.Sample != 4000 || math.Abs(a.Silhouette-b.Silhouette) > 0.005 {
		t.Errorf("sampled %+v, exact %+v", a, b)
	}
}

// TestKnownAgreements checks values published in scikit-learn's documentation
// of the same scores, and others worked out by hand.
func TestKnownAgreements(t *testing.T) {
	for _, c := range []struct {
		truth, predicted []int32
		want             Agreement
	}{
		{[]int32{0, 0, 1, 1}, []int32{7, 7, -3, -3}, Agreement{1, 1, 1, 1, 1}},
		{[]int32{0, 0, 1, 2}, []int32{0, 0, 1, 1}, Agreement{4.0 / 7, 0.8, math.Sqrt(0.5), 0.8, 0.75}},
		{[]int32{0, 0, 1, 1}, []int32{0, 1, 0, 1}, Agreement{-0.5, 0, 0, 0, 0.5}},
		{[]int32{0, 0, 0, 0}, []int32{0, 1, 2, 3}, Agreement{0, 0, 0, 0, 0.25}},
		{[]int32{0, 0, 0, 0}, []int32{1, 1, 1, 1}, Agreement{1, 1, 1, 1, 1}},
		{[]int32{0, 0, 1, 1}, []int32{0, 0, 1, 2}, Agreement{4.0 / 7, 0.8, math.Sqrt(0.5), 0.8, 0.75}},
		{[]int32{5}, []int32{6}, Agreement{1, 1, 0, 1, 1}},
	} {
		got, err := Compare(c.truth, c.predicted)
		if err != nil {
			t.Fatal(err)
		}
		name := fmt.Sprint(c.truth, c.predicted, " ")
		near(t, name+"ARI", got.ARI, c.want.ARI)
		near(t, name+"NMI", got.NMI, c.want.NMI)
		near(t, name+"FMI", got.FMI, c.want.FMI)
		near(t, name+"V", got.VMeasure, c.want.VMeasure)
		near(t, name+"accuracy", got.Accuracy, c.want.Accuracy)
	}
	if _, err := Compare([]int32{1}, nil); err == nil {
		t.Error("labellings of different lengths are compared")
	}
	if _, err := Compare(nil, nil); err == nil {
		t.Error("empty labellings are compared")
	}
}

// TestAgreementDoesNotDependOnNames renames and swaps the labellings.
func TestAgreementDoesNotDependOnNames(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 40).Draw(t, "n")
		label := rapid.SliceOfN(rapid.Int32Range(0, 4), n, n)
		a, b := label.Draw(t, "a"), label.Draw(t, "b")
		got, err := Compare(a, b)
		if err != nil {
			t.Fatal(err)
		}
		renamed := slices.Clone(b)
		for i := range renamed {
			renamed[i] = 100 - 3*renamed[i]
		}
		again, _ := Compare(a, renamed)
		back, _ := Compare(b, a)
		for _, pair := range [][2]float64{{got.ARI, again.ARI}, {got.NMI, again.NMI}, {got.FMI, again.FMI},
			{got.VMeasure, again.VMeasure}, {got.Accuracy, again.Accuracy},
			{got.ARI, back.ARI}, {got.NMI, back.NMI}, {got.FMI, back.FMI}, {got.VMeasure, back.VMeasure},
			{got.Accuracy, back.Accuracy}} {
			if math.Abs(pair[0]-pair[1]) > 1e-12 {
				t.Fatalf("%+v, renamed %+v, swapped %+v", got, again, back)
			}
		}
		if got.ARI > 1+1e-12 || got.NMI < 0 || got.NMI > 1 || got.Accuracy <= 0 || got.Accuracy > 1 {
			t.Fatalf("out of range: %+v", got)
		}
	})
}

// TestMatchIsOptimal compares with all permutations.
func TestMatchIsOptimal(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rows, columns := rapid.IntRange(1, 5).Draw(t, "rows"), rapid.IntRange(1, 5).Draw(t, "columns")
		table := rapid.SliceOfN(rapid.Int64Range(0, 9), rows*columns, rows*columns).Draw(t, "table")
		got, used := int64(0), make(map[int]bool)
		for i, j := range match(table, rows, columns) {
			if j < 0 {
				continue
			}
			if used[j] {
				t.Fatalf("column %d is matched twice", j)
			}
			used[j] = true
			got += table[i*columns+j]
		}
		var best func(row int, taken int) int64
		best = func(row, taken int) int64 {
			if row == rows {
				return 0
			}
			most := best(row+1, taken)
			for j := range columns {
				if taken>>j&1 == 0 {
					most = max(most, table[row*columns+j]+best(row+1, taken|1<<j))
				}
			}
			return most
		}
		if want := best(0, 0); got != want {
			t.Fatalf("matched %d, the best is %d", got, want)
		}
	})
}

func BenchmarkPairwise(b *testing.B) {
	const n = 5000
	rows := make([]float32, 2*n)
	labels := make([]uint16, n)
	for i := range labels {
		rows[2*i], rows[2*i+1] = float32(i%71)/71, float32(i%97)/97
		labels[i] = uint16(i % 15)
	}
	c := &Clustering{Points: panels(2, rows...), Labels: labels, Centroids: make([]float64, 30), K: 15}
	for b.Loop() {
		if _, err := c.Pairwise(context.Background(), parallel.Serial{}, 1, ExactPoints); err != nil {
			b.Fatal(err)
		}
	}
}

// TestPairwiseAgainstDefinition compares silhouette and Dunn with their definitions,
// every distance by itself, on sets that span several tiles.
func TestPairwiseAgainstDefinition(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.SampledFrom([]int{2, 3, 63, 511, 513, 700, 1100, 2200}).Draw(t, "n")
		d, k := rapid.IntRange(1, 5).Draw(t, "d"), rapid.IntRange(2, 7).Draw(t, "k")
		g := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		rows, labels := make([]float32, n*d), make([]uint16, n)
		for i := range labels {
			labels[i] = uint16(g.IntN(k + 1)) // k: unassigned
			for h := range d {
				rows[i*d+h] = float32(g.IntN(513)-256) / 256
			}
		}
		c := &Clustering{Points: panels(d, rows...), Labels: labels, Centroids: make([]float64, k*d), K: k, FractionBits: 8}
		got, err := c.Pairwise(context.Background(), parallel.Serial{}, 1, n)
		if err != nil {
			t.Fatal(err)
		}
		other, err := c.Pairwise(context.Background(), backwards{}, 1, n)
		if err != nil {
			t.Fatal(err)
		}
		if math.Float64bits(other.Silhouette) != math.Float64bits(got.Silhouette) {
			t.Fatalf("the silhouette follows the order of work: %v and %v", got.Silhouette, other.Silhouette)
		}
		silhouette, dunn := byDefinition(rows, labels, d, k)
		if math.Abs(got.Silhouette-silhouette) > 0x1p-22 || math.Abs(got.Dunn-dunn) > 1e-9*dunn {
			t.Fatalf("silhouette %v and Dunn %v, want %v and %v", got.Silhouette, got.Dunn, silhouette, dunn)
		}
	})
}

// backwards does the last piece of work first, and the two halves on two workers.
type backwards struct{}

func (backwards) Workers() int { return 2 }

func (backwards) Run(_ context.Context, items int, work func(worker, index int)) error {
	var both sync.WaitGroup
	for worker := range 2 {
		both.Go(func() {
			for i := items - 1 - worker; i >= 0; i -= 2 {
				work(worker, i)
			}
		})
	}
	both.Wait()
	return nil
}

// byDefinition is the silhouette and the Dunn index of points, NaN with fewer than two
// clusters that are not empty.
func byDefinition(rows []float32, labels []uint16, d, k int) (silhouette, dunn float64) {
	size, assigned, clusters := make([]int, k+1), 0, 0
	for _, l := range labels {
		size[l]++
	}
	for _, s := range size[:k] {
		assigned += s
		if s > 0 {
			clusters++
		}
	}
	if clusters < 2 {
		return math.NaN(), math.NaN()
	}
	apart, wide := math.Inf(1), 0.0
	for i, l := range labels {
		if int(l) == k {
			continue
		}
		sums := make([]float64, k+1)
		for j, m := range labels {
			square := 0.0
			for h := range d {
				x := float64(rows[i*d+h]) - float64(rows[j*d+h])
				square += x * x
			}
			distance := math.Sqrt(square)
			sums[m] += distance
			if int(m) == k || i == j {
				continue
			}
			if l == m {
				wide = max(wide, distance)
			} else {
				apart = min(apart, distance)
			}
		}
		a, b := sums[l]/float64(size[l]-1), math.Inf(1)
		for j := range k {
			if j != int(l) && size[j] > 0 {
				b = min(b, sums[j]/float64(size[j]))
			}
		}
		if size[l] > 1 && max(a, b) > 0 {
			silhouette += (b - a) / max(a, b)
		}
	}
	return silhouette / float64(assigned), apart / wide
}

func TestTableOfTooFewNumbers(t *testing.T) {
	for _, shape := range [][2]int{{-1, 2}, {0, 1}, {1, 0}, {2, 2}, {1 << 62, 4}} {
		if _, err := CompareTable([]int64{1, 2, 3}, shape[0], shape[1]); err == nil {
			t.Errorf("a table of 3 numbers is taken for %v", shape)
		}
	}
}
