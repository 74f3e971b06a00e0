// Command libcohort is the C library: package cohort behind the functions of cohort.h. Build it with
// -buildmode=c-shared or c-archive (make libcohort); with the tag full it has the methods under
// homomorphic encryption, too (make libcohort-full).
package main

/*
#include "types.h"
*/
import "C"

import (
	"context"
	"encoding/json"
	"math"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/cohort-engine/cohort"
	"github.com/cohort-engine/cohort/cmd/libcohort/request"
	"github.com/cohort-engine/cohort/engine"
	"github.com/cohort-engine/cohort/engine/method"
)

func main() {}

// The library shares the memory of its host: garbage is collected when it is a quarter of what is in use, but for the
// leastGarbage of small records, where it would stop the workers every few milliseconds. The hot loops make none.
const (
	garbagePercent = 25
	leastGarbage   = 16 << 20
)

func init() { pace(0) }

var garbage atomic.Int64 // percent of what is in use

// pace sets how much garbage there may be while so many numbers are clustered, and after.
func pace(numbers int) {
	percent := max(garbagePercent, 100*leastGarbage/max(4*int64(numbers), leastGarbage/4))
	if garbage.Swap(percent) != percent {
		debug.SetGCPercent(int(percent))
	}
}

//export goMethods
func goMethods(out **C.char, c *C.cohort_call) C.int32_t {
	return run(c, func(context.Context, *call) error {
		if out == nil {
			return null("json")
		}
		*out = nil
		type described struct {
			method.Method
			Options []method.Option `json:"options"`
		}
		var all []described
		for _, m := range methods() {
			all = append(all, described{m, m.Options()})
		}
		return text(out, all)
	})
}

// text hands over a value as JSON.
func text(out **C.char, v any) error {
	b, err := json.Marshal(v)
	if err == nil {
		*out = C.CString(string(b))
	}
	return err
}

//export goEngineNew
func goEngineNew(workers C.int32_t, out *C.uintptr_t, c *C.cohort_call) C.int32_t {
	return run(c, func(context.Context, *call) error {
		if out == nil {
			return null("engine")
		}
		*out = 0
		var options []engine.Option
		if workers != 0 {
			options = append(options, engine.WithWorkers(int(workers)))
		}
		eng, err := engine.New(options...)
		if err == nil {
			*out = keep(eng)
		}
		return err
	})
}

//export goEngineFree
func goEngineFree(h C.uintptr_t) {
	if eng, err := find[*engine.Engine]("engine", h); err == nil {
		forget(h)
		eng.Close()
	}
}

// goFree frees records or a model.
//
//export goFree
func goFree(h C.uintptr_t) {
	switch x, _ := handles.Load(uintptr(h)); r := x.(type) {
	case *request.Prepared:
		r.Close()
	case *model:
	default: // an engine has threads, which goEngineFree ends
		return
	}
	forget(h)
	if pin, held := pins.LoadAndDelete(h); held {
		pin.(*runtime.Pinner).Unpin()
	}
}

//export goPrepare
func goPrepare(e C.uintptr_t, holders *C.cohort_data, count C.int32_t, weights *C.double, options *C.char,
	c *C.cohort_call, out *C.uintptr_t) C.int32_t {
	return aside(c, func(ctx context.Context, k *call) error {
		data, release, err := read(holders, count, weights)
		defer release()
		if err != nil {
			return err
		}
		if out == nil {
			return null("records")
		}
		*out = 0
		eng, o, err := asked(e, options)
		if err != nil {
			return err
		}
		pace(numbers(data))
		records, err := o.Prepare(ctx, data, eng.Workers())
		if err == nil {
			*out = keep(records)
		}
		return err
	})
}

//export goRecordsShape
func goRecordsShape(h C.uintptr_t, rows, columns *C.int64_t) C.int32_t {
	return run(nil, func(context.Context, *call) error {
		r, err := find[*request.Prepared]("records", h)
		if err == nil {
			set(rows, r.N())
			set(columns, r.D())
		}
		return err
	})
}

func set(to *C.int64_t, x int) {
	if to != nil {
		*to = C.int64_t(x)
	}
}

//export goFitRecords
func goFitRecords(e, r C.uintptr_t, options *C.char, c *C.cohort_call, out *C.uintptr_t) C.int32_t {
	return fit(c, e, options, out, func(ctx context.Context, k *call, o *request.Options,
		eng *engine.Engine) (*cohort.Model, error) {
		records, err := find[*request.Prepared]("records", r)
		if err != nil {
			return nil, err
		}
		return o.FitPrepared(ctx, records, methods(), eng, k.observer())
	})
}

//export goFit
func goFit(e C.uintptr_t, holders *C.cohort_data, count C.int32_t, weights *C.double, options *C.char,
	c *C.cohort_call, out *C.uintptr_t) C.int32_t {
	data, release, wrong := read(holders, count, weights)
	defer release()
	return fit(c, e, options, out, func(ctx context.Context, k *call, o *request.Options,
		eng *engine.Engine) (*cohort.Model, error) {
		if wrong != nil {
			return nil, wrong
		}
		pace(numbers(data))
		return o.Fit(ctx, data, methods(), eng, k.observer())
	})
}

// model is what the handle of one stands for.
type model struct {
	*cohort.Model
	// predictor prepares the model when it is first asked for labels.
	predictor func() (*cohort.Predictor, error)
}

func keepModel(m *cohort.Model) C.uintptr_t { return keep(&model{m, sync.OnceValues(m.Predictor)}) }

// asked is the engine of a handle and what a caller's options ask it for.
func asked(e C.uintptr_t, options *C.char) (*engine.Engine, *request.Options, error) {
	eng, err := find[*engine.Engine]("engine", e)
	if err != nil {
		return nil, nil, err
	}
	o, err := request.Parse(C.GoString(options))
	return eng, o, err
}

// fit makes a model of what the options ask for.
func fit(c *C.cohort_call, e C.uintptr_t, options *C.char, out *C.uintptr_t,
	how func(context.Context, *call, *request.Options, *engine.Engine) (*cohort.Model, error)) C.int32_t {
	return aside(c, func(ctx context.Context, k *call) error {
		if out == nil {
			return null("model")
		}
		*out = 0
		eng, o, err := asked(e, options)
		if err != nil {
			return err
		}
		m, err := how(ctx, k, o, eng)
		if err == nil {
			*out = keepModel(m)
		}
		return err
	})
}

//export goModelShape
func goModelShape(h C.uintptr_t, k, columns, rows *C.int64_t) C.int32_t {
	return run(nil, func(context.Context, *call) error {
		m, err := find[*model]("model", h)
		if err == nil {
			set(k, len(m.Centroids))
			set(columns, len(m.Lower))
			set(rows, len(m.Labels))
		}
		return err
	})
}

//export goModelCentroids
func goModelCentroids(h C.uintptr_t, to *C.double, room C.int64_t) C.int32_t {
	return run(nil, func(context.Context, *call) error {
		m, err := find[*model]("model", h)
		if err != nil {
			return err
		}
		d := len(m.Lower)
		if to == nil || int(room) < d*len(m.Centroids) {
			return null("centroids")
		}
		all := unsafe.Slice((*float64)(to), d*len(m.Centroids))
		for j, row := range m.Centroids {
			copy(all[j*d:], row)
		}
		return nil
	})
}

//export goModelLabels
func goModelLabels(h C.uintptr_t, to *C.int32_t, room C.int64_t) C.int32_t {
	return run(nil, func(context.Context, *call) error {
		m, err := find[*model]("model", h)
		if err != nil {
			return err
		}
		if to == nil || int(room) < len(m.Labels) {
			return null("labels")
		}
		copy(unsafe.Slice((*int32)(to), len(m.Labels)), m.Labels)
		return nil
	})
}

// pins are of models whose labels a program looks at where they are, by handle.
var pins sync.Map // of *runtime.Pinner

//export goModelLabelsView
func goModelLabelsView(h C.uintptr_t, to **C.int32_t) C.int32_t {
	return run(nil, func(context.Context, *call) error {
		m, err := find[*model]("model", h)
		if err != nil {
			return err
		}
		if to == nil {
			return null("labels")
		}
		if *to = nil; len(m.Labels) == 0 {
			return nil
		}
		pin := new(runtime.Pinner)
		pin.Pin(&m.Labels[0])
		if _, held := pins.LoadOrStore(h, pin); held { // since a call before
			pin.Unpin()
		}
		*to = (*C.int32_t)(&m.Labels[0])
		return nil
	})
}

//export goModelJSON
func goModelJSON(h C.uintptr_t, out **C.char, c *C.cohort_call) C.int32_t {
	return run(c, func(context.Context, *call) error {
		if out == nil {
			return null("json")
		}
		*out = nil
		m, err := find[*model]("model", h)
		if err != nil {
			return err
		}
		return text(out, m.Model)
	})
}

//export goModelLoad
func goModelLoad(in *C.char, c *C.cohort_call, out *C.uintptr_t) C.int32_t {
	return run(c, func(context.Context, *call) error {
		if out == nil || in == nil {
			return null("json or model")
		}
		*out = 0
		m, err := cohort.Load(strings.NewReader(C.GoString(in)))
		if err == nil {
			*out = keepModel(m)
		}
		return err
	})
}

// fewRows are a block of cohort.Predictor, which the thread that asks labels before another would be awake.
const fewRows = 2048

//export goPredict
func goPredict(e, h C.uintptr_t, in *C.cohort_data, labels *C.int32_t, distances *C.double,
	c *C.cohort_call) C.int32_t {
	how := aside
	if in != nil && in.rows > 0 && in.rows <= fewRows {
		how = run
	}
	return how(c, func(ctx context.Context, k *call) error {
		data, release, err := read(in, 1, nil)
		defer release()
		if err != nil {
			return err
		}
		eng, err := find[*engine.Engine]("engine", e)
		if err != nil {
			return err
		}
		m, err := find[*model]("model", h)
		if err != nil {
			return err
		}
		if data.File != "" {
			return null("data in memory")
		}
		n, _ := data.Parts[0].Shape()
		if n < 1 || int64(n) > math.MaxInt64/8 {
			return data.Parts[0].Check("points")
		}
		var l []int32
		var x []float64
		if labels != nil {
			l = unsafe.Slice((*int32)(labels), n)
		}
		if distances != nil {
			x = unsafe.Slice((*float64)(distances), n)
		}
		p, err := m.predictor()
		if err != nil {
			return err
		}
		return p.Nearest(ctx, eng, data.Parts[0], l, x)
	})
}
