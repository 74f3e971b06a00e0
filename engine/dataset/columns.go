package dataset

import (
	"cmp"
	"errors"
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
// is taken as that name; one with commas may be in double quotes, as QuoteColumns
// writes it, and one that several columns have is refused. The result has
// indices from 0, in the order of the choice; an empty choice is every column.
func ChooseColumns(choice string, names []string, width int) ([]int, error) {
	return chooseColumns("columns", choice, names, width)
}

// Choose resolves the options' choice of columns of a file.
func (o *ReadOptions) Choose(names []string, width int) ([]int, error) {
	if o.Columns == "" && len(o.Named) > 0 && len(names) > 0 {
		if chosen, err := ChooseColumns(QuoteColumns(o.Named), names, width); err == nil {
			return chosen, nil
		}
	}
	return ChooseColumns(o.Columns, names, width)
}

// QuoteColumns is the choice of the columns with these names.
func QuoteColumns(names []string) string {
	items := slices.Clone(names)
	for i, name := range items {
		if strings.Contains(name, ",") || strings.HasPrefix(name, `"`) {
			items[i] = `"` + strings.ReplaceAll(name, `"`, `""`) + `"`
		}
	}
	return strings.Join(items, ",")
}

// ColumnNames are the names in a list of nothing else, which may be in double quotes.
func ColumnNames(list string) (names []string) {
	for _, cell := range splitCells(nil, []byte(list), ',') {
		names = append(names, string(cell))
	}
	return names
}

// chooseColumns is ChooseColumns for what errors name so.
func chooseColumns(what, choice string, names []string, width int) ([]int, error) {
	wrong := func(why string) error {
		do := fmt.Sprintf("give names of the header or numbers 1 to %d, separated by commas; -NAME leaves one out", width)
		return fault.Request(what+" "+strconv.Quote(choice), why, do)
	}
	h := newHeader(names, width)
	var chosen, without []int
	included := false
	parts := strings.Split(choice, ",")
	if strings.TrimSpace(choice) == "" {
		parts = nil
	}
	for len(parts) > 0 {
		lo, hi, minus, length, err := h.next(parts)
		if err != nil {
			return nil, wrong(err.Error())
		}
		parts = parts[length:]
		for c := lo; c <= hi; c++ {
			switch {
			case minus:
				without = append(without, c)
			case slices.Contains(chosen, c):
				return nil, wrong(fmt.Sprintf("column %d is named twice", c+1))
			default:
				chosen = append(chosen, c)
			}
		}
		included = included || !minus
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

// header is the names of the columns that items may be.
type header struct {
	names  []string
	byName map[string]int
	width  int
	commas int // of the name that has most
}

// errNoColumn is that an item names no column.
var errNoColumn = errors.New("is neither a name of the header nor a number")

// severalColumns stands for the index of a name that several columns have.
const severalColumns = -1

func newHeader(names []string, width int) *header {
	h := &header{names, make(map[string]int, len(names)), width, 0}
	for i, name := range names {
		if _, twice := h.byName[name]; twice {
			i = severalColumns
		}
		h.byName[name] = i
		h.commas = max(h.commas, strings.Count(name, ","))
	}
	return h
}

// next resolves the first item of a choice that was cut at commas: the first part, or as many as have a name together.
func (h *header) next(parts []string) (lo, hi int, minus bool, length int, err error) {
	for length = 1; length <= min(len(parts), h.commas+1); length++ {
		item := strings.TrimSpace(strings.Join(parts[:length], ","))
		var why error
		if lo, hi, why = h.columns(item); why == nil {
			return lo, hi, false, length, nil
		}
		if rest, is := strings.CutPrefix(item, "-"); is {
			if lo, hi, why = h.columns(strings.TrimSpace(rest)); why == nil {
				return lo, hi, true, length, nil
			}
		}
		err = cmp.Or(err, why)
	}
	return 0, 0, false, 0, err
}

// named resolves a name of the header.
func (h *header) named(item string) (c int, ok bool, err error) {
	if c, ok = h.byName[item]; !ok {
		c, ok = h.byName[string(unquote([]byte(item)))]
	}
	if ok && c == severalColumns {
		err = fmt.Errorf("%q is the name of several columns, so that it takes a number", item)
	}
	return c, ok, err
}

// columns resolves one item to the columns lo to hi, from 0.
func (h *header) columns(item string) (lo, hi int, err error) {
	if c, ok, err := h.named(item); ok {
		return c, c, err
	}
	for _, mark := range []string{":", "-"} {
		first, last, ok := strings.Cut(item, mark)
		if !ok || first == "" {
			continue
		}
		if lo, err = h.column(first, mark == ":"); err == nil {
			hi, err = h.column(last, mark == ":")
		}
		switch {
		case err == nil && hi < lo:
			err = fmt.Errorf("%q is not a range of columns", item)
		case mark == "-" && errors.Is(err, errNoColumn): // the whole may be a name that is misspelt
			continue
		}
		return lo, hi, err
	}
	lo, err = h.column(item, true)
	return lo, lo, err
}

// column resolves a number from 1, or a name, to an index from 0.
func (h *header) column(item string, named bool) (int, error) {
	item = strings.TrimSpace(item)
	if named {
		if c, ok, err := h.named(item); ok {
			return c, err
		}
	}
	c, err := strconv.Atoi(item)
	switch {
	case err != nil && len(h.names) == 0:
		return 0, fmt.Errorf("%q %w (columns have no names here)", item, errNoColumn)
	case err != nil:
		return 0, fmt.Errorf("%q %w%s", item, errNoColumn, fault.Meant(item, h.names))
	case c < 1 || c > h.width:
		return 0, fmt.Errorf("there is no column %d among %d", c, h.width)
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
