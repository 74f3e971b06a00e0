package dataset

import (
	"context"
	"errors"
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
	type task struct {
		chunk Chunk
		block *Block
		err   error
		done  chan struct{}
	}
	count := workers * blocksPerWorker
	if schema.Cheap {
		count = workers * fewerBlocksByWorker
	}
	if schema.BlockBytes > 0 {
		count = int(min(max(aheadBytes/schema.BlockBytes, int64(workers)), int64(count)))
	}
	free, todo, order := make(chan *task, count), make(chan *task, count), make(chan *task, count)
	for range count {
		free <- &task{block: read.takeBlock(), done: make(chan struct{}, 1)}
	}
	var decoders sync.WaitGroup
	for range workers {
		decoders.Go(func() {
			for t := range todo {
				t.block.reset(schema)
				if t.err = t.chunk.Decode(t.block); t.err == nil {
					t.err = work(t.block)
				}
				t.chunk = nil
				t.done <- struct{}{}
			}
		})
	}
	var first error // of the blocks in order
	stop, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for t := range order {
			<-t.done
			if first == nil {
				if first = t.err; first == nil {
					first = put(t.block)
				}
				if first != nil {
					close(stop)
				}
			}
			free <- t
		}
	}()
	err := s.Chunks(ctx, func(c Chunk) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		select {
		case <-stop:
			return errStop
		case t := <-free:
			t.chunk = c
			order <- t
			todo <- t
			return nil
		}
	})
	close(todo)
	close(order)
	decoders.Wait()
	<-ended
	for range count {
		read.spare = append(read.spare, (<-free).block)
	}
	if first != nil {
		return first
	}
	return err
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
