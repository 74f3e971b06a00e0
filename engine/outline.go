package engine

import "github.com/cohort-engine/cohort/engine/privacy"

// Outline says what a run would do, cost and reveal at most: a function of public
// values alone.
type Outline struct {
	Method  string `json:"method"`
	N       int    `json:"n"`
	D       int    `json:"d"`
	K       int    `json:"k"`
	Parties int    `json:"parties"`
	// Calibration, Epsilon and Delta are those of a Result.
	Calibration string   `json:"calibration"`
	Epsilon     *float64 `json:"epsilon"`
	Delta       *float64 `json:"delta"`
	// Rounds is the most that the run has.
	Rounds   int              `json:"rounds"`
	Releases []PlannedRelease `json:"releases"`
	// ClusterSizes are the least and the greatest number of records of a cluster at
	// one party, nil without constraints. UnassignedAtLeast is how many records find
	// no place within them.
	ClusterSizes      *[2]int `json:"cluster_sizes,omitempty"`
	UnassignedAtLeast int     `json:"unassigned_at_least"`
	// Doubts say why the result will be of little use, as that of a Result.
	Doubts []string `json:"doubts,omitempty"`
	// Bytes is what a run of all rounds sends and receives; at most, with BytesAtMost, where
	// the sizes of messages follow from what is released. It is nil where no bound is known.
	Bytes       *Comm `json:"bytes"`
	BytesAtMost bool  `json:"bytes_at_most,omitempty"`
	// Memory is what a run takes, nil where the method does not state it.
	Memory *Memory `json:"memory,omitempty"`
	// PublicSeed is what public randomness follows from, in hexadecimal. A plan
	// without a simulation seed draws its own.
	PublicSeed string `json:"public_seed"`
	// Ledger is that of all rounds.
	Ledger *privacy.Ledger `json:"ledger"`
}

// PlannedRelease is what leaves a party, as the ledger states it.
type PlannedRelease struct {
	privacy.Entry
	// Deviation is the standard deviation of the noise of a value, of every share
	// together, in the unit of the entry's Scale; nil where noise has no one scale.
	Deviation *float64 `json:"deviation,omitempty"`
	// OfBox is the deviation of a coordinate of a centroid in widths of the data's
	// box, where the cluster has a share of 1/K of the records, of which a party's local
	// clusters have more; nil for what is no centroid and no sum.
	OfBox *float64 `json:"of_box,omitempty"`
}

// Memory is the most that all parties of a run take in one process, beside the program and the records: Bytes, and
// PerWorker for each worker of the pool.
type Memory struct {
	Bytes     int64 `json:"bytes"`
	PerWorker int64 `json:"per_worker"`
}

// Of is the most with so many workers.
func (m *Memory) Of(workers int) int64 { return m.Bytes + int64(workers)*m.PerWorker }
