package contract_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/barrier"
	"github.com/latchkey-go/latchkey/countdown"
	"github.com/latchkey-go/latchkey/internal/test/contract"
	"github.com/latchkey-go/latchkey/rwlock"
	"github.com/latchkey-go/latchkey/semaphore"
)

// worker repeats something with one primitive until it is told to stop, and checks it each time.
type worker func(ctx context.Context) error

// crowd counts who is inside at once, and the rounds.
type crowd struct {
	most   int64
	inside atomic.Int64
	rounds atomic.Int64
	token  atomic.Int64 // the last one of a lock
}

func (c *crowd) enter(n int64) error {
	defer c.rounds.Add(1)
	if inside := c.inside.Add(n); inside > c.most {
		return fmt.Errorf("%d are inside", inside)
	}
	time.Sleep(200 * time.Microsecond) // what is done inside
	return nil
}

func (c *crowd) leave(n int64) { c.inside.Add(-n) }

func locks(t *testing.T, kind string, c *latchkey.Client, name string, in *crowd) worker {
	t.Helper()
	l, err := contract.AllKinds[kind](c, name, 0)
	require.NoError(t, err)
	return func(ctx context.Context) error {
		h, err := l.Lock(ctx)
		if err != nil {
			return fmt.Errorf("%s: lock: %w", name, err)
		}
		err = in.enter(1)
		if before := in.token.Swap(h.Token()); before >= h.Token() {
			err = errors.Join(err, fmt.Errorf("%s: token %d after %d", name, h.Token(), before))
		}
		in.leave(1)
		return errors.Join(err, h.Unlock(ctx))
	}
}

// readersAndWriters has one goroutine in two write.
func readersAndWriters(t *testing.T, c *latchkey.Client, name string, writes bool, in *crowd) worker {
	t.Helper()
	l, err := rwlock.New(c, name)
	require.NoError(t, err)
	half, weight := l.Read(), int64(1)
	if writes {
		half, weight = l.Write(), in.most
	}
	return func(ctx context.Context) error {
		h, err := half.Lock(ctx)
		if err != nil {
			return fmt.Errorf("%s: lock: %w", name, err)
		}
		err = in.enter(weight)
		if before := in.token.Swap(h.Token()); before > h.Token() || writes && before == h.Token() {
			err = errors.Join(err, fmt.Errorf("%s: token %d after %d", name, h.Token(), before))
		}
		in.leave(weight)
		return errors.Join(err, h.Unlock(ctx))
	}
}

func permits(t *testing.T, c *latchkey.Client, name string, in *crowd, opts ...semaphore.Option) worker {
	t.Helper()
	sem, err := semaphore.New(c, name, append(opts, semaphore.WithCapacity(int(in.most)))...)
	require.NoError(t, err)
	n := int64(0)
	return func(ctx context.Context) error {
		n = n%2 + 1
		weight := n
		p, err := sem.Acquire(ctx, int(weight))
		if err != nil {
			return fmt.Errorf("%s: acquire: %w", name, err)
		}
		err = in.enter(weight)
		in.leave(weight)
		return errors.Join(err, p.Release(ctx))
	}
}

func counting(t *testing.T, c *latchkey.Client, name string, in *crowd) worker {
	t.Helper()
	sem, err := semaphore.NewCounting(c, name)
	require.NoError(t, err)
	_, err = sem.TrySetPermits(t.Context(), int(in.most))
	require.NoError(t, err)
	return func(ctx context.Context) error {
		if err := sem.Acquire(ctx, 1); err != nil {
			return fmt.Errorf("%s: acquire: %w", name, err)
		}
		err := in.enter(1)
		in.leave(1)
		return errors.Join(err, sem.Release(ctx, 1))
	}
}

// latches has each client shut the latch when it is open, and wait until both have counted it down.
func latches(t *testing.T, c *latchkey.Client, name string, in *crowd) worker {
	t.Helper()
	l, err := countdown.New(c, name, countdown.WithWaitForSet())
	require.NoError(t, err)
	return func(ctx context.Context) error {
		defer in.rounds.Add(1)
		if _, err := l.Rearm(ctx, 2); err != nil {
			return fmt.Errorf("%s: rearm: %w", name, err)
		}
		for range 2 {
			if _, err := l.CountDown(ctx); err != nil && !errors.Is(err, countdown.ErrNotSet) {
				return fmt.Errorf("%s: count down: %w", name, err)
			}
		}
		if err := l.Await(ctx); err != nil {
			return fmt.Errorf("%s: await: %w", name, err)
		}
		return nil
	}
}

func barriers(t *testing.T, c *latchkey.Client, name string, in *crowd) worker {
	t.Helper()
	b, err := barrier.New(c, name, 2)
	require.NoError(t, err)
	return func(ctx context.Context) error {
		defer in.rounds.Add(1)
		if _, err := b.Await(ctx); err != nil {
			return fmt.Errorf("%s: await: %w", name, err)
		}
		return nil
	}
}
