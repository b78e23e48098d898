package core

import (
	"context"
	"errors"
	"math"
	"sync/atomic"
	"time"

	"github.com/latchkey-go/latchkey/internal/lease"
	"github.com/latchkey-go/latchkey/internal/lua"
)

// The bounds of numbers of permits.
const (
	MaxPermits  = 1000          // of one request: each is an entry of its own in Redis
	MaxCapacity = math.MaxInt32 // Redisson's are Java's int
)

// SemaphoreOptions are what the options of package semaphore set.
type SemaphoreOptions struct {
	leases   []LockOption
	capacity *int
	flags    string
}

// SemaphoreOption sets one.
type SemaphoreOption func(*SemaphoreOptions)

// WithPermitLease is documented by package semaphore, as are the options that follow.
func WithPermitLease(o LockOption) SemaphoreOption {
	return func(all *SemaphoreOptions) { all.leases = append(all.leases, o) }
}

// WithCapacity says how many permits there are.
func WithCapacity(n int) SemaphoreOption { return func(o *SemaphoreOptions) { o.capacity = &n } }

// WithOvertaking lets requests pass a head that does not fit.
func WithOvertaking() SemaphoreOption { return func(o *SemaphoreOptions) { o.flags += "p" } }

// WithWaitForCapacity waits although there are fewer permits.
func WithWaitForCapacity() SemaphoreOption { return func(o *SemaphoreOptions) { o.flags += "g" } }

// WithWaitForInit waits although the semaphore is not initialised.
func WithWaitForInit() SemaphoreOption { return func(o *SemaphoreOptions) { o.flags += "u" } }

// Semaphore is the inside of semaphore.Semaphore.
type Semaphore struct{ p primitive }

// NewSemaphore returns the semaphore of a name whose permits are leased.
func NewSemaphore(c *Client, name string, set []SemaphoreOption) (*Semaphore, error) {
	p, err := newSemaphore(c, lua.Leased, name, set)
	if err != nil {
		return nil, err
	}
	return &Semaphore{p}, nil
}

func newSemaphore(c *Client, family lua.Family, name string, set []SemaphoreOption) (p primitive, err error) {
	var o SemaphoreOptions
	for _, option := range set {
		if option != nil {
			option(&o)
		}
	}
	if o.capacity != nil && (*o.capacity < 1 || *o.capacity > MaxCapacity) {
		return p, named(name, invalid("the capacity must be from 1 to %d, not %d", MaxCapacity, *o.capacity))
	}
	if p, err = newPrimitive(c, family, name, o.leases); err != nil {
		return p, err
	}
	p.flags = o.flags
	if o.capacity != nil {
		p.resource.declared.permits.Store(int64(*o.capacity))
	}
	return p, nil
}

// validPermits checks the number of a request.
func (p *primitive) validPermits(n, most int) error {
	if n < 1 || n > most {
		return named(p.name, invalid("the number of permits must be from 1 to %d, not %d", most, n))
	}
	return nil
}

// Name is the name without the client's prefix.
func (s *Semaphore) Name() string { return s.p.name }

// Acquire is documented by package semaphore, as are the methods that follow.
func (s *Semaphore) Acquire(ctx context.Context, n int) (*Hold, error) {
	if err := s.p.validPermits(n, MaxPermits); err != nil {
		return nil, err
	}
	return s.p.acquire(ctx, ctx, n, false)
}

// TryAcquire makes one attempt.
func (s *Semaphore) TryAcquire(ctx context.Context, n int) (*Hold, error) {
	if err := s.p.validPermits(n, MaxPermits); err != nil {
		return nil, err
	}
	return s.p.try(ctx, n)
}

// TryAcquireFor waits for d at most.
func (s *Semaphore) TryAcquireFor(ctx context.Context, n int, d time.Duration) (*Hold, error) {
	if err := s.p.validPermits(n, MaxPermits); err != nil {
		return nil, err
	}
	return s.p.tryFor(ctx, n, d)
}

// Do acquires, runs f and releases.
func (s *Semaphore) Do(ctx context.Context, n int, f func(context.Context, *Hold) error) error {
	hold, err := s.Acquire(ctx, n)
	return guard(ctx, hold, err, f)
}

// all is the number of permits of a tenure that takes whatever is free, until it has that.
const all = -1

// Drain takes all free permits.
func (s *Semaphore) Drain(ctx context.Context) (*Hold, error) { return s.p.try(ctx, all) }

// TrySetPermits sets the capacity unless it is set.
func (s *Semaphore) TrySetPermits(ctx context.Context, n int) (bool, error) {
	done, _, _, err := s.p.change(ctx, lua.Initialize, int64(n))
	return done, err
}

// SetPermits sets the capacity.
func (s *Semaphore) SetPermits(ctx context.Context, n int) error {
	_, _, _, err := s.p.change(ctx, lua.Set, int64(n))
	return err
}

// AddPermits changes the capacity by n and returns it.
func (s *Semaphore) AddPermits(ctx context.Context, n int) (int, error) {
	_, total, _, err := s.p.change(ctx, lua.Add, int64(n))
	return int(total), err
}

// change runs permit/capacity.lua. It is sent until it is answered: each is done once.
func (p *primitive) change(ctx context.Context, change lua.Change, n int64) (done bool, total, free int64, err error) {
	least := int64(0)
	if change == lua.Add {
		least = -MaxCapacity
	}
	if n < least || n > MaxCapacity {
		return false, 0, 0, named(p.name, invalid("the number of permits must be from %d to %d, not %d", least, MaxCapacity, n))
	}
	r, c := p.resource, p.resource.client
	id := c.newID()
	_, err = r.command(ctx, c.closing, p.name, func(ctx context.Context) error {
		return r.declared.first(ctx, r, func() (err error) { // or a declaration that comes later would undo it
			done, total, free, err = c.conn.Capacity(ctx, r.keys, id, r.seen.Load(), change, n, MaxCapacity, 0)
			return err
		})
	})
	return done, total, free, err
}

// declaration is how many permits the client says that there are.
type declaration struct {
	permits atomic.Int64 // 0: it does not say
	made    atomic.Int64 // what Redis was told
	at      atomic.Int64 // when, in ns since the epoch
}

// redeclare is how long Redis is believed to know: it may have lost that, and an older client may have been faster to say what
// it thinks.
var redeclare = time.Minute // shorter in a test

// declare tells Redis, now and then. Of clients that say different things the one that began last is right, so that a process
// of a version before does not undo what a new one has said.
func (d *declaration) declare(ctx context.Context, r *resource) error {
	n, now := d.permits.Load(), time.Now().UnixNano()
	if n == 0 || n == d.made.Load() && now-d.at.Load() < int64(redeclare) {
		return nil
	}
	change, c := lua.Declare, r.client
	if r.keys.Family() == lua.Plain {
		change = lua.Initialize // nobody knows how many permits are out
	}
	_, _, _, err := c.conn.Capacity(ctx, r.keys, c.newID(), r.seen.Load(), change, n, MaxCapacity, c.began.UnixMicro())
	if err == nil {
		d.made.Store(n)
		d.at.Store(now)
	}
	return err
}

// first declares and then does something, both again when nobody has initialised the semaphore although it was declared: it
// was deleted, or Redis has lost it.
func (d *declaration) first(ctx context.Context, r *resource, do func() error) error {
	for {
		if err := d.declare(ctx, r); err != nil {
			return err
		}
		err := do()
		if !errors.Is(err, lua.ErrNotInitialized) || d.permits.Load() == 0 {
			return err
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		d.made.Store(0)
	}
}

// take sends one acquire, of permits that have been declared.
func (r *resource) take(ctx context.Context, claim lua.Claim, mode lua.Mode) (reply lua.Acquired, err error) {
	if r.exclusive() {
		return r.client.conn.Acquire(ctx, r.keys, claim, r.seen.Load(), mode)
	}
	err = r.declared.first(ctx, r, func() error {
		message, err := r.trade(ctx, lua.Take(claim, mode), claim.Permits())
		if err == nil {
			reply, err = lua.ParseTaken(message)
		}
		if err == nil && errors.Is(reply.Refused, lua.ErrNotInitialized) {
			return reply.Refused
		}
		return err
	})
	if errors.Is(err, lua.ErrNotInitialized) { // that is an answer
		return reply, nil
	}
	return reply, err
}

// Inspect is documented by package semaphore, as are the methods that follow.
func (s *Semaphore) Inspect(ctx context.Context) (SemaphoreState, error) {
	return s.p.inspect(ctx, InspectLimit)
}

// Numbers returns the free permits and those in use.
func (s *Semaphore) Numbers(ctx context.Context) (available, inUse int, err error) {
	state, err := s.p.inspect(ctx, 0)
	return state.Available, state.InUse, err
}

// Delete removes the semaphore and takes away what is held.
func (s *Semaphore) Delete(ctx context.Context) (bool, error) { return s.p.destroy(ctx) }

func (p *primitive) destroy(ctx context.Context) (existed bool, err error) {
	r, c := p.resource, p.resource.client
	id := c.newID()
	_, err = r.command(ctx, c.closing, p.name, func(ctx context.Context) (err error) {
		existed, err = c.conn.Destroy(ctx, r.keys, id, r.seen.Load())
		return err
	})
	return existed, err
}

// Permits is how many are held.
func (h *Hold) Permits() int {
	if h.none() {
		return 0
	}
	t := h.turn.tenure
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.permits
}

// ReleaseN gives back n of the permits; all of them is Unlock.
func (h *Hold) ReleaseN(ctx context.Context, n int) error {
	if h.none() {
		return h.Err()
	}
	t := h.turn.tenure
	h.look()
	t.parting.Lock() // how many stay is told to Redis, so that a copy changes nothing: one after the other
	t.mu.Lock()
	h.mu.Lock()
	over := h.unlocked
	h.mu.Unlock()
	keep, loss := t.permits-n, t.loss
	t.mu.Unlock()
	if keep == 0 && !over {
		t.parting.Unlock()
		return h.Unlock(ctx)
	}
	defer t.parting.Unlock()
	switch {
	case n < 1 || keep < 0 && !over:
		return named(t.name, invalid("the number of permits must be from 1 to the %d that are held, not %d", keep+n, n))
	case over:
		return named(t.name, ErrNotHeld)
	case loss != nil:
		return named(t.name, loss)
	}
	err := t.see(ctx, &release{turn: h.turn, keep: keep})
	h.mu.Lock()
	over = h.unlocked
	h.mu.Unlock()
	switch {
	case errors.Is(err, errNotOurs) && over:
		return nil // a release of all of them was faster
	case errors.Is(err, errNotOurs):
		t.client.keeper.Lose(&t.item, lease.ErrGone)
	case err == nil, errors.Is(err, ErrUnknownOutcome): // it goes on
		t.mu.Lock()
		t.permits = keep
		t.mu.Unlock()
	}
	if err != nil {
		return named(t.name, err)
	}
	return nil
}
