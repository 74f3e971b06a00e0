package study

import (
	"bytes"
	"context"
	"errors"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/cohort-engine/cohort/engine"
	"github.com/cohort-engine/cohort/engine/method"
	"github.com/cohort-engine/cohort/engine/protocol"
	"github.com/cohort-engine/cohort/engine/study/journal"
)

// longSums is a study of three parties whose journals have digests of the results of its sums.
func longSums(t testing.TB, rounds int) *fixture {
	t.Helper()
	f := newFixture(t, "fastlloyd", 3, 240, method.Settings{"noise": "split", "iterations": strconv.Itoa(rounds)})
	f.study.K = 60
	if err := f.study.Complete(); err != nil {
		t.Fatal(err)
	}
	return f
}

// A party whose journal has digests of long results alone gets them again when it begins again, also from a coordinator
// that has begun again itself, and ends with the bits of one process.
func TestResultsAreGivenAgain(t *testing.T) {
	const rounds, left = 4, 2
	f := longSums(t, rounds)
	n := newNetwork(t, f)
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	living, die := context.WithCancel(ctx)
	defer die()
	first := n.coordinator(t)
	results, errs := make([]*engine.Result, 3), make([]error, 4)
	var roles, lives sync.WaitGroup
	all := first.Invitations()
	lives.Go(func() {
		if _, err := first.Run(living); err == nil {
			t.Error("a coordinator that was stopped has ended well")
		}
		first.Close()
	})
	for p, v := range all[1:] {
		roles.Go(func() { results[p+1], errs[p+1] = Take(ctx, n.join(t, v)) })
	}
	j := n.join(t, all[0])
	j.Step = func(round int, _ string) {
		if round == left {
			die() // with the coordinator, when both have had the results of the sums before
		}
	}
	if _, err := Take(living, j); err == nil {
		t.Error("a party that was stopped has a result")
	}
	lives.Wait()
	file := filepath.Join(n.dirs[0], JournalName)
	digests, longest := received(t, file)
	if digests != left || longest >= longResult {
		t.Errorf("the journal has %d digests and a message of %d bytes", digests, longest)
	}
	second := n.coordinator(t)
	defer second.Close()
	roles.Go(func() { results[0], errs[0] = Take(ctx, n.join(t, all[0])) })
	_, errs[3] = second.Run(ctx)
	roles.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	sameCentroids(t, "again", f.alone(t), results)
	if digests, _ := received(t, file); digests < rounds {
		t.Errorf("the journal has %d digests in the end", digests)
	}
}

// received is how many digests of messages a journal has, and the longest message that is there itself.
func received(t *testing.T, path string) (digests, longest int) {
	t.Helper()
	j, err := journal.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	for _, r := range j.Records() {
		switch r.Kind {
		case 'h':
			digests++
		case 'r':
			longest = max(longest, r.Length)
		}
	}
	return digests, longest
}

// Only what the coordinator says that a long sum has come to is given again.
func TestLasting(t *testing.T) {
	result := append([]byte{mailSum, 10}, make([]byte, longResult)...)
	for _, x := range []struct {
		from int
		body []byte
		want bool
	}{
		{-1, result, true}, {-1, result[:longResult], true}, {-1, result[:longResult-1], false}, {0, result, false},
		{-2, result, false}, {-1, append([]byte{mailProgram}, result[1:]...), false},
		{-1, append([]byte{mailSum, 9}, result[2:]...), false}, {-1, bytes.Repeat([]byte{mailEnd}, longResult), false},
	} {
		if is := lasting(protocol.Role(x.from), x.body); is != x.want {
			t.Errorf("of %d bytes from role %d: %v", len(x.body), x.from, is)
		}
	}
}
