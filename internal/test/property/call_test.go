package property_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/barrier"
	"github.com/latchkey-go/latchkey/countdown"
	"github.com/latchkey-go/latchkey/semaphore"
)

// sentinels are all errors that errors.Is knows.
var sentinels = []struct {
	name string
	err  error
}{
	{"Canceled", context.Canceled}, {"DeadlineExceeded", context.DeadlineExceeded},
	{"ErrNotAcquired", latchkey.ErrNotAcquired}, {"ErrNotHeld", latchkey.ErrNotHeld}, {"ErrLost", latchkey.ErrLost},
	{"ErrReleased", latchkey.ErrReleased}, {"ErrReentered", latchkey.ErrReentered}, {"ErrClosed", latchkey.ErrClosed},
	{"ErrTooManyWaiters", latchkey.ErrTooManyWaiters}, {"ErrWrongType", latchkey.ErrWrongType},
	{"ErrUnavailable", latchkey.ErrUnavailable}, {"ErrUnknownOutcome", latchkey.ErrUnknownOutcome},
	{"ErrNotReplicated", latchkey.ErrNotReplicated}, {"ErrNotRun", latchkey.ErrNotRun}, {"ErrInvalid", latchkey.ErrInvalid},
	{"ErrNotSet", semaphore.ErrNotSet}, {"ErrCapacity", semaphore.ErrCapacity},
	{"ErrLatchNotSet", countdown.ErrNotSet}, {"ErrExpired", countdown.ErrExpired}, {"ErrDeleted", countdown.ErrDeleted},
	{"ErrBroken", barrier.ErrBroken}, {"ErrForgotten", barrier.ErrForgotten}, {"ErrParties", barrier.ErrParties},
	{"errOurs", errOurs},
}

// errOurs is what functions under test return.
var errOurs = errors.New("ours")

// kinds names all sentinels that an error is.
func kinds(err error) string {
	if err == nil {
		return "ok"
	}
	var all []string
	for _, s := range sentinels {
		if errors.Is(err, s.err) {
			all = append(all, s.name)
		}
	}
	if all == nil {
		return err.Error()
	}
	return strings.Join(all, " ")
}

// slowness is how long Redis may be silent before an error says so.
const slowness = 50 * time.Millisecond

// inTime is kinds for what has begun at that time, without what it says of a server that was slow.
func inTime(began time.Time, err error) string {
	if got := kinds(err); got != "ErrNotAcquired ErrUnavailable" || time.Since(began) < slowness {
		return got
	}
	return "ErrNotAcquired"
}

// call is one that waits in the background.
type call struct {
	place  *place
	what   string
	client int
	cancel context.CancelFunc
	began  time.Time
	queued atomic.Int64 // how often its client has heard that it was queued
	ended  chan struct{}
	result any // what it returned beside the error
	err    error
}

// asked is the key under which the context of a call has it.
type asked struct{}

// wasQueued is the hook of all clients.
func wasQueued(e latchkey.Event) {
	if c, ok := e.Context.Value(asked{}).(*call); ok {
		c.queued.Add(1)
	}
}

// outcome is kinds of its error. When it was cancelled before Redis has answered, and that took long, the
// error says so as well. The model does not know how slow Redis is.
func (c *call) outcome() string {
	got := kinds(c.err)
	if got == "Canceled ErrUnavailable" && c.queued.Load() == 0 && time.Since(c.began) >= slowness {
		return "Canceled"
	}
	return got
}

// begin calls f in the background.
func (p *place) begin(client int, what string, f func(context.Context) (any, error)) *call {
	ctx, cancel := context.WithCancel(context.Background())
	c := &call{place: p, what: what, client: client, cancel: cancel, began: time.Now(), ended: make(chan struct{})}
	ctx = context.WithValue(ctx, asked{}, c)
	go func() {
		defer close(c.ended)
		<-time.After(p.lag)
		c.result, c.err = f(ctx)
	}()
	p.calls = append(p.calls, c)
	p.t.Cleanup(cancel) // what it gets may be used until then
	p.tell("%s waits", what)
	return c
}

// over reports whether it has returned.
func (c *call) over() bool {
	select {
	case <-c.ended:
		return true
	default:
		return false
	}
}

// ends waits until the call returns, with this error.
func (c *call) ends(want string) {
	c.place.t.Helper()
	c.place.first([]*call{c})
	c.place.same(want, c.outcome(), "%s, which waited", c.what)
}

// first waits until one of the calls returns.
func (p *place) first(calls []*call) *call {
	p.t.Helper()
	cases := []reflect.SelectCase{{Dir: reflect.SelectRecv, Chan: reflect.ValueOf(time.After(long))}}
	var names []string
	for _, c := range calls {
		cases = append(cases, reflect.SelectCase{Dir: reflect.SelectRecv, Chan: reflect.ValueOf(c.ended)})
		names = append(names, c.what)
	}
	i, _, _ := reflect.Select(cases)
	if i == 0 {
		require.FailNow(p.t, fmt.Sprintf("none of %q returns", names), p.told())
	}
	p.calls = without(p.calls, calls[i-1])
	return calls[i-1]
}

// still requires that none of them has returned.
func (p *place) still(calls ...*call) {
	p.t.Helper()
	for _, c := range calls {
		require.False(p.t, c.over(), "%s must wait, and has returned %v\n%s", c.what, c.err, p.told())
	}
}

// without removes one of some.
func without[T comparable](all []T, one T) []T {
	return slices.DeleteFunc(slices.Clone(all), func(x T) bool { return x == one })
}

// orderly joins names of sentinels as kinds does.
func orderly(names ...string) string {
	var all []string
	for _, s := range sentinels {
		if slices.Contains(names, s.name) {
			all = append(all, s.name)
		}
	}
	return strings.Join(all, " ")
}
