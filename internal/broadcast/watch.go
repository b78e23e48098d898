package broadcast

import (
	"context"
	"sync"
	"time"

	"github.com/latchkey-go/latchkey/internal/lua"
)

// Watch is how the goroutines of one process wait for something of which all are told at once. While somebody
// is inside, the state is read for all of them: when it is asked for, when there is news, and after a pause. So
// it costs the same number of commands however many wait, and between two reads no goroutine. The others follow
// the states as a chain of [View], so that nobody misses one. The first four fields must be set; it is safe for
// concurrent use.
type Watch struct {
	Context context.Context                          // ends with the client
	Read    func(context.Context) (lua.Round, error) // repeats the command until it is answered, or the context ends
	Go      func(func())                             // runs a function in a goroutine that the client waits for
	Pause   func() time.Duration                     // between two reads, at most

	mu     sync.Mutex
	inside int
	reader *reader // nil while nobody is inside
	view   *View
	asked  *inquiry // nil: nobody waits for a read that has not begun
}

// reader reads while somebody is inside. Its timer also keeps the watch from being collected, and what that
// belongs to. Its fields are guarded by the watch's mutex.
type reader struct {
	timer *time.Timer
	due   time.Time          // when the next read begins at the latest
	stop  context.CancelFunc // ends the read that is under way; nil: none
	again bool               // another is asked for meanwhile
}

// View is a state that was read, or told. An error is one that will not pass by itself.
type View struct {
	lua.Round
	Err error

	over chan struct{} // closed when next is set
	next *View
}

// inquiry is answered with the view that a read has found which began after it was asked.
type inquiry struct {
	view *View
	done chan struct{} // closed when that is set
}

// Enter counts the caller in, until Leave, and returns the last view: an old one, from which a caller can go
// on to later ones. It returns nil when there are as many inside as there may be.
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
		w.sooner(w.Pause()) // which may have become shorter
	} else {
		pause := w.Pause()
		r := &reader{due: time.Now().Add(pause)}
		w.reader = r
		r.timer = time.AfterFunc(pause, func() { w.expired(r) })
	}
	return w.view
}

// Leave ends what Enter began.
func (w *Watch) Leave() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.inside--; w.inside == 0 {
		w.reader.timer.Stop()
		if w.reader.stop != nil {
			w.reader.stop()
		}
		w.reader, w.asked = nil, nil
	}
}

// Look returns a state that was read after the call, or the cause when ctx ends. The caller must be inside.
func (w *Watch) Look(ctx context.Context) (*View, error) {
	w.mu.Lock()
	if w.asked == nil {
		w.asked = &inquiry{done: make(chan struct{})}
	}
	q := w.asked
	w.signal()
	w.mu.Unlock()
	select {
	case <-q.done:
		return q.view, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// Next returns the view after v, once there is one, or the cause when ctx ends. The caller must be inside.
func (w *Watch) Next(ctx context.Context, v *View) (*View, error) {
	select {
	case <-v.over:
		return v.next, nil
	default:
	}
	select {
	case <-v.over:
		return v.next, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// Signal says that the state may have changed. It does not block.
func (w *Watch) Signal() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.signal()
}

func (w *Watch) signal() {
	switch r := w.reader; {
	case r == nil:
	case r.stop != nil:
		r.again = true
	default:
		w.begin(r)
	}
}

// Told says what the state is, if it is newer than the last one. It does not block.
func (w *Watch) Told(r lua.Round) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.view == nil || r.Generation < w.view.Generation {
		return
	}
	w.saw(r, nil)
	if w.reader != nil && r.Ends >= 0 {
		w.sooner(after(r))
	}
}

// Heard is Told for what was published by whoever may publish there: it is believed only when it says what
// comes next after what is known, the number of which nobody else knows. It reports whether that is so.
func (w *Watch) Heard(r lua.Round) bool {
	w.mu.Lock()
	v := w.view
	next := v != nil && v.Err == nil && v.Generation > 0 && (r.Generation == v.Generation || r.Generation == v.Generation+1) &&
		r.First >= v.First && r.First <= r.Generation
	w.mu.Unlock()
	if next {
		w.Told(r)
	}
	return next
}

// sooner has the next read begin in at most d. It is called with the mutex.
func (w *Watch) sooner(d time.Duration) {
	if due := time.Now().Add(d); due.Before(w.reader.due) {
		w.reader.due = due
		w.reader.timer.Reset(d) // should a read be under way, this waits for its end
	}
}

// after is when a state changes by itself.
func after(r lua.Round) time.Duration { return time.Duration(r.Ends+1) * time.Millisecond }

// saw makes what was seen the last view, if it is another. It is called with the mutex.
func (w *Watch) saw(r lua.Round, err error) {
	v := w.view
	if err == nil && v.Err == nil && r.Phase == v.Phase && r.Generation == v.Generation && r.First == v.First {
		return
	}
	w.view = &View{Round: r, Err: err, over: make(chan struct{})}
	v.next = w.view
	close(v.over)
}

// expired has a read begin that is due.
func (w *Watch) expired(r *reader) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.reader == r && r.stop == nil {
		w.begin(r)
	}
}

// begin starts to read. It is called with the mutex.
func (w *Watch) begin(r *reader) {
	ctx, stop := context.WithCancel(w.Context)
	r.stop = stop
	r.timer.Stop()
	w.Go(func() { w.run(ctx, r) })
}

// run reads once, and again if that was asked for meanwhile, or is due.
func (w *Watch) run(ctx context.Context, r *reader) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for w.reader == r && ctx.Err() == nil { // else the inquiry is for the reader after it
		q := w.asked
		w.asked, r.again = nil, false
		r.due = time.Now().Add(w.Pause())
		w.mu.Unlock()
		round, err := w.Read(ctx)
		w.mu.Lock()
		if w.reader != r { // nobody is inside who was when it began
			break
		}
		w.saw(round, err)
		if q != nil {
			q.view = w.view
			close(q.done)
		}
		pause := w.Pause()
		if err == nil && round.Ends >= 0 {
			pause = min(pause, after(round))
		}
		if due := time.Now().Add(pause); due.Before(r.due) { // which something that was told meanwhile may have changed
			r.due = due
		}
		if left := time.Until(r.due); !r.again && left > 0 {
			r.stop()
			r.stop = nil
			r.timer.Reset(left)
			return
		}
	}
}
