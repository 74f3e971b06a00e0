package dataset

import (
	"encoding/binary"
	"hash/crc32"
	"io"
	"sync"
	"sync/atomic"
)

// checksums are those of a cache's files.
var checksums = crc32.MakeTable(crc32.Castagnoli)

// sum notes the checksum of a piece.
func (c *cache) sum(piece int, memory []byte) {
	c.state.Pieces = append(c.state.Pieces[:piece], crc32.Checksum(memory, checksums))
}

// fits tells whether a state can be one of a source that is prepared so: nothing in it leads beyond what is there.
func (s *cacheState) fits(of *Schema, opts *PrepareOptions) bool {
	files, d := 0, of.D
	if of.Files > 1 {
		files = of.Files
	}
	switch {
	case s.Version == 0: // there is none
		return false
	case s.Seen != s.N+len(s.Report.Dropped) || min(s.Report.Comments, s.Report.Filled) < 0:
		return false
	case len(s.Files) != files || len(s.Starts) > files || s.Complete && len(s.Starts) < files && s.N > 0:
		return false
	case s.N > 0 && (s.Chunks == 0 || !s.Labelled && opts.Read.LabelColumn != "" && !opts.NoLabels):
		return false
	case s.N > 0 && (len(s.MayBeIDs) != d || len(s.Last) != d):
		return false
	case opts.DigestKey != nil && len(s.Digests) != d:
		return false
	case opts.Bounds == nil && (len(s.Bounds.Lo) != d || s.Bounds.Validate("bounds") != nil):
		return false
	}
	dropped := -1
	for _, i := range s.Report.Dropped {
		if i <= dropped || i >= s.Seen {
			return false
		}
		dropped = i
	}
	return true
}

// whole tells whether the files are as the state says, and takes the labels.
func (c *cache) whole(workers int) bool {
	pieces := (c.state.N + c.each - 1) / c.each
	if info, err := c.panels.Stat(); err != nil || len(c.state.Pieces) != pieces || info.Size() < c.bytes() {
		return false
	}
	var next atomic.Int64
	var damaged atomic.Bool
	var checking sync.WaitGroup
	for range min(workers, pieces) {
		checking.Go(func() {
			for i := int(next.Add(1)) - 1; i < pieces && !damaged.Load(); i = int(next.Add(1)) - 1 {
				if c.sumOf(i) != c.state.Pieces[i] {
					damaged.Store(true)
				}
			}
		})
	}
	checking.Wait()
	return !damaged.Load() && c.takeLabels()
}

// sumOf is the checksum of a piece in the file, as far as it is there.
func (c *cache) sumOf(piece int) uint32 {
	start := int64(piece) * int64(4*c.each*c.d)
	h := crc32.New(checksums)
	_, _ = io.Copy(h, io.NewSectionReader(c.panels, start, min(int64(4*c.each*c.d), c.bytes()-start)))
	return h.Sum32()
}

// takeLabels reads the labels, and tells whether they are those that were written.
func (c *cache) takeLabels() bool {
	if !c.state.Labelled {
		return true
	}
	info, err := c.labels.Stat()
	if err != nil || info.Size() < 4*int64(c.state.N) {
		return false
	}
	b := make([]byte, 4*c.state.N)
	if _, err := c.labels.ReadAt(b, 0); err != nil || crc32.Checksum(b, checksums) != c.state.LabelSum {
		return false
	}
	c.held = make([]int32, c.state.N)
	for i := range c.held {
		c.held[i] = int32(binary.LittleEndian.Uint32(b[4*i:]))
		if c.state.Classes != nil && (c.held[i] < 0 || int(c.held[i]) >= len(c.state.Classes)) {
			return false
		}
	}
	return true
}

// labelBytes appends labels as their file has them.
func labelBytes(b []byte, labels []int32) []byte {
	for _, l := range labels {
		b = binary.LittleEndian.AppendUint32(b, uint32(l))
	}
	return b
}
