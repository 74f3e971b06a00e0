package engine

import "github.com/cohort-engine/cohort/engine/privacy"

// Result is what a job returns; its JSON form is the one that the command line
// prints. Of its fields only Timings may differ between two runs with the same
// seed, whatever the number of workers and the instruction set.
type Result struct {
	Method     string `json:"method"`
	N          int    `json:"n"`
	D          int    `json:"d"`
	K          int    `json:"k"`
	Parties    int    `json:"parties"`
	Iterations int    `json:"iterations"`
	// Metric is "cosine" where records and centroids have length 1, else empty.
	Metric string `json:"metric,omitempty"`
	// Calibration is "proven", "claimed", "published", or "none" for a method
	// without noise.
	Calibration string `json:"calibration"`
	// Epsilon and Delta are the budget of the run, nil for a method without noise.
	Epsilon *float64 `json:"epsilon"`
	Delta   *float64 `json:"delta"`
	// Centroids has K rows of D numbers in the data's own units.
	Centroids [][]float64 `json:"centroids"`
	// Sizes are the noisy sizes of the clusters that a private method has released on its way, those of
	// its last round; nil where it releases none, and without noise.
	Sizes []float64 `json:"sizes,omitempty"`
	// Weight is the noisy weight of all records of a private method whose records have weights, in which Sizes and
	// Synopsis are, too; nil without.
	Weight *float64 `json:"weight,omitempty"`
	// LossEstimate is the NICV estimated from what a private method has released on its way,
	// which costs nothing more; nil where it cannot be.
	LossEstimate *float64 `json:"nicv_estimate,omitempty"`
	// Synopsis is what a private method has released of where records are, its heaviest
	// cells first; nil where it releases none.
	Synopsis []Cell `json:"synopsis,omitempty"`
	// KCurve has how well each number of clusters fits the synopsis, where K was chosen by it.
	KCurve []KFit `json:"k_curve,omitempty"`
	// Convergence has a step for each iteration, where somebody has traced them (Trace).
	Convergence []Step `json:"convergence,omitempty"`
	Quality
	// Ledger has an entry for everything that left a party. It is never nil.
	Ledger  *privacy.Ledger   `json:"ledger"`
	Timings map[string]Timing `json:"timings"`
	Comm    Comm              `json:"comm"`
	// Seed is the simulation seed; nil if the noise came from the system's
	// random generator.
	Seed    *uint64 `json:"seed"`
	Version string  `json:"version"`
	// Details holds what only this method reports, by name: weights, local
	// centres, errors against the truth in simulation.
	Details map[string]any `json:"details,omitempty"`
	// Doubts say why the result is of little use, as far as public values show it: noise as
	// wide as the data, records that find no place.
	Doubts []string `json:"doubts,omitempty"`
	// Notes are remarks for the reader, one sentence each, in order.
	Notes []string `json:"notes,omitempty"`
}

// KFit is how well k clusters fit what a private method has released of where records are.
type KFit struct {
	K int `json:"k"`
	// NICV is the mean squared distance to the nearest centroid, in normalised units.
	NICV       float64 `json:"nicv"`
	Silhouette float64 `json:"silhouette"`
}

// Cell is a box in the data's own units and the noisy number of records in it.
type Cell struct {
	Lo     []float64 `json:"lo"`
	Hi     []float64 `json:"hi"`
	Weight float64   `json:"weight"`
}

// Separation compares clusters with each other (Thesis-H, section 2.1.3); fields are
// nil where they are not defined.
type Separation struct {
	Silhouette    *float64 `json:"silhouette"`
	Dunn          *float64 `json:"dunn"`
	DaviesBouldin *float64 `json:"davies_bouldin"`
	BCSS          *float64 `json:"bcss"`
	// Sample is the number of points that silhouette and Dunn are of.
	Sample int `json:"separation_sample"`
}

// Quality compares centroids with the data. It is computed from the private
// data and not covered by epsilon; fields are nil where it is left out.
type Quality struct {
	// NICV is the mean squared distance to the nearest centroid, in units
	// normalised to [-1,1]; WCSS is the sum.
	NICV *float64 `json:"nicv"`
	WCSS *float64 `json:"wcss"`
	// EmptyClusters counts centroids that attract no point.
	EmptyClusters *int `json:"empty_clusters"`
	// Separation compares the clusters with each other; nil unless it was asked for.
	*Separation
	// Clamped counts coordinates outside the public bounds.
	Clamped *int `json:"clamped"`
	// Scores against labels, where labels were given.
	ARI      *float64 `json:"ari,omitempty"`
	NMI      *float64 `json:"nmi,omitempty"`
	FMI      *float64 `json:"fmi,omitempty"`
	VMeasure *float64 `json:"v_measure,omitempty"`
	Accuracy *float64 `json:"accuracy,omitempty"`
	// Runs has the NICV of each repetition when there are several; NICV is then
	// their mean and NICVHalf the half width of its 95% Student-t interval.
	NICVHalf *float64  `json:"nicv_ci95_half,omitempty"`
	Runs     []float64 `json:"runs,omitempty"`
}

// Comm counts the encoded messages of a run, but for those that measure its
// quality. The slices have one entry per
// party; the server's traffic is their mirror image.
type Comm struct {
	Rounds        int     `json:"rounds"`
	BytesSent     []int64 `json:"bytes_sent"`
	BytesReceived []int64 `json:"bytes_received"`
}

// Add adds the messages of a run before this one, whose parties are the first of this one's.
func (c *Comm) Add(before *Comm) {
	c.Rounds += before.Rounds
	for i := range before.BytesSent {
		c.BytesSent[i] += before.BytesSent[i]
		c.BytesReceived[i] += before.BytesReceived[i]
	}
}
