package bench

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"

	"github.com/cohort-engine/cohort/bench/chart"
	"github.com/cohort-engine/cohort/engine"
)

// Number is a measured value; a value that is not finite is null in JSON.
type Number float64

// MarshalJSON writes null for NaN and infinities.
func (n Number) MarshalJSON() ([]byte, error) {
	if math.IsNaN(float64(n)) || math.IsInf(float64(n), 0) {
		return []byte("null"), nil
	}
	return json.Marshal(float64(n))
}

// UnmarshalJSON reads null as NaN.
func (n *Number) UnmarshalJSON(b []byte) error {
	if string(b) == "null" {
		*n = Number(math.NaN())
		return nil
	}
	return json.Unmarshal(b, (*float64)(n))
}

// Label is one coordinate of an instance: a data set, a method, a size.
type Label struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// L returns a label; the value is formatted as by fmt.Sprint.
func L(name string, value any) Label { return Label{name, fmt.Sprint(value)} }

// Kinds of references.
const (
	kindPublished = "published"     // printed in the paper
	kindPeer      = "peer"          // the authors' code, run again; its source says where
	kindTheory    = "theory"        // a bound or an expected value
	kindLimit     = "machine limit" // what the hardware allows
	kindGoal      = "goal"          // what is aimed at here, which nobody else's figure stands behind
)

// Reference is a figure for the same thing to compare with, mostly somebody else's.
type Reference struct {
	Name   string `json:"name"`   // whose, for example "FastLloyd"
	Kind   string `json:"kind"`   // kindPublished and its siblings
	Value  Number `json:"value"`  // in the unit of the value it belongs to
	Half   Number `json:"half"`   // half width of its 95% interval, 0 if unknown
	Source string `json:"source"` // table, figure or file it stands in
	// Rounding is half a unit of the last digit that is printed.
	Rounding Number `json:"rounding,omitempty"`
	// Apart is why it cannot be compared with our value; empty if it can.
	Apart string `json:"apart,omitempty"`
	// Other says that it is a figure for another method than the row's.
	Other bool `json:"other,omitempty"`
}

// atMost and atLeast are goals, none for 0.
func atMost[T int | float64 | time.Duration](x T) []Reference  { return aimedAt("at most", x) }
func atLeast[T int | float64 | time.Duration](x T) []Reference { return aimedAt("at least", x) }

func aimedAt[T int | float64 | time.Duration](name string, x T) []Reference {
	if x == 0 {
		return nil
	}
	return []Reference{{Name: name, Kind: kindGoal, Value: Number(x)}}
}

// Units of values. Any other text is shown as it is.
const (
	unitNanoseconds = chart.Nanoseconds
	unitBytes       = chart.Bytes
	unitPlain       = chart.Plain
)

// Value is one measured quantity of a row.
type Value struct {
	Name   string `json:"name"`
	Unit   string `json:"unit"`
	Mean   Number `json:"mean"`
	Half   Number `json:"half"` // half width of the 95% interval of the mean, 0 for a single number
	Median Number `json:"median"`
	P99    Number `json:"p99"`
	N      int    `json:"n"` // runs or repetitions
	// Timed values are shown by their median and 99th percentile, others by mean
	// and interval.
	Timed      bool        `json:"timed,omitempty"`
	References []Reference `json:"references,omitempty"`
}

// shown is the number that stands for the value in tables and figures.
func (v *Value) shown() float64 {
	if v.Timed {
		return float64(v.Median)
	}
	return float64(v.Mean)
}

// Row is one instance and what was measured on it.
type Row struct {
	Suite  string  `json:"suite"`
	Table  string  `json:"table"`
	Quick  bool    `json:"quick"`
	Labels []Label `json:"labels"`
	Values []Value `json:"values"`
	Seeds  string  `json:"seeds,omitempty"`
	Note   string  `json:"note,omitempty"`
	Failed string  `json:"failed,omitempty"` // why there are no values
	// Ledger is the text of the privacy ledger of the first run, if it had a budget.
	Ledger string `json:"ledger,omitempty"`
}

// key identifies the row in a results file.
func (r *Row) key() string {
	parts := []string{r.Suite, r.Table}
	for _, l := range r.Labels {
		parts = append(parts, l.Name+"="+l.Value)
	}
	if r.Quick {
		parts = append(parts, "quick")
	}
	return strings.Join(parts, "|")
}

// keepLedger stores the ledger of a private run.
func (r *Row) keepLedger(res *engine.Result) error {
	if res.Epsilon == nil {
		return nil
	}
	var text strings.Builder
	if err := res.Ledger.Text(&text); err != nil {
		return err
	}
	r.Ledger = text.String()
	return nil
}

// inOrder sorts the rows of each table by their labels, one after the other:
// numbers by their size, before names in the order in which they were measured.
// Suites measure the most telling rows first, which is not how they read best.
func inOrder(rows []Row) []Row {
	seen := make(map[Label]int)
	for _, r := range rows {
		for _, l := range append(r.Labels, Label{"", r.Table}) {
			if _, ok := seen[l]; !ok {
				seen[l] = len(seen)
			}
		}
	}
	sorted := slices.Clone(rows)
	slices.SortStableFunc(sorted, func(a, b Row) int {
		if c := cmp.Compare(seen[Label{"", a.Table}], seen[Label{"", b.Table}]); c != 0 {
			return c
		}
		for i := range min(len(a.Labels), len(b.Labels)) {
			la, lb := a.Labels[i], b.Labels[i]
			if la == lb {
				continue
			}
			x, y := chart.ParseNumber(la.Value), chart.ParseNumber(lb.Value)
			if math.IsNaN(x) && math.IsNaN(y) {
				return cmp.Compare(seen[la], seen[lb])
			}
			if math.IsNaN(x) || math.IsNaN(y) {
				return -cmp.Compare(x, y) // a number before a name
			}
			return cmp.Compare(x, y)
		}
		return 0
	})
	return sorted
}

// runs is the largest number of runs or repetitions behind a value.
func (r *Row) runs() int {
	n := 0
	for _, v := range r.Values {
		n = max(n, v.N)
	}
	return n
}

// label returns the value of a label, or "".
func (r *Row) label(name string) string {
	for _, l := range r.Labels {
		if l.Name == name {
			return l.Value
		}
	}
	return ""
}

// value returns the value of that name, or nil.
func (r *Row) value(name string) *Value {
	for i := range r.Values {
		if r.Values[i].Name == name {
			return &r.Values[i]
		}
	}
	return nil
}

// MeanInterval returns the mean of samples and the half width of its 95% Student-t interval, 0 for
// a single one.
func MeanInterval(samples []float64) (mean, half float64) {
	mean, deviation := stat.MeanStdDev(samples, nil)
	if n := len(samples); n > 1 {
		half = student(n) * deviation / math.Sqrt(float64(n))
	}
	return mean, half
}

// student is the quantile of Student's t that makes a 95% interval of n samples.
func student(n int) float64 {
	return distuv.StudentsT{Mu: 0, Sigma: 1, Nu: float64(n - 1)}.Quantile(0.975)
}

// summarise returns mean, 95% Student-t half width, median and 99th percentile
// (nearest rank) of samples.
func summarise(name, unit string, samples []float64) Value {
	v := Value{Name: name, Unit: unit, N: len(samples)}
	if len(samples) == 0 {
		v.Mean, v.Median, v.P99 = Number(math.NaN()), Number(math.NaN()), Number(math.NaN())
		return v
	}
	s := slices.Sorted(slices.Values(samples))
	mean, half := MeanInterval(s)
	v.Mean, v.Half = Number(mean), Number(half)
	v.Median = Number(s[len(s)/2])
	if len(s)%2 == 0 {
		v.Median = Number((s[len(s)/2-1] + s[len(s)/2]) / 2)
	}
	v.P99 = Number(s[(len(s)*99+99)/100-1])
	return v
}
