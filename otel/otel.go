// Package latchkeyotel tells OpenTelemetry what the locks and semaphores of a client do: as metrics, and as
// spans that join the traces of their callers.
//
//	hooks, err := latchkeyotel.Observer()
//	...
//	c, err := latchkey.Open(url, latchkey.WithObserver(hooks))
//
// # Metrics
//
//	latchkey.lock.wait.duration  s             histogram: how long calls took to get or pass it
//	latchkey.lock.hold.duration  s             histogram: how long it was held
//	latchkey.lock.waiters        {waiter}      how many calls wait for others now
//	latchkey.lock.holds          {hold}        how many holds there are now
//	latchkey.lock.contentions    {contention}  how many calls have had to wait for others
//	latchkey.lock.lost           {hold}        how many holds have ended without a release
//
// Each has the attribute latchkey.primitive: the [latchkey.Kind]. The durations also have latchkey.outcome.
// For a hold it is "released" or "lost". For a wait it is
//
//	acquired     also for an Await of a latch or barrier that has passed
//	refused      ErrNotAcquired
//	unavailable  ErrUnavailable, also if its context has ended
//	canceled     its context has ended
//	failed       any other error
//
// An Await is not one of the waiters: they wait for others to let go. Plain permits (package semaphore,
// Counting) have no holds, because any process may give them back.
//
// The name of a lock is no attribute, because there may be any number of names: see [WithName].
//
// # Traces
//
// If the context of a call has a recorded span, that span gets two children: "latchkey wait", and after the
// hold "latchkey hold". Both have the name, the prefix and the token. A call without such a span has none: no
// lock begins a trace. The span of a hold is made when the hold ends. So spans of the work under the lock are
// its siblings, and not its children.
package latchkeyotel

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"github.com/latchkey-go/latchkey"
)

// scope is the name under which the instruments and spans are made.
const scope = "github.com/latchkey-go/latchkey/otel"

// The attributes.
const (
	primitive = attribute.Key("latchkey.primitive")
	outcome   = attribute.Key("latchkey.outcome")
	nameKey   = attribute.Key("latchkey.name")
	prefixKey = attribute.Key("latchkey.prefix")
	tokenKey  = attribute.Key("latchkey.token")
)

// Option configures [Observer].
type Option func(*config)

type config struct {
	meters  metric.MeterProvider
	tracers trace.TracerProvider
	name    func(latchkey.Kind, string) string
}

// WithMeterProvider sets where the instruments are made. Default, and for nil: the global provider.
func WithMeterProvider(p metric.MeterProvider) Option {
	return func(c *config) { c.meters = p }
}

// WithTracerProvider sets where the spans are made. Default, and for nil: the global provider.
func WithTracerProvider(p trace.TracerProvider) Option {
	return func(c *config) { c.tracers = p }
}

// WithName adds the attribute latchkey.name to the metrics. f makes it of the name that New was given. Each
// value is a time series of its own in each metric, for ever: f must map all names to a few, as "orders:42"
// to "orders". An empty value is left out. f is called for each event, from many goroutines at once. Default,
// and for nil: metrics have no names.
func WithName(f func(kind latchkey.Kind, name string) string) Option {
	return func(c *config) { c.name = f }
}

// Observer returns hooks for [latchkey.WithObserver]. Several clients may share them. It fails if the meter
// provider refuses an instrument.
func Observer(opts ...Option) (latchkey.Observer, error) {
	var c config
	for _, o := range opts {
		o(&c)
	}
	if c.meters == nil {
		c.meters = otel.GetMeterProvider()
	}
	if c.tracers == nil {
		c.tracers = otel.GetTracerProvider()
	}
	m, err := newInstruments(c.meters.Meter(scope))
	if err != nil {
		return latchkey.Observer{}, fmt.Errorf("latchkeyotel: %w", err)
	}
	t := &telemetry{instruments: m, tracer: c.tracers.Tracer(scope), name: c.name}
	return latchkey.Observer{
		Waiting: t.waiting, Acquired: t.acquired, Failed: t.failed, Released: t.released, Lost: t.lost, Passed: t.acquired,
	}, nil
}

// telemetry is behind the hooks. It is safe for concurrent use.
type telemetry struct {
	instruments

	known  known
	tracer trace.Tracer
	name   func(latchkey.Kind, string) string
}

func (t *telemetry) waiting(e latchkey.Event) {
	of := t.of(e, "")
	t.waiters.Add(e.Context, 1, of)
	t.contentions.Add(e.Context, 1, of)
}

func (t *telemetry) acquired(e latchkey.Event) {
	t.waited(e, "acquired")
	if holds(e) {
		t.holds.Add(e.Context, 1, t.of(e, ""))
	}
}

func (t *telemetry) failed(e latchkey.Event) {
	if e.Waited == 0 { // a release in the background
		return
	}
	switch {
	case errors.Is(e.Err, latchkey.ErrUnavailable):
		t.waited(e, "unavailable")
	case errors.Is(e.Err, context.Canceled), errors.Is(e.Err, context.DeadlineExceeded):
		t.waited(e, "canceled")
	case errors.Is(e.Err, latchkey.ErrNotAcquired):
		t.waited(e, "refused")
	default:
		t.waited(e, "failed")
	}
}

// waited is told how a call went that wanted something.
func (t *telemetry) waited(e latchkey.Event, how string) {
	if e.Contended {
		t.waiters.Add(e.Context, -1, t.of(e, ""))
	}
	t.waits.Record(e.Context, e.Waited.Seconds(), t.of(e, how))
	t.span(e, "latchkey wait", how, e.Waited)
}

func (t *telemetry) released(e latchkey.Event) {
	if holds(e) {
		t.held(e, "released")
	}
}

func (t *telemetry) lost(e latchkey.Event) {
	t.losses.Add(e.Context, 1, t.of(e, ""))
	t.held(e, "lost")
}

// held is told how a hold has ended.
func (t *telemetry) held(e latchkey.Event, how string) {
	t.holds.Add(e.Context, -1, t.of(e, ""))
	t.heldFor.Record(e.Context, e.Held.Seconds(), t.of(e, how))
	t.span(e, "latchkey hold", how, e.Held)
}

// holds reports whether what was acquired is a hold that ends.
func holds(e latchkey.Event) bool {
	return e.Kind != latchkey.KindCounting && e.Kind != latchkey.KindLatch && e.Kind != latchkey.KindBarrier
}

// of are the attributes of what an event adds to a metric.
func (t *telemetry) of(e latchkey.Event, how string) metric.MeasurementOption {
	if t.name == nil {
		return t.known.of(e.Kind, how)
	}
	all := attributes(e.Kind, how)
	if name := t.name(e.Kind, e.Name); name != "" {
		all = append(all, nameKey.String(name))
	}
	return metric.WithAttributeSet(attribute.NewSet(all...))
}

func attributes(kind latchkey.Kind, how string) []attribute.KeyValue {
	all := append(make([]attribute.KeyValue, 0, 3), primitive.String(string(kind)))
	if how != "" {
		all = append(all, outcome.String(how))
	}
	return all
}

// span makes a span that ends now, beside those of the caller.
func (t *telemetry) span(e latchkey.Event, name, how string, lasted time.Duration) {
	if !trace.SpanFromContext(e.Context).SpanContext().IsSampled() {
		return
	}
	now := time.Now()
	about := append(attributes(e.Kind, how), nameKey.String(e.Name))
	if e.Prefix != "" {
		about = append(about, prefixKey.String(e.Prefix))
	}
	if e.Token > 0 {
		about = append(about, tokenKey.Int64(e.Token))
	}
	_, span := t.tracer.Start(e.Context, name, trace.WithTimestamp(now.Add(-lasted)), trace.WithAttributes(about...))
	if e.Err != nil {
		span.RecordError(e.Err, trace.WithTimestamp(now))
		span.SetStatus(codes.Error, how)
	}
	span.End(trace.WithTimestamp(now))
}
