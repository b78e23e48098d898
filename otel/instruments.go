package latchkeyotel

import (
	"sync"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/latchkey-go/latchkey"
)

// instruments are those that the package documentation lists.
type instruments struct {
	waits, heldFor      metric.Float64Histogram
	waiters, holds      metric.Int64UpDownCounter
	contentions, losses metric.Int64Counter
}

// bounds are those of the buckets, in seconds. A hand-off inside a process takes a microsecond, one between
// processes a fifth of a millisecond, and a lease that ends some seconds.
var bounds = []float64{0.00001, 0.0001, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60}

func newInstruments(m metric.Meter) (i instruments, err error) {
	var errs [6]error
	i.waits, errs[0] = m.Float64Histogram("latchkey.lock.wait.duration", metric.WithUnit("s"),
		metric.WithDescription("How long calls took that wanted a lock or permits."), metric.WithExplicitBucketBoundaries(bounds...))
	i.heldFor, errs[1] = m.Float64Histogram("latchkey.lock.hold.duration", metric.WithUnit("s"),
		metric.WithDescription("How long locks and permits were held."), metric.WithExplicitBucketBoundaries(bounds...))
	i.waiters, errs[2] = m.Int64UpDownCounter("latchkey.lock.waiters", metric.WithUnit("{waiter}"),
		metric.WithDescription("How many calls wait for others now."))
	i.holds, errs[3] = m.Int64UpDownCounter("latchkey.lock.holds", metric.WithUnit("{hold}"),
		metric.WithDescription("How many holds there are now."))
	i.contentions, errs[4] = m.Int64Counter("latchkey.lock.contentions", metric.WithUnit("{contention}"),
		metric.WithDescription("How many calls have had to wait for others."))
	i.losses, errs[5] = m.Int64Counter("latchkey.lock.lost", metric.WithUnit("{hold}"),
		metric.WithDescription("How many holds have ended without a release."))
	for _, e := range errs {
		if e != nil {
			return instruments{}, e
		}
	}
	return i, nil
}

// known are the attributes without names that were used before: to make a set anew costs more than the rest
// of a measurement. The zero value is ready, and safe for concurrent use.
type known struct{ sets sync.Map } // of labels

type labels struct {
	kind latchkey.Kind
	how  string
}

func (k *known) of(kind latchkey.Kind, how string) metric.MeasurementOption {
	key := labels{kind, how}
	if set, ok := k.sets.Load(key); ok {
		return set.(metric.MeasurementOption)
	}
	set, _ := k.sets.LoadOrStore(key, metric.WithAttributeSet(attribute.NewSet(attributes(kind, how)...)))
	return set.(metric.MeasurementOption)
}
