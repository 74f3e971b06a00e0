package fault

import (
	"sort"
	"strings"
)

// Meant is " (did you mean a or b?)" with the names that are near to a word, or empty.
func Meant(word string, names []string, prefix ...string) string {
	near := nearName(word, names)
	if len(near) == 0 {
		return ""
	}
	with := strings.Join(prefix, "")
	return " (did you mean " + with + strings.Join(near, " or "+with) + "?)"
}

// nearName returns up to three names that are near to a word, the nearest first: those that it abbreviates by three
// letters or more, and those that are made of it by changing up to a third of its letters, but for those that are four
// times as far as the nearest.
func nearName(word string, names []string) []string {
	word = strings.ToLower(word)
	far := func(name string) int { return distance(word, strings.ToLower(name)) }
	var near []string
	for _, name := range names {
		short := abbreviates(word, strings.ToLower(name))
		if short && len(word) > 2 || !short && far(name) <= changeCost*((len(word)+1)/3) {
			near = append(near, name)
		}
	}
	sort.SliceStable(near, func(a, b int) bool { return far(near[a]) < far(near[b]) })
	for i := range near {
		if i == 3 || far(near[i]) > 4*far(near[0]) {
			return near[:i]
		}
	}
	return near
}

// changeCost is the cost of a changed letter where a left-out one costs 1.
const changeCost = 4

// distance is the edit distance of two names, letters that changed places being one change, where b is cheap to
// reach if a merely leaves letters out, as an abbreviation does.
func distance(a, b string) int {
	if abbreviates(a, b) {
		return len(b) - len(a)
	}
	rows := make([][]int, len(a)+1)
	for i := range rows {
		rows[i] = make([]int, len(b)+1)
		for j := range rows[i] {
			switch {
			case i == 0 || j == 0:
				rows[i][j] = i + j
			case a[i-1] == b[j-1]:
				rows[i][j] = rows[i-1][j-1]
			default:
				rows[i][j] = 1 + min(rows[i-1][j-1], rows[i-1][j], rows[i][j-1])
			}
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				rows[i][j] = min(rows[i][j], rows[i-2][j-2]+1)
			}
		}
	}
	return changeCost * rows[len(a)][len(b)]
}

// abbreviates reports whether a is b without some of its letters, and stands in it or begins as it does.
func abbreviates(a, b string) bool {
	if a == "" || b == "" || a[0] != b[0] {
		return strings.Contains(b, a)
	}
	for j := 0; j < len(b) && a != ""; j++ {
		if a[0] == b[j] {
			a = a[1:]
		}
	}
	return a == ""
}
