package trace

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	wire "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"github.com/cohort-engine/cohort/engine"
	"github.com/cohort-engine/cohort/engine/dataset"
	"github.com/cohort-engine/cohort/engine/dataset/datasettest"
	"github.com/cohort-engine/cohort/engine/enginetest"
	"github.com/cohort-engine/cohort/engine/method"
	"github.com/cohort-engine/cohort/engine/study"
	"github.com/cohort-engine/cohort/internal/fault"
)

// A collector is sent a span of the study, in it those of its sums, in them their steps, and
// each party's answers.
func TestSpans(t *testing.T) {
	var mu sync.Mutex
	var spans []*wire.Span
	of := make(map[string]string)
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		request := new(collector.ExportTraceServiceRequest)
		if err != nil || r.URL.Path != "/v1/traces" || proto.Unmarshal(body, request) != nil {
			t.Errorf("a request for %s: %v", r.URL.Path, err)
			return
		}
		mu.Lock()
		defer mu.Unlock()
		for _, resource := range request.GetResourceSpans() {
			for _, a := range resource.GetResource().GetAttributes() {
				of[a.GetKey()] = a.GetValue().GetStringValue()
			}
			for _, scope := range resource.GetScopeSpans() {
				spans = append(spans, scope.GetSpans()...)
			}
		}
	}))
	defer server.Close()
	norm, _ := datasettest.Builtin(t, "blobs", dataset.Generator{N: 90, D: 2, K: 3, Separation: 6, Seed: 5})
	r, err := study.Trial{Method: "sulloyd", Parties: 3, Options: method.Settings{"iterations": "2"}}.Rehearse(norm, 3)
	if err != nil {
		t.Fatal(err)
	}
	r.Watch = study.NewWatch(r.Study)
	tracer, err := Start(t.Context(), server.URL, "a study", r.Watch)
	if err != nil {
		t.Fatal(err)
	}
	eng := enginetest.New(t, engine.WithWorkers(1))
	if _, err := r.Apart(t.Context(), t.TempDir(), func(int) *engine.Engine { return eng }); err != nil {
		t.Fatal(err)
	}
	if err := tracer.Close(); err != nil {
		t.Fatal(err)
	}
	if of["service.name"] != "cohort" || of["service.version"] != engine.Version {
		t.Errorf("spans of %v", of)
	}
	byID := make(map[string]*wire.Span)
	for _, s := range spans {
		byID[string(s.GetSpanId())] = s
	}
	count := make(map[string]int)
	for _, s := range spans {
		parent := "nothing"
		if p := byID[string(s.GetParentSpanId())]; p != nil {
			parent = p.GetName()
		}
		count[s.GetName()+" in "+parent]++
		count["answers"] += len(s.GetEvents())
	}
	for what, want := range map[string]int{"a study in nothing": 1, "sum in a study": 2, "keys in sum": 2,
		"masked vectors in sum": 2, "unmasking in sum": 2, "answers": 2 * 3 * 5} {
		if count[what] != want {
			t.Errorf("%s: %d, expected %d of %v", what, count[what], want, count)
		}
	}
}

func TestCollectorsAddress(t *testing.T) {
	for _, bad := range []string{"", "127.0.0.1:4318", "ftp://collector", "http://"} {
		if _, err := Start(context.Background(), bad, "", study.NewPartyWatch()); !fault.IsRequest(err) {
			t.Errorf("%q: %v", bad, err)
		}
	}
}
