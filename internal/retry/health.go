package retry

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/latchkey-go/latchkey/internal/lua"
)

// Health keeps a client from storming a Redis that is away. During an outage one probe is sent at a time,
// however many wait, and up to two more while that hangs. When Redis is back, renewals go first, and the rest
// follows spread out. The exported fields are set before it is used. Its methods are safe for
// concurrent use.
type Health struct {
	// Context ends with the client.
	Context context.Context
	// Go runs a function in a goroutine that the client waits for.
	Go func(func())
	// Down is called when an outage begins.
	Down func(Outage)
	// Lasting is called when Redis has not answered for Patience, once between two calls of Up.
	Lasting func()
	// Patience is how long that is.
	Patience time.Duration
	// Elsewhere is called with the error of each probe that was answered by a server that takes no writes.
	Elsewhere func(err error)
	// Up is called when Redis answers again, before any waiter is let through. It is called again when a command
	// fails meanwhile: that is the same outage.
	Up func(Outage)

	mu      sync.Mutex
	up      chan struct{} // closed when the outage is over; nil while there is none
	why     error         // of the outage
	began   time.Time     // when the first command was sent that was not answered
	back    time.Time     // when the last outage was over
	again   bool          // a command has failed since the last Up began
	backoff Backoff
	failed  atomic.Bool // a command has failed since the last success
	waiting atomic.Int64
}

// Outage is a time without answers.
type Outage struct {
	Began time.Time     // when the first command was sent that was not answered
	Away  time.Duration // from then until a probe was answered; 0 while none is
	Err   error         // of the command that failed first, or see [Health.Because]
}

// silenceLimit is how long a command goes unanswered before the end of its wait is blamed on Redis.
const silenceLimit = 50 * time.Millisecond

// Silence returns the error of a command whose wait has ended before its answer; nil when that was too early
// to blame Redis.
func Silence(sent time.Time) error {
	if silence := time.Since(sent); silence > silenceLimit {
		return fmt.Errorf("no reply for %v", silence.Round(time.Millisecond))
	}
	return nil
}

// Failed takes every command that got no answer, or was refused for now, and when it was sent. An outage
// begins with it, in which probe asks again. It does not block.
func (h *Health) Failed(err error, sent time.Time, probe func(context.Context) error) {
	h.failed.Store(true)
	h.mu.Lock()
	defer h.mu.Unlock()
	if sent.Before(h.back) {
		sent = h.back // it was sent into an outage that is over: the next one begins after that
	}
	if !h.again || sent.Before(h.began) { // what was sent first may fail last
		h.began = sent
	}
	h.again = true
	if h.up != nil || h.Context.Err() != nil {
		return
	}
	h.up, h.why = make(chan struct{}), lua.Quiet(err)
	h.Go(func() { h.run(probe) })
}

// Because says that the outage goes on for another reason. It reports false when there is none.
func (h *Health) Because(err error) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.up == nil {
		return false
	}
	h.why = lua.Quiet(err)
	return true
}

// Succeeded takes every command that was answered.
func (h *Health) Succeeded() {
	if h.failed.Load() {
		h.failed.Store(false)
		h.mu.Lock()
		h.backoff.Reset()
		h.mu.Unlock()
	}
}

// run goes through an outage: it probes until Redis answers, calls Up, and lets the waiters through. If a
// command fails during Up, the outage goes on.
func (h *Health) run(probe func(context.Context) error) {
	h.Down(h.outage())
	for h.probeUntilAnswered(probe) {
		o := h.answered()
		h.Up(o)
		if h.end() {
			return
		}
	}
	h.mu.Lock()
	h.again = false // the client has ended: there are no probes any more
	h.mu.Unlock()
	h.end()
}

// outage is the one that goes on.
func (h *Health) outage() Outage {
	h.mu.Lock()
	defer h.mu.Unlock()
	return Outage{Began: h.began, Err: h.why}
}

// probeUntilAnswered returns true once a probe was answered, and false when the client has ended.
func (h *Health) probeUntilAnswered(probe func(context.Context) error) bool {
	began, told := time.Now(), false
	for {
		h.mu.Lock()
		pause := h.backoff.Next() // goes on growing while probes succeed and commands fail
		h.mu.Unlock()
		if Sleep(h.Context, pause) != nil {
			return false
		}
		err := h.ask(probe)
		if err == nil {
			return true
		}
		if lua.Elsewhere(err) {
			h.Elsewhere(err)
		}
		if !told && time.Since(began) >= h.Patience {
			told = true
			h.Lasting()
		}
	}
}

// answered notes that Redis has answered a probe, and returns the outage until then. Commands that fail from
// now on begin another.
func (h *Health) answered() Outage {
	o := h.outage()
	o.Away = time.Since(o.Began)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.again, h.back = false, o.Began.Add(o.Away)
	return o
}

// end ends the outage and lets the waiters through, unless a command has failed since Up began.
func (h *Health) end() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.again {
		return false
	}
	close(h.up)
	h.up, h.why = nil, nil
	return true
}

// maxProbes is how many probes are under way at most.
const maxProbes = 3

// ask probes. A probe may hang, on the connection to a server that has been replaced. Then another is sent,
// and the first answer counts.
func (h *Health) ask(probe func(context.Context) error) error {
	ctx, cancel := context.WithCancel(h.Context)
	defer cancel()
	answers := make(chan error, maxProbes)
	for range maxProbes {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		h.Go(func() { answers <- probe(ctx) })
		limited, stop := context.WithTimeout(ctx, LastPause)
		select {
		case err := <-answers:
			stop()
			return err
		case <-limited.Done():
			stop()
		}
	}
	select {
	case err := <-answers:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Away returns why Redis is away; nil while it is not.
func (h *Health) Away() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.why
}

// AwayFor returns why Redis is away if it has been for so long; nil otherwise.
func (h *Health) AwayFor(d time.Duration) error {
	if !h.failed.Load() { // as a rule
		return nil
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.up == nil || time.Since(h.began) < d {
		return nil
	}
	return h.why
}

// Wait returns when Redis is up; at once when there is no outage. It returns the cause when ctx or the client
// ends. Waiters are let through spread over 100 µs for each, LastPause at most.
func (h *Health) Wait(ctx context.Context) error {
	if h.Context.Err() != nil { // no goroutine looks any more whether Redis is back
		return context.Cause(h.Context)
	}
	h.mu.Lock()
	up := h.up
	h.mu.Unlock()
	if up == nil {
		return nil
	}
	spread := time.Duration(h.waiting.Add(1)) * 100 * time.Microsecond
	defer h.waiting.Add(-1)
	select {
	case <-up:
		return Sleep(ctx, rand.N(min(spread, LastPause)))
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-h.Context.Done():
		return context.Cause(h.Context)
	}
}
