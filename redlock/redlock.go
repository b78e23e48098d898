// Package redlock is a lock over several independent servers, which lives as long as most of them do: the RedLock of
// Salvatore Sanfilippo (https://redis.io/docs/latest/develop/clients/patterns/distributed-locks/), as Redisson's
// RRedissonRedLock.
//
//	lock, err := redlock.New([]*latchkey.Client{a, b, c, d, e}, "orders:42")
//	...
//	hold, err := lock.Lock(ctx)
//
// A process holds the lock when it has it on a majority of the servers. It is trusted for as long as the leases of a
// majority are, less what their clocks may differ: a hundredth of the lease and 2 ms. A server that is lost, and comes
// back, is taken again while the lock is held.
//
// A majority is asked first, side by side, and the others when one of these does not answer in time or refuses. What
// was taken without a majority is given back at once. A hold that lasts for more than 50 ms takes the other servers,
// too.
//
// Waiters stand in the queue of one server, the coordinator: the first one that is not known to be away, in an order
// that all processes share. Its queue is a hint: a process that stands there for 400 ms and four round trips tries the
// other servers as well. The goroutines of a process that share a lock stand in a line: one at a time is in the queue.
//
// # Fencing tokens
//
// The token of a hold is the greatest that one of its servers gave. It is written to a majority before the lock is
// held. So tokens grow although the majority changes, as long as a server that both majorities have keeps its data.
//
// # What it does not promise
//
// Clocks that run at different speeds, or are set, end leases at different times. A process that is stopped may go on
// after its lease. Neither is seen by the lock, and both are seen by a store that compares tokens (Martin Kleppmann,
// "How to do distributed locking", https://martin.kleppmann.com/2016/02/08/how-to-do-distributed-locking.html). With
// such a store one server with a replica is often enough: see [latchkey.WithReplicas].
//
// A server that comes back without its data, or whose clock is set forward by a lease, has forgotten who holds the
// lock. In the first 50 ms of a hold, one such server is enough for two to hold the lock; later it takes a majority of
// them. Keep a server away for as long as the longest lease, or use [WithUptime]. A server that comes back with old
// data, as with appendfsync everysec, is not noticed.
package redlock

import (
	"hash/fnv"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/internal/fail"
	"github.com/latchkey-go/latchkey/internal/grant"
	"github.com/latchkey-go/latchkey/internal/lock"
	"github.com/latchkey-go/latchkey/internal/lua"
	"github.com/latchkey-go/latchkey/internal/session"
	"github.com/latchkey-go/latchkey/internal/terms"
)

// Lock is what New returns: see [latchkey.Lock]. A context that holds it re-enters only this very lock, and not
// another one with its name. ForceUnlock and Inspect need the answers of a majority. The options, hooks and logger of
// the first client count. Once that is closed, nothing is acquired.
type Lock = latchkey.Lock

// Option configures a lock. There is no [latchkey.WithMinHold] here. The lease is for each server; default: the lease
// of the first client. Leases and longest holds are of at least 100 ms.
type Option = latchkey.LockOption

// WithUptime protects from a server that was restarted without its data. A server that does not know the lock's name
// counts only once it has been up for d: the longest lease that any process uses for this lock, from 1 s to 24 h.
// Until a majority counts, attempts that do not wait return ErrUnavailable. The user needs the permission to call
// INFO. A server whose INFO has no uptime never counts, such as miniredis. Default: every server counts at once.
func WithUptime(d time.Duration) Option { return terms.WithUptime(d) }

// minServers is the least number of servers with which a majority survives the loss of one server.
const minServers = 3

// minLease leaves enough time to ask a majority.
const minLease = 100 * time.Millisecond

// New returns the lock of a name over the servers of these clients, which must not share data. It does no I/O. The
// name is as for package rlock. Give the servers in the same order everywhere. An even number tolerates no more
// failures than one server less.
//
// New returns ErrInvalid for other names, fewer than three clients, a nil one, one that is given twice, options out of
// range, and options of another package. Two clients of one server are found out by an early attempt: all attempts
// return ErrInvalid then.
func New(clients []*latchkey.Client, name string, opts ...Option) (*Lock, error) {
	w, err := newEngine(clients, name, opts)
	if err != nil {
		return nil, err
	}
	return (*Lock)(lock.OfEngine(w)), nil
}

func newEngine(clients []*latchkey.Client, name string, opts []Option) (*engine, error) {
	if len(clients) < minServers {
		return nil, fail.Wrap(name, fail.Invalid("a majority needs at least %d servers, not %d", minServers, len(clients)))
	}
	o := terms.Collect("redlock", terms.OptionsCommon&^(terms.OptionMinHold|terms.OptionDeadlocks)|terms.OptionUptime, opts)
	uptime, given := o.Uptime()
	if given && (uptime < time.Second || uptime > session.MaxLease) {
		return nil, fail.Wrap(name, fail.Invalid("the uptime must be from %v to %v, not %v", time.Second, session.MaxLease, uptime))
	}
	h := fnv.New32a()
	_, _ = h.Write([]byte(name)) // never fails
	w := &engine{
		name: name, majority: len(clients)/2 + 1, first: int(h.Sum32() % uint32(len(clients))), line: semaphore.NewWeighted(1), //nolint:gosec // few
	}
	seen := map[*session.Client]bool{}
	for n, client := range clients {
		c := (*session.Handle)(client).Client()
		if c == nil {
			return nil, fail.Wrap(name, fail.Invalid("client %d of %d is nil", n+1, len(clients)))
		}
		if seen[c] {
			return nil, fail.Wrap(name, fail.Invalid("client %d of %d is given twice", n+1, len(clients)))
		}
		seen[c] = true
		o = o.LeasedFor(c.Options.Lease) // the lease of the first client
		p, err := lock.NewPolled(c, name, o)
		if err != nil {
			return nil, err
		}
		if p.Lease() < minLease {
			return nil, fail.Wrap(name, fail.Invalid("a lease on several servers must be at least %v, not %v", minLease, p.Lease()))
		}
		if given {
			demand := lua.Demand{Uptime: session.Milliseconds(uptime)}
			p.Demand = func(int) lua.Demand { return demand }
		}
		queued, err := queuedAs(c, &p, name, o)
		if err != nil {
			return nil, err
		}
		w.servers, w.queued = append(w.servers, &p), append(w.queued, queued)
	}
	return w, nil
}

// queuedAs returns a primitive like polled, whose waiters queue. It returns nil if grants cannot reach the client.
func queuedAs(c *session.Client, polled *grant.Primitive, name string, o terms.Options) (*grant.Primitive, error) {
	if c.Options.WithoutPubSub {
		return nil, nil //nolint:nilnil // it polls
	}
	p, err := lock.NewQueued(c, name, o)
	p.Demand = polled.Demand
	return &p, err
}
