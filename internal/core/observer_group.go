package core

import (
	"context"
	"time"
)

// awaited is told how an Await ended.
func (r *group) awaited(ctx context.Context, name string, began time.Time, err error) {
	hook := r.client.options.Observer.Passed
	if err != nil {
		hook = r.client.options.Observer.Failed
	}
	if hook == nil {
		return
	}
	e := r.event(ctx, name)
	e.Waited, e.Err = time.Since(began), err
	hook(e)
}
