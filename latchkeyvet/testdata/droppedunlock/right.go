package droppedunlock

import (
	"context"
	"errors"
	"log"

	"github.com/latchkey-go/latchkey"
)

func named(ctx context.Context, lock *latchkey.Lock) (err error) {
	hold, err := lock.Lock(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, hold.Unlock(ctx)) }()
	return charge(hold.Context(), hold.Token())
}

func forAllToSee(ctx context.Context, lock *latchkey.Lock) error {
	hold, err := lock.Lock(ctx)
	if err != nil {
		return err
	}
	defer hold.Unlock(ctx)
	return charge(hold.Context(), hold.Token())
}

func logged(ctx context.Context, lock *latchkey.Lock) error {
	hold, err := lock.Lock(ctx)
	if err != nil {
		return err
	}
	defer func() {
		err = hold.Unlock(ctx)
		log.Print(err)
	}()
	return charge(hold.Context(), hold.Token())
}

func ofItsOwn(ctx context.Context, lock *latchkey.Lock) error {
	hold, err := lock.Lock(ctx)
	if err != nil {
		return err
	}
	defer func() {
		var err error
		err = errors.Join(err, hold.Unlock(ctx))
		log.Print(err)
	}()
	return charge(hold.Context(), hold.Token())
}

func readByAnother(ctx context.Context, lock *latchkey.Lock) error {
	hold, err := lock.Lock(ctx)
	if err != nil {
		return err
	}
	defer func() { log.Print(err) }()
	defer func() { err = errors.Join(err, hold.Unlock(ctx)) }()
	return charge(hold.Context(), hold.Token())
}

func ofTheFunctionAround(ctx context.Context, lock *latchkey.Lock) error {
	var err error
	func() {
		hold, failed := lock.Lock(ctx)
		if failed != nil {
			err = failed
			return
		}
		defer func() { err = hold.Unlock(ctx) }()
		_ = charge(hold.Context(), hold.Token())
	}()
	return err
}

func byPointer(ctx context.Context, lock *latchkey.Lock, watch func(*error)) error {
	hold, err := lock.Lock(ctx)
	if err != nil {
		return err
	}
	watch(&err)
	defer func() { err = hold.Unlock(ctx) }()
	return charge(hold.Context(), hold.Token())
}
