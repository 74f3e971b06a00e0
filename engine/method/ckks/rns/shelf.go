package rns

import "sync"

// Where cores are far apart a row takes a multiple of the time to be written over if another one has written it before:
// transforming a mask of four rows takes half as long again. So free rows are kept apart by whose cache has them.

// shelves are free rows. Of polynomials that all workers compute at once row i is a worker's with all rows of equal
// places modulo the number of workers (place): these have the shelves from 0 on, and a worker's own polynomials the
// shelf of its number.
type shelves struct {
	mu   sync.Mutex
	rows [shelfCount][][]uint32
}

const shelfCount = 12

// neighbours tells at which distances others are looked at where a shelf is empty: those first that are one worker's
// for most numbers of workers.
var neighbours = [shelfCount]int{0, 6, 4, 8, 2, 10, 3, 9, 1, 5, 7, 11}

// take takes a row from a shelf or, where that is empty, another; nil if all are empty.
func (s *shelves) take(shelf int) (row []uint32) {
	for _, d := range neighbours {
		rows := &s.rows[(shelf+d)%shelfCount]
		if n := len(*rows); n > 0 {
			row, *rows = (*rows)[n-1], (*rows)[:n-1]
			return row
		}
	}
	return nil
}

// Room is where polynomials are taken from and go back to: that of one worker, or of all of them.
type Room struct {
	c             *Chain
	first, stride int // row i has the shelf first + stride i
}

// Room is that of polynomials that all workers compute at once.
func (c *Chain) Room() Room { return Room{c: c, stride: 1} }

// Room is that of polynomials which the workspace's operations compute.
func (w *Workspace) Room() Room { return w.room }

// Own makes the workspace's room that of a worker, of several.
func (w *Workspace) Own(worker int) { w.room.first = worker }

// Chain is that of the polynomials.
func (r Room) Chain() *Chain { return r.c }

// NewPoly returns a polynomial of a level with any content. [Room.Free] takes it back.
func (r Room) NewPoly(level int) Poly {
	p, s := make(Poly, level+1), &r.c.shelves
	s.mu.Lock()
	for i := range p {
		p[i] = s.take(r.first + r.stride*i)
	}
	s.mu.Unlock()
	for i, row := range p { // others need not wait for new memory
		if row == nil {
			p[i] = make([]uint32, r.c.n)
		}
	}
	return p
}

// Free keeps the rows of polynomials for later ones. They must not be used any more.
func (r Room) Free(ps ...Poly) {
	for _, p := range ps {
		r.truncate(p, 0)
	}
}

// Wipe is Free of polynomials that were made of a secret, which it clears.
func (r Room) Wipe(ps ...Poly) {
	for _, p := range ps {
		Clear(p)
	}
	r.Free(ps...)
}

// Truncate returns a without the rows above a level, which it frees.
func (r Room) Truncate(a Poly, level int) Poly { return r.truncate(a, level+1) }

func (r Room) truncate(a Poly, rows int) Poly {
	s := &r.c.shelves
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := rows; i < len(a); i++ {
		shelf := &s.rows[(r.first+r.stride*i)%shelfCount]
		*shelf = append(*shelf, a[i])
	}
	return a[:rows]
}
