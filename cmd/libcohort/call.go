package main

/*
#include <string.h>
#include "types.h"
*/
import "C"

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/cohort-engine/cohort/engine"
	"github.com/cohort-engine/cohort/engine/privacy"
	"github.com/cohort-engine/cohort/internal/fault"
)

// handles are what programs have handles of: pointers into this memory must not be kept by C. Numbers are not used
// again.
var handles sync.Map // of uintptr

var lastHandle atomic.Uintptr

func keep(x any) C.uintptr_t {
	h := lastHandle.Add(1)
	handles.Store(h, x)
	return C.uintptr_t(h)
}

func forget(h C.uintptr_t) { handles.Delete(uintptr(h)) }

// errHandle is wrapped by the refusal of what is no handle.
var errHandle = errors.New("no handle")

func find[T any](what string, h C.uintptr_t) (T, error) {
	v, _ := handles.Load(uintptr(h))
	x, ok := v.(T)
	if !ok {
		return x, &fault.Error{What: what, Why: "is no handle, or was freed",
			Do: "give what the library has handed over, until it is freed", Wrong: true, Err: errHandle}
	}
	return x, nil
}

// null refuses a pointer that is NULL, or to too little.
func null(what string) error {
	return fault.Request(what, "is NULL, or has too little room", "give a pointer to enough memory")
}

// call is a call of the library.
type call struct {
	cancel context.CancelFunc
	c      *C.cohort_call
}

// pollEvery is how often the cancel flag is looked at.
const pollEvery = 2 * time.Millisecond

// aside is run for work that takes a while: a goroutine that a program calls is bound to the program's thread, and the
// system changes threads whenever it waits for another goroutine, so the work gets a goroutine that is free.
func aside(c *C.cohort_call, work func(context.Context, *call) error) C.int32_t {
	return run(c, func(ctx context.Context, k *call) error {
		done := make(chan error, 1)
		go func() { done <- k.safely(ctx, work) }()
		return <-done
	})
}

// run does the work of a function and says how it went.
func run(c *C.cohort_call, work func(context.Context, *call) error) (status C.int32_t) {
	ctx, k := context.Background(), &call{c: c}
	if c != nil {
		c.status, c.text[0] = C.COHORT_OK, 0
		if c.cancel != nil || c.progress != nil {
			ctx, k.cancel = context.WithCancel(ctx)
			defer k.watch()()
		}
	}
	err := k.safely(ctx, work)
	if err == nil {
		return C.COHORT_OK
	}
	status = statusOf(err)
	if c != nil {
		c.status = status
		message := fault.Plain(strings.ToValidUTF8(err.Error(), "?"))
		if status == C.COHORT_CANCELLED {
			message = "call: was cancelled: call again for a result"
		}
		to := unsafe.Slice((*byte)(unsafe.Pointer(&c.text[0])), len(c.text))
		to[copy(to, fault.Cut(message, len(to)-1))] = 0
	}
	return status
}

// safely turns a panic, which would end the program, into an error.
func (k *call) safely(ctx context.Context, work func(context.Context, *call) error) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fault.Failed("library", fmt.Sprintf("has a fault (%v)", r), "report it with what was asked for", nil)
		}
	}()
	return work(ctx, k)
}

// watch cancels the work when the flag is set, until done is called.
func (k *call) watch() (done func()) {
	if k.c.cancel == nil {
		return k.cancel
	}
	flag := (*int32)(unsafe.Pointer(k.c.cancel))
	if atomic.LoadInt32(flag) != 0 {
		k.cancel()
		return func() {}
	}
	stop, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		tick := time.NewTicker(pollEvery)
		defer tick.Stop()
		for {
			select {
			case <-stop:
				return
			case <-tick.C:
				if atomic.LoadInt32(flag) != 0 {
					k.cancel()
					return
				}
			}
		}
	}()
	return func() {
		close(stop)
		<-ended // the flag is the caller's again
		k.cancel()
	}
}

// statusOf is the status of an error.
func statusOf(err error) C.int32_t {
	switch {
	case errors.Is(err, errHandle):
		return C.COHORT_BAD_HANDLE
	case errors.Is(err, context.Canceled):
		return C.COHORT_CANCELLED
	case errors.Is(err, privacy.ErrBudget):
		return C.COHORT_BUDGET
	case fault.IsRequest(err):
		return C.COHORT_WRONG_REQUEST
	}
	return C.COHORT_FAILED
}

// observer passes progress on, nil if nobody wants to know.
func (k *call) observer() engine.Observer {
	if k.c == nil || k.c.progress == nil {
		return nil
	}
	return reporter{k}
}

// reporter tells the caller of each round.
type reporter struct{ k *call }

func (r reporter) JobBegin(engine.JobInfo)      {}
func (r reporter) PhaseBegin(engine.Span)       {}
func (r reporter) PhaseEnd(engine.Span)         {}
func (r reporter) JobEnd(*engine.Result, error) {}

func (r reporter) IterationEnd(it engine.Iteration) {
	c := r.k.c
	if C.call_progress(c.progress, c.user, C.int64_t(it.Index+1), C.int64_t(it.Total)) != 0 {
		r.k.cancel()
	}
}
