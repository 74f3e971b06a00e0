package dataset

import (
	"context"
	"errors"
	"runtime"
	"sync"
)

// blocksPerWorker is how many blocks are decoded ahead of the one that is next in
// order, per worker: a worker whose block takes long does not stop the others.
const blocksPerWorker = 3

// aheadBytes is how many bytes of large blocks are decoded at a time, if that is more
// than a block per worker.
const aheadBytes = 48 << 20

// errStop ends a pass whose error is known already.
var errStop = errors.New("stopped")

// inOrder decodes the chunks of a source on several workers: work is called for
// each block by the worker that decoded it, put for each in the order of the
// source, one at a time. The first error in that order ends the pass. A block is
// used again when put has returned.
func inOrder(ctx context.Context, s Source, schema *Schema, missing Missing, workers int, work,
	put func(*Block) error) error {
	if workers < 1 {
		workers = runtime.GOMAXPROCS(0)
	}
	if workers == 1 {
		return oneByOne(ctx, s, schema, missing, work, put)
	}
	type task struct {
		chunk Chunk
		block Block
		err   error
		done  chan struct{}
	}
	count := workers * blocksPerWorker
	if schema.BlockBytes > 0 {
		count = int(min(max(aheadBytes/schema.BlockBytes, int64(workers)), int64(count)))
	}
	free, todo, order := make(chan *task, count), make(chan *task, count), make(chan *task, count)
	for range count {
		free <- &task{block: Block{Missing: missing}, done: make(chan struct{}, 1)}
	}
	var decoders sync.WaitGroup
	for range workers {
		decoders.Go(func() {
			for t := range todo {
				t.block.reset(schema)
				if t.err = t.chunk.Decode(&t.block); t.err == nil {
					t.err = work(&t.block)
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
					first = put(&t.block)
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
	if first != nil {
		return first
	}
	return err
}

// oneByOne is inOrder on the caller's thread alone.
func oneByOne(ctx context.Context, s Source, schema *Schema, missing Missing, work, put func(*Block) error) error {
	b := &Block{Missing: missing}
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
