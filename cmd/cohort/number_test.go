package main

import "testing"

// TestRangeOfClusters: auto:2-9 leaves the number to the run, whose result has the curve; a range that is
// none is refused.
func TestRangeOfClusters(t *testing.T) {
	args := []string{"run", "--data", "builtin:blobs", "--n", "4000", "--d", "2", "--separation", "14", "--epsilon", "2",
		"--seed", "1",
		"--format", "json", "--k"}
	m := object(t, append(args, "auto:2-9")...)
	k, _ := m["k"].(float64)
	if curve, _ := m["k_curve"].([]any); len(curve) != 8 || len(m["centroids"].([]any)) != int(k) || k < 2 || k > 9 {
		t.Errorf("k %v, %v", k, m["k_curve"])
	}
	for _, bad := range []string{"auto:9-2", "auto:0-4", "auto:4", "auto:", "auto:2-x", "many", "0"} {
		if status, _, text := cohort(t, append(args, bad)...); status != exitWrong || text == "" {
			t.Errorf("--k %s: status %d, %q", bad, status, text)
		}
	}
}
