// Command playground is Cohort in a browser: it clusters a file that never leaves the
// page. `make playground` builds it into one HTML page that needs no network.
package main

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"syscall/js"
	"time"

	"github.com/cohort-engine/cohort/bench/page"
	"github.com/cohort-engine/cohort/engine"
	"github.com/cohort-engine/cohort/engine/catalog/standard"
	"github.com/cohort-engine/cohort/engine/dataset"
	"github.com/cohort-engine/cohort/engine/privacy"
	"github.com/cohort-engine/cohort/engine/protocol"
	"github.com/cohort-engine/cohort/internal/fault"
)

func main() {
	js.Global().Set("cohortSample", js.FuncOf(func(_ js.Value, args []js.Value) any {
		text, err := sample(args[0].Int())
		return answer(map[string]any{"text": text}, err)
	}))
	js.Global().Set("cohortRun", js.FuncOf(func(_ js.Value, args []js.Value) any {
		data := make([]byte, args[0].Length())
		js.CopyBytesToGo(data, args[0])
		r := request{name: args[1].String(), k: args[2].Int(), epsilon: args[3].Float(),
			bounds: strings.TrimSpace(args[4].String())}
		start := time.Now()
		html, err := r.run(data)
		return answer(map[string]any{"html": html, "seconds": time.Since(start).Seconds()}, err)
	}))
	js.Global().Call("cohortReady", engine.Version)
	select {} // the page calls
}

// answer is what the page gets: values, or an error in words.
func answer(values map[string]any, err error) any {
	if err != nil {
		return map[string]any{"error": err.Error()}
	}
	return values
}

// request is what the page asks for.
type request struct {
	name    string
	k       int
	epsilon float64 // 0 for none
	bounds  string  // lo:hi, empty for those of the data
}

// run clusters the bytes of a file and returns the page of the result.
func (r request) run(data []byte) (string, error) {
	ctx := context.Background()
	source, err := dataset.OpenSource(ctx, "-", dataset.ReadOptions{Stdin: bytes.NewReader(data), Workers: 1})
	if err != nil {
		return "", err
	}
	options := dataset.PrepareOptions{Read: dataset.ReadOptions{Workers: 1}, NoLabels: true}
	if r.bounds != "" {
		b, err := dataset.ParseBounds(r.bounds, source.Schema().D)
		if err != nil {
			return "", err
		}
		options.Bounds = &b
	}
	records, err := dataset.Prepare(ctx, source, options)
	if err != nil {
		return "", err
	}
	if r.k < 1 || r.k > records.Points.N {
		return "", fault.Range("k", r.k, fmt.Sprintf("1 to %d", records.Points.N))
	}
	clients, err := records.Split(1, nil, 0)
	if err != nil {
		return "", err
	}
	d := protocol.Problem{Bounds: records.Normalised.Bounds, Clamped: records.Normalised.Clamped, Clients: clients,
		K: r.k, NoQuality: true}
	if r.epsilon != 0 {
		d.Budget = privacy.Budget{Epsilon: r.epsilon, Delta: -1}
	}
	job, err := standard.Methods().Job(standard.Default(r.epsilon != 0), d, nil)
	if err != nil {
		return "", err
	}
	var trace engine.Trace
	eng, err := engine.New(engine.WithWorkers(1), engine.WithObserver(&trace))
	if err != nil {
		return "", err
	}
	defer eng.Close()
	res, err := eng.Run(ctx, job)
	if err != nil {
		return "", err
	}
	res.Convergence = trace.Steps
	if r.epsilon != 0 {
		res.Timings = nil // they depend on the records
	}
	run := page.Run{Result: res, Data: r.name, Columns: records.Table.Columns, Bounds: records.Bounds,
		Headline: r.headline(res, records.Bounds)}
	var html strings.Builder
	err = run.WriteHTML(&html)
	return html.String(), err
}

// headline says what epsilon covers.
func (r request) headline(res *engine.Result, b dataset.Bounds) []string {
	if r.epsilon == 0 {
		return []string{"no privacy: " + res.Method + " adds no noise"}
	}
	lines := []string{fmt.Sprintf("epsilon %g, delta %.3g, calibration %s", r.epsilon, *res.Delta, res.Calibration)}
	if b.FromData {
		lines = append(lines, "epsilon does not cover the bounds and the number of records, which come from the data")
	} else {
		lines = append(lines, "epsilon does not cover the number of records, which comes from the data")
	}
	return lines
}

// sample is a set of n records of two columns as text.
func sample(n int) (string, error) {
	t, err := dataset.Generate(context.Background(), "blobs",
		dataset.Generator{N: n, D: 2, K: 10, Separation: 3, Seed: 1})
	if err != nil {
		return "", err
	}
	var text strings.Builder
	err = dataset.Write(&text, t)
	return text.String(), err
}
