package cohort

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"slices"

	"github.com/cohort-engine/cohort/engine"
	"github.com/cohort-engine/cohort/engine/dataset"
	"github.com/cohort-engine/cohort/engine/method/lloyd"
	"github.com/cohort-engine/cohort/engine/privacy"
	"github.com/cohort-engine/cohort/internal/fault"
)

// Model is what a fit has learned. All but Labels is what its method releases.
type Model struct {
	Version string `json:"version"`
	Method  string `json:"method"`
	// Centroids has K rows in the data's own units.
	Centroids [][]float64 `json:"centroids"`
	// Sizes are those of the clusters: exact ones without a budget, else the noisy ones that the method
	// has released on its way; nil if it releases none.
	Sizes []float64 `json:"sizes"`
	// Iterations is the number of rounds, or 0 where it was not noted.
	Iterations int `json:"iterations,omitempty"`
	// Inertia is the sum of the squared distances of the records to their centroids, of a fit without a budget. Where
	// OneScale is set it is in the data's own units, else with each column scaled from its bounds to [-1,1].
	Inertia *float64 `json:"inertia,omitempty"`
	// InertiaEstimate is the same of a private method, estimated from what it has released on its way; nil where it
	// cannot be.
	InertiaEstimate *float64 `json:"inertia_estimate,omitempty"`
	// Lower and Upper bound the columns, which are mapped to [-1,1] and clamped before distances are
	// taken; FromData says that they were computed from the records. OneScale says that all have the same width, so that
	// the nearest centroid is that in the data's own units.
	Lower    []float64 `json:"lower"`
	Upper    []float64 `json:"upper"`
	FromData bool      `json:"bounds_from_data"`
	OneScale bool      `json:"one_scale"`
	// Metric is "cosine" where records are scaled to length 1 before distances are taken, else empty.
	Metric string `json:"metric,omitempty"`
	// Columns are the names of the columns, nil if they have none.
	Columns      []string        `json:"columns"`
	FractionBits int             `json:"fraction_bits"`
	Calibration  string          `json:"calibration"`
	Epsilon      *float64        `json:"epsilon"`
	Delta        *float64        `json:"delta"`
	Ledger       *privacy.Ledger `json:"ledger"`
	// Notes are remarks on the fit, a sentence each.
	Notes []string `json:"notes,omitempty"`
	// Labels has the cluster of each record of the fit, from 0. They stay with who holds the records:
	// the ledger does not cover them, and Save leaves them out.
	Labels []int32 `json:"-"`
}

// NewModel is the model of a result of package engine, and one that nothing can be done with of no result.
func NewModel(r *engine.Result, bounds dataset.Bounds, columns []string, fractionBits int) *Model {
	if r == nil {
		return new(Model)
	}
	return &Model{Version: r.Version, Method: r.Method, Metric: r.Metric, Centroids: r.Centroids, Sizes: r.Sizes,
		Iterations: r.Iterations,
		Lower:      bounds.Lo, Upper: bounds.Hi, FromData: bounds.FromData,
		Columns: columns, FractionBits: fractionBits, Calibration: r.Calibration, Epsilon: r.Epsilon, Delta: r.Delta,
		Ledger: r.Ledger, Notes: r.Notes}
}

// label sets the labels of the records of the fit and, without a budget, sizes and inertia.
func (m *Model) label(ctx context.Context, pool *engine.Pool, records *dataset.Normalised, private bool) error {
	centroids, err := m.bounds().Normalise(m.Centroids)
	if err != nil {
		return err
	}
	m.Labels = make([]int32, records.Points.N)
	if private {
		return engine.Label(ctx, pool, records.Points, records.FractionBits, centroids, len(m.Centroids), m.Labels)
	}
	cost, err := engine.LabelCost(ctx, pool, records.Points, records.FractionBits, centroids, len(m.Centroids),
		records.Weights, m.Labels)
	if err != nil {
		return err
	}
	if cost *= m.unit() * m.unit(); math.IsNaN(cost) || math.IsInf(cost, 0) {
		return fault.Failed("inertia", fmt.Sprintf("squares of distances of records between %g and %g are beyond float64",
			slices.Min(m.Lower), slices.Max(m.Upper)), "divide the data by a large number", nil)
	}
	m.Inertia = &cost
	return m.Count(m.Labels)
}

// order sorts the clusters by their centroids. Where there are fewer distinct ones, the others come last, and
// repeat the last.
func (m *Model) order() {
	var by, others []int
	all := make([]int, len(m.Centroids))
	for j := range all {
		all[j] = j
	}
	slices.SortStableFunc(all, func(a, b int) int { return slices.Compare(m.Centroids[a], m.Centroids[b]) })
	for i, j := range all {
		if i > 0 && slices.Equal(m.Centroids[j], m.Centroids[all[i-1]]) {
			others = append(others, j)
		} else {
			by = append(by, j)
		}
	}
	last := by[len(by)-1]
	for _, j := range others {
		m.Centroids[j] = m.Centroids[last]
	}
	by = append(by, others...)
	centroids, sizes := m.Centroids, m.Sizes
	m.Centroids = make([][]float64, len(by))
	if sizes != nil {
		m.Sizes = make([]float64, len(by))
	}
	for to, from := range by {
		m.Centroids[to] = centroids[from]
		if sizes != nil {
			m.Sizes[to] = sizes[from]
		}
	}
}

// unit is what 1 is worth in the scaled columns: half the width of the bounds in the data's own units where all
// columns have one scale, else 1.
func (m *Model) unit() float64 {
	if !m.OneScale {
		return 1
	}
	return (m.Upper[0] - m.Lower[0]) / 2
}

// Count sets Sizes to the numbers of the labels: what a model without a budget may show.
func (m *Model) Count(labels []int32) error {
	if m == nil || len(m.Centroids) == 0 {
		return errNoModel
	}
	sizes := make([]float64, len(m.Centroids))
	for i, l := range labels {
		if l < 0 || int(l) >= len(sizes) {
			return fault.Request("labels", fmt.Sprintf("has %d for record %d of a model of %s", l, i+1,
				fault.Count(len(sizes), "cluster")), "give labels of this model")
		}
		sizes[l]++
	}
	m.Sizes = sizes
	return nil
}

// CountRecords sets the sizes of the clusters by records that are on the model's grid already.
func (m *Model) CountRecords(ctx context.Context, pool *engine.Pool, records *dataset.Normalised) error {
	centroids, err := m.beside(ctx, pool, records)
	if err == nil {
		m.Sizes, err = engine.Sizes(ctx, pool, records.Points, records.FractionBits, centroids, len(m.Centroids))
	}
	return err
}

// Assign is Nearest for records that are on the model's grid already.
func (m *Model) Assign(ctx context.Context, pool *engine.Pool, records *dataset.Normalised) (labels []int32,
	distances []float64, err error) {
	centroids, err := m.beside(ctx, pool, records)
	if err != nil {
		return nil, nil, err
	}
	n := records.Points.N
	labels, distances = make([]int32, n), make([]float64, n)
	err = engine.Nearest(ctx, pool, records.Points, records.FractionBits, centroids, len(m.Centroids), labels, distances)
	for i, x := range distances {
		distances[i] = math.Sqrt(x)
	}
	return labels, distances, err
}

// beside is the centroids on the grid of records that are to be compared with them.
func (m *Model) beside(ctx context.Context, pool *engine.Pool, records *dataset.Normalised) ([]float64, error) {
	switch {
	case m == nil:
		return nil, errNoModel
	case ctx == nil:
		return nil, engine.ErrNoContext
	case pool == nil:
		return nil, fault.Request("pool", "is nil", "give that of an engine")
	case records == nil || records.Points == nil:
		return nil, fault.Request("records", "are nil, or closed", "prepare them")
	case records.Points.D != len(m.Lower):
		return nil, fault.Request("records", fmt.Sprintf("have %s and the model %d",
			fault.Count(records.Points.D, "column"), len(m.Lower)), "give the columns of the model")
	}
	return m.grid()
}

func (m *Model) bounds() dataset.Bounds {
	return dataset.Bounds{Lo: m.Lower, Hi: m.Upper, FromData: m.FromData}
}

// Save writes the model as JSON. What Load would not take is refused, and nothing is written then.
func (m *Model) Save(w io.Writer) error {
	switch {
	case w == nil:
		return fault.Request("model", "has no writer", "give a file or another writer")
	case m == nil || len(m.Centroids) == 0:
		return errNoModel
	}
	if _, err := m.grid(); err != nil {
		return err
	}
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(m)
}

const loadAdvice = "give what Save has written, or the model.json of a run"

// Load reads what Save has written. The ledger of a model without one is empty.
func Load(r io.Reader) (*Model, error) {
	if r == nil {
		return nil, fault.Request("model", "has no reader", "give a file or another reader")
	}
	m := new(Model)
	if err := json.NewDecoder(r).Decode(m); err != nil {
		return nil, fault.Failed("model", "cannot be read ("+err.Error()+")", loadAdvice, err)
	}
	if m.Ledger == nil {
		m.Ledger = new(privacy.Ledger)
	}
	_, err := m.grid()
	return m, err
}

// grid is the centroids in the normalised box, of a model that is whole; its fields are anybody's to set.
func (m *Model) grid() ([]float64, error) {
	broken := func(why string) ([]float64, error) {
		return nil, fault.Failed("model", why, loadAdvice, nil)
	}
	if err := m.bounds().Validate("model"); err != nil {
		return nil, err
	}
	switch d, k := len(m.Lower), len(m.Centroids); {
	case d == 0 || k == 0 || m.FractionBits < 1 || m.FractionBits > dataset.MaxFractionBits:
		return broken("lacks bounds, centroids or its grid")
	case k >= math.MaxUint16:
		return broken(fmt.Sprintf("has %d centroids, more than any fit", k))
	case m.Columns != nil && len(m.Columns) != d:
		return broken(fmt.Sprintf("names %d of %s", len(m.Columns), fault.Count(d, "column")))
	case m.Sizes != nil && len(m.Sizes) != k:
		return broken(fmt.Sprintf("has %d sizes of %s", len(m.Sizes), fault.Count(k, "cluster")))
	case m.Metric != "" && m.Metric != cosine:
		return broken(fmt.Sprintf("has the unknown metric %q", m.Metric))
	}
	return m.bounds().Normalise(m.Centroids)
}

// cosine is the metric of directions.
const cosine = string(lloyd.Cosine)
