package core

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/latchkey-go/latchkey/internal/lua"
)

// late is what was held when the client was closed. Its code may still run, and its Unlock still releases, so
// the connections stay open for it: until the last one was unlocked, or its lease is over. The zero value is
// ready.
type late struct {
	mu    sync.Mutex
	held  map[*tenure]time.Time // until when the lease can be trusted
	close func()                // nil: begin was not called, or it has been called
	timer *time.Timer
}

// expect is told of a tenure that is about to be ended because the client is.
func (l *late) expect(t *tenure) {
	left := t.item.Left()
	if left <= 0 {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.held == nil {
		l.held = map[*tenure]time.Time{}
	}
	l.held[t] = time.Now().Add(left)
}

// begin calls end once nothing is held any more.
func (l *late) begin(end func()) {
	l.mu.Lock()
	l.close = end
	var last time.Time
	for _, until := range l.held {
		if until.After(last) {
			last = until
		}
	}
	if len(l.held) > 0 {
		l.timer = time.AfterFunc(time.Until(last), func() {
			l.mu.Lock()
			clear(l.held)
			l.mu.Unlock()
			l.rest()
		})
	}
	l.mu.Unlock()
	l.rest()
}

// rest closes if nothing is held.
func (l *late) rest() {
	l.mu.Lock()
	var last func()
	if len(l.held) == 0 {
		last, l.close = l.close, nil
		if l.timer != nil {
			l.timer.Stop()
		}
	}
	l.mu.Unlock()
	if last != nil {
		last()
	}
}

// until returns how long the lease of a tenure can be trusted; a zero time when it is not one of them.
func (l *late) until(t *tenure) time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.held[t]
}

func (l *late) over(t *tenure) {
	l.mu.Lock()
	delete(l.held, t)
	l.mu.Unlock()
	l.rest()
}

// unlockLate releases what was held when the client was closed. Nobody renews it any more, but until its
// trust ends nobody else has it either. It is sent once, and not for long: whoever is closing waits for
// nothing.
func (t *tenure) unlockLate(ctx context.Context, done *turn) error {
	c := t.client
	until := c.late.until(t)
	defer c.late.over(t)
	if !time.Now().Before(until) || !t.waiters.Answered(&t.waiter) {
		return ErrClosed
	}
	if ctx.Err() != nil {
		ctx = context.WithoutCancel(ctx)
	}
	ctx, cancel := context.WithTimeout(ctx, min(c.options.ReleaseTimeout, time.Until(until)))
	defer cancel()
	owned, err := t.giveBackAlone(withoutDeadline(ctx), t.endingOf(&release{turn: done}))
	switch {
	case err != nil:
		return fmt.Errorf("%w: it was not released, and its lease runs out: %w", ErrClosed, outcome(err))
	case !owned:
		return fmt.Errorf("%w: %w", ErrLost, errNotOurs)
	}
	c.options.Observer.released(done)
	return nil
}

// giveBackAlone sends one release that shares its script with no other: nobody gathers requests any more.
func (t *tenure) giveBackAlone(ctx context.Context, e lua.Ending) (owned bool, err error) {
	if t.exclusive() {
		return t.client.conn.Release(ctx, t.keys, e, t.seen.Load())
	}
	replies, err := t.carryOut(ctx, lua.Give(e))
	if err != nil {
		return false, err
	}
	return lua.ParseGiven(replies[0])
}
