package broadcast

import (
	"context"
	"time"
)

// awaited is told how an Await ended.
func (r *Group) Awaited(ctx context.Context, name string, began time.Time, err error) {
	hook := r.Client.Options.Observer.Passed
	if err != nil {
		hook = r.Client.Options.Observer.Failed
	}
	if hook == nil {
		return
	}
	e := r.NewEvent(ctx, name)
	e.Waited, e.Err = time.Since(began), err
	hook(e)
}
