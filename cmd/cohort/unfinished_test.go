package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// What a run that was killed has left beside its folder is taken away by the next one that writes there, and what a
// run that goes on has there stays.
func TestKilledRunsLeaveNothingForLong(t *testing.T) {
	dir := t.TempDir()
	names := func() (found []string) {
		entries, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			found = append(found, e.Name())
		}
		return found
	}
	args := []string{"run", "--data", writeFile(t, "rows.csv", csvOf(50, 0)), "--k", "2", "--epsilon", "1", "--bounds",
		"0:100", "--out", filepath.Join(dir, "result")}
	killed := exec.Command(os.Args[0], append(args, "--runs", "1000000")...)
	killed.Env = append(os.Environ(), commandVar+"=1")
	if err := killed.Start(); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(time.Minute); len(names()) < 2; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%v is there of a run", names())
		}
	}
	time.Sleep(50 * time.Millisecond)
	killed.Process.Kill()
	killed.Wait()
	if len(names()) != 2 {
		t.Fatalf("%v is left of what was killed", names())
	}
	alive, err := newDraft(dir) // and takes away what was left
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(alive.path, 0o700); err != nil {
		t.Fatal(err)
	}
	own := []string{unfinished + "notes", unfinished + "5"} // somebody's
	for _, name := range own {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	report := filepath.Join(dir, "report.html")
	if status, _, errOut := cohort(t, append(args, "--report", report)...); status != exitDone {
		t.Fatal(errOut)
	}
	want := append(own, filepath.Base(alive.path), filepath.Base(alive.lock.Name()), "report.html", "result")
	slices.Sort(want)
	if got := names(); !slices.Equal(got, want) {
		t.Errorf("%v is there, want %v", got, want)
	}
	alive.close()
	if got := names(); len(got) != 4 {
		t.Errorf("%v is there after the draft", got)
	}
}

// A folder that two runs write at once has the files of one of them.
func TestRunsAtOnceShareNoFolder(t *testing.T) {
	for try := range 20 {
		dir := filepath.Join(t.TempDir(), "result")
		if try%2 == 1 { // one that is there
			if err := os.Mkdir(dir, 0o700); err != nil {
				t.Fatal(err)
			}
		}
		var wait sync.WaitGroup
		begin := make(chan bool)
		for _, who := range []string{"one", "another", "third"} {
			f, err := openFolder(dir, 1)
			if err != nil {
				t.Fatal(err)
			}
			for _, name := range resultFiles {
				if err := os.WriteFile(filepath.Join(f.draft.path, name), []byte(who), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if err := os.Remove(filepath.Join(f.draft.path, reserve)); err != nil {
				t.Fatal(err)
			}
			wait.Go(func() {
				defer f.discard()
				<-begin
				if err := f.place(); err != nil {
					t.Error(err)
				}
			})
		}
		close(begin)
		wait.Wait()
		var all []string
		for _, name := range resultFiles {
			all = append(all, readText(t, filepath.Join(dir, name)))
		}
		if len(slices.Compact(all)) != 1 {
			t.Fatalf("the files are of %s", strings.Join(all, ", "))
		}
		for _, folder := range []string{dir, filepath.Dir(dir)} {
			if left, _ := filepath.Glob(filepath.Join(folder, unfinished+"*")); left != nil {
				t.Errorf("%v is left", left)
			}
		}
	}
}
