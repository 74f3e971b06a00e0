package table

import (
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

// A table in 60 columns says what the one without a limit says: each cell stands
// under its heading in some part, no line is longer.
func TestTablesFoldToTheWidth(t *testing.T) {
	g := Table{Columns: []string{"set", "protocol", "time", "Paper, published", "one worker", "loss", "seeds", "note"},
		Of:      []string{"", "", "", "time", "", "", "", ""},
		Numeric: []bool{false, false, true, true, true, true, false, false},
		Rows: [][]string{
			{"timesynth_k2_d2_n10000", "fastlloyd, published", "114 µs (p99 4.8 ms)", "3.23 ms ± 230 µs (28x)", "114 µs",
				"0.5", "1..4", "three of the six runs have no assignment within the constraints"},
			{"s1", "sulloyd", "2 ms", "", "3 ms", "0.25", "1..4", ""},
		}}
	wide := g.Lines(0)
	if len(wide) != 3 || !strings.Contains(wide[1], "within the constraints") {
		t.Errorf("without a limit:\n%s", strings.Join(wide, "\n"))
	}
	for _, width := range []int{60, 80, 100, 300} {
		lines := g.Lines(width)
		all := strings.Join(lines, "\n")
		for _, line := range lines {
			if utf8.RuneCountInString(line) > width {
				t.Errorf("width %d: %q has %d columns", width, line, utf8.RuneCountInString(line))
			}
		}
		for _, cell := range []string{"114 µs (p99 4.8 ms)", "3.23 ms ± 230 µs (28x)", "0.25", "1..4"} {
			if !strings.Contains(all, cell) {
				t.Errorf("width %d lacks %q:\n%s", width, cell, all)
			}
		}
		words := strings.Fields(all)
		for _, w := range strings.Fields(strings.Join(slices.Concat(g.Columns, g.Rows[0]), " ")) {
			if !slices.Contains(words, w) {
				t.Errorf("width %d lacks the word %q:\n%s", width, w, all)
			}
		}
	}
	// A reference apart from its value says whose it is.
	if narrow := strings.Join(g.Lines(60), "\n"); !strings.Contains(narrow, "time:") {
		t.Errorf("the reference stands alone:\n%s", narrow)
	}
}

// A table of text alone is printed too where it is wider than the lines.
func TestTextAloneFolds(t *testing.T) {
	g := Table{Columns: []string{"name", "what", "why"}, Numeric: make([]bool, 3), Rows: [][]string{
		{"first", "a long text that does not fit", "because of another one beside it"}}}
	lines := strings.Join(g.Lines(40), "\n")
	for _, word := range []string{"first", "does not", "because"} {
		if !strings.Contains(lines, word) {
			t.Errorf("%q is missing in\n%s", word, lines)
		}
	}
}

// Columns stand below each other on a terminal, where a wide character takes two of its columns and a joined one none.
func TestWideCharacters(t *testing.T) {
	for text, want := range map[string]int{"": 0, "age": 3, "größe": 5, "e\u0301te\u0301": 3, "年齢": 4, "👩‍👩‍👧 a": 4} {
		if got := Width(text); got != want {
			t.Errorf("%q: %d columns, want %d", text, got, want)
		}
	}
	for _, c := range []struct {
		text string
		most int
		want string
	}{{"年齢", 4, "年齢"}, {"年齢と体重", 6, "年齢…"}, {"年齢と体重", 7, "年齢と…"}, {"weights", 4, "wei…"},
		{"e\u0301te\u0301s", 3, "e\u0301t…"}} {
		if got := Clip(c.text, c.most); got != c.want || Width(got) > c.most {
			t.Errorf("%q in %d columns: %q, want %q", c.text, c.most, got, c.want)
		}
	}
	g := Table{Columns: []string{"", "年齢", "e\u0301te\u0301"}, Numeric: []bool{true, true, true}, Right: true,
		Rows: [][]string{{"1", "20.5", "7"}, {"2", "3", "12.25"}}}
	for _, width := range []int{0, 80} {
		lines := g.Lines(width)
		for _, line := range lines {
			if Width(line) != Width(lines[0]) {
				t.Errorf("width %d: the columns are shifted:\n%s", width, strings.Join(lines, "\n"))
			}
		}
	}
}
