package main

import (
	"os"
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

// What stands for a default where it is not given is refused where it is, and so is what would be passed over.
func TestZeroAndRepeatedFlagsAreRefused(t *testing.T) {
	for args, want := range map[string]string{
		"run --k 0":                                     "--k: is 0, must be at least 1\n",
		"run --n 0":                                     "--n: is 0, must be positive\n",
		"data write blobs --d 0":                        "--d: is 0, must be positive\n",
		"data write synth --separation 0":               "--separation: is 0, must be positive\n",
		"data write blobs --out x.xlsx":                 "x.xlsx would not hold what .xlsx says: name it .csv or .parquet\n",
		"data write blobs --out x.csv.gz":               "--out: x.csv.gz would not hold what .gz says: ",
		"data write blobs --out x.csv --labels l.npy":   "--labels: l.npy would not hold what .npy says: ",
		"run --epsilon 1 --ledger -":                    "--ledger: \"-\" names no file: name a file, or ./-\n",
		"audit --method fastlloyd --trials 0":           "--trials: is 0, must be at least 100\n",
		"run --data a.csv, --k 2":                       `--data: "a.csv," lists a file without a name: `,
		"bench kernels --quick --drop-out 0.1":          "are for simulated sums: give --simulate, too",
		"plan --epsilon 1 --public-n 100 --d 3 --k 2":   "--bounds: is not given, and no data is opened: ",
		"help nothing":                                  `"nothing" is not a command of cohort: see`,
		"help ledger show-all":                          `"show-all" is not a command of cohort ledger: see`,
		"completion nothing":                            `"nothing" is not a command of cohort completion: see`,
		"completion bash nothing":                       `"nothing" is one too many: cohort completion bash takes none: see`,
		"account 1":                                     `"1" is one too many: cohort account takes none: see`,
		"audit --method hybrid --calibration published": "has no published one to audit: choose among proven\n",
	} {
		status, out, errOut := cohort(t, strings.Fields(args)...)
		if status != exitWrong || out != "" || !strings.Contains(errOut, want) || strings.Count(errOut, "\n") != 1 {
			t.Errorf("%s: status %d, %.80q, %q", args, status, out, errOut)
		}
	}
}

// A file may have the name of a flag: its faults are not the flag's.
func TestFilesNamedAsFlags(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, name := range []string{"d", "out", "weights"} {
		if err := os.Mkdir(name, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for args, want := range map[string]string{
		"run --data d --k 2":          "cohort: d: a folder",
		"run --data weights,d --k 2":  "cohort: weights: a folder",
		"report out":                  "cohort: out: is a directory",
		"report model":                "cohort: model: no such file",
		"predict --data d --model d2": "cohort: d2: no such file",
	} {
		if _, _, errOut := cohort(t, strings.Fields(args)...); !strings.HasPrefix(errOut, want) {
			t.Errorf("%s: %q", args, errOut)
		}
	}
}

// Parties and columns that nobody could tell apart make no study, and a file that is none is named.
func TestStudiesOfUnclearNamesAreRefused(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, c := range []struct{ names, columns, want string }{
		{"A,A", "x,y", `--names: "A" is there twice: `},
		{"A, ,B", "x,y", "--names: one of them is empty: "},
		{"A,B", "x,x", `--columns: "x" is there twice: `},
		{"A,B", "x,", "--columns: one of them is empty: "},
		{"A,B", "x, y", ""},
	} {
		status, _, errOut := cohort(t, "study", "new", "--names", c.names, "--columns", c.columns, "--method", "relative",
			"--k", "2", "--epsilon", "1", "--public-n", "1000", "--bounds", "0:1")
		if want := "cohort: " + c.want; c.want == "" && status != exitDone ||
			c.want != "" && (status != exitWrong || !strings.HasPrefix(errOut, want)) {
			t.Errorf("%q, %q: status %d, %q", c.names, c.columns, status, errOut)
		}
	}
	if text := readText(t, "study.json"); !strings.Contains(text, `"x","y"`) && !strings.Contains(text, "\"y\"\n") {
		t.Errorf("the blank is a part of the column's name: %.400s", text)
	}
	if err := os.WriteFile("none", []byte("x,y\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, args := range []string{"study verify study.json none", "serve none"} {
		if _, _, errOut := cohort(t, strings.Fields(args)...); !strings.HasPrefix(errOut, "cohort: none: is no study file") {
			t.Errorf("%s: %q", args, errOut)
		}
	}
	if status, _, errOut := cohort(t, "join", "--data", "none"); status != exitWrong ||
		!strings.HasPrefix(errOut, "cohort: --invite: is not given: ") {
		t.Errorf("status %d, %q", status, errOut)
	}
}
