package bench

import (
	"context"
	"os"
	"testing"

	"github.com/cohort-engine/cohort/engine/dataset"
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
			if share := m.share(); command == nil && share != 1 || !(share > 0) {
				t.Errorf("%v, plain %v: all roles had %v of the cores", command, plain, share)
			}
		}
	}
	if _, err := measureSums(t.Context(), &study.Sums{Parties: 3, Words: 5, Rounds: 4, Plain: true, Dir: t.TempDir()},
		[]string{"false"}); err == nil {
		t.Error("a coordinator that died was not missed")
	}
}

// A method's row as a study tells how many roles have the bits of one process, and its time.
func TestMeasuredStudy(t *testing.T) {
	set, err := generatedSet(t.Context(), "blobs", dataset.Generator{N: 300, D: 4, K: 3, Separation: 6, Seed: 5})
	if err != nil {
		t.Fatal(err)
	}
	c := &Case{Env: &Env{Quick: true}, Row: new(Row)}
	if err := c.study(t.Context(), study.Trial{Method: "fastlloyd", Parties: 2}, set); err != nil {
		t.Fatal(err)
	}
	if same := c.Row.value("roles with its bits").shown(); same != 2 {
		t.Errorf("%v roles have the bits", same)
	}
	for _, name := range []string{"in one process", "apart", "their transfer by LAN1000"} {
		if took := c.Row.value(name).shown(); !(took > 0 && took < 60e9) {
			t.Errorf("%s: %v ns", name, took)
		}
	}
	plain, with := c.Row.value("apart to one process").shown(), c.Row.value("apart to one process with it").shown()
	if !(with > 0 && with < plain) {
		t.Errorf("%v times one process, %v times it with its transfer", plain, with)
	}
}
