package barrier

import (
	"context"
	"errors"
	"fmt"

	"github.com/latchkey-go/latchkey/internal/broadcast"
	"github.com/latchkey-go/latchkey/internal/fail"
	"github.com/latchkey-go/latchkey/internal/lua"
)

// act runs the action of the last party, and settles the generation: the others go on, or it is broken when
// the action failed or panicked. The context of the action ends also when another party breaks the
// generation.
func (a *arrival) act(ctx, waiting context.Context, view *broadcast.View) (err error) {
	within, cancel := context.WithCancelCause(waiting)
	followed := make(chan struct{})
	go func() {
		defer close(followed)
		if fate, err := a.follow(within, view); err == nil {
			cancel(fateError(fate))
		}
	}()
	wanted := lua.Failed // also of an action that panics
	defer func() {
		cancel(nil)
		<-followed
		err = a.settleAction(ctx, wanted, err)
	}()
	if err = a.barrier.action(within); err == nil {
		wanted = lua.Done
	}
	return err
}

// settleAction settles the generation after the action, which has returned failure, and returns the error
// of the last party.
func (a *arrival) settleAction(ctx context.Context, wanted lua.Fate, failure error) error {
	fate, err := a.settle(ctx, wanted)
	switch {
	case err != nil && ctx.Err() != nil:
		return errors.Join(failure, fail.ContextError(ctx), err)
	case err != nil:
		return errors.Join(failure, err)
	case wanted == lua.Failed && fate != lua.Done:
		return fmt.Errorf("%w: the action failed: %w", ErrBroken, failure)
	case failure == nil:
		return fateError(fate)
	default:
		return failure
	}
}
