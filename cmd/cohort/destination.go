package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/cohort-engine/cohort/internal/fault"
)

// destination is where a file that a flag names is written.
type destination struct {
	flag, path string
	// whole is the file that takes the new one's place, after links; empty for what is no file of its own (a pipe, a
	// device, standard output), which is written as it stands.
	whole string
}

// destinationOf looks at where a path leads, and refuses a folder and any of the files that are read besides.
func destinationOf(flag, path string, read ...string) (destination, error) {
	d := destination{flag: flag, path: path, whole: path}
	if path == "-" {
		return d, fault.Request(flag, `"-" names no file`, "name a file, or /dev/stdout")
	}
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return d, nil
	case err != nil:
		return d, unwritable(flag, path, err)
	case info.IsDir():
		return d, fault.Request(flag, path+" is a folder", "name a file")
	}
	for _, name := range read {
		if other, err := os.Stat(name); err == nil && os.SameFile(info, other) {
			return d, fault.Request(flag, path+" is a file that is read or written besides", "name another file")
		}
	}
	if stdout, err := os.Stdout.Stat(); err == nil && os.SameFile(info, stdout) || !info.Mode().IsRegular() {
		d.whole = ""
		return d, nil
	}
	if d.whole, err = filepath.EvalSymlinks(path); err != nil {
		return d, unwritable(flag, path, err)
	}
	return d, nil
}

// nowhere tells whether a command's output is standard output and that is the null device, which a program also finds
// in the place of a standard output that is closed.
func nowhere(out io.Writer) bool {
	if s, ok := out.(*sink); ok {
		out = s.Writer
	}
	if out != io.Writer(os.Stdout) {
		return false
	}
	stdout, err := os.Stdout.Stat()
	if err != nil {
		return true
	}
	null, err := os.Stat(os.DevNull)
	return err == nil && os.SameFile(stdout, null)
}

// probe makes and removes a file where the destination's will be.
func (d destination) probe() error {
	if d.whole == "" {
		return nil
	}
	draft, err := newDraft(filepath.Dir(d.whole))
	if err != nil {
		return unwritable(d.flag, d.path, err)
	}
	draft.close()
	return nil
}

// write writes the file under a temporary name and renames it, so that a reader never sees half of it.
func (d destination) write(write func(io.Writer) error) error {
	f, done, err := d.begin()
	if err != nil {
		return err
	}
	err = write(f)
	return done(err)
}

// begin opens the file; done ends it, and keeps it if nothing has failed.
func (d destination) begin() (f *os.File, done func(error) error, err error) {
	if d.whole != "" {
		return d.beginDraft()
	}
	stdout, e := os.Stdout.Stat()
	if info, err := os.Stat(d.path); err == nil && e == nil && os.SameFile(info, stdout) {
		return os.Stdout, d.failed, nil
	}
	if f, err = os.OpenFile(d.path, os.O_WRONLY, 0); err != nil {
		return nil, nil, d.failed(err)
	}
	return f, func(err error) error { return d.failed(errors.Join(err, f.Close())) }, nil
}

// beginDraft is begin of a file that takes its place when it is whole.
func (d destination) beginDraft() (f *os.File, done func(error) error, err error) {
	draft, err := newDraft(filepath.Dir(d.whole))
	if err != nil {
		return nil, nil, d.failed(err)
	}
	if f, err = os.OpenFile(draft.path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600); err != nil {
		draft.close()
		return nil, nil, d.failed(err)
	}
	return f, func(err error) error {
		defer draft.close()
		if err = errors.Join(err, f.Chmod(0o644), f.Close()); err == nil {
			err = os.Rename(draft.path, d.whole)
		}
		return d.failed(err)
	}, nil
}

func (d destination) failed(err error) error {
	if err == nil {
		return nil
	}
	return unwritable(d.flag, d.path, err)
}

// writeWhole writes a file that a flag names, whole or not at all, and none of those that were read.
func writeWhole(flag, path string, write func(io.Writer) error, read ...string) error {
	d, err := destinationOf(flag, path, read...)
	if err != nil {
		return err
	}
	return d.write(write)
}

// writable refuses what cannot be written where a flag says, before anything is done.
func writable(flag, path string, read ...string) error {
	d, err := destinationOf(flag, path, read...)
	if err != nil {
		return err
	}
	return d.probe()
}

func unwritable(flag, path string, err error) error {
	return fault.Failed(flag, fmt.Sprintf("%s cannot be written (%v)", path, err), mendWriting(err), err)
}

// mendWriting is what to do about a file that cannot be written.
func mendWriting(err error) string {
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		return "free some space, or name another place"
	}
	return "check the path and its rights"
}

// readFiles are the files that a command reads, which it must not write.
func (o *options) readFiles() []string {
	return append(strings.Split(o.data, ","), o.data, o.labels, o.boundsFile, o.weights, o.start, o.ledger, o.ledgerKey)
}
