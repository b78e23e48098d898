package records

import (
	"context"
	"strings"
	"sync"
	"time"

	"github.com/redis/rueidis"

	"github.com/latchkey-go/latchkey/internal/retry"
)

// teller keeps the client's record in Redis while the client holds or waits for something. It looks once a
// second, so that an acquire costs nothing, and what is over by then is not told. Nothing waits for its
// commands, which may take as long as a dial.
type teller struct {
	open context.Context    // ends when nothing is to be told any more
	shut context.CancelFunc // ends it

	mu    sync.Mutex
	text  string    // what was sent last, and may be in Redis; empty: nothing
	until time.Time // when that must be sent again; zero: at once
}

const (
	// tellPause is how long something must last to be told.
	tellPause = time.Second
	// tellManyPause is how often it is looked when there are more than tellMany tenures.
	tellManyPause = 10 * time.Second
	tellMany      = 1000
	// recordTTL is how long a record outlives a client that was killed; recordRenewed is how often it is
	// renewed.
	recordTTL     = 30 * time.Second
	recordRenewed = 10 * time.Second
)

// Tell has the client's record written, as the client has a tenure now.
func (r *Records) Tell() { r.host.After(tellPause, r.tell) }

// tell writes the record, or removes it when the client neither holds nor waits. One call runs at a time:
// each has the next one made.
func (r *Records) tell() {
	t := &r.teller
	tenures := r.host.TenuresOrTell()
	switch {
	case t.open.Err() != nil:
		return
	case len(tenures) == 0:
		if t.clear() {
			r.unwrite(t.open)
		}
		return
	}
	if text := r.own(tenures).String(); t.outdated(text) && r.write(text) {
		return
	}
	pause := tellPause
	if len(tenures) > tellMany {
		pause = tellManyPause
	}
	r.host.After(pause, r.tell)
}

// outdated notes that a text is sent. It reports false when that need not be.
func (t *teller) outdated(text string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if text == t.text && time.Now().Before(t.until) {
		return false
	}
	t.text, t.until = text, time.Time{}
	return true
}

// written notes that what was sent last is in Redis.
func (t *teller) written() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.until = time.Now().Add(recordRenewed)
}

// clear notes that nothing is in Redis any more. It reports whether something may be.
func (t *teller) clear() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	was := t.text != ""
	t.text = ""
	return was
}

// write sends the record. It reports that nothing more need be told: the user may not write it.
func (r *Records) write(text string) (refused bool) {
	ctx, cancel := context.WithTimeout(r.teller.open, r.of.Timeout)
	defer cancel()
	set := r.of.Commands.B().Set().Key(r.key()).Value(text).PxMilliseconds(recordTTL.Milliseconds()).Build()
	err := r.host.Ask(ctx, set)[0].Error()
	if err == nil {
		r.teller.written()
		return false
	}
	reply, ok := rueidis.IsRedisErr(err)
	if refused = ok && strings.HasPrefix(reply.Error(), "NOPERM"); refused {
		r.of.Logger.Info("latchkey: the user may not write who this client is: others see its id alone", "key", r.key(), "error", err)
	}
	return refused
}

// unwrite takes the record out of Redis. After an error it goes when its time is over.
func (r *Records) unwrite(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, r.of.Timeout)
	defer cancel()
	_ = r.host.Ask(ctx, r.of.Commands.B().Del().Key(r.key()).Build())
}

// End removes the record for good, unless something is still held: it goes when its time is over then.
// It waits for that until ctx ends.
func (r *Records) End(ctx context.Context) {
	r.teller.shut()
	if !r.teller.clear() || r.host.HoldsAtClose() {
		return
	}
	over := make(chan struct{})
	r.host.Go(func() {
		defer close(over)
		r.unwrite(ctx) // what was sent before is ahead of it on their connection
	})
	_ = retry.Await(ctx, over)
}
