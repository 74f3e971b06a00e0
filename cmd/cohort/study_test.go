package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cohort-engine/cohort/engine"
	"github.com/cohort-engine/cohort/engine/dataset"
	"github.com/cohort-engine/cohort/engine/privacy"
	"github.com/cohort-engine/cohort/engine/study"
	"github.com/cohort-engine/cohort/engine/study/journal"
)

// commandVar has this test's binary run its arguments as cohort does.
const commandVar = "COHORT_TEST_COMMAND"

func TestMain(m *testing.M) {
	if os.Getenv(commandVar) != "" {
		main()
	}
	os.Exit(m.Run())
}

// guide has the commands of a page of docs, as words: those that stand on lines of their own, or
// those within its sentences.
func guide(t *testing.T, name string) (commands [][]string) {
	return commandsOf(t, name, `(?m)^ {4}cohort (.*)$`)
}
func asides(t *testing.T, name string) [][]string { return commandsOf(t, name, "`cohort ([^`]*)`") }

func commandsOf(t *testing.T, name, pattern string) (commands [][]string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", name))
	if err != nil {
		t.Fatal(err)
	}
	whole := strings.ReplaceAll(string(text), "\\\n", " ")
	word := regexp.MustCompile(`"[^"]*"|\S+`)
	for _, command := range regexp.MustCompile(pattern).FindAllStringSubmatch(whole, -1) {
		words := word.FindAllString(command[1], -1)
		for i := range words {
			words[i] = strings.Trim(words[i], `"`)
		}
		commands = append(commands, words)
	}
	return commands
}

// machine is a folder in which commands run.
type machine string

// start runs a command, in whose words some are replaced.
func (m machine) start(ctx context.Context, t *testing.T, in io.Reader, words []string,
	replace ...string) (out io.Reader, wait func() (string, error)) {
	t.Helper()
	args := make([]string, len(words))
	for i, w := range words {
		args[i] = strings.NewReplacer(replace...).Replace(w)
	}
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(ctx, program, args...)
	var said, complained bytes.Buffer
	read, write := io.Pipe()
	cmd.Dir, cmd.Env, cmd.Stdin = string(m), append(os.Environ(), commandVar+"=1"), in
	cmd.Stdout, cmd.Stderr = io.MultiWriter(&said, write), &complained
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return read, func() (string, error) {
		go func() { _, _ = io.Copy(io.Discard, read) }()
		if err := cmd.Wait(); err != nil {
			return "", fmt.Errorf("cohort %s: %w: %s", strings.Join(args, " "), err, complained.String())
		}
		return said.String(), nil
	}
}

// run runs a command to its end.
func (m machine) run(ctx context.Context, t *testing.T, words ...string) string {
	t.Helper()
	_, wait := m.start(ctx, t, nil, words)
	said, err := wait()
	if err != nil {
		t.Fatal(err)
	}
	return said
}

// patients writes what a hospital has.
func (m machine) patients(t *testing.T, seed uint64) {
	t.Helper()
	rng := rand.New(rand.NewPCG(seed, 1))
	var b strings.Builder
	b.WriteString("age,weight,pressure\n")
	for range 15000 {
		c := float64(rng.IntN(5))
		fmt.Fprintf(&b, "%.0f,%.1f,%.0f\n", 20+15*c+3*rng.NormFloat64(), 50+20*c+2*rng.NormFloat64(),
			100+8*c+rng.NormFloat64())
	}
	if err := os.WriteFile(filepath.Join(string(m), "patients.csv"), []byte(b.String()), 0o600); err != nil {
		t.Fatal(err)
	}
}

// interrupted takes part until it has paid, when it is killed.
func (m machine) interrupted(ctx context.Context, t *testing.T, words []string, replace ...string) {
	t.Helper()
	living, kill := context.WithCancel(ctx)
	defer kill()
	_, wait := m.start(living, t, strings.NewReader("yes\n"), words, replace...)
	for {
		if paid, err := os.ReadFile(filepath.Join(string(m), "patients.ledger")); err == nil && len(paid) > 0 {
			break
		}
		select {
		case <-ctx.Done():
			t.Fatal("nothing was paid")
		case <-time.After(5 * time.Millisecond):
		}
	}
	kill()
	if _, err := wait(); err == nil {
		t.Error("a party that was killed has ended")
	}
}

// The page on studies can be followed as it is written, on three machines, here folders: but
// for addresses, invitations and the cluster of somebody else, its commands are given word for
// word, and the hospitals, which type yes, end with the same centroids. North is killed when it has
// paid, and goes on by the same command.
func TestStudiesGuide(t *testing.T) {
	commands := guide(t, "STUDIES.md")
	if len(commands) != 4 || commands[0][0] != "study" || commands[1][0] != "serve" || commands[3][0] != "join" {
		t.Fatalf("the page has the commands %q", commands)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	coordinator, north, south := machine(t.TempDir()), machine(t.TempDir()), machine(t.TempDir())
	coordinator.run(ctx, t, commands[0]...)
	reach := slices.Index(commands[1], "--reach") // not here: parties use the address that it listens on
	out, served := coordinator.start(ctx, t, nil, slices.Delete(commands[1], reach, reach+2), "0.0.0.0:4222",
		"127.0.0.1:0")
	var tokens []string
	for lines := bufio.NewScanner(out); len(tokens) < 2 && lines.Scan(); {
		if line := strings.TrimSpace(lines.Text()); strings.HasPrefix(line, "cohort2-") {
			tokens = append(tokens, line)
		}
	}
	if len(tokens) != 2 {
		_, err := served()
		t.Fatalf("no invitations: %v", err)
	}
	if said := coordinator.run(ctx, t, "study", "status"); !strings.Contains(said, "not here") {
		t.Errorf("the study's state is %q", said)
	}
	north.patients(t, 0)
	south.patients(t, 1)
	think, agree := io.Pipe()
	defer agree.Close()
	_, southWait := south.start(ctx, t, think, commands[3], "TOKEN", tokens[1])
	north.interrupted(ctx, t, commands[3], "TOKEN", tokens[0])
	_, northWait := north.start(ctx, t, strings.NewReader("yes\n"), commands[3], "TOKEN", tokens[0])
	if _, err := io.WriteString(agree, "yes\n"); err != nil {
		t.Fatal(err)
	}
	agree.Close()
	waits := []func() (string, error){northWait, southWait}
	var ends [3]string
	for i, wait := range append(waits, served) {
		var err error
		if ends[i], err = wait(); err != nil {
			t.Fatal(err)
		}
	}
	if !strings.Contains(ends[0], "Centroids") || ends[0] != ends[1] {
		t.Errorf("North ends with\n%s\nSouth with\n%s", ends[0], ends[1])
	}
	if !strings.Contains(ends[2], "Its parties have the result") {
		t.Errorf("the coordinator ends with %q", ends[2])
	}
	for _, words := range [][]string{{"study", "status"}, {"profile", "--study", "coordinator"}} {
		said := coordinator.run(ctx, t, words...)
		for _, want := range map[string][]string{"study": {": done, ", "agreed"},
			"profile": {", done: ", "vectors", "a sum", "LAN1000"}}[words[0]] {
			if !strings.Contains(said, want) {
				t.Errorf("cohort %s of a study that has ended lacks %q: %s", words[0], want, said)
			}
		}
	}
	verifies(ctx, t, coordinator, north, south)
}

// verifies checks journals as the page does: whole ones, and one that was cut off, which stays as it is.
func verifies(ctx context.Context, t *testing.T, coordinator, north, south machine) {
	t.Helper()
	verify := slices.DeleteFunc(asides(t, "STUDIES.md"), func(words []string) bool {
		return len(words) < 2 || words[1] != "verify"
	})
	if len(verify) != 2 {
		t.Fatalf("the page verifies by %q", verify)
	}
	coordinator.run(ctx, t, verify[1]...)
	_, verified := coordinator.start(ctx, t, nil, []string{"study", "verify", "."})
	if said, err := verified(); err == nil || !strings.Contains(err.Error(), "holds no journal") {
		t.Errorf("a folder without a journal: %q, %v", said, err)
	}
	for _, hospital := range []machine{north, south} {
		if said := hospital.run(ctx, t, verify[0]...); !strings.Contains(said, "a whole journal") {
			t.Errorf("the journal: %q", said)
		}
		if said := hospital.run(ctx, t, "ledger", "show", "patients.ledger"); !strings.Contains(said, "fastlloyd") ||
			strings.Contains(said, "did not end") || strings.Count(said, "fastlloyd") != 1 {
			t.Errorf("the ledger: %q", said)
		}
	}
	file := filepath.Join(string(north), "state", "journal")
	whole, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, whole[:len(whole)-1], 0o600); err != nil {
		t.Fatal(err)
	}
	for range 2 { // it is left as it is
		if said := north.run(ctx, t, verify[0]...); !strings.Contains(said, "cut off") ||
			strings.Contains(said, "a whole journal") {
			t.Errorf("a journal that was cut off: %q", said)
		}
	}
}

// A party is told, and nobody else, how many of its records the study has no place for, or how many places it
// leaves without one.
func TestTermsTellMisfit(t *testing.T) {
	dir := machine(t.TempDir())
	dir.run(t.Context(), t, "study", "new", "--names", "North,South", "--method", "fastlloyd", "--k", "3",
		"--epsilon", "1", "--delta", "1e-6", "--public-n", "3000", "--columns", "a,b", "--bounds", "0:1,0:1")
	s, err := readStudy(filepath.Join(string(dir), "study.json"))
	if err != nil {
		t.Fatal(err)
	}
	for rows, want := range map[int]string{1500: "", 3 * 625: "", 3*625 + 1: "so 1 or more are left out",
		30000: "so 28125 or more are left out", 3 * 400: "", 3: "so 1197 of their places have no record"} {
		var said strings.Builder
		o := joinFlags{yes: true}
		err := o.agree(&study.Terms{Study: s, Roster: new(study.Roster), Rows: rows}, nil, &said)
		if err != nil {
			t.Fatal(err)
		}
		terms := said.String()
		fits(t, "terms", terms)
		terms = strings.Join(strings.Fields(terms), " ")
		if told := strings.Contains(terms, " here, so "); told != (want != "") || !strings.Contains(terms, want) {
			t.Errorf("%d records: %s", rows, terms)
		}
	}
}

// The terms of a study fit a terminal, and do not speak of a table that was dealt to its parties: each has a file.
func TestTermsOfAStudy(t *testing.T) {
	names := []string{"--names", "The hospital in the north,The hospital in the south,The hospital in the far east"}
	for _, method := range [][]string{{"--method", "fastlloyd"}, {"--method", "csulloyd", "--plain-sums"},
		{"--method", "fastlloyd", "--aggregator", "shares", "--server-names", "The registry of all three hospitals"},
		{"--method", "sketch", "--party-columns", "1,1,1", "--id", "patient"}} {
		words := slices.Concat([]string{"study", "new", "--k", "3", "--epsilon", "1", "--delta", "1e-6", "--public-n", "3000",
			"--columns", "the age in years,the weight in kilograms,the pressure in millimetres", "--bounds", "0:100"},
			names, method)
		said := machine(t.TempDir()).run(t.Context(), t, words...)
		fits(t, method[1], said)
		if strings.Contains(said, "dealt") {
			t.Errorf("%s: %s", method[1], said)
		}
	}
}

// A party of a private study may have no records, which a refusal would tell; that of a study without noise may not.
func TestPartyWithoutRecords(t *testing.T) {
	for _, budget := range [][]string{{"--method", "sulloyd", "--epsilon", "1"}, {"--method", "lloyd"}} {
		dir := machine(t.TempDir())
		dir.run(t.Context(), t, append([]string{"study", "new", "--names", "North,South", "--k", "3", "--public-n", "3000",
			"--columns", `a,"b, c"`, "--bounds", "0:1,0:1"}, budget...)...)
		s, err := readStudy(filepath.Join(string(dir), "study.json"))
		if err != nil {
			t.Fatal(err)
		}
		o := joinFlags{}
		o.data, o.missing = writeFile(t, "none.csv", "\"b, c\",d,a\n"), dataset.RefuseMissing.String()
		part, _, err := o.load(t.Context(), s, 1)
		if private := s.Epsilon > 0; private != (err == nil) || private && part.Points.N != 0 {
			t.Errorf("%v: %v", budget, err)
		}
	}
}

// An invitation is for its owner's eyes, also where a file that others can read or a link had its name.
func TestTokensAreSecret(t *testing.T) {
	dir := t.TempDir()
	file, link, open := filepath.Join(dir, "party1.token"), filepath.Join(dir, "party2.token"), filepath.Join(dir, "open")
	for _, f := range []string{file, open} {
		if err := os.WriteFile(f, []byte("before"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(open, link); err != nil {
		t.Fatal(err)
	}
	for _, f := range []string{file, link, filepath.Join(dir, "party3.token")} {
		if err := writeToken(f, "word"); err != nil {
			t.Fatal(err)
		}
		info, err := os.Lstat(f)
		if err != nil || info.Mode() != 0o600 {
			t.Errorf("%s has the mode %v, %v", f, info.Mode(), err)
		}
		if b, err := os.ReadFile(f); err != nil || string(b) != "word\n" {
			t.Errorf("%s has %q, %v", f, b, err)
		}
	}
	if b, err := os.ReadFile(open); err != nil || string(b) != "before" {
		t.Errorf("what the link led to has %q, %v", b, err)
	}
	if all, err := os.ReadDir(dir); err != nil || len(all) != 4 {
		t.Errorf("the folder has %v, %v", all, err)
	}
	if err := writeToken(filepath.Join(dir, "none", "x"), "word"); err == nil {
		t.Error("a folder that is not there")
	}

	m, tokens := machine(t.TempDir()), t.TempDir()
	m.run(t.Context(), t, "study", "new", "--names", "North,South", "--method", "sulloyd", "--k", "3", "--epsilon", "1",
		"--public-n", "3000", "--columns", "a,b", "--bounds", "0:1,0:1")
	s, err := readStudy(filepath.Join(string(m), "study.json"))
	if err != nil {
		t.Fatal(err)
	}
	eng, err := newEngine(1)
	if err != nil {
		t.Fatal(err)
	}
	defer eng.Close()
	c, err := study.NewCoordinator(study.Serve{Study: s, State: t.TempDir(), Listen: "127.0.0.1:0",
		Log: slog.New(slog.DiscardHandler), Engine: eng})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if err := os.WriteFile(filepath.Join(tokens, "party1.token"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := (&serveFlags{tokens: tokens}).invite(s, c, io.Discard); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"party1.token", "party2.token"} {
		if info, err := os.Lstat(filepath.Join(tokens, name)); err != nil || info.Mode() != 0o600 {
			t.Errorf("%s has the mode %v, %v", name, info.Mode(), err)
		}
	}
}

// The terms say how many parties a coordinator that breaks the rules needs on its side, where that is not all of them.
func TestTermsTellColluders(t *testing.T) {
	for _, x := range []struct {
		parties, least int
		more           []string
		want           string
	}{
		{3, 2, nil, "With 1 of the parties on its side"},
		{3, 3, nil, ""},
		{250, 200, nil, "With 60 of the parties on its side"},
		{250, 250, nil, "With 100 of the parties on its side"},
		{3, 2, []string{"--plain-sums"}, ""},
	} {
		var names []string
		for p := range x.parties {
			names = append(names, fmt.Sprint("h", p+1))
		}
		words := append([]string{"study", "new", "--names", strings.Join(names, ","), "--at-least", fmt.Sprint(x.least),
			"--method", "fastlloyd", "--k", "5", "--epsilon", "1", "--delta", "1e-6", "--public-n", "30000",
			"--columns", "a,b", "--bounds", "0:1,0:1"}, x.more...)
		said := machine(t.TempDir()).run(t.Context(), t, words...)
		told := strings.Contains(said, "of the parties on its side, a coordinator that breaks the rules")
		if told != (x.want != "") || !strings.Contains(said, x.want) {
			t.Errorf("%d of %d parties %v: %s", x.least, x.parties, x.more, said)
		}
	}
}

// Terms name what of a party's file takes part: the columns and their bounds, in the file or held by each.
func TestTermsTellColumns(t *testing.T) {
	for _, x := range []struct {
		words []string
		want  string
	}{
		{[]string{"--columns", "age,weight", "--bounds", "0:120,-5:300.5"}, "age 0 to 120, weight -5 to 300.5 The study"},
		{[]string{"--d", "2", "--bounds", "0:1"}, "column 1 0 to 1, column 2 0 to 1 The study"},
		{[]string{"--d", "33", "--bounds", "0:1"}, "column 30 0 to 1, and 3 more in the study file The study"},
	} {
		words := append([]string{"study", "new", "--names", "North,South", "--method", "fastlloyd", "--k", "5",
			"--epsilon", "1", "--delta", "1e-6", "--public-n", "30000"}, x.words...)
		said := machine(t.TempDir()).run(t.Context(), t, words...)
		if !strings.Contains(strings.Join(strings.Fields(said), " "), x.want) {
			t.Errorf("%v: %s", x.words, said)
		}
	}
	said := machine(t.TempDir()).run(t.Context(), t, "study", "new", "--names", "North,South", "--method", "sketch",
		"--k", "3", "--epsilon", "1", "--public-n", "3000", "--party-columns", "2,1", "--columns", "a,b,c",
		"--bounds", "0:1")
	if want := "c 0 to 1; North holds 2, South holds 1\n"; !strings.Contains(said, want) {
		t.Errorf("columns of parties: %s", said)
	}
}

// A folder for a study's result that cannot be written is refused before the party is known to anybody, and a result
// that cannot be written when the study has ended is printed whole.
func TestResultOfAStudyIsNotLost(t *testing.T) {
	dir := machine(t.TempDir())
	dir.run(t.Context(), t, "study", "new", "--names", "North,South", "--method", "fastlloyd", "--k", "1",
		"--epsilon", "1", "--delta", "1e-6", "--public-n", "3000", "--columns", "a,b", "--bounds", "0:1,0:1")
	file, state := writeFile(t, "f", "x"), filepath.Join(string(dir), "state")
	invitation := study.Invitation{URL: "tls://127.0.0.1:1", ID: "0123456789abcdef"}
	for _, out := range []string{filepath.Join(file, "result"), "/proc/none/result", "-"} {
		status, said, errOut := cohort(t, "join", "--invite", invitation.Token(), "--data",
			file, "--state", state, "--out", out, "--page", "127.0.0.1:0")
		_, err := os.Stat(state)
		if status == exitDone || said != "" || !strings.HasPrefix(errOut, "cohort: --out: ") || err == nil {
			t.Errorf("join --out %s: status %d, %q, %q", out, status, said, errOut)
		}
		status, said, errOut = cohort(t, "serve", filepath.Join(string(dir), "study.json"), "--listen", "127.0.0.1:0",
			"--state", state, "--out", out)
		if _, err = os.Stat(state); status == exitDone || said != "" || !strings.HasPrefix(errOut, "cohort: --out: ") ||
			err == nil {
			t.Errorf("serve --out %s: status %d, %q, %q", out, status, said, errOut)
		}
	}

	s, err := readStudy(filepath.Join(string(dir), "study.json"))
	if err != nil {
		t.Fatal(err)
	}
	r := &engine.Result{Method: "fastlloyd", N: 3000, D: 2, K: 1, Centroids: [][]float64{{0.25, 0.75}},
		Ledger: new(privacy.Ledger)}
	var out bytes.Buffer
	o := options{format: "text", out: filepath.Join(file, "result")}
	if err := deliverStudy(s, r, &o, &out); err == nil || !strings.HasPrefix(err.Error(), "--out: ") ||
		!strings.Contains(out.String(), `"centroids":[[0.25,0.75]]`) {
		t.Errorf("a folder that cannot be written: %v, %q", err, out.String())
	}
	o = options{format: "text", out: filepath.Join(string(dir), "result"), outFormat: "parquet"}
	if err := deliverStudy(s, r, &o, &out); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(o.out, centroidsParquet)); err != nil {
		t.Errorf("--out-format parquet: %v", err)
	}
}

// A party that has had its result and asks again, when its coordinator is gone, is told so on standard error: standard
// output has no result, and the ledger file no second run.
func TestResultOfAStudyHadBefore(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	coordinator := machine(t.TempDir())
	coordinator.run(ctx, t, "study", "new", "--names", "North,South", "--method", "sulloyd", "--k", "2", "--epsilon", "1",
		"--public-n", "40", "--columns", "a", "--bounds", "0:1")
	out, served := coordinator.start(ctx, t, nil, []string{"serve", "study.json", "--listen", "127.0.0.1:0"})
	var joins [][]string
	var waits []func() (string, error)
	for lines := bufio.NewScanner(out); len(joins) < 2 && lines.Scan(); {
		token := strings.TrimSpace(lines.Text())
		if !strings.HasPrefix(token, "cohort2-") {
			continue
		}
		dir := t.TempDir()
		joins = append(joins, []string{"join", "--invite", token, "--data", writeFile(t, "mine.csv", "a\n0.1\n0.9\n"),
			"--state", filepath.Join(dir, "state"), "--ledger", filepath.Join(dir, "ledger"), "--yes"})
		_, wait := coordinator.start(ctx, t, nil, joins[len(joins)-1])
		waits = append(waits, wait)
	}
	for _, wait := range append(waits, served) {
		if _, err := wait(); err != nil {
			t.Fatal(err)
		}
	}
	for _, words := range joins {
		ledger := words[slices.Index(words, "--ledger")+1]
		paid, err := os.ReadFile(ledger)
		if err != nil {
			t.Fatal(err)
		}
		status, said, errOut := cohort(t, words...)
		if status != exitDone || said != "" || !strings.Contains(errOut, "This party has had its result before.") {
			t.Errorf("status %d, %q, %q", status, said, errOut)
		}
		if again, err := os.ReadFile(ledger); err != nil || !bytes.Equal(again, paid) {
			t.Errorf("the ledger file has changed: %v", err)
		}
	}
}

// A folder that a process uses is refused before its page's control file is touched.
func TestPageOfAFolderInUse(t *testing.T) {
	state := t.TempDir()
	j, err := journal.Open(filepath.Join(state, study.JournalName))
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	control := filepath.Join(state, "control.json")
	if err := os.WriteFile(control, []byte("of the first"), 0o600); err != nil {
		t.Fatal(err)
	}
	v := study.Invitation{URL: "tls://127.0.0.1:9", ID: "0123456789abcdef"}
	cmd := newJoinCommand()
	cmd.SetArgs([]string{"--invite", v.Token(), "--data", "x.csv", "--state", state, "--page", "127.0.0.1:0"})
	cmd.SetOut(io.Discard)
	cmd.SetErr(io.Discard)
	if err := cmd.ExecuteContext(t.Context()); err == nil || !strings.Contains(err.Error(), "in use") {
		t.Errorf("a folder in use: %v", err)
	}
	if b, err := os.ReadFile(control); err != nil || string(b) != "of the first" {
		t.Errorf("the control file of the process that has the folder: %q, %v", b, err)
	}
}
