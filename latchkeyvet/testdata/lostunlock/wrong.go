package lostunlock

import (
	"context"
	"errors"
	"time"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/fence"
	"github.com/latchkey-go/latchkey/multilock"
	"github.com/latchkey-go/latchkey/rwlock"
	"github.com/latchkey-go/latchkey/semaphore"
)

var errOther = errors.New("other")

func charge(context.Context, int64) error { return nil }

func never(ctx context.Context, lock *latchkey.Lock) error {
	hold, err := lock.Lock(ctx) // want `hold is not given back on the way to the return on line 24, and the lock stays taken .* Write defer hold.Unlock\(ctx\)`
	if err != nil {
		return err
	}
	return charge(hold.Context(), hold.Token())
}

func early(ctx context.Context, lock *latchkey.Lock, wanted bool) error {
	hold, err := lock.Lock(ctx) // want `return on line 33`
	if err != nil {
		return err
	}
	if !wanted {
		return nil
	}
	return hold.Unlock(ctx)
}

func whenWorkFails(ctx context.Context, lock *latchkey.Lock) error {
	hold, err := lock.TryLockFor(ctx, time.Second) // want `return on line 44`
	if err != nil {
		return err
	}
	if err = charge(hold.Context(), hold.Token()); err != nil { // this err is not that of the lock
		return err
	}
	return hold.Unlock(ctx)
}

func blank(ctx context.Context, lock *latchkey.Lock) error {
	_, err := lock.TryLock(ctx) // want `what TryLock returns is assigned to _, so nobody can give it back`
	return err
}

func dropped(ctx context.Context, lock *latchkey.Lock) {
	lock.Lock(ctx) // want `what Lock returns is dropped`
}

func discarded(ctx context.Context, lock *latchkey.Lock) {
	hold, err := lock.Lock(ctx) // want `return on line 62`
	_, _ = hold.Token(), err
	_ = hold
}

func deferredLock(ctx context.Context, lock *latchkey.Lock) {
	defer lock.Lock(ctx) // want `this defer takes the lock when the function returns, and nobody gives it back: was Unlock meant\?`
}

func beside(ctx context.Context, lock *latchkey.Lock) {
	go lock.Lock(ctx) // want `what Lock returns is dropped`
}

func permits(ctx context.Context, s *semaphore.Semaphore) error {
	p, err := s.Acquire(ctx, 2) // want `p is not given back on the way to the return on line 77, and they stay taken .* defer p.Release\(ctx\)`
	if err != nil {
		return err
	}
	return charge(p.Context(), p.Token())
}

func drained(ctx context.Context, s *semaphore.Semaphore) error {
	_, err := s.Drain(ctx) // want `what Drain returns is assigned to _`
	return err
}

func several(ctx context.Context, both *multilock.Lock) error {
	hold, err := both.Lock(ctx) // want `return on line 92`
	if err != nil {
		return err
	}
	for name, token := range hold.Tokens() {
		if name == "" {
			return charge(hold.Context(), token)
		}
	}
	return hold.Unlock(ctx)
}

func readers(ctx context.Context, catalog *rwlock.Lock) bool {
	var hold, err = catalog.Read().Lock(ctx) // want `return on line 100`
	return err == nil && hold.Held()
}

func rounds(ctx context.Context, lock *latchkey.Lock) {
	for range 3 {
		hold, err := lock.Lock(ctx) // want `the loop comes here again before hold has been given back`
		if err != nil {
			continue
		}
		_ = charge(hold.Context(), hold.Token())
	}
}

func oneCase(ctx context.Context, lock *latchkey.Lock, n int) error {
	hold, err := lock.Lock(ctx) // want `return on line 121`
	switch {
	case err != nil:
		return err
	case n == 1:
		return hold.Unlock(ctx)
	default:
		return nil
	}
}

func whileWaiting(ctx context.Context, lock *latchkey.Lock, more <-chan int) error {
	hold, err := lock.Lock(ctx) // want `return on line 132`
	if err != nil {
		return err
	}
	select {
	case <-hold.Context().Done(): // also when only ctx has ended, and the lock is held
		return context.Cause(hold.Context())
	case <-more:
		return hold.Unlock(ctx)
	}
}

type locker interface {
	Lock(ctx context.Context) (*latchkey.Hold, error)
}

func byInterface(ctx context.Context, l locker) error {
	_, err := l.Lock(ctx) // want `what Lock returns is assigned to _`
	return err
}

func generic[L locker](ctx context.Context, l L) error {
	_, err := l.Lock(ctx) // want `what Lock returns is assigned to _`
	return err
}

type account struct {
	*latchkey.Lock
	balance int
}

func embedded(ctx context.Context, a *account) error {
	hold, err := a.Lock.Lock(ctx) // want `return on line 163`
	if err != nil {
		return err
	}
	if a.balance < 0 {
		return errOther
	}
	return hold.Unlock(ctx)
}

func inAFunction(ctx context.Context, lock *latchkey.Lock) func() error {
	return func() error {
		hold, err := lock.Lock(ctx) // want `return on line 174`
		if err != nil {
			return err
		}
		return charge(hold.Context(), hold.Token())
	}
}

func afterIs(ctx context.Context, lock *latchkey.Lock) error {
	hold, err := lock.TryLock(ctx) // want `return on line 186`
	if errors.Is(err, latchkey.ErrNotAcquired) {
		return nil
	}
	if err != nil {
		return err
	}
	return charge(hold.Context(), hold.Token())
}

func fenced(ctx context.Context, lock *latchkey.Lock) error {
	hold, err := lock.Lock(ctx) // want `return on line 194`
	if err != nil {
		return err
	}
	return fence.Set(ctx, hold, "stock", "17") // which does not give it back
}

func attachedForGood(ctx context.Context, lock *latchkey.Lock, text string) error {
	hold, err := lock.Attach(ctx, text) // want `hold is not given back`
	if err != nil {
		return err
	}
	return charge(hold.Context(), hold.Token())
}
