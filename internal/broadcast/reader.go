package broadcast

import (
	"context"
	"time"

	"github.com/latchkey-go/latchkey/internal/lua"
)

// reader reads the state from when the first goroutine enters a watch until the last one leaves. It is a timer, and
// has a goroutine only while it reads. The timer also keeps the watch, and what the watch belongs to, from being
// collected. The mutex of the watch guards the fields.
type reader struct {
	timer Timer
	due   time.Time          // when the next read begins at the latest
	stop  context.CancelFunc // ends the read that is under way; nil: none is
	again bool               // another read was asked for during this one
}

// newReader returns a reader that begins after a pause. The caller holds the mutex.
func (w *Watch) newReader() *reader {
	pause := w.Pause()
	r := &reader{due: time.Now().Add(pause)}
	r.timer = w.AfterFunc(pause, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.reader == r && r.stop == nil {
			w.beginReading(r)
		}
	})
	return r
}

// readSoon begins a read. If a read is under way, it may have seen the state before the change: then readSoon asks
// for another one. The caller holds the mutex.
func (w *Watch) readSoon() {
	switch r := w.reader; {
	case r == nil:
	case r.stop != nil:
		r.again = true
	default:
		w.beginReading(r)
	}
}

// readWithin makes the next read begin in d at the latest. A read that is under way is not the next one. The caller
// holds the mutex.
func (w *Watch) readWithin(d time.Duration) {
	if due := time.Now().Add(d); due.Before(w.reader.due) {
		w.reader.due = due
		w.reader.timer.Reset(d)
	}
}

// beginReading starts a goroutine that reads. The caller holds the mutex.
func (w *Watch) beginReading(r *reader) {
	ctx, stop := context.WithCancel(w.Context)
	r.stop = stop
	r.timer.Stop()
	w.Go(func() { w.read(ctx, r) })
}

// read reads once. Then the timer takes over, unless a further read is asked for or due. The further read waits
// behind the reads of other watches, so that no watch keeps the others from reading.
func (w *Watch) read(ctx context.Context, r *reader) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.reader != r || ctx.Err() != nil || !w.readOnce(ctx, r) {
		return
	}
	if left := time.Until(r.due); r.again || left <= 0 {
		w.Go(func() { w.read(ctx, r) })
	} else {
		r.stop()
		r.stop = nil
		r.timer.Reset(left)
	}
}

// readOnce reads, and sets when the next read is due. If all goroutines have left the watch during the read, readOnce
// reports false: then a look is for the next reader. The caller holds the mutex, which is free during the read.
func (w *Watch) readOnce(ctx context.Context, r *reader) bool {
	asked := w.look
	w.look, r.again = nil, false
	r.due = time.Now().Add(w.Pause())
	w.mu.Unlock()
	round, err := w.Read(ctx)
	w.mu.Lock()
	if w.reader != r {
		return false
	}
	w.appendView(round, err)
	if asked != nil {
		asked.view = w.view
		close(asked.done)
	}
	pause := w.Pause()
	if err == nil && round.Ends >= 0 {
		pause = min(pause, untilChange(round))
	}
	// A reply or a message may have set an earlier time for the next read during this read.
	if due := time.Now().Add(pause); due.Before(r.due) {
		r.due = due
	}
	return true
}

// untilChange is how long it takes until a state changes by itself.
func untilChange(r lua.Round) time.Duration { return time.Duration(r.Ends+1) * time.Millisecond }
