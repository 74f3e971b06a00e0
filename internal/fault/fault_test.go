package fault

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"testing"
)

func TestText(t *testing.T) {
	err := Failed("data.csv", "row 3\nhas 2 cells", "mend the row", io.ErrUnexpectedEOF)
	if got, want := err.Error(), "data.csv: row 3 has 2 cells: mend the row"; got != want {
		t.Errorf("text is %q, want %q", got, want)
	}
	if !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Error("the cause is lost")
	}
	missing := &fs.PathError{Op: "open", Path: "data.csv", Err: fs.ErrNotExist}
	for path, want := range map[string]string{
		"data.csv": "data.csv: file does not exist: check the path",
		"folder":   "folder: open data.csv: file does not exist: check the path",
	} {
		if err := File(path, "check the path", missing); err.Error() != want || !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("error is %v, want %q", err, want)
		}
	}
	if got, want := Range("k", 0, "at least 1").Error(), "k: is 0, must be at least 1"; got != want {
		t.Errorf("text is %q, want %q", got, want)
	}
}

func TestIsRequest(t *testing.T) {
	if !IsRequest(fmt.Errorf("run: %w", Request("k", "is 0", ""))) {
		t.Error("a wrapped wrong request is not recognised")
	}
	if IsRequest(Failed("f", "broken", "", nil)) || IsRequest(io.EOF) || IsRequest(nil) {
		t.Error("a failed run is taken for a wrong request")
	}
}

func TestNamed(t *testing.T) {
	all := []string{"lan", "WAN"}
	self := func(s string) string { return s }
	if got, err := Named("network", "wan", all, self); err != nil || got != "WAN" {
		t.Errorf("got %q, %v", got, err)
	}
	if _, err := Named("network", "man", all, self); !IsRequest(err) ||
		err.Error() != `network: "man" is unknown: choose one of lan, WAN` {
		t.Errorf("error is %v", err)
	}
}
