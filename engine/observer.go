package engine

import "time"

// Phase is a named step of an iteration.
type Phase uint8

// The phases. Their names are those of the command line's timings.
const (
	PhaseAssign Phase = iota
	PhaseFlow
	PhaseAccumulate
	PhaseEncode
	PhaseMask
	PhaseAggregate
	PhaseNoise
	PhaseUnmask
	PhasePostprocess
	PhaseSketch
	PhaseWeights
	PhaseSearch
	PhaseEncrypt
	PhaseCompare
	PhaseSum
	PhaseDecrypt
	phases
)

var phaseNames = [phases]string{"assign", "flow", "accumulate", "encode", "mask", "aggregate", "noise", "unmask",
	"postprocess", "sketch", "weights", "search", "encrypt", "compare", "sum", "decrypt"}

// String returns the phase's name, such as "assign".
func (p Phase) String() string { return phaseNames[p] }

// Server is the Party of a span that belongs to the server or to no one party.
const Server = -1

// Span is one timed step: a phase of an iteration done for one party. Begin and
// End count from the start of the job.
type Span struct {
	Phase      Phase
	Iteration  int
	Party      int
	Begin, End time.Duration
	// Settled is the number of records that the phase did not touch, because nothing
	// has changed for them since the iteration before. It is set when the span ends.
	Settled int
	// Again is the number of looks at records beyond one for each, of a phase that
	// goes over them several times. It is set when the span ends.
	Again int
}

// JobInfo describes a job that begins, by public values.
type JobInfo struct {
	// ID numbers an engine's jobs from 1.
	ID int64
	// Method is the name of the method; N, D and K are the public number of records,
	// the columns and the clusters, Parties the parties.
	Method           string
	N, D, K, Parties int
	// Rounds is the most iterations that the job has.
	Rounds  int
	Workers int
}

// Iteration is reported when an iteration (round) has ended.
type Iteration struct {
	// Index counts from 0; Total is the planned number, or 0 if unknown.
	Index, Total int
	// Begin and End count from the start of the job.
	Begin, End time.Duration
	Seen
}

// Seen is what everybody may see of an iteration.
type Seen struct {
	// Centroids has K rows of D in the normalised box, row-major: those that the iteration
	// has ended with, where they are released to outsiders or the method is not private;
	// else nil. They are valid until the observer returns.
	Centroids []float64
	// Loss is the sum of squared distances, in normalised units, of the records to the
	// centroids that the iteration began with; NaN where the method is private, or does
	// not compute it.
	Loss float64
	// Start counts from 1 the first centroids that the iteration goes on from, where a method
	// tries several; else it is 0.
	Start int
}

// Observer sees what an engine does. Calls come from the goroutine that does
// the work, sometimes from several at once, and are inside the timed path: they
// must be quick and must not block. PhaseBegin and PhaseEnd of one span come
// from the same goroutine.
type Observer interface {
	JobBegin(JobInfo)
	PhaseBegin(Span)
	PhaseEnd(Span)
	IterationEnd(Iteration)
	JobEnd(*Result, error)
}

// RegionObserver is an observer that also sees each worker enter and leave a
// parallel region. The calls come from the worker's own goroutine, of different
// workers at the same time.
type RegionObserver interface {
	Observer
	RegionBegin(worker int)
	RegionEnd(worker int)
}

// ProgressObserver is an observer that also sees how far long work within a phase has
// come, such as the starts of a search. The calls come from several goroutines at once.
type ProgressObserver interface {
	Observer
	Progress(what string, done, total int)
}
