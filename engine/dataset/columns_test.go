package dataset

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// TestQuoteColumns: names of all kinds are chosen by what QuoteColumns makes of them, each alone and all of them in any
// order, and ColumnNames reads them from it.
func TestQuoteColumns(t *testing.T) {
	names := []string{"age", "income, EUR", "income", "EUR", `"quoted"`, `"quoted, too"`, `blood "pressure"`, `5" pipe`,
		"3", "1-2", "-age", "a:b", ",", "1,000 people", "x,y,z"}
	r := rand.New(rand.NewPCG(1, 2))
	for range 100 {
		order := r.Perm(len(names))[:1+r.IntN(len(names))]
		var chosen []string
		for _, c := range order {
			chosen = append(chosen, names[c])
		}
		got, err := ChooseColumns(QuoteColumns(chosen), names, len(names))
		if err != nil || !slices.Equal(got, order) {
			t.Fatalf("%q: %v, %v where %v were chosen", QuoteColumns(chosen), got, err, order)
		}
		if got := ColumnNames(QuoteColumns(chosen)); !slices.Equal(got, chosen) {
			t.Fatalf("%q: %q where %q were chosen", QuoteColumns(chosen), got, chosen)
		}
	}
	if got := ColumnNames(" age , weight"); strings.Join(got, "+") != "age+weight" {
		t.Errorf("blanks about names: %q", got)
	}
}

// TestColumnSlips: what is no name of a column is asked back where that can be told.
func TestColumnSlips(t *testing.T) {
	names := []string{"age", "sex", "income, EUR", "blood-pressure"}
	for choice, want := range map[string]string{"agee": "(did you mean age?)", "-aeg": "(did you mean age?)",
		"sex,income": "(did you mean income, EUR?)", "-blood-presure": "(did you mean blood-pressure?)",
		"age:six": "(did you mean sex?)", "2-x": "neither a name of the header nor a number:"} {
		if _, err := ChooseColumns(choice, names, 4); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", choice, err, want)
		}
	}
	if _, err := ChooseColumns("age", nil, 4); err == nil || !strings.Contains(err.Error(), "columns have no names here") {
		t.Errorf("without names: %v", err)
	}
}
