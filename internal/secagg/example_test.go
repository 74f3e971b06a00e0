package secagg_test

import (
	"fmt"

	"github.com/cohort-engine/cohort/internal/secagg"
	"github.com/cohort-engine/cohort/internal/secret"
)

// Two clients add up through a server that never sees a plain value.
func Example() {
	root := secret.New() // the clients share it, the server does not have it
	values := [][]int64{{1, 2, 3}, {10, 20, 30}}
	key, err := secagg.NewKey(root, secagg.Ring64, 3)
	if err != nil {
		fmt.Println(err)
		return
	}
	var clients []*secagg.Client
	for i := range values {
		c, err := key.Client(i, len(values))
		if err != nil {
			fmt.Println(err)
			return
		}
		clients = append(clients, c)
	}

	total, message := secagg.NewMasked(secagg.Ring64, 2, 3), secagg.NewMasked(secagg.Ring64, 2, 3)
	total.Reset(0)
	for i, c := range clients {
		if err := c.Mask(message, 0, values[i]); err != nil {
			fmt.Println(err)
			return
		}
		if err := total.Merge(message); err != nil {
			fmt.Println(err)
			return
		}
	}
	if err := total.Add([]int64{0, 0, 1}); err != nil { // the server's noise
		fmt.Println(err)
		return
	}

	sum := make([]int64, 3)
	if err := clients[0].Unmask(sum, total); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(sum)
	// Output: [11 22 34]
}
