package dataset

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/cohort-engine/cohort/internal/fault"
)

// ChooseColumns resolves a choice of some of width columns, items separated by
// commas: names of the header, numbers from 1, ranges 2-5 of numbers, ranges
// first:last of either, and any of these after a minus sign to leave columns out.
// Exclusions alone leave out of all columns. A name that is an item as it stands
// is taken as that name; one that several columns have is refused. The result has
// indices from 0, in the order of the choice; an empty choice is every column.
func ChooseColumns(choice string, names []string, width int) ([]int, error) {
	return chooseColumns("columns", choice, names, width)
}

// chooseColumns is ChooseColumns for what errors name so.
func chooseColumns(what, choice string, names []string, width int) ([]int, error) {
	wrong := func(why string) error {
		do := fmt.Sprintf("give names of the header or numbers 1 to %d, separated by commas; -NAME leaves one out", width)
		return fault.Request(what+" "+strconv.Quote(choice), why, do)
	}
	byName := make(map[string]int, len(names))
	for i, name := range names {
		if _, twice := byName[name]; twice {
			i = severalColumns
		}
		byName[name] = i
	}
	var chosen, without []int
	included := false
	if strings.TrimSpace(choice) != "" {
		for _, item := range strings.Split(choice, ",") {
			item = strings.TrimSpace(item)
			lo, hi, err := columnRange(item, byName, width)
			rest, minus := strings.CutPrefix(item, "-")
			if err != nil && minus {
				if lo, hi, err = columnRange(strings.TrimSpace(rest), byName, width); err == nil {
					for c := lo; c <= hi; c++ {
						without = append(without, c)
					}
					continue
				}
			}
			if err != nil {
				return nil, wrong(err.Error())
			}
			included = true
			for c := lo; c <= hi; c++ {
				if slices.Contains(chosen, c) {
					return nil, wrong(fmt.Sprintf("column %d is named twice", c+1))
				}
				chosen = append(chosen, c)
			}
		}
	}
	if !included {
		for c := range width {
			chosen = append(chosen, c)
		}
	}
	chosen = slices.DeleteFunc(chosen, func(c int) bool { return slices.Contains(without, c) })
	if len(chosen) == 0 {
		return nil, wrong("no column is left")
	}
	return chosen, nil
}

// severalColumns stands for the index of a name that several columns have.
const severalColumns = -1

// columnNamed resolves a name of the header.
func columnNamed(item string, byName map[string]int) (c int, ok bool, err error) {
	if c, ok = byName[item]; ok && c == severalColumns {
		err = fmt.Errorf("%q is the name of several columns, so that it takes a number", item)
	}
	return c, ok, err
}

// columnRange resolves one item to the columns lo to hi, from 0.
func columnRange(item string, byName map[string]int, width int) (lo, hi int, err error) {
	if c, ok, err := columnNamed(item, byName); ok {
		return c, c, err
	}
	for _, mark := range []string{":", "-"} {
		first, last, ok := strings.Cut(item, mark)
		if !ok || first == "" {
			continue
		}
		if lo, err = columnNumber(first, byName, width, mark == ":"); err == nil {
			hi, err = columnNumber(last, byName, width, mark == ":")
		}
		if err == nil && hi < lo {
			err = fmt.Errorf("%q is not a range of columns", item)
		}
		return lo, hi, err
	}
	lo, err = columnNumber(item, byName, width, true)
	return lo, lo, err
}

// columnNumber resolves a number from 1, or a name, to an index from 0.
func columnNumber(item string, byName map[string]int, width int, named bool) (int, error) {
	item = strings.TrimSpace(item)
	if named {
		if c, ok, err := columnNamed(item, byName); ok {
			return c, err
		}
	}
	c, err := strconv.Atoi(item)
	if err != nil {
		return 0, fmt.Errorf("%q is neither a name of the header nor a number", item)
	}
	if c < 1 || c > width {
		return 0, fmt.Errorf("there is no column %d among %d", c, width)
	}
	return c - 1, nil
}

// oneColumn resolves the choice of a single column; what names its flag.
func oneColumn(what, choice string, names []string, width int) (int, error) {
	chosen, err := chooseColumns(what, choice, names, width)
	if err == nil && len(chosen) != 1 {
		err = fault.Request(what+" "+strconv.Quote(choice), "is not one column", "name one column")
	}
	if err != nil {
		return 0, err
	}
	return chosen[0], nil
}
