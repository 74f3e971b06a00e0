package staged

import (
	"fmt"
	"math"

	"github.com/cohort-engine/cohort/engine/dataset"
	"github.com/cohort-engine/cohort/engine/privacy"
	"github.com/cohort-engine/cohort/engine/protocol"
	"github.com/cohort-engine/cohort/engine/step"
	"github.com/cohort-engine/cohort/internal/fault"
	"github.com/cohort-engine/cohort/internal/secagg"
)

// Data is what every job of this package works on.
type Data struct {
	// Clients holds each client's records on one grid; at least one client.
	Clients []dataset.Part
	// Records is the public number of records, which every parameter follows: rounds,
	// levels, noise scales, the default delta. The clients may have more or fewer. 0
	// takes their own number, and the ledger says that no budget covers it.
	Records int
	// Bounds maps centroids back to the data's own units.
	Bounds dataset.Bounds
	// Labels has the true class of each row of the table, for scores; nil if
	// unknown.
	Labels []int32
	// Clamped counts coordinates that were outside the bounds.
	Clamped int
	// Noise is who adds the noise of the sums of several clients, protocol.DefaultNoise
	// if empty. Colluders is how many of them may read along with a viewer where they
	// add shares, 1 by default. One client adds the noise itself.
	Noise     protocol.NoiseBy
	Colluders int
	// NoQuality leaves out what is computed from the private data.
	NoQuality bool
	// Tape makes the run one of two on neighbouring data sets, for an audit, which
	// may end after the last release, with an empty result. Edler does not use it.
	// nil for a run of its own.
	Tape *privacy.Tape
}

// ErrNil is the refusal of no job.
var ErrNil = fault.Request("job", "is nil", "give one")

// Validate checks the records against k.
func (x *Data) Validate(k int) error {
	if err := step.CheckParts(x.Clients, "client"); err != nil {
		return err
	}
	if x.Records < 0 {
		return fault.Range("public-n", x.Records, "at least 1, or 0 for the data's own number")
	}
	n, d := x.PublicRecords(), x.Clients[0].Points.D
	if k < 1 || k > n || k >= math.MaxUint16 {
		return fault.Range("k", k, fmt.Sprintf("1 to %d", min(n, math.MaxUint16-1)))
	}
	if x.Colluders < 0 {
		return fault.Range("colluders", x.Colluders, "at least 1")
	}
	if err := x.noise().Check(len(x.Clients), max(x.Colluders, 1)); err != nil && len(x.Clients) > 1 {
		return err
	}
	if err := step.CheckBounds(x.Bounds, d); err != nil {
		return err
	}
	if err := step.CheckLabels(x.Clients, x.Labels); err != nil {
		return err
	}
	return x.capacity(n).Check()
}

// noise is who adds the noise.
func (x *Data) noise() protocol.NoiseBy {
	if x.Noise == "" {
		return protocol.DefaultNoise(privacy.Proven, len(x.Clients), len(x.Clients), x.Colluders, true)
	}
	return x.Noise
}

// OneClient refuses several clients for a method on one table.
func (x *Data) OneClient(method string) error {
	if len(x.Clients) != 1 {
		return fault.Range("clients", len(x.Clients), "1: "+method+" is a central method")
	}
	return nil
}

// capacity is the check of the largest sum: every record at length 2 sqrt d from
// its centroid, in one cluster, on the release grid.
func (x *Data) capacity(n int) secagg.Capacity {
	return secagg.Capacity{Ring: secagg.Ring64, Records: n, PerRecord: math.Ldexp(2, releaseBits),
		Noise: math.Ldexp(1, 61)}
}

// PublicRecords is the number of records of all clients that parameters follow.
func (x *Data) PublicRecords() int {
	if x.Records > 0 {
		return x.Records
	}
	if x.Tape != nil && x.Tape.Records > 0 {
		return x.Tape.Records
	}
	n := 0
	for _, p := range x.Clients {
		n += p.Points.N
	}
	return n
}

// BudgetFor fills in the default delta: 1/(n ln n) for a negative one.
func BudgetFor(b privacy.Budget, n int) privacy.Budget {
	if b.Delta < 0 {
		b.Delta = privacy.DefaultDelta(n)
	}
	return b
}

func CheckBudget(b privacy.Budget, n int) error {
	if err := BudgetFor(b, n).Validate(); err != nil {
		return fault.Request("budget", err.Error(), "give a positive --epsilon and a --delta below 1")
	}
	return nil
}
