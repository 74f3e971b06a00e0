package privacy

import (
	"math"
	"testing"
)

// A ledger file that adds up mu^2 charges to delta how far discrete noise is from continuous, twice where records are
// replaced.
func TestLedgerFileChargesSlack(t *testing.T) {
	f := newFile(t)
	run := planned(t, Spec{Family: "discrete-gaussian", Scale: 20, Slack: 1e-8, Rounds: 2}, 1e-6)
	if _, err := f.Start(Terms{Budget{1, 1e-5}, GDPComposition, ReplaceOne}, run); err != nil {
		t.Fatal(err)
	}
	state, err := f.State()
	if err != nil {
		t.Fatal(err)
	}
	got := state.Spent[Outsider]
	near(t, "gdp amount", got.Amount, 4*0.005, 1e-8)
	near(t, "gdp delta", got.Delta, 2e-8*(1+math.E)*(1+math.E), 1e-8)
}
