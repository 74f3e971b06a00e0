package fault

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"
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
		err.Error() != `network: "man" is unknown (did you mean lan or WAN?): choose one of lan, WAN` {
		t.Errorf("error is %v", err)
	}
}

func TestNear(t *testing.T) {
	names := []string{"hybrid", "k", "n", "lsf", "", "sketch", "sketch-basic", "fastlloyd-table3"} // a column has no name
	for word, want := range map[string]string{"hybird": "hybrid", "HYBRD": "hybrid", "skecth": "sketch",
		"sketch-": "sketch or sketch-basic", "lfs": "lsf", "table3": "fastlloyd-table3", "kk": "k", "l": "", "": "", "x": "",
		"ktc": "", "kmeans": "", "lloyd": "fastlloyd-table3"} {
		if got := strings.Join(nearName(word, names), " or "); got != want {
			t.Errorf("%q: got %q, want %q", word, got, want)
		}
	}
	if got := nearName("metod", []string{"max-points-per-centroid", "method"}); !slices.Equal(got, []string{"method"}) {
		t.Errorf("metod may be %q", got)
	}
	if got, want := Meant("--kk", nil, "--"), ""; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got, want := Meant("lsff", names, "--"), " (did you mean --lsf?)"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestVisible(t *testing.T) {
	for text, want := range map[string]string{
		"a\x1b[31mred\x07\r\n": `a\x1b[31mred\a\r` + "\n",
		"\u009b31m \u202eabc":  `\u009b31m \u202eabc`,
		"Größe, 年齢 '\"\\":      "Größe, 年齢 '\"\\",
		"latin \xe9":           "latin \xe9",
	} {
		if got := Visible(text); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
	if got := Failed("\x1b[2J", "b\nc", "\x1b]0;x\x07", nil).Error(); got != `\x1b[2J: b c: \x1b]0;x\a` {
		t.Errorf("got %q", got)
	}
}

func TestCount(t *testing.T) {
	for _, c := range []struct {
		n           int
		thing, want string
	}{{0, "cell", "0 cells"}, {1, "cell", "1 cell"}, {2, "cell", "2 cells"}, {1, "party", "1 party"},
		{3, "party", "3 parties"}, {4, "way", "4 ways"}, {-1, "record", "-1 records"}} {
		if got := Count(c.n, c.thing); got != c.want {
			t.Errorf("%d of %q: %q, want %q", c.n, c.thing, got, c.want)
		}
	}
}

// Options lose their dashes wherever they stand in a text, and nothing else does.
func TestPlain(t *testing.T) {
	for message, want := range map[string]string{
		"--epsilon: is 1: leave --epsilon out":      "epsilon: is 1: leave epsilon out",
		"the records are few (tighten --bounds)":    "the records are few (tighten bounds)",
		"keep all pairs (--keep-pairs), or use -- ": "keep all pairs (keep-pairs), or use -- ",
		"a--b -- 1 --1 -":                           "a--b -- 1 --1 -",
		"x: is empty: correct the cell, or leave the column out with --columns, or choose what to do with --missing": "" +
			"x: is empty: correct the cell, or leave the column out",
		"state the bounds with --bounds or --bounds-file":                    "state the bounds",
		"f: STRING is no number: leave it out, such as with --columns -name": "f: STRING is no number: leave it out",
		"f: \"1,5\" is not a number: give --decimal-comma if numbers are written 1,5, or correct the cell": "" +
			"f: \"1,5\" is not a number: write numbers with a point, or correct the cell",
		"": "",
	} {
		if got := Plain(message); got != want {
			t.Errorf("%q, not %q", got, want)
		}
		err := OfLibrary(Request(message, "", ""))
		if err.Error() != want || !IsRequest(err) {
			t.Errorf("%q as an error is %v", message, err)
		}
	}
}

func TestCut(t *testing.T) {
	for most, want := range []string{"", "a", "a", "aü", "aü", "aü", "aü年", "aü年"} {
		if got := Cut("aü年", most); got != want {
			t.Errorf("%d bytes: %q, not %q", most, got, want)
		}
	}
}
