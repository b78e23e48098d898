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

// Health keeps a client from storming a Redis that is away: while it is down one probe is sent at a time (up to two more while that
// hangs), whatever the number of waiters, and when it is back the renewals go first and the rest follows spread out.
type Health struct {
	Context context.Context // ends with the client
	Go      func(func())    // runs a function in a goroutine that the client waits for
	Down    func(Outage)    // called when it goes down
	Lasting func()          // called once it has been down for Patience
	Up      func(Outage)    // called when it is back, before anybody else is let through

	Patience time.Duration

	mu      sync.Mutex
	up      chan struct{} // closed when it is back; nil while it is up
	why     error         // it is down
	began   time.Time     // when the first command was sent that was not answered
	back    time.Time     // when the last outage was over
	again   bool          // a command failed since the last Up began
	backoff Backoff
	failed  atomic.Bool // a command failed since the last success
	waiting atomic.Int64
}

// Outage is a time without answers.
type Outage struct {
	Began time.Time     // when the first command was sent that was not answered
	Away  time.Duration // until a probe was answered; 0 while none is
	Err   error         // of the command that failed first
}

// silent is how long a command goes unanswered before the end of its wait is blamed on Redis.
const silent = 50 * time.Millisecond

// Silence is the error of a command whose wait has ended before its answer, or nil when that was too early to
// blame Redis.
func Silence(sent time.Time) error {
	if silence := time.Since(sent); silence > silent {
		return fmt.Errorf("no reply for %v", silence.Round(time.Millisecond))
	}
	return nil
}

// Failed is told of every command that got no answer or was refused for now, and when it was sent. probe asks
// again.
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
	h.Go(func() { h.watch(probe) })
}

// Succeeded is told of every command that was answered.
func (h *Health) Succeeded() {
	if h.failed.Load() {
		h.failed.Store(false)
		h.mu.Lock()
		h.backoff.Reset()
		h.mu.Unlock()
	}
}

// outage is the one that goes on.
func (h *Health) outage() Outage {
	h.mu.Lock()
	defer h.mu.Unlock()
	return Outage{Began: h.began, Err: h.why}
}

func (h *Health) watch(probe func(context.Context) error) {
	down, told := time.Now(), false
	h.Down(h.outage())
	for {
		h.mu.Lock()
		pause := h.backoff.Next() // goes on growing while probes succeed and commands fail
		h.mu.Unlock()
		if Sleep(h.Context, pause) != nil {
			break
		}
		if h.ask(probe) != nil {
			if !told && time.Since(down) >= h.Patience {
				told = true
				h.Lasting()
			}
			continue
		}
		o := h.outage()
		o.Away = time.Since(o.Began)
		h.mu.Lock()
		h.again, h.back = false, o.Began.Add(o.Away)
		h.mu.Unlock()
		h.Up(o)
		if h.over() {
			return
		}
		down, told = time.Now(), false // what failed meanwhile waits for another Up
	}
	h.mu.Lock()
	h.again = false
	h.mu.Unlock()
	h.over()
}

// over ends the outage and lets through who waits, unless a command has failed since Up began.
func (h *Health) over() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.again {
		return false
	}
	close(h.up)
	h.up, h.why = nil, nil
	return true
}

// hedges is how many probes are under way at most.
const hedges = 3

// ask probes. A probe that hangs, on the connection to a server that has been replaced, does not delay the next.
func (h *Health) ask(probe func(context.Context) error) error {
	ctx, cancel := context.WithCancel(h.Context)
	defer cancel()
	answers := make(chan error, hedges)
	for range hedges {
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

// Away returns why Redis is away, nil while it is not.
func (h *Health) Away() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.why
}

// Wait returns when Redis is up, at once when it was never down, or with the cause when ctx ends. Those who waited are
// let through spread over 100 µs each, LastPause at most.
func (h *Health) Wait(ctx context.Context) error {
	if h.Context.Err() != nil { // nobody looks any more whether Redis is back
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
