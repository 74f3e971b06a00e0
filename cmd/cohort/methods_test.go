package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/cohort-engine/cohort/engine/catalog"
)

var update = flag.Bool("update", false, "write the losses of cohort methods anew")

// TestExpectedLosses: what cohort methods says of losses is what its runs give.
func TestExpectedLosses(t *testing.T) {
	measured, err := measureMethods(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	for _, m := range catalog.Methods() {
		fmt.Fprintf(&b, "%s %.4g\n", m.Name, measured[m.Name].NICV)
	}
	if *update {
		if err := os.WriteFile("losses.txt", []byte(b.String()), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	if b.String() != lossesFile {
		t.Errorf("losses.txt has\n%s\nruns give\n%s\ngo test ./cmd/cohort -run ExpectedLosses -update writes them",
			lossesFile, &b)
	}
}

// Every method of the family runs from the command line with its options.
func TestHorizontalOptions(t *testing.T) {
	base := []string{"run", "--data", "builtin:blobs", "--n", "600", "--d", "2", "--k", "4", "--clients", "3", "--seed",
		"1", "--format", "json"}
	for _, args := range []string{
		"--method lloyd --release centroid --tolerance 0.5",
		"--method lloyd --aggregator naive",
		"--method lloyd --init kmeans++ --iterations 3",
		"--method clloyd --exclusivity 2 --eta-min-alpha 1 --flow reference",
		"--method clloyd --exclusivity nonexclusive --eta-max-alpha 3",
		"--method sulloyd --epsilon 1 --post none --post-sum truncate --post-count fold",
		"--method sulloyd --epsilon 1 --aggregator ring --noise local --ring 32",
		"--method sulloyd --epsilon 1 --noise split --drop 2@2",
		"--method csulloyd --epsilon 1 --radius 1.5 --calibration claimed",
		"--method fastlloyd --epsilon 1 --calibration published --init random",
		"--method fastlloyd --epsilon 1 --neighbours replace-one --mechanism gaussian",
		"--method relative --epsilon 1 --radius-schedule sqrt --beyond exclude",
		"--method relative --epsilon 1 --radius-schedule later-code --calibration published",
		"--method relative --epsilon 1 --mechanism laplace --delta 0",
		"--method relative --epsilon 1 --delta 0",
	} {
		t.Run(args, func(t *testing.T) {
			m := object(t, append(append([]string{}, base...), strings.Fields(args)...)...)
			if m["parties"] != 3.0 || m["n"] != 600.0 || len(m["centroids"].([]any)) != 4 {
				t.Errorf("parties %v, n %v", m["parties"], m["n"])
			}
			if x, ok := m["nicv"].(float64); !ok || !(x > 0) {
				t.Errorf("nicv %v", m["nicv"])
			}
			if strings.Contains(args, "--drop") && !strings.Contains(fmt.Sprint(m["ledger"]), "client 2 failed in round 2") {
				t.Errorf("the ledger does not name the client that failed: %v", m["ledger"])
			}
			private := strings.Contains(args, "--epsilon")
			if (m["epsilon"] != nil) != private || (m["delta"] != nil) != private || (m["calibration"] == "none") == private {
				t.Errorf("epsilon %v, delta %v, calibration %v", m["epsilon"], m["delta"], m["calibration"])
			}
		})
	}
}

// Wrong requests of the family end with status 2 and one line that names the
// thing.
func TestHorizontalRefusals(t *testing.T) {
	base := []string{"run", "--data", "builtin:blobs", "--n", "60", "--d", "2", "--k", "4"}
	for _, c := range []struct{ args, want string }{
		{"--method clloyd --clients 2 --proportions 5,1", "client 1"},
		{"--method fastlloyd --epsilon 1 --calibration claimed --clients 2 --proportions 5,1", "client 1"},
		{"--method clloyd --exclusivity none", "--exclusivity"},
		{"--method clloyd --eta-min-alpha 0.2", "--eta-min-alpha"},
		{"--method clloyd --radius -1", "radius"},
		{"--method relative --epsilon 1 --radius-schedule linear", "--radius-schedule"},
		{"--method relative --epsilon 1 --delta 0 --mechanism gaussian", "laplace"},
		{"--method relative --epsilon 1 --calibration published", "published"},
		{"--method sulloyd --epsilon 1 --aggregator naive", "naive"},
		{"--method sulloyd --epsilon 1 --aggregator ring --noise server", "ring"},
		{"--method sulloyd --epsilon 1 --colluders 0", "colluders"},
		{"--method sulloyd --epsilon 0.0001 --ring 32", "Z_2^32"},
		{"--method sulloyd --epsilon 1 --ring 16", "ring"},
		{"--method lloyd --drop 5", "--drop"},
		{"--method lloyd --clients 2 --drop 3@1", "client 3"},
	} {
		t.Run(c.args, func(t *testing.T) {
			status, out, errOut := cohort(t, append(append([]string{}, base...), strings.Fields(c.args)...)...)
			if status != exitWrong || out != "" {
				t.Fatalf("status %d, stdout %.80q, stderr %q", status, out, errOut)
			}
			if strings.Count(errOut, "\n") != 1 || !strings.Contains(errOut, c.want) {
				t.Errorf("%q lacks %q", errOut, c.want)
			}
		})
	}
}
