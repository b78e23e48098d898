package contract_test

import (
	"context"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/fairlock"
	"github.com/latchkey-go/latchkey/internal/test/redistest"
	"github.com/latchkey-go/latchkey/multilock"
	"github.com/latchkey-go/latchkey/redlock"
	"github.com/latchkey-go/latchkey/rlock"
	"github.com/latchkey-go/latchkey/rueidisclient"
	"github.com/latchkey-go/latchkey/rwlock"
	"github.com/latchkey-go/latchkey/semaphore"
	"github.com/latchkey-go/latchkey/spinlock"
)

// momentary is a fixed lease. It is no whole number of milliseconds, in which Redis counts.
const momentary = 12*time.Millisecond + 300*time.Microsecond

// fixedHold is one of any primitive.
type fixedHold interface {
	Held() bool
	Remaining() time.Duration
	Unlock(ctx context.Context) error
}

// permitsHeld makes one of permits.
type permitsHeld struct{ *semaphore.Permits }

func (p permitsHeld) Unlock(ctx context.Context) error { return p.Release(ctx) }

// holds takes something on a client: waiting for it, or at once. A lease that is not 0 is a fixed one.
type holds func(t *testing.T, on []*latchkey.Client, lease time.Duration) (wait, try func(context.Context) (fixedHold, error))

// ways turns the two methods of a lock into those of holds.
func ways[H fixedHold](wait, try func(context.Context) (H, error)) (w, a func(context.Context) (fixedHold, error)) {
	return func(ctx context.Context) (fixedHold, error) { return wait(ctx) },
		func(ctx context.Context) (fixedHold, error) { return try(ctx) }
}

// options are those of a hold whose lease is fixed, or none.
func options[O any](fixed bool, o O) []O {
	if fixed {
		return []O{o}
	}
	return nil
}

var shortHolds = map[string]holds{
	"rlock": func(t *testing.T, on []*latchkey.Client, lease time.Duration) (wait, try func(context.Context) (fixedHold, error)) {
		l, err := rlock.New(on[0], "a", options(lease > 0, latchkey.WithFixedLease(lease))...)
		require.NoError(t, err)
		return ways(l.Lock, l.TryLock)
	},
	"fairlock": func(t *testing.T, on []*latchkey.Client, lease time.Duration) (wait, try func(context.Context) (fixedHold, error)) {
		l, err := fairlock.New(on[0], "a", options(lease > 0, latchkey.WithFixedLease(lease))...)
		require.NoError(t, err)
		return ways(l.Lock, l.TryLock)
	},
	"spinlock": func(t *testing.T, on []*latchkey.Client, lease time.Duration) (wait, try func(context.Context) (fixedHold, error)) {
		l, err := spinlock.New(on[0], "a", options(lease > 0, latchkey.WithFixedLease(lease))...)
		require.NoError(t, err)
		return ways(l.Lock, l.TryLock)
	},
	"write": func(t *testing.T, on []*latchkey.Client, lease time.Duration) (wait, try func(context.Context) (fixedHold, error)) {
		l, err := rwlock.New(on[0], "a", options(lease > 0, latchkey.WithFixedLease(lease))...)
		require.NoError(t, err)
		return ways(l.Write().Lock, l.Write().TryLock)
	},
	"read": func(t *testing.T, on []*latchkey.Client, lease time.Duration) (wait, try func(context.Context) (fixedHold, error)) {
		l, err := rwlock.New(on[0], "a", options(lease > 0, latchkey.WithFixedLease(lease))...)
		require.NoError(t, err)
		if lease > 0 {
			return ways(l.Read().Lock, l.Read().TryLock)
		}
		return ways(l.Write().Lock, l.Write().TryLock) // who contends
	},
	"multilock": func(t *testing.T, on []*latchkey.Client, lease time.Duration) (wait, try func(context.Context) (fixedHold, error)) {
		var all []*latchkey.Lock
		for _, name := range []string{"a", "b"} {
			l, err := rlock.New(on[0], name, options(lease > 0, latchkey.WithFixedLease(lease))...)
			require.NoError(t, err)
			all = append(all, l)
		}
		l, err := multilock.New(all...)
		require.NoError(t, err)
		return ways(l.Lock, l.TryLock)
	},
	"redlock": func(t *testing.T, on []*latchkey.Client, lease time.Duration) (wait, try func(context.Context) (fixedHold, error)) {
		l, err := redlock.New(on, "a", options(lease > 0, latchkey.WithFixedLease(lease))...)
		require.NoError(t, err)
		return ways(l.Lock, l.TryLock)
	},
	"semaphore": func(t *testing.T, on []*latchkey.Client, lease time.Duration) (wait, try func(context.Context) (fixedHold, error)) {
		s, err := semaphore.New(on[0], "a", append(options(lease > 0, semaphore.WithFixedLease(lease)), semaphore.WithCapacity(2))...)
		require.NoError(t, err)
		return ways(
			func(ctx context.Context) (permitsHeld, error) {
				p, err := s.Acquire(ctx, 2)
				return permitsHeld{p}, err
			},
			func(ctx context.Context) (permitsHeld, error) {
				p, err := s.TryAcquire(ctx, 2)
				return permitsHeld{p}, err
			})
	},
}

// A hold with a fixed lease that nobody releases, and what another client is granted after it, are never both
// held at one instant: whether it was taken at once, or granted by a message.
// Rule 30.
func TestNoTwoAreHeldAtTheEndOfALease(t *testing.T) {
	for name, holds := range shortHolds {
		for _, byMessage := range []bool{false, true} {
			if byMessage {
				if name == "spinlock" || name == "redlock" {
					continue // they are never told
				}
				name += " by message"
			}
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				var mine, theirs []*latchkey.Client
				queued := make(chan struct{}, 1)
				hooks := latchkey.WithObserver(latchkey.Observer{Queued: func(latchkey.Event) {
					select {
					case queued <- struct{}{}:
					default: // a multi-lock is queued for one after the other
					}
				}})
				for range 3 {
					s := on(t, redistest.NewProcess(t))
					for to, opt := range map[*[]*latchkey.Client]latchkey.Option{&mine: hooks, &theirs: latchkey.WithObserver(latchkey.Observer{})} {
						c, err := rueidisclient.New(s.Option(), opt)
						require.NoError(t, err)
						t.Cleanup(func() { _ = c.Close() })
						require.NoError(t, c.Check(t.Context()))
						*to = append(*to, c)
					}
				}
				lease, rounds := momentary, redistest.Longer(50, 450)
				if name == "redlock" { // which takes none that is shorter
					lease, rounds = lease+100*time.Millisecond, rounds/10
				}
				take, try := holds(t, mine, lease)
				await, contend := holds(t, theirs, 0)
				if !byMessage {
					await, take = nil, try
				}
				outlast(t, rounds, queued, take, await, contend)
			})
		}
	}
}

// outlast has a hold be taken so many times, and lets its lease run out. With await somebody else holds
// before it, and releases once it is queued.
func outlast(t *testing.T, rounds int64, queued chan struct{}, take, await, contend func(context.Context) (fixedHold, error)) {
	overlaps, measured := 0, int64(0)
	for attempts := int64(1); measured < rounds; attempts++ {
		require.Less(t, attempts, 50*rounds, "leases end before they can be looked at")
		select {
		case <-queued: // of the round before
		default:
		}
		var before fixedHold
		if await != nil {
			var err error
			before, err = await(t.Context())
			require.NoError(t, err)
		}
		taken := make(chan fixedHold, 1)
		go func() {
			time.Sleep(rand.N(time.Millisecond)) // where in the millisecond it begins
			h, err := take(t.Context())
			if err != nil {
				h = nil
			}
			taken <- h
		}()
		if before != nil {
			<-queued
			require.NoError(t, before.Unlock(t.Context()))
		}
		mine := <-taken
		if mine == nil {
			continue // on a busy machine the lease may be over before the answer comes
		}
		measured++
		time.Sleep(mine.Remaining() - 2*time.Millisecond) // until shortly before the end: what is awaited is time itself
		theirs, err := contend(t.Context())
		for err != nil {
			require.ErrorIs(t, err, latchkey.ErrNotAcquired)
			theirs, err = contend(t.Context())
		}
		if mine.Held() && theirs.Held() {
			overlaps++
		}
		require.NoError(t, theirs.Unlock(t.Context()))
	}
	require.Zero(t, overlaps)
}
