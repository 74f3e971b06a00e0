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
		args := "run --data builtin:blobs --n 200 --d 4 --k 2 --method ckks --epsilon 5 --iterations 1 --seed 1 " +
			"--format json " + mode
		m := object(t, strings.Fields(args)...)
		for _, line := range m["ledger"].([]any) {
			e := line.(map[string]any)
			if e["kind"] == "release" && strings.Contains(mode, "multiparty") &&
				!strings.Contains(fmt.Sprint(e["conditions"]), "colludes with fewer than") {
				t.Errorf("%s: the ledger does not say what may collude: %v", mode, e["conditions"])
			}
		}
		if len(m["centroids"].([]any)) != 2 {
			t.Errorf("%s: %d centroids", mode, len(m["centroids"].([]any)))
		}
	}
}

// ckks runs without noise and budget when calibration none is asked for, and the ledger says who
// sees what exactly.
func TestCKKSWithoutNoise(t *testing.T) {
	args := strings.Fields("--data builtin:blobs --n 200 --d 4 --k 2 --method ckks --calibration none --parties 2 " +
		"--iterations 1 --seed 1 --format json")
	for _, command := range []string{"plan", "run"} {
		if command == "run" && testing.Short() {
			continue // makes keys at full security; plan has the same ledger
		}
		m := object(t, append([]string{command}, args...)...)
		exact := make(map[string]string)
		for _, line := range m["ledger"].([]any) {
			if e := line.(map[string]any); e["kind"] == "release" {
				exact[fmt.Sprint(e["what"])] = fmt.Sprintf("%v %v %v", e["viewers"], e["unbounded"], e["mechanism"])
			}
		}
		if m["calibration"] != "none" || exact["exact counts and sums of 2 clusters, 1 round"] != "[party 2] true none" ||
			exact["exact centroids of 1 round"] != "[party 1 party 2 outsider] true none" {
			t.Errorf("%s: calibration %v, ledger %v", command, m["calibration"], exact)
		}
	}
	for _, bad := range []string{"--epsilon 1 --calibration none", "--method sketch --calibration none --epsilon 1",
		"--calibration no"} {
		args := append(strings.Fields("plan --data builtin:blobs --k 2 --method ckks --parties 2"), strings.Fields(bad)...)
		if status, _, errOut := cohort(t, args...); status != exitWrong {
			t.Errorf("%s: status %d, %s", bad, status, errOut)
		}
	}
}

// What a proven run of ckks publishes of its rounds has no count: with the computing party's noise taken off a total
// of a round would tell how many records its clusters have. The check of totals
// is on values with all noise, and a run whose totals fail it says no number.
func TestCKKSPublishesNoCounts(t *testing.T) {
	args := "--data builtin:blobs --n 200 --d 2 --k 2 --method ckks --parties 2 --iterations 1 --seed 1 --format json "
	m := object(t, strings.Fields("run --epsilon 5 --delta 1e-5 "+args)...)
	rounds := m["details"].(map[string]any)["rounds"].([]any)
	if len(rounds) != 1 {
		t.Fatalf("%d rounds", len(rounds))
	}
	for name := range rounds[0].(map[string]any) {
		switch name {
		case "index", "pairs", "depth", "degree", "operations": // public
		default:
			t.Errorf("a round publishes %q", name)
		}
	}
	var conditions []string
	for _, line := range m["ledger"].([]any) {
		if e := line.(map[string]any); e["kind"] == "release" {
			conditions = append(conditions, fmt.Sprint(e["conditions"]))
		}
	}
	if !strings.Contains(strings.Join(conditions, " "), "which is in delta (T4)") {
		t.Errorf("the ledger does not say that the error of the arithmetic is proved: %v", conditions)
	}
}

// Comparison by rank has no proof, so a proven run refuses it.
func TestCKKSByRankIsNotProven(t *testing.T) {
	args := strings.Fields("plan --data builtin:blobs --n 200 --d 2 --k 2 --method ckks --parties 2 --argmin rank " +
		"--epsilon 1")
	if status, _, errOut := cohort(t, args...); status != exitWrong || !strings.Contains(errOut, "no proven bound") {
		t.Errorf("status %d, %s", status, errOut)
	}
	if status, _, errOut := cohort(t, append(args, "--calibration", "claimed")...); status != exitDone {
		t.Errorf("claimed: status %d, %s", status, errOut)
	}
}
