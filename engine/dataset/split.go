package dataset

import (
	"fmt"
	"math"
	"sort"
	"strconv"
	"strings"

	"github.com/cohort-engine/cohort/internal/fault"
	"github.com/cohort-engine/cohort/kernels"
)

// Part is what one client holds.
type Part struct {
	Points       *kernels.Panels
	Rows         []int // row of the table of each point; nil: point i is row i
	FractionBits int
	Weights      []float64 // of each point, or nil if all weigh the same
	// Dealt says that the records of one table were dealt to several clients by how many they are: a record more
	// deals all of them anew.
	Dealt bool
}

// Row is the row of the table of point i.
func (p *Part) Row(i int) int {
	if p.Rows == nil {
		return i
	}
	return p.Rows[i]
}

// Split deals the records to m clients in an order shuffled by seed: equally
// (sizes differ by at most one), or in the given m proportions, rounded by
// largest remainder. One client gets the records in their own order, without a
// copy; of few records some clients get none.
func (n *Normalised) Split(m int, proportions []float64, seed uint64) ([]Part, error) {
	total := n.Points.N
	if m < 1 || m > mostClients {
		return nil, fault.Range("clients", m, fmt.Sprintf("1 to %d", mostClients))
	}
	sizes, err := shares(total, m, proportions)
	if err != nil {
		return nil, err
	}
	switch {
	case n.Points.Data == nil:
		return n.dealShape(sizes), nil
	case m == 1:
		return n.deal(nil, sizes), nil
	}
	order := inTurn(total)
	shuffle(newSource(seed, "split"), order)
	parts := n.deal(order, sizes)
	for i := range parts {
		parts[i].Dealt = true
	}
	return parts, nil
}

// mostClients bounds the clients.
const mostClients = 1 << 20

// Shape is what is public of n records within bounds: their number and their columns,
// without a record. Jobs on it can be planned; they cannot be run.
func Shape(n int, bounds Bounds, fractionBits int) *Normalised {
	return &Normalised{Points: &kernels.Panels{N: n, D: len(bounds.Lo)}, Bounds: bounds, FractionBits: fractionBits}
}

// dealShape gives each client the shape of its records.
func (n *Normalised) dealShape(sizes []int) []Part {
	parts := make([]Part, len(sizes))
	for i, size := range sizes {
		parts[i] = Part{Points: &kernels.Panels{N: size, D: n.Points.D}, FractionBits: n.FractionBits,
			Dealt: len(sizes) > 1}
		if n.Weights != nil {
			parts[i].Weights = n.Weights[:size]
		}
	}
	return parts
}

// SplitFiles gives each client the records of one file: counts is Table.Files.
func (n *Normalised) SplitFiles(counts []int) ([]Part, error) {
	sum := 0
	for _, c := range counts {
		sum += c
	}
	if sum != n.Points.N {
		return nil, fault.Request("one client per file", fmt.Sprintf("the files hold %s and the data %d",
			fault.Count(sum, "record"),
			n.Points.N), "give the counts of the files that were read")
	}
	return n.deal(inTurn(n.Points.N), counts), nil
}

// inTurn returns 0 to n-1.
func inTurn(n int) []int {
	order := make([]int, n)
	for i := range order {
		order[i] = i
	}
	return order
}

// shares returns the number of records of each client.
func shares(total, m int, proportions []float64) ([]int, error) {
	sizes := make([]int, m)
	if proportions == nil {
		for i := range sizes {
			sizes[i] = total / m
			if i < total%m {
				sizes[i]++
			}
		}
		return sizes, nil
	}
	if len(proportions) != m {
		return nil, fault.Request("proportions", fmt.Sprintf("%s for %s", fault.Count(len(proportions), "number"),
			fault.Count(m, "client")),
			"give one number per client")
	}
	sum := 0.0
	for _, p := range proportions {
		if !(p > 0) || math.IsInf(p, 0) {
			return nil, fault.Request("proportions", fmt.Sprintf("%g is not a positive number", p),
				"give one positive number per client")
		}
		sum += p
	}
	if math.IsInf(sum, 0) {
		return nil, fault.Request("proportions", "their sum is not finite", "give smaller numbers")
	}
	rest := make([]float64, m)
	index := make([]int, m)
	given := 0
	for i, p := range proportions {
		exact := p / sum * float64(total)
		sizes[i] = int(exact)
		rest[i] = exact - float64(sizes[i])
		index[i] = i
		given += sizes[i]
	}
	sort.SliceStable(index, func(a, b int) bool { return rest[index[a]] > rest[index[b]] })
	for i := 0; given < total; i++ {
		sizes[index[i%m]]++
		given++
	}
	return sizes, nil
}

// deal hands out runs of order.
func (n *Normalised) deal(order, sizes []int) []Part {
	if len(sizes) == 1 {
		return []Part{{Points: n.Points, FractionBits: n.FractionBits, Weights: n.Weights}}
	}
	parts := make([]Part, len(sizes))
	start := 0
	for p, size := range sizes {
		rows := order[start : start+size : start+size]
		start += size
		parts[p] = Part{Points: gather(n.Points, rows), Rows: rows, FractionBits: n.FractionBits}
		if n.Weights != nil {
			parts[p].Weights = make([]float64, size)
			for i, r := range rows {
				parts[p].Weights[i] = n.Weights[r]
			}
		}
	}
	return parts
}

// gather copies the chosen points into new panels.
func gather(src *kernels.Panels, rows []int) *kernels.Panels {
	const lanes = kernels.Lanes
	d := src.D
	dst := kernels.NewPanels(len(rows), d)
	for i, r := range rows {
		to := dst.Data[i/lanes*lanes*d+i%lanes:]
		from := src.Data[r/lanes*lanes*d+r%lanes:]
		for j := range d {
			to[j*lanes] = from[j*lanes]
		}
	}
	return dst
}

// ContiguousColumns splits d columns into contiguous ranges, one per party, as
// equal as possible.
func ContiguousColumns(d, parties int) ([][]int, error) {
	if parties < 1 || parties > d {
		return nil, fault.Request(fmt.Sprintf("parties %d", parties),
			fmt.Sprintf("%s cannot be split among them", fault.Count(d, "column")),
			"give at least one party and at most one per column")
	}
	out := make([][]int, parties)
	next := 0
	for p := range out {
		size := d / parties
		if p < d%parties {
			size++
		}
		for range size {
			out[p] = append(out[p], next)
			next++
		}
	}
	return out, nil
}

// ParseColumnSplit parses the columns of each party, "1,3,6;2,4,5": what
// ChooseColumns understands, a semicolon between parties. Every one of the d columns
// belongs to exactly one party. The result has indices from 0.
func ParseColumnSplit(s string, d int, names []string) ([][]int, error) {
	if d < 0 {
		return nil, fault.Range("columns", d, "at least 0")
	}
	owner := make([]int, d)
	var out [][]int
	what := "split " + strconv.Quote(s)
	for p, item := range strings.Split(s, ";") {
		if strings.TrimSpace(item) == "" {
			return nil, fault.Request(what, fmt.Sprintf("party %d has no columns", p+1), "give each party at least one column")
		}
		columns, err := ChooseColumns(item, names, d)
		if err != nil {
			return nil, err
		}
		for _, c := range columns {
			if owner[c] != 0 {
				return nil, fault.Request(what, fmt.Sprintf("column %d belongs to parties %d and %d", c+1, owner[c], p+1),
					"give each column to one party")
			}
			owner[c] = p + 1
		}
		out = append(out, columns)
	}
	for c, p := range owner {
		if p == 0 {
			return nil, fault.Request(what, fmt.Sprintf("column %d belongs to no party", c+1),
				"give each column to one party, or leave it out with --columns")
		}
	}
	return out, nil
}
