package lostunlock

import (
	"context"
	"errors"
	"log"
	"os"
	"time"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/fence"
	"github.com/latchkey-go/latchkey/semaphore"
)

func deferred(ctx context.Context, lock *latchkey.Lock) error {
	hold, err := lock.Lock(ctx)
	if err != nil {
		return err
	}
	defer hold.Unlock(ctx)
	return fence.Set(ctx, hold, "a", "b")
}

func joined(ctx context.Context, lock *latchkey.Lock) (err error) {
	hold, err := lock.Lock(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, hold.Unlock(ctx)) }()
	return charge(hold.Context(), hold.Token())
}

func everyReturn(ctx context.Context, lock *latchkey.Lock, wanted bool) error {
	hold, err := lock.Lock(ctx)
	if err != nil {
		return err
	}
	if !wanted {
		return hold.Unlock(ctx)
	}
	err = charge(hold.Context(), hold.Token())
	return errors.Join(err, hold.Unlock(ctx))
}

func detached(ctx context.Context, lock *latchkey.Lock, enqueue func(string) error) error {
	hold, err := lock.Lock(ctx)
	if err != nil {
		return err
	}
	text, err := hold.DetachFor(ctx, time.Minute)
	if err != nil {
		return err
	}
	return enqueue(text)
}

func attached(ctx context.Context, lock *latchkey.Lock, text string) (err error) {
	hold, err := lock.Attach(ctx, text)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, hold.Unlock(ctx)) }()
	return charge(hold.Context(), hold.Token())
}

func returned(ctx context.Context, lock *latchkey.Lock) (*latchkey.Hold, error) {
	hold, err := lock.Lock(ctx)
	if err != nil {
		return nil, err
	}
	return hold, nil
}

func handedOn(ctx context.Context, lock *latchkey.Lock) (*latchkey.Hold, error) {
	return lock.Lock(ctx)
}

func namedResult(ctx context.Context, lock *latchkey.Lock) (hold *latchkey.Hold, err error) {
	hold, err = lock.Lock(ctx)
	return
}

type session struct{ hold *latchkey.Hold }

func (s *session) stored(ctx context.Context, lock *latchkey.Lock) (err error) {
	s.hold, err = lock.Lock(ctx)
	return err
}

func (s *session) storedLater(ctx context.Context, lock *latchkey.Lock) error {
	hold, err := lock.Lock(ctx)
	if err != nil {
		return err
	}
	s.hold = hold
	return nil
}

func unlockLater(hold *latchkey.Hold) {
	time.AfterFunc(time.Second, func() { log.Print(hold.Unlock(context.Background())) })
}

func passedOn(ctx context.Context, lock *latchkey.Lock) error {
	hold, err := lock.Lock(ctx)
	if err != nil {
		return err
	}
	unlockLater(hold)
	return nil
}

func asAFunction(ctx context.Context, lock *latchkey.Lock) (func() error, error) {
	hold, err := lock.Lock(ctx)
	if err != nil {
		return nil, err
	}
	return func() error { return hold.Unlock(ctx) }, nil
}

func asAMethod(ctx context.Context, lock *latchkey.Lock) (func(context.Context) error, error) {
	hold, err := lock.Lock(ctx)
	if err != nil {
		return nil, err
	}
	return hold.Unlock, nil
}

func tried(ctx context.Context, lock *latchkey.Lock) error {
	hold, err := lock.TryLock(ctx)
	if errors.Is(err, latchkey.ErrNotAcquired) {
		return nil // somebody else does it
	}
	if err != nil {
		return err
	}
	_ = charge(hold.Context(), hold.Token())
	return hold.Unlock(ctx)
}

func triedThenWaited(ctx context.Context, lock *latchkey.Lock) error {
	hold, err := lock.TryLock(ctx)
	if err != nil {
		hold, err = lock.Lock(ctx)
	}
	if err != nil {
		return err
	}
	defer hold.Unlock(ctx)
	return nil
}

func ifHeld(ctx context.Context, lock *latchkey.Lock) {
	if hold, err := lock.TryLock(ctx); err == nil {
		_ = hold.Unlock(ctx)
	}
}

func cases(ctx context.Context, lock *latchkey.Lock) error {
	hold, err := lock.Lock(ctx)
	switch {
	case errors.Is(err, latchkey.ErrUnavailable) || errors.Is(err, context.Canceled):
		return nil
	case err != nil:
		return err
	}
	return hold.Unlock(ctx)
}

func unusual(err error) bool { return err != nil }

func byPredicate(ctx context.Context, lock *latchkey.Lock) error {
	hold, err := lock.Lock(ctx)
	if unusual(err) {
		return err
	}
	return hold.Unlock(ctx)
}

func byTag(ctx context.Context, lock *latchkey.Lock) error {
	hold, err := lock.Lock(ctx)
	switch err {
	case nil:
		return hold.Unlock(ctx)
	default:
		return err
	}
}

func byVariable(ctx context.Context, lock *latchkey.Lock) error {
	hold, err := lock.Lock(ctx)
	ok := err == nil
	if !ok {
		return err
	}
	return hold.Unlock(ctx)
}

func mayBeHeld(ctx context.Context, lock *latchkey.Lock, locks bool) error {
	var hold *latchkey.Hold
	var err error
	if locks {
		if hold, err = lock.Lock(ctx); err != nil {
			return err
		}
	}
	if hold != nil {
		return hold.Unlock(ctx)
	}
	return nil
}

func underACondition(ctx context.Context, lock *latchkey.Lock, locks, log bool) (err error) {
	var hold *latchkey.Hold
	if locks && !log {
		if hold, err = lock.Lock(ctx); err != nil {
			return err
		}
	}
	if locks {
		return hold.Unlock(ctx)
	}
	return nil
}

func captured(ctx context.Context, lock *latchkey.Lock) (err error) {
	var hold *latchkey.Hold
	defer func() {
		if hold != nil {
			err = errors.Join(err, hold.Unlock(ctx))
		}
	}()
	hold, err = lock.Lock(ctx)
	return err
}

func lost(ctx context.Context, lock *latchkey.Lock) error {
	hold, err := lock.Lock(ctx)
	if err != nil {
		return err
	}
	if hold.Err() != nil || !hold.Held() {
		return hold.Err() // nothing is held any more
	}
	return hold.Unlock(ctx)
}

func fatal(err error) {
	log.Print(err)
	os.Exit(1)
}

func ends(ctx context.Context, lock *latchkey.Lock) {
	hold, err := lock.Lock(ctx)
	if err != nil {
		fatal(err)
	}
	if hold.Token() == 0 {
		panic("no token")
	}
	if hold.Token() == 1 {
		fatal(errOther)
	} else {
		_ = hold.Unlock(ctx)
	}
}

func retried(ctx context.Context, lock *latchkey.Lock) error {
	for {
		hold, err := lock.TryLock(ctx)
		if err != nil {
			time.Sleep(time.Second)
			continue
		}
		return hold.Unlock(ctx)
	}
}

func inParts(ctx context.Context, s *semaphore.Semaphore) error {
	p, err := s.TryAcquire(ctx, 2)
	if err != nil {
		return err
	}
	if err := p.ReleaseN(ctx, 1); err != nil {
		return errors.Join(err, p.Release(ctx))
	}
	return p.Release(ctx)
}

func counting(ctx context.Context, s *semaphore.Counting) error {
	return s.Acquire(ctx, 1) // anybody may release
}

func switchedOff(ctx context.Context, lock *latchkey.Lock) error {
	_, err := lock.TryLock(ctx) //latchkeyvet:ignore the fixed lease is the pause until the next attempt
	return err
}

func switchedOffAbove(ctx context.Context, lock *latchkey.Lock) error {
	//latchkeyvet:ignore the fixed lease is the pause until the next attempt
	_, err := lock.TryLock(ctx)
	return err
}

func capturedByTheLocking(ctx context.Context, lock *latchkey.Lock) (err error) {
	var hold *latchkey.Hold
	func() {
		hold, err = lock.Lock(ctx)
	}()
	if err != nil {
		return err
	}
	return hold.Unlock(ctx)
}

func byTwoPredicates(ctx context.Context, lock *latchkey.Lock) error {
	hold, err := lock.Lock(ctx)
	if ctx.Err() == nil && unusual(err) {
		return err
	}
	return hold.Unlock(ctx)
}

func endsInAPanic(ctx context.Context, lock *latchkey.Lock) {
	hold, err := lock.Lock(ctx)
	if err != nil {
		return
	}
	switch hold.Token() {
	case 0:
		panic("no token")
	default:
		_ = hold.Unlock(ctx)
	}
}

type cache struct{}

func (cache) Lock(context.Context) (int, error) { return 0, nil }

func somethingElse(ctx context.Context, c cache) error {
	_, err := c.Lock(ctx)
	return err
}

// Account is for programs that import this package, and none of latchkey.
type Account struct{ *latchkey.Lock }
