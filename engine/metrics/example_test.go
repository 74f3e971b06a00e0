package metrics_test

import (
	"fmt"

	"github.com/cohort-engine/cohort/engine/metrics"
)

func ExampleCompare() {
	truth := []int32{0, 0, 0, 1, 1, 1}
	predicted := []int32{5, 5, 7, 7, 7, 7}
	a, err := metrics.Compare(truth, predicted)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("ARI %.3f, accuracy %.3f\n", a.ARI, a.Accuracy)
	// Output: ARI 0.324, accuracy 0.833
}
