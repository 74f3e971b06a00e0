package dataset

import (
	"context"
	"errors"
	"iter"
	"runtime"
	"sync"
)

// blocksPerWorker is how many blocks are decoded ahead of the one that is next in
// order, per worker: a worker whose block takes long does not stop the others. Of
// a source that takes no time to read there are fewer.
const (
	blocksPerWorker     = 3
	fewerBlocksByWorker = 2
)

// aheadBytes is how many bytes of large blocks are decoded at a time, if that is more
// than a block per worker.
const aheadBytes = 48 << 20

// errStop ends a pass whose error is known already.
var errStop = errors.New("stopped")

// inOrder decodes the chunks of a source on several workers: work is called for
// each block by the worker that decoded it, put for each in the order of the
// source, one at a time. The first error in that order ends the pass. A block is
// used again when put has returned, and by further passes with the same options.
func inOrder(ctx context.Context, s Source, schema *Schema, read *ReadOptions, work, put func(*Block) error) error {
	workers := read.threads()
	if workers == 1 {
		return oneByOne(ctx, s, schema, read, work, put)
	}
	count := workers * blocksPerWorker
	if schema.Cheap {
		count = workers * fewerBlocksByWorker
	}
	if schema.BlockBytes > 0 {
		count = int(min(max(aheadBytes/schema.BlockBytes, int64(workers)), int64(count)))
	}
	p := &pass{put: put, ring: make([]*task, count)}
	p.freed = sync.NewCond(&p.mu)
	for range count {
		p.free = append(p.free, &task{block: read.takeBlock()})
	}
	var failure error // of the source
	next, stop := iter.Pull(func(yield func(Chunk) bool) {
		failure = s.Chunks(ctx, func(c Chunk) error {
			if err := ctx.Err(); err != nil {
				return err
			}
			if !yield(c) {
				return errStop
			}
			return nil
		})
	})
	var others sync.WaitGroup
	for range workers - 1 {
		others.Go(func() { p.run(next, schema, work) })
	}
	p.run(next, schema, work)
	others.Wait()
	stop()
	for _, t := range p.free {
		read.spare = append(read.spare, t.block)
	}
	if p.err != nil {
		return p.err
	}
	return failure
}

// pass is what the workers of a pass share. Each takes the next chunk, of which much is then in its own cache, and
// whoever ends the block that is next in order puts it and those behind it that are ready.
type pass struct {
	put func(*Block) error

	reading sync.Mutex // of the source
	read    int        // chunks so far

	mu      sync.Mutex
	freed   *sync.Cond
	free    []*task
	ring    []*task // that are ready, by their number
	next    int     // number of the block to put
	putting bool
	err     error // the first in order
}

// task is a block with the number of its chunk.
type task struct {
	block *Block
	at    int
	err   error
}

// run is one worker's part.
func (p *pass) run(next func() (Chunk, bool), schema *Schema, work func(*Block) error) {
	for {
		t := p.take()
		if t == nil {
			return
		}
		p.reading.Lock()
		chunk, ok := next()
		t.at = p.read
		p.read++
		p.reading.Unlock()
		if !ok {
			p.give(t)
			return
		}
		t.block.reset(schema)
		if t.err = chunk.Decode(t.block); t.err == nil {
			t.err = work(t.block)
		}
		p.ended(t)
	}
}

// take waits for a block that is not in use; nil ends the pass.
func (p *pass) take() *task {
	p.mu.Lock()
	defer p.mu.Unlock()
	for len(p.free) == 0 && p.err == nil {
		p.freed.Wait()
	}
	if p.err != nil {
		return nil
	}
	last := len(p.free) - 1
	t := p.free[last]
	p.free = p.free[:last]
	return t
}

func (p *pass) give(t *task) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.free = append(p.free, t)
	p.freed.Signal()
}

// ended puts t, and what is ready behind it, unless one before it is yet to be put or another worker is at it.
func (p *pass) ended(t *task) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ring[t.at%len(p.ring)] = t
	for !p.putting {
		slot := &p.ring[p.next%len(p.ring)]
		first := *slot
		if first == nil {
			return
		}
		*slot = nil
		p.next++
		if p.err == nil {
			p.err = first.err
		}
		if p.err == nil {
			p.putting = true
			p.mu.Unlock()
			err := p.put(first.block)
			p.mu.Lock()
			p.putting, p.err = false, err
		}
		p.free = append(p.free, first)
		if p.freed.Signal(); p.err != nil {
			p.freed.Broadcast()
		}
	}
}

// threads is the number of workers.
func (o *ReadOptions) threads() int {
	if o.Workers < 1 {
		return runtime.GOMAXPROCS(0)
	}
	return o.Workers
}

// takeBlock is a block for a pass, one of a pass before if there was any.
func (o *ReadOptions) takeBlock() *Block {
	if last := len(o.spare) - 1; last >= 0 {
		b := o.spare[last]
		o.spare = o.spare[:last]
		return b
	}
	return &Block{Missing: o.Missing}
}

// oneByOne is inOrder on the caller's thread alone.
func oneByOne(ctx context.Context, s Source, schema *Schema, read *ReadOptions, work, put func(*Block) error) error {
	b := read.takeBlock()
	defer func() { read.spare = append(read.spare, b) }()
	return s.Chunks(ctx, func(c Chunk) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		b.reset(schema)
		if err := c.Decode(b); err != nil {
			return err
		}
		if err := work(b); err != nil {
			return err
		}
		return put(b)
	})
}
