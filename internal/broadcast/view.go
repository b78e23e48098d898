package broadcast

import (
	"context"

	"github.com/latchkey-go/latchkey/internal/lua"
)

// View is a state that the process has learned, by a read, a reply or a message. It does not change.
type View struct {
	// Round is the state. It is the zero value when nothing was learned yet, or Err is not nil.
	lua.Round
	// Err is the error of a read, if the error will not pass by itself.
	Err error

	over chan struct{} // closed when next is set
	next *View
}

// Next waits until there is a view after v, and returns that view, or the cause if ctx ends. The caller must be
// inside.
func (w *Watch) Next(ctx context.Context, v *View) (*View, error) {
	select { // a view that is there wins over a context that has ended
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

// Update takes a state that a reply has named, unless the state's generation is older than the last view's. Update
// does not block.
func (w *Watch) Update(r lua.Round) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.view == nil || r.Generation < w.view.Generation {
		return
	}
	w.appendView(r, nil)
	if w.reader != nil && r.Ends >= 0 {
		w.readWithin(untilChange(r))
	}
}

// UpdateFromMessage is [Watch.Update] with a state that a message has named. Every user who may publish can send a
// message. So UpdateFromMessage believes the message, and reports true, only if the state comes next after the last
// view: other users do not know the generation of that view.
func (w *Watch) UpdateFromMessage(r lua.Round) (believed bool) {
	w.mu.Lock()
	v := w.view
	next := v != nil && v.Err == nil && v.Generation > 0 && (r.Generation == v.Generation || r.Generation == v.Generation+1) &&
		r.First >= v.First && r.First <= r.Generation
	w.mu.Unlock()
	if next {
		w.Update(r)
	}
	return next
}

// appendView makes a state the last view, if it differs from the last one. The caller holds the mutex.
func (w *Watch) appendView(r lua.Round, err error) {
	v := w.view
	if err == nil && v.Err == nil && r.Phase == v.Phase && r.Generation == v.Generation && r.First == v.First {
		return
	}
	w.hints.Proved()
	w.view = &View{Round: r, Err: err, over: make(chan struct{})}
	v.next = w.view
	close(v.over)
}
