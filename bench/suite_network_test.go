package bench

import (
	"context"
	"os"
	"testing"

	"github.com/cohort-engine/cohort/engine/study"
)

// coordinatorVar tells this test's binary that it is a coordinator's process.
const coordinatorVar = "COHORT_TEST_COORDINATOR"

func TestMain(m *testing.M) {
	if os.Getenv(coordinatorVar) != "" {
		if err := Coordinate(context.Background(), os.Stdin, os.Stdout); err != nil {
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// Sums are measured with the coordinator in this process or in one of its own, whose work
// and memory then stand apart; one that dies ends the measurement.
func TestMeasuredSums(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv(coordinatorVar, "1")
	for _, plain := range []bool{true, false} {
		for _, command := range [][]string{nil, {self}} {
			m, err := measureSums(t.Context(), &study.Sums{Parties: 3, Words: 5, Rounds: 4, Plain: plain, Dir: t.TempDir()},
				command)
			if err != nil {
				t.Fatal(err)
			}
			apart := 0
			if command != nil {
				apart = 4
			}
			if len(m.rounds) != 4 || len(m.work) != apart || len(m.parties) != apart {
				t.Errorf("%v, plain %v: %+v", command, plain, m)
			}
		}
	}
	if _, err := measureSums(t.Context(), &study.Sums{Parties: 3, Words: 5, Rounds: 4, Plain: true, Dir: t.TempDir()},
		[]string{"false"}); err == nil {
		t.Error("a coordinator that died was not missed")
	}
}
