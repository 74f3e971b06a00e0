package bench

import (
	"context"
	"os/exec"
	"strings"
	"testing"

	"github.com/cohort-engine/cohort/engine"
	"github.com/cohort-engine/cohort/engine/dataset"
	"github.com/cohort-engine/cohort/engine/method/lloyd"
)

// authorsOf opens stand-ins for the authors' code, which check what the driver asks of them.
func authorsOf(t *testing.T, dir string) *authors {
	t.Helper()
	at := -1
	for i, python := range pythons {
		if exec.Command(python, "-c", "import numpy").Run() == nil {
			at = i
			break
		}
	}
	if at < 0 {
		t.Skip("no Python has numpy: make peers installs it on Debian")
	}
	a, err := openAuthors(dir, pythons[at])
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(a.close)
	return a
}

// TestAuthorsCodeTakesItsTurn: every method's rounds are timed, on all records and as many as ours; a
// failure of the code is told and ends nothing.
func TestAuthorsCodeTakesItsTurn(t *testing.T) {
	ctx := context.Background()
	s, err := generatedSet(ctx, "timesynth", dataset.Generator{N: 301, D: 2, K: 3, Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	e := &Env{authors: authorsOf(t, "testdata/authors")}
	for _, m := range []lloyd.Method{lloyd.FastLloyd, lloyd.SuLloyd, lloyd.CSuLloyd, lloyd.Lloyd, lloyd.Relative} {
		r := e.rival(s, m, 1)
		for run := range mostRivalRuns + 3 {
			if err := r.take(ctx, run, &engine.Result{Iterations: 4}); err != nil {
				t.Fatal(err)
			}
		}
		if len(r.samples) != 4*mostRivalRuns || r.absent != "" {
			t.Errorf("%s: rounds %v, absent %q", m, r.samples, r.absent)
		}
		refs := r.references()
		if len(refs) != 1 || refs[0].Kind != kindPeer || !strings.Contains(refs[0].Source, "run here in turns with ours") {
			t.Errorf("%s: references %+v", m, refs)
		}
	}
	r := e.rival(s, lloyd.Relative, 1)
	if err := r.take(ctx, 99, &engine.Result{Iterations: 4}); err != nil || r.absent != "" {
		t.Errorf("a run beyond the last one is made: %v, %q", err, r.absent)
	}
	ns, absent, err := e.authors.rounds(ctx, 1, s, lloyd.Relative, 1, 99, 4)
	if ns != nil || err != nil || absent != "ValueError: a failure of two lines" {
		t.Errorf("a failing round gives %v, %q, %v", ns, absent, err)
	}
}

// TestAuthorsMissing: without checkouts the stored figures stand there; a folder without any is refused.
func TestAuthorsMissing(t *testing.T) {
	e := &Env{}
	r := e.rival(&Set{Name: "s1"}, lloyd.FastLloyd, 1)
	if err := r.take(context.Background(), 1, nil); err != nil {
		t.Error(err)
	}
	if refs := r.references(); len(refs) != 1 || refs[0].Source != peerSource || !r.stored() {
		t.Errorf("references %+v", refs)
	}
	for _, dir := range []string{t.TempDir(), "none"} {
		if _, err := openAuthors(dir, ""); err == nil {
			t.Errorf("%s passes for a folder with checkouts", dir)
		}
	}
}
