package sketch

import (
	"context"
	"slices"

	"github.com/cohort-engine/cohort/kernels"
)

// encoding is the making of one set of sketches from records that are all at hand,
// on all workers: each has registers of its own for every cluster.
type encoding struct {
	*sketcher
	keys     arrivalKeys
	labels   []uint16
	phantoms cellPhantoms
	cells    int // of phantoms in each cluster
	clusters []openCluster
	total    *encoder
	workers  []*encodingWorker
}

// openCluster is a cluster some register of which may be without arrival. Its registers go
// on to a later limit; they are never emptied. A register is the least arrival up to the
// limit, so it does not change by arrivals that it has had already: where records stand
// saves the time to generate those again, and whether that is kept changes no bit.
type openCluster struct {
	kernels.Reach
	records int
	open    bool
	// begins says that its records are to be looked at from their digests, and horizon up
	// to when it is known then where they stand. For all records of a large cluster that
	// would be as much memory again as they take, for what is needed with probability e^-16
	// at most (kernels.KeptReach): then they are looked at once more, up to the later limit.
	begins  bool
	horizon float64
}

// encode returns the registers of all records with their labels and of the
// phantoms.
func (s *sketcher) encode(ctx context.Context, set, sketches int, labels []uint16, clusters int,
	phantoms cellPhantoms) (*encoder, error) {
	return s.newEncoding(set, sketches, labels, clusters, phantoms).encode(ctx)
}

func (s *sketcher) newEncoding(set, sketches int, labels []uint16, clusters int, phantoms cellPhantoms) *encoding {
	e := &encoding{sketcher: s, keys: newArrivalKeys(s.secret, set), labels: labels, phantoms: phantoms,
		clusters: make([]openCluster, clusters), workers: make([]*encodingWorker, s.run.Workers())}
	if phantoms.perCell > 0 {
		e.cells = powInt(clusters, phantoms.parties-1)
	}
	e.total = newEncoder(s.secret, sketches, clusters)
	counts := make([]int, clusters)
	for _, a := range labels {
		counts[a]++
	}
	for a, n := range counts {
		if rate := float64(n) + float64(e.cells)*phantoms.perCell; rate > 0 {
			r := kernels.NewReach(rate, sketches)
			e.clusters[a] = openCluster{Reach: r, records: n, open: true, begins: true,
				horizon: r.Limit + kernels.KeptReach/rate}
		}
	}
	return e
}

// encode generates arrivals until every register of every cluster has one.
func (e *encoding) encode(ctx context.Context) (*encoder, error) {
	for {
		if err := e.begin(ctx); err != nil {
			return nil, err
		}
		for open := true; open; {
			var err error
			if open, err = e.gather(ctx); err != nil {
				return nil, err
			}
			if err := e.resume(ctx); err != nil {
				return nil, err
			}
		}
		if !slices.ContainsFunc(e.clusters, func(c openCluster) bool { return c.begins }) {
			return e.total, nil
		}
	}
}

// begin generates the arrivals of the clusters that begin.
func (e *encoding) begin(ctx context.Context) error {
	perCluster := (e.cells + recordsPerTask - 1) / recordsPerTask
	phantomTasks := len(e.clusters) * perCluster
	err := e.run.Run(ctx, phantomTasks+e.recordTasks(), func(worker, task int) {
		w := e.workers[worker]
		if w == nil {
			w = e.newWorker()
			e.workers[worker] = w
		}
		if task >= phantomTasks {
			w.addRecords(e, (task-phantomTasks)*recordsPerTask)
			return
		}
		lo := task % perCluster * recordsPerTask
		w.addPhantoms(e, task/perCluster, lo, min(lo+recordsPerTask, e.cells))
	})
	for a := range e.clusters {
		e.clusters[a].begins = false
	}
	return err
}

// gather brings the workers' registers of the open clusters together, and extends the
// reach of those of which some register has no arrival; any tells whether it did.
func (e *encoding) gather(ctx context.Context) (any bool, err error) {
	err = e.run.Run(ctx, len(e.clusters), func(_, a int) {
		c := &e.clusters[a]
		if !c.open {
			return
		}
		for _, w := range e.workers {
			if w != nil {
				e.total.merge(a, w.encoder)
			}
		}
		if latest(e.total.registers[a]) <= c.Limit {
			c.open = false
			return
		}
		c.Extend()
		if c.Limit > c.horizon {
			c.begins, c.horizon = true, 2*c.Limit
			for _, w := range e.workers {
				if w != nil {
					w.states[0][a], w.states[1][a] = nil, nil
				}
			}
		}
	})
	for _, c := range e.clusters {
		any = any || c.open && !c.begins
	}
	return any, err
}

// resume goes on with the records and phantoms of the open clusters where they stand.
func (e *encoding) resume(ctx context.Context) error {
	type piece struct {
		a      int
		rate   float64
		key    *kernels.ArrivalKey
		states []kernels.ArrivalState
	}
	var pieces []piece
	for _, w := range e.workers {
		for a, c := range e.clusters {
			if w == nil || !c.open || c.begins {
				continue
			}
			for kind, rate := range []float64{1, e.phantoms.perCell} {
				for _, part := range w.states[kind][a] {
					pieces = append(pieces, piece{a, rate, e.keys[kind], part})
				}
			}
		}
	}
	return e.run.Run(ctx, len(pieces), func(worker, i int) {
		w, p := e.workers[worker], pieces[i]
		if w == nil {
			w = e.newWorker()
			e.workers[worker] = w
		}
		kernels.Continue(p.key, p.states, p.rate, e.clusters[p.a].Limit, w.encoder.registers[p.a], &w.encoder.scratch)
	})
}

// encodingWorker is one worker's memory.
type encodingWorker struct {
	encoder          *encoder
	digests, grouped []Digest
	offsets          []int
	// states say, for the records and for the phantoms, where those of each cluster
	// stand that this worker has looked at.
	states [2][][][]kernels.ArrivalState
}

func (e *encoding) newWorker() *encodingWorker {
	k, room := len(e.clusters), min(recordsPerTask, max(e.records, e.cells))
	w := &encodingWorker{encoder: newEncoder(e.secret, len(e.total.registers[0]), k),
		digests: make([]Digest, room), grouped: make([]Digest, room), offsets: make([]int, k+1)}
	for kind := range w.states {
		w.states[kind] = make([][][]kernels.ArrivalState, k)
	}
	return w
}

// addRecords adds the records of a task to the clusters that begin.
func (w *encodingWorker) addRecords(e *encoding, lo int) {
	hi := min(lo+recordsPerTask, e.records)
	digests := w.digests[:hi-lo]
	if e.stored != nil {
		digests = e.stored[lo:hi]
	} else {
		e.fill(w.encoder.hash, lo, digests)
	}
	group(digests, e.labels[lo:hi], w.grouped, w.offsets)
	for a, c := range e.clusters {
		if c.begins {
			w.add(e, 0, a, w.grouped[w.offsets[a]:w.offsets[a+1]], 1)
		}
	}
}

// addPhantoms adds the phantoms of a cluster's cells lo to hi.
func (w *encodingWorker) addPhantoms(e *encoding, a, lo, hi int) {
	if p := e.phantoms; e.clusters[a].begins {
		phantomDigests(len(e.clusters), p.parties, p.at, a, lo, w.digests[:hi-lo])
		w.add(e, 1, a, w.digests[:hi-lo], p.perCell)
	}
}

// stateChunk is the number of states in a piece of memory.
const stateChunk = 1 << 14

// add gives records (kind 0) or phantoms (1) of a cluster their arrivals, and keeps where
// they stand then.
func (w *encodingWorker) add(e *encoding, kind, a int, digests []Digest, rate float64) {
	c, chunks := &e.clusters[a], w.states[kind][a]
	if last := len(chunks) - 1; last < 0 || cap(chunks[last])-len(chunks[last]) < len(digests) {
		room := max(min(stateChunk, [2]int{c.records, e.cells}[kind]), len(digests))
		chunks = append(chunks, make([]kernels.ArrivalState, 0, room))
		w.states[kind][a] = chunks
	}
	chunk := &chunks[len(chunks)-1]
	n, full := len(*chunk), (*chunk)[:len(*chunk)+len(digests)]
	n += kernels.Arrivals(e.keys[kind], digests, rate, c.Limit, c.horizon, w.encoder.registers[a], full[n:],
		&w.encoder.scratch)
	*chunk = full[:n]
}

// group sorts digests by label. offsets has one entry per cluster and one more.
func group(digests []Digest, labels []uint16, dst []Digest, offsets []int) {
	clear(offsets)
	for _, a := range labels {
		offsets[a+1]++
	}
	for a := 1; a < len(offsets); a++ {
		offsets[a] += offsets[a-1]
	}
	for i, a := range labels {
		dst[offsets[a]] = digests[i]
		offsets[a]++
	}
	copy(offsets[1:], offsets[:len(offsets)-1])
	offsets[0] = 0
}
