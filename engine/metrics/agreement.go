package metrics

import (
	"errors"
	"fmt"
	"math"

	"github.com/cohort-engine/cohort/internal/elementary"
)

// Agreement compares a clustering with the true classes. All but ARI lie in
// [0, 1]; 1 is perfect.
type Agreement struct {
	// ARI is the adjusted Rand index (Hubert and Arabie 1985): pairs of points
	// on which both agree, 0 for chance.
	ARI float64
	// NMI is the mutual information divided by the arithmetic mean of the two
	// entropies.
	NMI float64
	// FMI is the Fowlkes-Mallows index: the geometric mean of pairwise precision
	// and recall.
	FMI float64
	// VMeasure is the harmonic mean of homogeneity and completeness (Rosenberg
	// and Hirschberg 2007).
	VMeasure float64
	// Accuracy is the share of points whose cluster is matched with their class,
	// under the one-to-one matching that makes it largest.
	Accuracy float64
}

// Compare returns the agreement of two labellings of the same points. Labels
// are names: any integers.
func Compare(truth, predicted []int32) (Agreement, error) {
	if len(truth) != len(predicted) || len(truth) == 0 {
		return Agreement{}, fmt.Errorf("metrics: compare %d labels with %d", len(predicted), len(truth))
	}
	t, classes := dense(truth)
	p, clusters := dense(predicted)
	table := make([]int64, classes*clusters)
	for i := range t {
		table[t[i]*clusters+p[i]]++
	}
	return CompareTable(table, classes, clusters)
}

// CompareTable returns the agreement of classes and clusters from their
// contingency table, row-major: how many points of a class are in a cluster.
func CompareTable(table []int64, classes, clusters int) (Agreement, error) {
	if classes < 1 || clusters < 1 || classes > len(table)/clusters {
		return Agreement{}, fmt.Errorf("metrics: a table of %d numbers for %d classes and %d clusters", len(table), classes,
			clusters)
	}
	a, b := make([]int64, classes), make([]int64, clusters)
	points := int64(0)
	for i := range a {
		for j, c := range table[i*clusters : (i+1)*clusters] {
			a[i] += c
			b[j] += c
			points += c
		}
	}
	if points == 0 {
		return Agreement{}, errors.New("metrics: a table of no points")
	}
	n := float64(points)
	var out Agreement
	out.comparePairs(table, a, b, n)
	out.compareEntropies(table, a, b, n)
	matched := int64(0)
	for i, j := range match(table, classes, clusters) {
		if j >= 0 {
			matched += table[i*clusters+j]
		}
	}
	out.Accuracy = float64(matched) / n
	return out, nil
}

// comparePairs sets the indices that count pairs of points: a and b are the sizes of classes and clusters, n their sum.
func (o *Agreement) comparePairs(table, a, b []int64, n float64) {
	// Pairs that share a cell, a class, a cluster, and all pairs.
	pairs := func(counts []int64) float64 {
		sum := 0.0
		for _, c := range counts {
			sum += float64(c) * float64(c-1) / 2
		}
		return sum
	}
	both, inClass, inCluster, all := pairs(table), pairs(a), pairs(b), n*(n-1)/2
	expected := 0.0
	if all > 0 {
		expected = inClass / all * inCluster
	}
	if ceiling := (inClass + inCluster) / 2; ceiling == expected {
		o.ARI = 1 // both are one cluster, or both are singletons
	} else {
		o.ARI = (both - expected) / (ceiling - expected)
	}
	if both > 0 {
		o.FMI = math.Sqrt(both/inClass) * math.Sqrt(both/inCluster)
	}
}

// compareEntropies sets the indices that are made of entropies, in nats.
func (o *Agreement) compareEntropies(table, a, b []int64, n float64) {
	clusters := len(b)
	entropy := func(counts []int64) float64 {
		sum := 0.0
		for _, c := range counts {
			if c > 0 {
				sum -= float64(float64(c) / n * elementary.Log(float64(c)/n))
			}
		}
		return sum
	}
	ha, hb := entropy(a), entropy(b)
	mutual := 0.0
	for i := range a {
		for j := range b {
			if c := float64(table[i*clusters+j]); c > 0 {
				mutual += float64(c / n * elementary.Log(c/float64(a[i])*(n/float64(b[j]))))
			}
		}
	}
	mutual = max(mutual, 0)
	o.NMI = 1
	if ha+hb > 0 {
		o.NMI = min(mutual/((ha+hb)/2), 1)
	}
	homogeneity, completeness := 1.0, 1.0
	if ha > 0 {
		homogeneity = min(mutual/ha, 1)
	}
	if hb > 0 {
		completeness = min(mutual/hb, 1)
	}
	if homogeneity+completeness > 0 {
		o.VMeasure = 2 * homogeneity * completeness / (homogeneity + completeness)
	}
}

// dense renumbers labels 0, 1, ... in the order of their first appearance.
func dense(labels []int32) ([]int, int) {
	number := make(map[int32]int)
	out := make([]int, len(labels))
	for i, l := range labels {
		id, ok := number[l]
		if !ok {
			id = len(number)
			number[l] = id
		}
		out[i] = id
	}
	return out, len(number)
}
