package cohort_test

import (
	"context"
	"fmt"
	"log"

	"github.com/cohort-engine/cohort"
)

// Two groups of customers by age and spending, clustered with a privacy budget. The seed makes this a
// simulation with the same noise every time: leave it out for real privacy.
func Example() {
	points, n := customers()
	seed := uint64(1)

	model, err := cohort.Fit(context.Background(), cohort.Rows(points, n, 2), cohort.Options{
		K: 2, Epsilon: 1, Bounds: cohort.Range(0, 100), Seed: &seed,
	})
	if err != nil {
		log.Fatal(err)
	}
	labels, err := model.Predict([]float64{25, 80, 70, 20})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("the first centroid is near 25, 80:", near(model.Centroids[labels[0]], 25, 80))
	fmt.Println("the two customers are in different clusters:", labels[0] != labels[1])
	fmt.Printf("outsiders see them at epsilon %.3g\n", *model.Ledger.TotalFor("outsider").Epsilon)
	// Output:
	// the first centroid is near 25, 80: true
	// the two customers are in different clusters: true
	// outsiders see them at epsilon 1
}

// customers are 4000 records around (25, 80) and (70, 20).
func customers() (points []float64, n int) {
	for i := range 2000 {
		a, b := float64(i%13)-6, float64(i%7)-3
		points = append(points, 25+a, 80+b, 70+b, 20+a)
	}
	return points, 4000
}

func near(c []float64, x, y float64) bool {
	return (c[0]-x)*(c[0]-x)+(c[1]-y)*(c[1]-y) < 25
}
