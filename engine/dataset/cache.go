package dataset

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"slices"

	"github.com/cohort-engine/cohort/internal/fault"
	"github.com/cohort-engine/cohort/internal/filelock"
	"github.com/cohort-engine/cohort/kernels"
)

// cache is a file of panels in a folder, for records that do not fit in memory. It
// takes the panels as they are packed, and notes now and then how far the source has
// been read, so that a preparation that was interrupted goes on from there. What is
// in it belongs to one source and one way of putting it on the grid, which its name
// is a digest of. It holds private data: nobody but its owner can read it.
//
// One process at a time prepares a cache. What is in the files is checked before it is used: what is not as it was
// written is prepared anew.
type cache struct {
	lock, panels, labels *os.File
	stateFile            string
	state                cacheState
	d, each              int
	piece                piece   // panels of points from n/each*each on
	held                 []int32 // labels that are in their file
	written              int64   // bytes since the last note
	noteBytes            int64   // between two notes
}

// cacheState is what the file beside the panels says.
type cacheState struct {
	Version  int
	Complete bool
	Chunks   int // of the source that are in the panels
	N, Seen  int
	Clamped  int
	Bounds   Bounds
	Report   Report
	Files    []int
	Starts   []int
	Classes  []string
	Labelled bool
	MayBeIDs []bool
	Last     []float64
	Digests  [][2]uint64 // sums of columnDigests
	// Pieces has a checksum of each piece of the panels, LabelSum one of the labels.
	Pieces   []uint32
	LabelSum uint32
}

const cacheVersion = 2

// text is what the state's file has: the state, and the digest of that on a line of its own.
func (s *cacheState) text() ([]byte, error) {
	b, err := json.Marshal(s)
	return digested(b), err
}

// digested is a text with its digest behind it.
func digested(b []byte) []byte { return fmt.Appendf(b, "\n%x\n", sha256.Sum256(b)) }

// readState reads such a text. One that is not as it was written is nothing to go on from.
func readState(text []byte) (s cacheState) {
	b, digest, _ := bytes.Cut(text, []byte{'\n'})
	if string(digest) != fmt.Sprintf("%x\n", sha256.Sum256(b)) || json.Unmarshal(b, &s) != nil ||
		s.Version != cacheVersion || min(s.Chunks, s.N, s.Seen, s.Clamped) < 0 {
		return cacheState{}
	}
	return s
}

// noteBytes is how much is written between two notes.
const noteBytes = 256 << 20

// openCache opens the cache of a source in a folder, or begins one, when no other process prepares it.
func openCache(ctx context.Context, dir string, s *Schema, opts *PrepareOptions) (*cache, error) {
	switch {
	case s.Identity == "":
		return nil, fault.Request("cache "+dir, s.Name+" has no name under which it could be found again",
			"give files or a built-in set")
	case opts.Read.id != "":
		return nil, fault.Request("cache "+dir, "ids are held in memory", "leave it out")
	}
	fail := func(err error) (*cache, error) { return nil, cacheFault(dir, err) }
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fail(err)
	}
	bounds := "of the records"
	if opts.Bounds != nil {
		bounds = fmt.Sprint(opts.Bounds.Lo, opts.Bounds.Hi)
	}
	if opts.OneScale {
		bounds += " on one scale"
	}
	if opts.Unit {
		bounds += " of length 1"
	}
	digests := ""
	if opts.DigestKey != nil {
		digests = string(opts.DigestKey[:])
	}
	key := sha256.Sum256(fmt.Appendf(nil, "%d\n%s\n%s\n%d\n%s\n%x\n%t", cacheVersion, s.Identity, bounds,
		opts.FractionBits, opts.Read.Missing, digests, opts.NoLabels))
	base := filepath.Join(dir, fmt.Sprintf("%x", key[:12]))
	c := &cache{stateFile: base + ".json", d: s.D, each: pointsPerPiece(s.D), noteBytes: noteBytes}
	if opts.noteBytes > 0 {
		c.noteBytes = opts.noteBytes
	}
	if err := c.open(ctx, base); err != nil {
		c.release()
		if ctx.Err() != nil {
			return nil, err
		}
		return fail(err)
	}
	if text, err := os.ReadFile(c.stateFile); err == nil {
		c.state = readState(text)
	}
	if !c.state.fits(s, opts) || !c.whole(opts.Read.threads()) {
		c.state, c.held = cacheState{}, nil
	}
	if !c.state.Complete {
		if err := checkDisk(dir, s, c.bytes()); err != nil {
			c.release()
			return nil, err
		}
		if err := c.resume(); err != nil {
			c.release()
			return fail(err)
		}
	}
	return c, nil
}

// open opens the files, alone: whoever prepares them now is waited for.
func (c *cache) open(ctx context.Context, base string) (err error) {
	for ending, f := range map[string]**os.File{".lock": &c.lock, ".panels": &c.panels, ".labels": &c.labels} {
		if *f, err = os.OpenFile(base+ending, os.O_RDWR|os.O_CREATE, 0o600); err != nil {
			return err
		}
	}
	held := make(chan bool)
	go func(lock *os.File) {
		_ = filelock.Wait(lock) // a file system without locks is taken as it is
		select {
		case held <- true:
		case <-ctx.Done():
			lock.Close()
		}
	}(c.lock)
	select {
	case <-held:
		return nil
	case <-ctx.Done():
		c.lock = nil
		return ctx.Err()
	}
}

func cacheFault(dir string, err error) error {
	return fault.Failed("cache "+dir, err.Error(), "check the folder, its rights and its space", err)
}

// bytes is the size of the panels of the points so far.
func (c *cache) bytes() int64 {
	return int64((c.state.N+kernels.Lanes-1)/kernels.Lanes) * int64(4*kernels.Lanes*c.d)
}

// resume reads the piece back that the next point belongs to.
func (c *cache) resume() error {
	memory, err := mapMemory(4 * c.each * c.d)
	if err != nil {
		return err
	}
	c.piece = piece{panels: kernels.Panels{N: c.each, D: c.d, Data: asFloat32(memory)}, memory: memory}
	start := c.pieceStart()
	_, err = c.panels.ReadAt(memory[:c.bytes()-start], start)
	return err
}

// pieceStart is the place in the file of the piece of the next point.
func (c *cache) pieceStart() int64 {
	return int64(c.state.N/c.each) * int64(4*c.each*c.d)
}

// append takes the next points.
func (c *cache) append(rows []float32, n int) error {
	for n > 0 {
		at := c.state.N % c.each
		count := packInto(&c.piece.panels, at, rows, n)
		rows, n = rows[count*c.d:], n-count
		start := c.pieceStart()
		c.written += int64(4 * count * c.d)
		if c.state.N += count; c.state.N%c.each == 0 {
			if _, err := c.panels.WriteAt(c.piece.memory, start); err != nil {
				return err
			}
			c.sum(c.state.N/c.each-1, c.piece.memory)
			clear(c.piece.memory)
		}
	}
	return nil
}

func (c *cache) place(*Block, *kernels.UnitMap) bool { return false }
func (c *cache) skip(int)                            {}

// advance notes that the next chunk of the source is in the panels, with what the
// collector has of it.
func (c *cache) advance(from *collector, digest *columnDigests) error {
	c.state.Chunks++
	if c.written < c.noteBytes {
		return nil
	}
	return c.note(from, digest)
}

// note makes what is in the panels survive an interruption.
func (c *cache) note(from *collector, digest *columnDigests) error {
	c.written = 0
	start := c.pieceStart()
	if rest := c.piece.memory[:c.bytes()-start]; len(rest) > 0 {
		if _, err := c.panels.WriteAt(rest, start); err != nil {
			return err
		}
		c.sum(c.state.N/c.each, rest)
	}
	t := &from.table
	s := &c.state
	s.Version, s.Seen, s.Clamped, s.Report = cacheVersion, from.seen, from.clamped, t.Report
	s.Files, s.Starts, s.Classes, s.MayBeIDs, s.Last = t.Files, t.starts, from.names, from.alive, from.last
	if s.Labelled = len(t.Labels) > 0; s.Labelled {
		if err := c.writeLabels(t.Labels); err != nil {
			return err
		}
	}
	if digest != nil {
		s.Digests = digest.sums
	}
	if err := c.panels.Sync(); err != nil {
		return err
	}
	text, err := s.text()
	if err != nil {
		return err
	}
	next := c.stateFile + ".next"
	if err := os.WriteFile(next, text, 0o600); err != nil {
		return err
	}
	return os.Rename(next, c.stateFile)
}

// writeLabels writes the labels that came since the last note.
func (c *cache) writeLabels(labels []int32) error {
	b := make([]byte, 0, 1<<16)
	for len(c.held) < len(labels) {
		at := len(c.held)
		next := labels[at:min(at+1<<14, len(labels))]
		b = labelBytes(b[:0], next)
		if _, err := c.labels.WriteAt(b, int64(4*at)); err != nil {
			return err
		}
		c.state.LabelSum = crc32.Update(c.state.LabelSum, checksums, b)
		c.held = labels[:at+len(next)]
	}
	return c.labels.Sync()
}

// restore gives the collector, and the digest, what was noted.
func (c *cache) restore(to *collector, digest *columnDigests) {
	s := &c.state
	to.n, to.seen, to.clamped = s.N, s.Seen, s.Clamped
	t := &to.table
	t.Report, t.starts, to.names, to.alive, to.last = s.Report, s.Starts, s.Classes, s.MayBeIDs, s.Last
	if s.Files != nil {
		t.Files = slices.Clone(s.Files)
	}
	for class, name := range s.Classes {
		to.classes[name] = int32(class)
	}
	t.Labels = c.held
	if digest != nil {
		copy(digest.sums, s.Digests)
	}
}

// finish maps the panels of all points.
func (c *cache) finish() (*kernels.Panels, error) {
	memory, err := mapFile(c.panels, c.bytes())
	if err != nil {
		return nil, err
	}
	return &kernels.Panels{N: c.state.N, D: c.d, Data: asFloat32(memory), Mapped: true}, nil
}

// release closes the files; what is mapped stays.
func (c *cache) release() {
	c.piece.release()
	for _, f := range []*os.File{c.panels, c.labels, c.lock} {
		f.Close() // which may be nil
	}
}

// Close gives back the memory of the records, which must not be used afterwards: the
// mapping of those that were prepared in a cache; that of others serves those that are
// prepared next. Records in memory need no Close.
func (p *Prepared) Close() {
	switch {
	case p.mapped:
		unmapMemory(asBytes(p.Points.Data))
	case p.Points != nil:
		spare.put(p.Points)
	}
	p.Points, p.mapped = nil, false
}

// later is a source without its first chunks.
type later struct {
	Source
	skip int
}

// Chunks leaves out the first chunks.
func (l later) Chunks(ctx context.Context, yield func(Chunk) error) error {
	at := 0
	return l.Source.Chunks(ctx, func(c Chunk) error {
		if at++; at <= l.skip {
			return ctx.Err()
		}
		return yield(c)
	})
}
