package main

import (
	"os"
	"path/filepath"
	"strings"

	"github.com/cohort-engine/cohort/internal/filelock"
)

// unfinished is what names of files and folders begin with that runs have not finished.
const unfinished = ".cohort-"

// lockEnding is what the name of a draft's lock has behind the draft's own.
const lockEnding = ".lock"

// draft is a file or folder under a temporary name beside its place, until it takes that. Its lock, a file of its own,
// is held until then: what a process that was killed has left is known by a lock that nobody holds.
type draft struct {
	path string
	lock *os.File
}

// newDraft names a draft in a folder, and removes those there that no process holds any longer.
func newDraft(folder string) (*draft, error) {
	removeAbandoned(folder)
	return holdDraft(func() (*os.File, error) { return os.CreateTemp(folder, unfinished+"*"+lockEnding) })
}

// holdPlace waits until this process alone brings files into a folder.
func holdPlace(folder string) (*draft, error) {
	return holdDraft(func() (*os.File, error) {
		return os.OpenFile(filepath.Join(folder, unfinished+"place"+lockEnding), os.O_RDWR|os.O_CREATE, 0o600)
	})
}

// holdDraft holds a lock that open opens or makes.
func holdDraft(open func() (*os.File, error)) (*draft, error) {
	for tries := 0; ; tries++ {
		lock, err := open()
		if err != nil {
			return nil, err
		}
		_ = filelock.Wait(lock) // a file system without locks has nothing removed
		if isStill(lock) || tries == 100 {
			return &draft{strings.TrimSuffix(lock.Name(), lockEnding), lock}, nil
		}
		lock.Close() // it was removed before it was held
	}
}

// close removes the draft, if it has not taken its place, and what it was held by.
func (d *draft) close() {
	os.RemoveAll(d.path)
	d.lock.Close()
	os.Remove(d.lock.Name())
}

// isStill tells whether the file is the one that has its name.
func isStill(f *os.File) bool {
	held, err := f.Stat()
	if err != nil {
		return false
	}
	named, err := os.Stat(f.Name())
	return err == nil && os.SameFile(held, named)
}

// removeAbandoned removes the drafts in a folder whose locks no process holds.
func removeAbandoned(folder string) {
	entries, _ := os.ReadDir(folder)
	for _, e := range entries {
		name := e.Name()
		if !e.Type().IsRegular() || !strings.HasPrefix(name, unfinished) || !strings.HasSuffix(name, lockEnding) {
			continue
		}
		path := filepath.Join(folder, name)
		lock, err := os.OpenFile(path, os.O_RDWR, 0)
		if err != nil {
			continue // another user's
		}
		if filelock.Try(lock) == nil && isStill(lock) {
			(&draft{strings.TrimSuffix(path, lockEnding), lock}).close()
			continue
		}
		lock.Close()
	}
}
