package latchkeyotel_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/metric/noop"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/countdown"
	"github.com/latchkey-go/latchkey/internal/test/locktest"
	"github.com/latchkey-go/latchkey/internal/test/redistest"
	latchkeyotel "github.com/latchkey-go/latchkey/otel"
	"github.com/latchkey-go/latchkey/rlock"
	"github.com/latchkey-go/latchkey/rueidisclient"
	"github.com/latchkey-go/latchkey/semaphore"
)

// watched is a client, and what its hooks have told.
type watched struct {
	*latchkey.Client
	reader *sdkmetric.ManualReader
	spans  *tracetest.SpanRecorder
	tracer trace.Tracer
}

func watch(t *testing.T, s *redistest.Server, opts ...latchkeyotel.Option) *watched {
	t.Helper()
	w := &watched{reader: sdkmetric.NewManualReader(), spans: tracetest.NewSpanRecorder()}
	meters, tracers := sdkmetric.NewMeterProvider(sdkmetric.WithReader(w.reader)), sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(w.spans))
	w.tracer = tracers.Tracer("test")
	opts = append([]latchkeyotel.Option{latchkeyotel.WithMeterProvider(meters), latchkeyotel.WithTracerProvider(tracers)}, opts...)
	hooks, err := latchkeyotel.Observer(opts...)
	require.NoError(t, err)
	w.Client, err = rueidisclient.New(s.Option(), latchkey.WithObserver(hooks), latchkey.WithKeyPrefix("shop:"), latchkey.WithLease(time.Second))
	require.NoError(t, err)
	t.Cleanup(func() { _ = w.Close() })
	return w
}

// text is a line for each time series: a histogram has its count, anything else its value.
func (w *watched) text(t *testing.T) (lines []string) {
	t.Helper()
	var all metricdata.ResourceMetrics
	require.NoError(t, w.reader.Collect(t.Context(), &all))
	line := func(m metricdata.Metrics, of attribute.Set, n any) {
		lines = append(lines, fmt.Sprintf("%s{%s} %v", m.Name, of.Encoded(attribute.DefaultEncoder()), n))
	}
	for _, scope := range all.ScopeMetrics {
		for _, m := range scope.Metrics {
			switch data := m.Data.(type) {
			case metricdata.Histogram[float64]:
				require.Equal(t, "s", m.Unit)
				for _, p := range data.DataPoints {
					line(m, p.Attributes, p.Count)
				}
			case metricdata.Sum[int64]:
				require.Equal(t, !slices.Contains([]string{"latchkey.lock.waiters", "latchkey.lock.holds"}, m.Name), data.IsMonotonic)
				for _, p := range data.DataPoints {
					line(m, p.Attributes, p.Value)
				}
			}
		}
	}
	slices.Sort(lines)
	return lines
}

// requireText waits until the metrics say that.
func (w *watched) requireText(t *testing.T, want ...string) {
	t.Helper()
	var got []string
	require.Eventually(t, func() bool { got = w.text(t); return slices.Equal(want, got) }, 20*time.Second, 5*time.Millisecond,
		"want\n%s\n\ngot\n%s", strings.Join(want, "\n"), lazily(func() string { return strings.Join(got, "\n") }))
}

// lazily is formatted when it is printed.
type lazily func() string

func (l lazily) String() string { return l() }

// What the metrics say of a run: one waits for another, one is refused, one gives up, and one loses its lock.
func TestMetrics(t *testing.T) {
	s := redistest.New(t)
	w := watch(t, s)
	l, err := rlock.New(w.Client, "orders:42")
	require.NoError(t, err)
	hold, err := l.Lock(t.Context())
	require.NoError(t, err)
	w.requireText(t, "latchkey.lock.holds{latchkey.primitive=lock} 1", "latchkey.lock.wait.duration{latchkey.outcome=acquired,latchkey.primitive=lock} 1")

	next := redistest.Begin(t, l.Lock)
	ctx, cancel := context.WithCancel(t.Context())
	gone := redistest.Begin(t, func(context.Context) (*latchkey.Hold, error) { return l.Lock(ctx) })
	locktest.Standing(t, l, 2)
	_, err = l.TryLock(t.Context())
	require.ErrorIs(t, err, latchkey.ErrNotAcquired)
	w.requireText(t,
		"latchkey.lock.contentions{latchkey.primitive=lock} 2",
		"latchkey.lock.holds{latchkey.primitive=lock} 1",
		"latchkey.lock.wait.duration{latchkey.outcome=acquired,latchkey.primitive=lock} 1",
		"latchkey.lock.wait.duration{latchkey.outcome=refused,latchkey.primitive=lock} 1",
		"latchkey.lock.waiters{latchkey.primitive=lock} 2",
	)
	cancel()
	require.ErrorIs(t, gone.Outcome(t), context.Canceled)
	require.NoError(t, hold.Unlock(t.Context()))
	got := next.Granted(t)
	plain := s.Client(t)
	require.NoError(t, plain.Do(t.Context(), plain.B().Del().Key("shop:orders:42").Build()).Error())
	<-got.Context().Done()
	require.ErrorIs(t, context.Cause(got.Context()), latchkey.ErrLost)
	w.requireText(t,
		"latchkey.lock.contentions{latchkey.primitive=lock} 2",
		"latchkey.lock.hold.duration{latchkey.outcome=lost,latchkey.primitive=lock} 1",
		"latchkey.lock.hold.duration{latchkey.outcome=released,latchkey.primitive=lock} 1",
		"latchkey.lock.holds{latchkey.primitive=lock} 0",
		"latchkey.lock.lost{latchkey.primitive=lock} 1",
		"latchkey.lock.wait.duration{latchkey.outcome=acquired,latchkey.primitive=lock} 2",
		"latchkey.lock.wait.duration{latchkey.outcome=canceled,latchkey.primitive=lock} 1",
		"latchkey.lock.wait.duration{latchkey.outcome=refused,latchkey.primitive=lock} 1",
		"latchkey.lock.waiters{latchkey.primitive=lock} 0",
	)
}

// Permits have holds, plain ones have none, and those who wait at a latch wait for nobody to let go.
func TestMetricsOfOtherKinds(t *testing.T) {
	w := watch(t, redistest.New(t))
	sem, err := semaphore.New(w.Client, "s", semaphore.WithCapacity(3))
	require.NoError(t, err)
	held, err := sem.Acquire(t.Context(), 2)
	require.NoError(t, err)
	plain, err := semaphore.NewCounting(w.Client, "c", semaphore.WithCapacity(3))
	require.NoError(t, err)
	require.NoError(t, plain.Acquire(t.Context(), 3))
	require.NoError(t, plain.Release(t.Context(), 1))
	latch, err := countdown.New(w.Client, "l")
	require.NoError(t, err)
	require.ErrorIs(t, latch.Await(t.Context()), countdown.ErrNotSet)
	want := []string{
		"latchkey.lock.holds{latchkey.primitive=semaphore} 1",
		"latchkey.lock.wait.duration{latchkey.outcome=acquired,latchkey.primitive=counting} 1",
		"latchkey.lock.wait.duration{latchkey.outcome=acquired,latchkey.primitive=semaphore} 1",
		"latchkey.lock.wait.duration{latchkey.outcome=failed,latchkey.primitive=latch} 1",
	}
	w.requireText(t, want...)
	require.NoError(t, held.Release(t.Context()))
	want[0] = "latchkey.lock.holds{latchkey.primitive=semaphore} 0"
	w.requireText(t, append([]string{"latchkey.lock.hold.duration{latchkey.outcome=released,latchkey.primitive=semaphore} 1"}, want...)...)
}

// Redis that is away is no caller's impatience.
func TestUnavailable(t *testing.T) {
	s := redistest.NewProcess(t)
	w := watch(t, s)
	l, err := rlock.New(w.Client, "a")
	require.NoError(t, err)
	require.NoError(t, w.Check(t.Context()))
	s.Stop(t)
	_, err = l.TryLock(t.Context())
	require.ErrorIs(t, err, latchkey.ErrUnavailable)
	w.requireText(t, "latchkey.lock.wait.duration{latchkey.outcome=unavailable,latchkey.primitive=lock} 1")
	s.Continue(t)
}

// Names are in the metrics only as a function of the user's makes them.
func TestWithName(t *testing.T) {
	w := watch(t, redistest.New(t), latchkeyotel.WithName(func(kind latchkey.Kind, name string) string {
		class, _, found := strings.Cut(name, ":")
		if !found {
			return ""
		}
		return string(kind) + "/" + class
	}))
	for _, name := range []string{"orders:1", "orders:2", "jobs:1", "plain"} {
		require.NoError(t, rlock.Do(t.Context(), w.Client, name, func(context.Context, *latchkey.Hold) error { return nil }))
	}
	w.requireText(t,
		"latchkey.lock.hold.duration{latchkey.name=lock/jobs,latchkey.outcome=released,latchkey.primitive=lock} 1",
		"latchkey.lock.hold.duration{latchkey.name=lock/orders,latchkey.outcome=released,latchkey.primitive=lock} 2",
		"latchkey.lock.hold.duration{latchkey.outcome=released,latchkey.primitive=lock} 1",
		"latchkey.lock.holds{latchkey.name=lock/jobs,latchkey.primitive=lock} 0",
		"latchkey.lock.holds{latchkey.name=lock/orders,latchkey.primitive=lock} 0",
		"latchkey.lock.holds{latchkey.primitive=lock} 0",
		"latchkey.lock.wait.duration{latchkey.name=lock/jobs,latchkey.outcome=acquired,latchkey.primitive=lock} 1",
		"latchkey.lock.wait.duration{latchkey.name=lock/orders,latchkey.outcome=acquired,latchkey.primitive=lock} 2",
		"latchkey.lock.wait.duration{latchkey.outcome=acquired,latchkey.primitive=lock} 1",
	)
}

// A wait and a hold are spans of the trace in which they were called, as long as they lasted. Where nothing
// is traced there are none.
func TestSpans(t *testing.T) {
	w := watch(t, redistest.New(t))
	l, err := rlock.New(w.Client, "orders:42")
	require.NoError(t, err)
	untraced, err := l.Lock(t.Context())
	require.NoError(t, err)
	ctx, request := w.tracer.Start(t.Context(), "POST /orders")
	next := redistest.Begin(t, func(context.Context) (*latchkey.Hold, error) { return l.Lock(ctx) })
	locktest.Standing(t, l, 1)
	<-time.After(20 * time.Millisecond)
	require.NoError(t, untraced.Unlock(t.Context()))
	hold := next.Granted(t)
	<-time.After(10 * time.Millisecond)
	require.NoError(t, hold.Unlock(t.Context()))
	other, err := l.Lock(t.Context())
	require.NoError(t, err)
	_, err = l.TryLock(ctx)
	require.ErrorIs(t, err, latchkey.ErrNotAcquired)
	require.NoError(t, other.Unlock(t.Context()))
	request.End()

	ended := w.spans.Ended()
	require.Len(t, ended, 4, "the three of the trace, and its root")
	for i, want := range []struct {
		name, outcome string
		least         time.Duration
		status        codes.Code
	}{
		{"latchkey wait", "acquired", 20 * time.Millisecond, codes.Unset},
		{"latchkey hold", "released", 10 * time.Millisecond, codes.Unset},
		{"latchkey wait", "refused", 0, codes.Error},
	} {
		span := ended[i]
		t.Logf("%s %v %v", span.Name(), span.EndTime().Sub(span.StartTime()), span.Attributes())
		require.Equal(t, want.name, span.Name())
		require.Equal(t, request.SpanContext().SpanID(), span.Parent().SpanID())
		require.GreaterOrEqual(t, span.EndTime().Sub(span.StartTime()), want.least)
		require.Equal(t, want.status, span.Status().Code)
		about := attribute.NewSet(span.Attributes()...)
		for key, value := range map[attribute.Key]string{
			"latchkey.outcome": want.outcome, "latchkey.primitive": "lock", "latchkey.name": "orders:42", "latchkey.prefix": "shop:",
		} {
			got, ok := about.Value(key)
			require.True(t, ok, key)
			require.Equal(t, value, got.AsString())
		}
		token, ok := about.Value("latchkey.token")
		require.Equal(t, want.outcome != "refused", ok)
		if ok {
			require.Equal(t, hold.Token(), token.AsInt64())
		}
	}
}

// refusing is a meter provider that makes no counters.
type refusing struct{ noop.MeterProvider }

type refusingMeter struct{ noop.Meter }

func (refusing) Meter(string, ...metric.MeterOption) metric.Meter { return refusingMeter{} }

var errRefused = errors.New("no counters here")

func (refusingMeter) Int64Counter(string, ...metric.Int64CounterOption) (metric.Int64Counter, error) {
	return nil, errRefused
}

// An instrument that is refused is an error. Without options the global providers count.
func TestProviders(t *testing.T) {
	_, err := latchkeyotel.Observer(latchkeyotel.WithMeterProvider(refusing{}))
	require.ErrorIs(t, err, errRefused)
	require.ErrorContains(t, err, "latchkeyotel: ")
	_, err = latchkeyotel.Observer(latchkeyotel.WithMeterProvider(nil), latchkeyotel.WithTracerProvider(nil), latchkeyotel.WithName(nil))
	require.NoError(t, err)
}

// What a pair costs with the hooks, and without: the ratio is in the documentation.
func BenchmarkPair(b *testing.B) {
	s := redistest.NewProcess(b)
	reader := sdkmetric.NewManualReader()
	hooks, err := latchkeyotel.Observer(
		latchkeyotel.WithMeterProvider(sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader))),
		latchkeyotel.WithTracerProvider(sdktrace.NewTracerProvider()),
	)
	require.NoError(b, err)
	for name, opts := range map[string][]latchkey.Option{"without": nil, "with": {latchkey.WithObserver(hooks)}} {
		for _, inside := range []bool{false, true} {
			b.Run(fmt.Sprintf("%s/inside=%v", name, inside), func(b *testing.B) {
				c, err := rueidisclient.New(s.Option(), opts...)
				require.NoError(b, err)
				defer c.Close()
				l, err := rlock.New(c, "a")
				require.NoError(b, err)
				pair := func() {
					h, err := l.Lock(b.Context())
					if err == nil {
						err = h.Unlock(b.Context())
					}
					if err != nil {
						b.Error(err)
					}
				}
				if !inside {
					for b.Loop() {
						pair()
					}
					return
				}
				b.SetParallelism(8) // a line, in which the lock goes on without a command
				b.RunParallel(func(pb *testing.PB) {
					for pb.Next() {
						pair()
					}
				})
			})
		}
	}
}
