package core

import (
	"context"
	"fmt"
	"time"

	"github.com/latchkey-go/latchkey/internal/lua"
)

// Counter is the inside of semaphore.Counting: permits that nobody owns.
//
// What was taken or given back is remembered in Redis under the id of the command, so that a copy of it changes nothing. A
// command says which others were answered and will not be sent again; those are forgotten. The rest is after a while.
type Counter struct{ p primitive }

// NewCounter returns the plain semaphore of a name.
func NewCounter(c *Client, name string, set []SemaphoreOption) (*Counter, error) {
	var o SemaphoreOptions
	for _, option := range set {
		if option != nil {
			option(&o)
		}
	}
	switch {
	case len(o.leases) > 0:
		return nil, named(name, invalid("the permits of a counting semaphore have no lease"))
	case c != nil && c.options.Replicas > 0:
		return nil, named(name, invalid("a counting semaphore does not wait for replicas"))
	}
	// The lease of its waiters ends nothing: it only must not be over while a reply is on its way.
	set = append(set[:len(set):len(set)], WithPermitLease(WithLease(MaxLease)))
	p, err := newSemaphore(c, lua.Plain, name, set)
	if err != nil {
		return nil, err
	}
	return &Counter{p}, nil
}

// Name is the name without the client's prefix.
func (s *Counter) Name() string { return s.p.name }

// Acquire is documented by package semaphore, as are the methods that follow.
func (s *Counter) Acquire(ctx context.Context, n int) error { return s.draw(ctx, ctx, n, false) }

// TryAcquire makes one attempt.
func (s *Counter) TryAcquire(ctx context.Context, n int) error {
	limited, cancel := s.p.resource.client.impatient(ctx)
	defer cancel()
	return s.draw(ctx, limited, n, true)
}

// TryAcquireFor waits for d at most.
func (s *Counter) TryAcquireFor(ctx context.Context, n int, d time.Duration) error {
	limited, cancel, err := s.p.within(ctx, d)
	if err != nil {
		return err
	}
	defer cancel()
	return s.draw(ctx, limited, n, false)
}

func (s *Counter) draw(parent, waits context.Context, n int, try bool) error {
	if err := s.p.validPermits(n, MaxCapacity); err != nil {
		return err
	}
	began := time.Now()
	err := s.take(parent, waits, n, try)
	whole(func() { s.p.attempted(parent, n, began, err) }, func() {
		if err == nil {
			s.p.resource.Go(func() { _ = s.Release(context.Background(), n) })
		}
	})
	return err
}

func (s *Counter) take(parent, waits context.Context, n int, try bool) error {
	if _, err := s.p.begin(parent, try); err != nil {
		return err
	}
	defer s.p.leave(try)
	t := s.p.newTenure(n, false)
	if t == nil {
		return named(s.p.name, ErrClosed)
	}
	t.asks(parent)
	if err := s.p.resource.waiters.Acquire(waits, &t.waiter, try); err != nil {
		return s.p.failed(parent, waits, err)
	}
	t.drawn()
	return nil
}

// drawn is told that the permits are the caller's: no tenure goes on. But while a copy of its acquire, or a message about it,
// may still arrive, it stays known here and in Redis, so that these are not taken for something else.
func (t *tenure) drawn() {
	c, n := t.client, t.waiter.Number
	if !t.waiters.Outstanding(&t.waiter) {
		t.receipts.settle(n)
		t.waiters.End(&t.waiter)
		return
	}
	c.mu.Lock()
	c.waiters.add(-1)
	c.mu.Unlock()
	time.AfterFunc(remembered, func() {
		c.mu.Lock()
		delete(c.tenures, n)
		c.mu.Unlock()
	})
}

// Release adds n permits.
func (s *Counter) Release(ctx context.Context, n int) error {
	if err := s.p.validPermits(n, MaxCapacity); err != nil {
		return err
	}
	r, c := s.p.resource, s.p.resource.client
	if c.stopped.Err() != nil { // and not while Shutdown waits: who has permits must be able to give them back
		return named(s.p.name, ErrClosed)
	}
	number, stray := c.ids.next(), false
	put := lua.Put(c.ids.id(number), int64(n))
	up := r.whileRemembered()
	err := r.outlast(ctx, func(ctx context.Context) (bool, error) {
		answered, err := r.insist(ctx, up, &stray, func(ctx context.Context) error {
			return r.declared.first(ctx, r, func() error {
				reply, err := r.trade(ctx, put, 1)
				if err == nil {
					_, err = lua.ParseGiven(reply)
				}
				return err
			})
		})
		switch {
		case answered && err == nil && !stray:
			r.receipts.settle(number)
		case err != nil && !answered && ctx.Err() == nil: // Redis would have forgotten it, or the client is closed
			return true, fmt.Errorf("%w: %w", ErrUnknownOutcome, outcome(err))
		case err != nil:
			err = public(err)
		}
		return answered, err
	})
	if err != nil {
		return named(s.p.name, err)
	}
	s.p.gaveBack(ctx, n)
	return nil
}

// TrySetPermits sets the free permits unless they are set.
func (s *Counter) TrySetPermits(ctx context.Context, n int) (bool, error) {
	done, _, _, err := s.p.change(ctx, lua.Initialize, int64(n))
	return done, err
}

// AddPermits changes the free permits by n, and returns how many there are.
func (s *Counter) AddPermits(ctx context.Context, n int) (int, error) {
	_, total, _, err := s.p.change(ctx, lua.Add, int64(n))
	return int(total), err
}

// Drain takes all free permits and returns how many there were.
func (s *Counter) Drain(ctx context.Context) (int, error) {
	_, _, taken, err := s.p.change(ctx, lua.Drain, 0)
	return int(taken), err
}

// Available returns the free permits, and how many wait.
func (s *Counter) Available(ctx context.Context) (available, waiting int, err error) {
	state, err := s.p.inspect(ctx, 0)
	return state.Available, state.Waiting, err
}

// Delete removes the semaphore.
func (s *Counter) Delete(ctx context.Context) (bool, error) { return s.p.destroy(ctx) }
