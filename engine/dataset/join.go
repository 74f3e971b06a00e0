package dataset

import (
	"context"
	"fmt"
	"slices"

	"github.com/cohort-engine/cohort/internal/fault"
)

// Borrowed is records in somebody else's memory: a *Matrix of either type.
type Borrowed interface {
	Check(name string) error
	Widen(rows []float64, lo, hi, stride int)
	Shape() (n, d int)
	Names() []string
}

// Shape is N and D.
func (m *Matrix[T]) Shape() (n, d int) { return m.N, m.D }

// Names is Columns.
func (m *Matrix[T]) Names() []string { return m.Columns }

// Below makes a source of the records of several holders with the same columns, one after the other. They are
// counted as those of a file each (Table.Files), so that each is one client's.
func Below(name string, parts []Borrowed) (Source, error) {
	s, err := join(name, parts)
	if err != nil {
		return nil, err
	}
	for i, p := range parts {
		n, d := p.Shape()
		if _, first := parts[0].Shape(); d != first {
			return nil, fault.Request(holder(name, parts, i), fmt.Sprintf("has %s and the first %d",
				fault.Count(d, "column"), first),
				"give all the same columns")
		}
		if !slices.Equal(p.Names(), parts[0].Names()) {
			return nil, fault.Request(holder(name, parts, i),
				fmt.Sprintf("has columns %q and the first %q", p.Names(), parts[0].Names()), "give all the same columns")
		}
		s.schema.D = d
		s.starts = append(s.starts, s.schema.N)
		s.schema.N += n
	}
	s.schema.Columns, s.schema.Files = parts[0].Names(), len(parts)
	for i, p := range parts {
		n, _ := p.Shape()
		s.holders = append(s.holders, Schema{Name: holder(name, parts, i), N: n, D: s.schema.D, Columns: s.schema.Columns})
	}
	return s, nil
}

// Beside makes a source of the columns that several holders have of the same records, in the same order. The
// columns of each are the second value, by index.
func Beside(name string, parts []Borrowed) (Source, [][]int, error) {
	s, err := join(name, parts)
	if err != nil {
		return nil, nil, err
	}
	var owns [][]int
	named := true
	for i, p := range parts {
		n, d := p.Shape()
		if s.schema.N, _ = parts[0].Shape(); n != s.schema.N {
			return nil, nil, fault.Request(holder(name, parts, i),
				fmt.Sprintf("has %s and the first %d", fault.Count(n, "record"), s.schema.N),
				"give the same records, in the same order")
		}
		s.starts = append(s.starts, s.schema.D)
		own := make([]int, d)
		for j := range own {
			own[j] = s.schema.D + j
		}
		owns = append(owns, own)
		s.schema.D += d
		named = named && p.Names() != nil
		s.schema.Columns = append(s.schema.Columns, p.Names()...)
	}
	if !named {
		s.schema.Columns = nil
	}
	s.beside = true
	return s, owns, nil
}

func join(name string, parts []Borrowed) (*joined, error) {
	if len(parts) == 0 {
		return nil, fault.Request(name, "nobody holds any", "give the records of at least one")
	}
	for i, p := range parts {
		if err := p.Check(holder(name, parts, i)); err != nil {
			return nil, err
		}
	}
	return &joined{parts: parts, schema: Schema{Name: name, Cheap: true}}, nil
}

// holder names the i-th of several parts.
func holder(name string, parts []Borrowed, i int) string {
	if len(parts) == 1 {
		return name
	}
	return fmt.Sprintf("%s, part %d", name, i+1)
}

// joined is the records of several matrices, below or beside each other.
type joined struct {
	parts   []Borrowed
	beside  bool
	starts  []int // first record, or first column, of each
	schema  Schema
	holders []Schema // of each, below each other, for errors
}

func (s *joined) Schema() Schema { return s.schema }

// Chunks cuts the records of each part, or of all at once.
func (s *joined) Chunks(_ context.Context, yield func(Chunk) error) error {
	rows := chunkRows(s.schema.D)
	parts := s.parts
	if s.beside {
		parts = parts[:1]
	}
	for i, p := range parts {
		n, _ := p.Shape()
		for lo := 0; lo < n; lo += rows {
			if err := yield(&joinedChunk{s, i, lo, min(lo+rows, n)}); err != nil {
				return err
			}
		}
	}
	return nil
}

// joinedChunk is the records lo to hi of a part, or of all that are beside each other.
type joinedChunk struct {
	of     *joined
	part   int
	lo, hi int
}

// Decode copies the records to b.
func (c *joinedChunk) Decode(b *Block) error {
	s, d := c.of, c.of.schema.D
	rows := b.Grow(c.hi-c.lo, d)
	if !s.beside {
		b.File, b.Record = c.part, s.starts[c.part]+c.lo
		if len(s.holders) > 1 {
			b.schema, b.before = &s.holders[c.part], s.starts[c.part]
		}
		s.parts[c.part].Widen(rows, c.lo, c.hi, d)
		return nil
	}
	b.Record = c.lo
	for i, p := range s.parts {
		p.Widen(rows[s.starts[i]:], c.lo, c.hi, d)
	}
	return nil
}
