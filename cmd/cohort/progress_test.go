package main

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"time"

	"github.com/cohort-engine/cohort/engine"
	"github.com/cohort-engine/cohort/engine/enginetest"
)

// What takes long is shown as it goes on: reading, each part of a search, rounds.
func TestProgressMoves(t *testing.T) {
	var out bytes.Buffer
	p := &progress{out: &out, label: "lloyd"}
	eng := enginetest.New(t, engine.WithWorkers(2), engine.WithObserver(p))
	for _, args := range [][]string{
		{"--epsilon=1", "--seed=1"}, {"--method=lloyd", "--init=kmeans++"},
		{"--data=" + writeFile(t, "a.csv", strings.Repeat("1,2\n3,4\n5,9\n", 500)), "--k=2"},
	} {
		o, m, _, err := prepared(t, args...)
		if err != nil {
			t.Fatal(err)
		}
		in, err := load(context.Background(), o, m, p)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := repeat(context.Background(), eng, m, o, in, nil); err != nil {
			t.Fatal(err)
		}
	}
	for _, want := range []string{"search, starts", "search, swaps", "k-means++, centres", "lloyd rounds: ",
		"reading, rows", "/10)"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("nothing shows %q", want)
		}
	}
	out.Reset()
	p.after, p.start = time.Hour, time.Now()
	p.Progress("rounds", 1, 2)
	if out.Len() > 0 {
		t.Errorf("short work is shown: %q", out.String())
	}
}
