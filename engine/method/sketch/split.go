package sketch

import (
	"fmt"
	"slices"
	"sort"
	"strings"

	"github.com/cohort-engine/cohort/engine/dataset"
	"github.com/cohort-engine/cohort/internal/fault"
)

// Split says which columns each party holds, by index from 0.
type Split [][]int

// presets are the splits of Sketch-V, appendix B.4, on the column order of its
// data: Letter as printed (there 1-based); Taxi by the position in its Table 3
// (pickup_datetime, dropoff_datetime, passenger_count, trip_duration,
// pickup_longitude, pickup_latitude, dropoff_longitude, dropoff_latitude).
var presets = map[string]map[int]Split{
	"letter": {
		2: {{0, 2, 5, 6, 8, 11, 13, 14}, {1, 3, 4, 7, 9, 10, 12, 15}},
		4: {{0, 5, 8, 13}, {1, 4, 9, 15}, {2, 6, 11, 14}, {3, 7, 10, 12}},
	},
	"taxi": {
		2: {{0, 4, 5, 2}, {1, 6, 7, 3}},
		4: {{6, 4}, {2, 1}, {5, 7}, {0, 3}},
	},
}

// EqualSplit gives contiguous ranges of columns as equal as possible, the
// larger ones first.
func EqualSplit(columns, parties int) Split {
	s := make(Split, parties)
	next := 0
	for l := range s {
		for range columns/parties + min(1, max(0, columns%parties-l)) {
			s[l] = append(s[l], next)
			next++
		}
	}
	return s
}

// IsPreset reports whether text names a preset split.
func IsPreset(text string) bool { return presets[strings.ToLower(strings.TrimSpace(text))] != nil }

// ParseSplit reads a split: parties separated by ";", the columns of each as
// dataset.ChooseColumns has them, by number from 1, range or name; or the name of a
// preset, "letter" or "taxi", for 2 or 4 parties; or "" for equal contiguous ranges.
// names may be nil.
func ParseSplit(text string, parties, columns int, names []string) (Split, error) {
	text = strings.TrimSpace(text)
	if text == "" {
		if err := checkParties(parties, columns); err != nil {
			return nil, err
		}
		return EqualSplit(columns, parties), nil
	}
	if byParties, ok := presets[strings.ToLower(text)]; ok {
		s, ok := byParties[parties]
		if !ok {
			return nil, fault.Request("split", fmt.Sprintf("the preset %q has 2 or 4 parties, not %d", text, parties),
				"use --parties 2 or 4, or list the columns")
		}
		return s, s.Check(columns)
	}
	split, err := dataset.ParseColumnSplit(text, columns, names)
	if err != nil {
		return nil, err
	}
	s := Split(split)
	if parties != 0 && parties != len(s) {
		return nil, fault.Request("split", fmt.Sprintf("lists %d parties, but --parties is %d", len(s), parties),
			"make them agree")
	}
	return s, s.Check(columns)
}

func checkParties(parties, columns int) error {
	if parties < 2 {
		return fault.Range("parties", parties, "at least 2: one party alone needs no vertical protocol")
	}
	if parties > columns {
		return fault.Range("parties", parties, fmt.Sprintf("at most the number of columns, %d", columns))
	}
	return nil
}

// Check verifies that there are at least two parties and that every column in
// [0, columns) belongs to exactly one.
func (s Split) Check(columns int) error {
	if len(s) < 2 {
		return checkParties(len(s), max(columns, 2))
	}
	owner := make([]int, columns)
	for l, party := range s {
		if len(party) == 0 {
			return fault.Request("split", fmt.Sprintf("party %d holds no column", l+1), "give every party at least one")
		}
		for _, c := range party {
			if c < 0 || c >= columns {
				return fault.Request("split", fmt.Sprintf("party %d lists column %d", l+1, c+1),
					fmt.Sprintf("use columns 1 to %d", columns))
			}
			if owner[c] != 0 {
				return fault.Request("split", fmt.Sprintf("column %d is in party %d and in party %d", c+1, owner[c], l+1),
					"give every column to one party")
			}
			owner[c] = l + 1
		}
	}
	for c, o := range owner {
		if o == 0 {
			return fault.Request("split", fmt.Sprintf("column %d is in no party", c+1), "give every column to one party")
		}
	}
	return nil
}

// canonical returns the split with each party's columns in increasing order and
// the parties in the order of their first columns, so that the order in which
// parties and columns are listed does not change a result.
func (s Split) canonical() Split {
	c := make(Split, len(s))
	for l, party := range s {
		c[l] = slices.Sorted(slices.Values(party))
	}
	sort.Slice(c, func(a, b int) bool { return c[a][0] < c[b][0] })
	return c
}
