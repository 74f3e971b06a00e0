package main

import (
	"strings"
	"testing"
)

// The headline says what was taken from the data, and only that.
func TestHeadlineSaysWhatIsNotCovered(t *testing.T) {
	for args, want := range map[string]string{
		"":                               "the bounds and the number of records, which come from the data",
		"--bounds -10:10":                "cover the number of records, which comes from the data",
		"--public-n 300":                 "cover the bounds, which come from the data",
		"--public-n 300 --bounds -10:10": "",
	} {
		run := append(strings.Fields("run --data builtin:blobs --n 300 --k 2 --method relative --epsilon 1"),
			strings.Fields(args)...)
		status, out, errOut := cohort(t, run...)
		if status != exitDone {
			t.Fatalf("%s: status %d: %s", args, status, errOut)
		}
		head, _, _ := strings.Cut(words(out), "Centroids")
		if want == "" && strings.Contains(head, "does not cover") || !strings.Contains(head, want) {
			t.Errorf("%s: the headline is %q, want %q in it", args, head, want)
		}
	}
}
