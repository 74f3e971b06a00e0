package dataset

import (
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/cohort-engine/cohort/internal/pages"
	"github.com/cohort-engine/cohort/kernels"
)

// sink takes points on the grid.
type sink interface {
	// place puts the rows of a block on the grid and packs them, if their place is known
	// and their panels are not shared with another; several workers call it.
	place(*Block, *kernels.UnitMap) bool
	skip(n int)                         // counts points that are in their place
	append(rows []float32, n int) error // packs the next n points, given row by row
	finish() (*kernels.Panels, error)   // returns the panels of all points
	release()                           // gives back what is not in use
}

// pieceBytes bounds the size of a piece of panels.
const pieceBytes = 16 << 20

// pointsPerPiece is the number of points of d dimensions in a piece of panels, a
// multiple of the lanes.
func pointsPerPiece(d int) int { return max(pieceBytes/4/d/kernels.Lanes, 1) * kernels.Lanes }

// panelSink takes points on the grid in order and ends with panels of all. Where
// their number is known beforehand they go to their place. Otherwise they are
// gathered in pieces of memory of their own, which go back to the system one by one
// as they are copied, so that the peak is the panels and a piece for each worker.
type panelSink struct {
	d, n   int
	panels *kernels.Panels // of all, if their number is known
	pieces []piece
	each   int // points of a piece
	about  int // bytes of all panels, as far as the source tells
	// workers copy pieces.
	workers int
}

// piece is panels in memory that is given back.
type piece struct {
	panels kernels.Panels
	memory []byte
	huge   bool // huge pages were asked for
}

// hugeFrom is the size of panels from which on huge pages are asked for: one takes as long to clear as many small ones.
const hugeFrom = pages.Huge

func newPanelSink(known int, of *Schema, workers int) *panelSink {
	d := of.D
	s := &panelSink{d: d, workers: workers}
	switch {
	case known > 0:
		s.panels = newPanels(known, d)
	case of.RowBytes > 0:
		s.about = int(4 * float64(d) * float64(of.Size) / float64(of.RowBytes))
	}
	s.each = pointsPerPiece(d)
	return s
}

func (s *panelSink) place(b *Block, units *kernels.UnitMap) bool {
	const lanes = kernels.Lanes
	lo, hi := b.Record, b.Record+b.N
	if s.panels == nil || lo < 0 || lo%lanes != 0 || hi > s.panels.N || (hi%lanes != 0 && hi != s.panels.N) {
		return false
	}
	// What is on the grid stays in the first cache until it is packed.
	rows := chunkRows(s.d)
	if room := rows*s.d + lanes; cap(b.grid) < room { // packing reads a little more
		b.grid = make([]float32, room)
	}
	for at := 0; at < b.N; at += rows {
		end := min(at+rows, b.N)
		grid := b.grid[:(end-at)*s.d]
		b.stats.clamped += kernels.Quantise(grid, b.Rows[at*s.d:end*s.d], units)
		to := s.panels.Slice(lo+at, lo+end)
		kernels.Pack(&to, grid)
	}
	return true
}

func (s *panelSink) skip(n int) { s.n += n }

func (s *panelSink) append(rows []float32, n int) error {
	for n > 0 {
		target, at, err := s.tail()
		if err != nil {
			return err
		}
		count := packInto(target, at, rows, n)
		rows, n, s.n = rows[count*s.d:], n-count, s.n+count
	}
	return nil
}

// packInto packs some of n points, at least one, into panels from point at on, and
// returns how many.
func packInto(target *kernels.Panels, at int, rows []float32, n int) int {
	const lanes = kernels.Lanes
	count := min(n, target.N-at)
	if at%lanes == 0 {
		to := target.Slice(at, at+count)
		kernels.Pack(&to, rows[:count*target.D])
		return count
	}
	// The rest of a panel that holds points already.
	count = min(count, lanes-at%lanes)
	for i := range count {
		target.Set(at+i, rows[i*target.D:(i+1)*target.D])
	}
	return count
}

// tail returns the panels that the next point goes to, and where.
func (s *panelSink) tail() (*kernels.Panels, int, error) {
	if s.panels != nil {
		return s.panels, s.n, nil
	}
	last := s.n / s.each
	if last == len(s.pieces) {
		bytes := 4 * s.each * s.d
		memory, err := mapMemory(bytes + hugeFrom)
		if err != nil {
			return nil, 0, err
		}
		// A piece begins where a huge page can, and what is before it is never touched.
		skip := int(-uintptr(unsafe.Pointer(unsafe.SliceData(memory))) & (hugeFrom - 1))
		data := asFloat32(memory[skip : skip+bytes])
		s.pieces = append(s.pieces, piece{panels: kernels.Panels{N: s.each, D: s.d, Data: data}, memory: memory})
	}
	p := &s.pieces[last]
	if !p.huge && max(4*s.n*s.d, s.about) >= hugeFrom {
		pages.Advise(p.memory)
		p.huge = true
	}
	return &p.panels, s.n % s.each, nil
}

func (s *panelSink) finish() (*kernels.Panels, error) {
	if s.panels != nil {
		return s.panels, nil
	}
	all := newPanels(s.n, s.d)
	var next atomic.Int64
	var copying sync.WaitGroup
	for range min(s.workers, len(s.pieces)) {
		copying.Go(func() {
			for i := int(next.Add(1)) - 1; i < len(s.pieces); i = int(next.Add(1)) - 1 {
				copy(all.Data[i*s.each*s.d:], s.pieces[i].panels.Data)
				s.pieces[i].release()
			}
		})
	}
	copying.Wait()
	return all, nil
}

func (s *panelSink) release() {
	for i := range s.pieces {
		s.pieces[i].release()
	}
}

func (p *piece) release() {
	if p.memory != nil {
		unmapMemory(p.memory)
		p.memory, p.panels.Data = nil, nil
	}
}
