package broadcast

import (
	"context"
	"sync"
	"time"

	"github.com/latchkey-go/latchkey/internal/lua"
	"github.com/latchkey-go/latchkey/internal/retry"
)

// Watch reads a state for all goroutines of one process that wait for it to change. While a goroutine is inside, the
// watch reads when a goroutine asks, when a message says that something may have changed, and after a pause. So a
// wait costs the same number of commands however many goroutines wait. Between two reads the watch needs no
// goroutine. The waiters follow the states as a chain of [View], so that no waiter misses a state.
//
// Set the exported fields before the first call. The rest of the zero value is ready. A watch is safe for concurrent
// use.
type Watch struct {
	// Context ends with the client. After that the watch reads nothing.
	Context context.Context
	// Read returns the state. It repeats its command until Redis answers, or its context ends.
	Read func(context.Context) (lua.Round, error)
	// Go runs a function soon, in a goroutine that the client waits for.
	Go func(func())
	// AfterFunc calls a function after a time, as time.AfterFunc does. The function does not take long.
	AfterFunc func(time.Duration, func()) Timer
	// Pause returns the longest time between two reads.
	Pause func() time.Duration

	mu     sync.Mutex
	inside int
	reader *reader // nil while no goroutine is inside
	view   *View   // the last view; nil before a goroutine was inside
	look   *look   // waits for a read that has not begun; nil: none was asked for
	hints  retry.Hints
}

// Timer is what AfterFunc returns: a *time.Timer is one.
type Timer interface {
	Reset(time.Duration) bool
	Stop() bool
}

// look waits for the view of a read that begins after the look was asked for. Callers that ask together share a look.
type look struct {
	view *View
	done chan struct{} // closed when view is set
}

// Enter counts the caller in, until the caller calls Leave. It returns the last view, which may be old: the caller
// can go on from there to later views. If the number of callers inside has reached most, Enter returns nil, and does
// not count the caller.
func (w *Watch) Enter(most int) *View {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.view == nil {
		w.view = &View{over: make(chan struct{})}
	}
	if w.inside >= most {
		return nil
	}
	w.inside++
	if w.reader != nil {
		w.readWithin(w.Pause()) // the pause may have become shorter
	} else {
		w.reader = w.newReader()
	}
	return w.view
}

// Leave ends what Enter began.
func (w *Watch) Leave() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.inside--; w.inside > 0 {
		return
	}
	w.reader.timer.Stop()
	if w.reader.stop != nil {
		w.reader.stop()
	}
	w.reader, w.look = nil, nil
}

// Look returns a view that was read after the call, or the cause when ctx ends. The caller must be inside.
func (w *Watch) Look(ctx context.Context) (*View, error) {
	w.mu.Lock()
	if w.look == nil {
		w.look = &look{done: make(chan struct{})}
	}
	asked := w.look
	w.readSoon()
	w.mu.Unlock()
	select {
	case <-asked.done:
		return asked.view, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// Signal says that the state may have changed. Then the watch reads the state: at once, or after a pause if many
// signals in a row brought nothing new. Signal does not block.
func (w *Watch) Signal() {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.reader == nil:
	case w.hints.Ask():
		w.readSoon()
	default:
		w.readWithin(retry.HintPause)
	}
}
