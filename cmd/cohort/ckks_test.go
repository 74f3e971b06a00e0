package main

import (
	"fmt"
	"strings"
	"testing"
)

// Every mode of ckks runs from the command line; a threshold without --online takes
// the first key holders.
func TestCKKSModes(t *testing.T) {
	if testing.Short() {
		t.Skip("skipped in short mode: makes keys at full security")
	}
	for _, mode := range []string{
		"--parties 2",
		"--parties 3",
		"--parties 3 --mode multiparty",
		"--parties 4 --mode multiparty --threshold 2",
		"--parties 4 --mode multiparty --threshold 2 --online 1,3 --colluders 2",
	} {
		args := "run --data builtin:blobs --n 200 --d 4 --k 2 --method ckks --epsilon 5 --iterations 1 --seed 1 --format json " + mode
		m := object(t, strings.Fields(args)...)
		for _, line := range m["ledger"].([]any) {
			e := line.(map[string]any)
			if e["kind"] == "release" && strings.Contains(mode, "multiparty") && !strings.Contains(fmt.Sprint(e["conditions"]), "colludes with fewer than") {
				t.Errorf("%s: the ledger does not say what may collude: %v", mode, e["conditions"])
			}
		}
		if len(m["centroids"].([]any)) != 2 {
			t.Errorf("%s: %d centroids", mode, len(m["centroids"].([]any)))
		}
	}
}
