package explore_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/fairlock"
	"github.com/latchkey-go/latchkey/multilock"
	"github.com/latchkey-go/latchkey/rlock"
	"github.com/latchkey-go/latchkey/rwlock"
	"github.com/latchkey-go/latchkey/semaphore"
	"github.com/latchkey-go/latchkey/spinlock"
)

// tenancy is what a user holds.
type tenancy interface{ Held() bool }

// call is one way to take something, and to give it back.
type call struct {
	name    string
	attempt bool     // it does not wait
	shared  bool     // with others that share
	of      []string // the locks that it takes; nil: permits
	permits int      // 0: of a lock
	take    func(ctx context.Context) (tenancy, func(context.Context) error, error)
}

// excludes reports whether what is taken by one call may not be held beside what the other one takes.
func (c call) excludes(o call) bool {
	common := slices.ContainsFunc(c.of, func(name string) bool { return slices.Contains(o.of, name) })
	return common && (!c.shared || !o.shared)
}

// fault is what may go wrong, or be done to a client.
type fault string

const (
	cancels fault = "cancel" // a context ends while its call waits
	breaks  fault = "break"  // a connection for commands breaks; what was sent on it may still run
	deafens fault = "deafen" // the subscription breaks
	dies    fault = "die"    // a process ends
	closes  fault = "close"  // a client is closed
	forces  fault = "force"  // ForceUnlock
	moments fault = "moment" // a moment passes; there is one after each break
	passes  fault = "pass"   // most of a lease passes, whatever is under way
)

const soon = time.Second

// recovery is how long it may take, after a fault, until all is well. After others no time passes.
var recovery = map[fault]time.Duration{
	breaks: soon, deafens: soon, // until the client is connected again, and has asked
	dies: lease + 5*time.Second, forces: lease + 5*time.Second, passes: lease + 5*time.Second, // the end of a lease, and two questions
}

// scene is what a search is of: what the users of each client call, one call after the other, and what may go
// wrong how often.
type scene struct {
	name   string
	make   func(t *testing.T, c *latchkey.Client) map[string]call // what calls mean to a client
	users  [][]string                                             // of each client: the calls of each user, a letter each
	faults map[fault]int
	polls  bool // whoever waits asks from time to time
	client []latchkey.Option
	force  func(ctx context.Context, c *latchkey.Client) error
}

// named has a scene's faults and users in its name.
func (s scene) with(users [][]string, faults ...fault) scene {
	s.users, s.faults = users, map[fault]int{}
	for _, f := range faults {
		s.faults[f]++
		s.name += ", " + string(f)
	}
	for n, of := range users {
		s.name += map[bool]string{true: " ", false: ": "}[n > 0]
		for i, calls := range of {
			s.name += map[bool]string{true: "+", false: ""}[i > 0] + calls
		}
	}
	return s
}

// declared has scripts ask for the keys that no client knows beforehand, which takes more calls.
func (s scene) declared() scene {
	s.name += " with declared keys"
	s.client = []latchkey.Option{latchkey.WithDeclaredKeys()}
	return s
}

// thing and other are the names of all that is taken.
const thing, other = "a", "b"

var things = []string{thing, other}

func locks(name string, lock func(c *latchkey.Client) (*latchkey.Lock, error)) scene {
	return scene{
		name: name,
		make: func(t *testing.T, c *latchkey.Client) map[string]call {
			l, err := lock(c)
			require.NoError(t, err)
			return map[string]call{"L": ofLock("Lock", l.Lock), "T": attempt(ofLock("TryLock", l.TryLock))}
		},
		force: func(ctx context.Context, c *latchkey.Client) error {
			l, err := lock(c)
			if err == nil {
				_, err = l.ForceUnlock(ctx)
			}
			return err
		},
	}
}

func ofLock(name string, take func(context.Context) (*latchkey.Hold, error)) call {
	return call{name: name, of: []string{thing}, take: func(ctx context.Context) (tenancy, func(context.Context) error, error) {
		h, err := take(ctx)
		return h, h.Unlock, err
	}}
}

func attempt(c call) call {
	c.attempt = true
	return c
}

func shared(c call) call {
	c.shared = true
	return c
}

var (
	inLine   = locks("rlock", func(c *latchkey.Client) (*latchkey.Lock, error) { return rlock.New(c, thing) })
	budgeted = locks("rlock with a budget", func(c *latchkey.Client) (*latchkey.Lock, error) {
		return rlock.New(c, thing, rlock.WithBudget(1, time.Second))
	})
	fair    = locks("fairlock", func(c *latchkey.Client) (*latchkey.Lock, error) { return fairlock.New(c, thing) })
	lingers = locks("rlock that lingers", func(c *latchkey.Client) (*latchkey.Lock, error) {
		return rlock.New(c, thing, rlock.WithLinger(lease/2))
	})
	spins = func() scene {
		s := locks("spinlock", func(c *latchkey.Client) (*latchkey.Lock, error) { return spinlock.New(c, thing) })
		s.polls = true
		return s
	}()
	halves = scene{
		name: "rwlock",
		make: func(t *testing.T, c *latchkey.Client) map[string]call {
			l, err := rwlock.New(c, thing)
			require.NoError(t, err)
			return map[string]call{
				"D": shared(ofLock("Downgrade", func(ctx context.Context) (*latchkey.Hold, error) {
					h, err := l.Write().Lock(ctx)
					if err != nil {
						return h, err
					}
					if err := rwlock.Downgrade(ctx, h); err != nil {
						return nil, errors.Join(err, h.Unlock(context.WithoutCancel(ctx)))
					}
					return h, nil
				})),
				"R": shared(ofLock("Read", l.Read().Lock)), "W": ofLock("Write", l.Write().Lock),
				"r": attempt(shared(ofLock("TryRead", l.Read().TryLock))), "w": attempt(ofLock("TryWrite", l.Write().TryLock)),
			}
		},
		force: func(ctx context.Context, c *latchkey.Client) error {
			l, err := rwlock.New(c, thing)
			if err == nil {
				_, err = l.Write().ForceUnlock(ctx)
			}
			return err
		},
	}
	several = scene{
		name: "multilock",
		make: func(t *testing.T, c *latchkey.Client) map[string]call {
			first, err := rlock.New(c, thing)
			require.NoError(t, err)
			second, err := rlock.New(c, other)
			require.NoError(t, err)
			fairly, err := fairlock.New(c, other)
			require.NoError(t, err)
			calls := map[string]call{"L": ofLock("Lock", first.Lock)}
			for letter, locks := range map[string][]*latchkey.Lock{"M": {first, second}, "F": {fairly, first}} {
				all, err := multilock.New(locks...)
				require.NoError(t, err)
				for n, take := range []func(context.Context) (*multilock.Hold, error){all.Lock, all.TryLock} {
					c := call{name: []string{"Lock of both", "TryLock of both"}[n], attempt: n == 1, of: things}
					c.take = func(ctx context.Context) (tenancy, func(context.Context) error, error) {
						h, err := take(ctx)
						return h, h.Unlock, err
					}
					calls[[]string{letter, strings.ToLower(letter)}[n]] = c
				}
			}
			alone := ofLock("Lock of the other", second.Lock)
			alone.of = []string{other}
			calls["O"] = alone
			return calls
		},
	}
	permits = scene{
		name: "semaphore",
		make: func(t *testing.T, c *latchkey.Client) map[string]call {
			s, err := semaphore.New(c, thing, semaphore.WithCapacity(capacity))
			require.NoError(t, err)
			of := func(n int) call {
				return call{name: "Acquire", permits: n, take: func(ctx context.Context) (tenancy, func(context.Context) error, error) {
					p, err := s.Acquire(ctx, n)
					return p, p.Release, err
				}}
			}
			return map[string]call{"1": of(1), "2": of(2)}
		},
	}
)

const capacity = 2
