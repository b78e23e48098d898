package records

import (
	"context"
	"strings"
	"sync"
	"time"

	"github.com/redis/rueidis"

	"github.com/latchkey-go/latchkey/internal/retry"
)

// teller keeps the client's record in Redis while the client holds or waits for something. It looks once a second: so
// an acquire costs nothing, and the record does not tell what is over by then. No caller waits for the commands of
// the teller, which may take as long as a dial.
type teller struct {
	open context.Context    // ends when nothing is to be told any more
	shut context.CancelFunc // ends open

	mu    sync.Mutex
	text  string    // what was sent last, and may be in Redis; empty: nothing
	until time.Time // when to send text again; zero: at once
}

const (
	// tellPause is how long something must last before the record tells it.
	tellPause = time.Second
	// tellManyPause is how often the teller looks if there are more than tellMany tenures.
	tellManyPause = 10 * time.Second
	tellMany      = 1000
	// recordTTL is how long a record outlives a client that was killed. recordRenewed is how often a client renews
	// its record.
	recordTTL     = 30 * time.Second
	recordRenewed = 10 * time.Second
)

// Tell begins to write the client's record, because the client has a tenure now.
func (r *Records) Tell() { r.host.After(tellPause, r.tell) }

// tell writes the record, or removes it if the client neither holds nor waits. Only one call runs at a time: each
// call schedules the next one.
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

// outdated reports whether a text must be sent. If so, it notes the text as sent.
func (t *teller) outdated(text string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if text == t.text && time.Now().Before(t.until) {
		return false
	}
	t.text, t.until = text, time.Time{}
	return true
}

// written notes that Redis has the text that was sent last.
func (t *teller) written() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.until = time.Now().Add(recordRenewed)
}

// clear forgets what was sent last. It reports whether Redis may have a record.
func (t *teller) clear() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	was := t.text != ""
	t.text = ""
	return was
}

// write sends the record. It reports true if the user may not write the record: then the client need tell nothing
// more.
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

// unwrite takes the record out of Redis. If the command fails, the record goes when its time is over.
func (r *Records) unwrite(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, r.of.Timeout)
	defer cancel()
	_ = r.host.Ask(ctx, r.of.Commands.B().Del().Key(r.key()).Build())
}

// End removes the record, and no other record follows. If something is still held, End leaves the record until its
// time is over. End waits for the removal until ctx ends.
func (r *Records) End(ctx context.Context) {
	r.teller.shut()
	if !r.teller.clear() || r.host.HoldsAtClose() {
		return
	}
	over := make(chan struct{})
	r.host.Go(func() {
		defer close(over)
		r.unwrite(ctx) // commands that were sent before run before, on the same connection
	})
	_ = retry.Await(ctx, over)
}
