package main

import (
	"math"
	"strings"
	"testing"
)

// A share of epsilon finds the bounds: the ledger has what it costs, and all together stays within epsilon.
func TestPrivateBounds(t *testing.T) {
	for _, mechanism := range []string{"--delta=0", "--delta=1e-5"} {
		m := object(
			t,
			"run",
			"--data",
			"builtin:blobs",
			"--n",
			"4000",
			"--d",
			"2",
			"--k",
			"3",
			"--epsilon",
			"2",
			mechanism,
			"--private-bounds",
			"0.25",
			"--format",
			"json",
		)
		found, total := false, 0.0
		for _, line := range m["ledger"].([]any) {
			e := line.(map[string]any)
			what, _ := e["what"].(string)
			switch e["kind"] {
			case "release":
				if strings.HasPrefix(what, "magnitudes") {
					found = math.Abs(e["epsilon"].(float64)-0.5) < 1e-3 &&
						strings.Contains(e["theorem"].(string), "T12")
				}
			case "total":
				total = e["epsilon"].(float64)
			case "note":
				if strings.Contains(what, "bounds are the data") {
					t.Errorf("%s: the ledger has %q", mechanism, what)
				}
			}
		}
		if !found || m["epsilon"].(float64) != 2 {
			t.Errorf("%s: the ledger lacks the magnitudes at epsilon .5, of %v", mechanism, m["epsilon"])
		}
		if !(total <= 2*(1+1e-9)) || total < 1 {
			t.Errorf("%s: the total is %v, the budget 2", mechanism, total)
		}
	}
	status, out, errOut := cohort(t, "run", "--epsilon", "2", "--private-bounds", "0.25")
	if text := strings.Join(strings.Fields(out), " "); status != exitDone ||
		!strings.Contains(text, "epsilon does not cover the number of records") ||
		!strings.Contains(text, "bounds found for 0.25 of epsilon: x1 0 to") {
		t.Errorf("status %d, %s\n%s", status, errOut, out)
	}
	for args, want := range map[string]string{
		"--epsilon 1 --private-bounds 1": "between 0 and 1", "--private-bounds 0.1": "not private", "--epsilon 1 --private-bounds 0.1 --bounds 0:1": "given together",
		"--epsilon 1 --private-bounds 0.1 --method sketch": "hold columns", "--epsilon 1 --private-bounds 0.1 --ledger x": "ledger file",
		"--epsilon 1 --private-bounds 0.1 --data - --k 2": "read once", "--epsilon 1 --private-bounds 0.1 --method fastlloyd --calibration claimed": "calibration",
	} {
		if status, out, errOut := cohort(t, append([]string{"run"}, strings.Fields(args)...)...); status != exitWrong ||
			out != "" ||
			!strings.Contains(errOut, want) {
			t.Errorf("%s: status %d, %.80q, %q", args, status, out, errOut)
		}
	}
}
