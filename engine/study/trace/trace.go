// Package trace sends the course of a study to an OpenTelemetry collector: a span of the
// study, in it one of each sum, and in that one of each step, with an event for each party
// that answers or is missed. It has no value that was computed from records.
package trace

import (
	"context"
	"net/url"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/cohort-engine/cohort/engine"
	"github.com/cohort-engine/cohort/engine/study"
	"github.com/cohort-engine/cohort/internal/fault"
)

// Tracer follows one study.
type Tracer struct {
	provider *sdk.TracerProvider
	tracer   trace.Tracer
	// spans that are open: the study's, and nil or those of the sum and step under way
	study, sum, step trace.Span
	number           int // of the sum
	// first is the first step of a sum that nobody has answered yet, since at: the sum after
	// the last has no other.
	first string
	at    time.Time
}

// Start sends what watch hears from now on to a collector, by OTLP over HTTP. name is what
// the study is called there.
func Start(ctx context.Context, collector, name string, watch *study.Watch) (*Tracer, error) {
	u, err := url.Parse(collector)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return nil, fault.Request("--traces", collector+" is no URL of a collector",
			"give one such as http://127.0.0.1:4318")
	}
	if u.Path == "" || u.Path == "/" {
		u.Path = "/v1/traces"
	}
	exporter, err := otlptracehttp.New(ctx, otlptracehttp.WithEndpointURL(u.String()))
	if err != nil {
		return nil, fault.Failed("--traces", err.Error(), "check the address of the collector", err)
	}
	// OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES, which come last, win.
	of, err := resource.New(ctx, resource.WithTelemetrySDK(), resource.WithAttributes(
		attribute.String("service.name", "cohort"), attribute.String("service.version", engine.Version)),
		resource.WithFromEnv())
	if err != nil {
		return nil, fault.Failed("--traces", err.Error(), "mend OTEL_RESOURCE_ATTRIBUTES", err)
	}
	t := &Tracer{provider: sdk.NewTracerProvider(sdk.WithBatcher(exporter), sdk.WithResource(of))}
	t.tracer = t.provider.Tracer("cohort", trace.WithInstrumentationVersion(engine.Version))
	_, t.study = t.tracer.Start(context.WithoutCancel(ctx), name)
	watch.Listen(t.hear)
	return t, nil
}

// hear takes an event.
func (t *Tracer) hear(e study.Event) {
	switch e.Kind {
	case study.StepBegan:
		if e.Sum != t.number {
			t.endSum()
			t.number, t.first, t.at = e.Sum, e.Step, time.Now()
			return
		}
		t.open()
		t.endStep()
		t.step = t.begin(t.sum, e.Step)
	case study.Answered:
		t.open()
		t.step.AddEvent("answered", trace.WithAttributes(attribute.String("party", e.Party),
			attribute.Float64("ms", float64(e.Took)/float64(time.Millisecond))))
	case study.Missed:
		t.open()
		t.step.AddEvent("missed", trace.WithAttributes(attribute.String("party", e.Party)))
	case study.SumDone:
		t.open()
		t.endSum()
	case study.Ended:
		t.endSum()
		if e.State != "done" {
			t.study.SetStatus(codes.Error, e.State)
		}
		t.study.End()
	}
}

// open begins the span of the sum under way and of its first step, if it has not.
func (t *Tracer) open() {
	if t.sum != nil {
		return
	}
	since := trace.WithTimestamp(t.at)
	t.sum = t.begin(t.study, "sum", since, trace.WithAttributes(attribute.Int("sum", t.number)))
	t.step = t.begin(t.sum, t.first, since)
}

// begin opens a span inside another.
func (t *Tracer) begin(in trace.Span, name string, options ...trace.SpanStartOption) trace.Span {
	_, span := t.tracer.Start(trace.ContextWithSpan(context.Background(), in), name, options...)
	return span
}

func (t *Tracer) endStep() {
	if t.step != nil {
		t.step.End()
		t.step = nil
	}
}

func (t *Tracer) endSum() {
	t.endStep()
	if t.sum != nil {
		t.sum.End()
		t.sum = nil
	}
}

// Close sends what has not been sent, for some seconds at most.
func (t *Tracer) Close() error {
	t.study.End() // again, where the study has ended
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	return t.provider.Shutdown(ctx)
}
