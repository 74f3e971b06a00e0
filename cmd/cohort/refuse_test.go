package main

import (
	"strings"
	"testing"
)

// A flag that the method does not take is refused by name, and the methods that take it are named.
func TestFlagsOfOtherMethodsAreRefused(t *testing.T) {
	for _, c := range []struct{ args, flag, takers string }{
		{"--method fastlloyd --epsilon 1 --mode two-party", "--mode", "choose ckks"},
		{"--method hybrid --epsilon 1 --radius 1", "--radius", "clloyd, csulloyd, fastlloyd"},
		{"--method hybrid --epsilon 1 --swaps 3", "--swaps", "balcan, balcan-edler"},
		{"--method hybrid --epsilon 1 --sketches 9", "--sketches", "sketch-basic, sketch"},
		{"--method hybrid --epsilon 1 --post none", "--post", "relative"},
		{"--method sulloyd --epsilon 1 --balance 2", "--balance", "choose hybrid"},
		{"--method sulloyd --epsilon 1 --k auto:2-9", "--k auto", "choose hybrid"},
		{"--method sulloyd --epsilon 1 --parties 2", "--parties", "sketch"},
		{"--method sketch --epsilon 1 --clients 2", "--clients", "hybrid"},
		{"--method lsf --epsilon 1 --clients 2", "--clients", "hybrid"},
		{"--method lloyd --epsilon 1", "--epsilon", "choose a private method, or leave --epsilon out"},
		{"--method pca --ledger f", "--ledger", "hybrid"},
		{"--method lloyd --noise split", "--noise", "sulloyd"},
		{"--method hybrid --epsilon 1 --calibration published", "--calibration", "proven"},
		{"--method sketch --epsilon 1 --calibration published", "--calibration", "no released code"},
		{"--method ckks --epsilon 1 --calibration published", "--calibration", "no released code"},
		{"--method hybrid --epsilon 1 --delta 0 --mechanism gaussian", "--mechanism", "laplace"},
		{"--method vertical-plain --neighbours add-remove", "--neighbours", "sketch"},
	} {
		for _, command := range []string{"run", "profile"} {
			if command == "profile" && c.flag == "--ledger" {
				continue // profile has no such flag
			}
			status, out, errOut := cohort(t, append([]string{command}, strings.Fields(c.args)...)...)
			if status != exitWrong || out != "" || !strings.HasPrefix(errOut, "cohort: "+c.flag+": ") ||
				!strings.Contains(errOut, c.takers) {
				t.Errorf("%s %s: status %d, stdout %.80q, stderr %q", command, c.args, status, out, errOut)
			}
		}
	}
}

// A command takes no flags of run that it would not look at.
func TestCommandsRefuseWhatTheyDoNotUse(t *testing.T) {
	for args, want := range map[string]string{
		"audit --method fastlloyd --clients 3": "unknown flag",
		"audit --method fastlloyd --runs 2":    "--runs: counts the runs of --canaries",
		"audit --method fastlloyd --out x":     "unknown flag",
		"audit --method hybrid --branch tree":  "unknown flag",
		"profile --ledger x":                   "unknown flag",
		"profile --labels-out x":               "unknown flag",
		"profile --timings":                    "unknown flag",
	} {
		status, out, errOut := cohort(t, strings.Fields(args)...)
		if status != exitWrong || out != "" || !strings.Contains(errOut, want) {
			t.Errorf("%s: status %d, %.80q, %q", args, status, out, errOut)
		}
	}
}

// An empty value, such as that of a variable which is not set, does not count as a flag that was left out.
func TestEmptyFlagsAreRefused(t *testing.T) {
	for _, args := range [][]string{
		{"run", "--epsilon", "1", "--ledger", ""}, {"run", "--epsilon", "1", "--bounds", ""},
		{"run", "--weights="}, {"run", "--branch", ""}, {"plan", "--columns", ""}, {"predict", "--model", ""},
		{"bench", "--out", "", "kernels"},
	} {
		status, out, errOut := cohort(t, args...)
		if status != exitWrong || out != "" ||
			!strings.HasSuffix(errOut, ": is empty: give a value, or leave the flag out\n") {
			t.Errorf("%q: status %d, %.80q, %q", args, status, out, errOut)
		}
	}
}
