// Package latchkey has what the locks and synchronizers of this module share: Redisson's, for Go, on Redis or
// Valkey. [Client] is the connection, [Lock] any lock, and [Hold] a lock that is held.
//
// Waiters block without polling, but for those of package spinlock. A release grants the lock to the next
// waiter in the same step. A hold is a context that ends the moment the lock is lost, and carries a fencing
// token.
//
//	c, err := latchkey.Open("redis://localhost:6379")
//	...
//	lock, err := rlock.New(c, "orders:42")
//	err = lock.Do(ctx, func(ctx context.Context, hold *latchkey.Hold) error {
//		return charge(ctx, hold.Token())
//	})
//
// The primitives are in packages of their own. In rlock each process queues through one delegate. In fairlock
// all waiters of all processes queue first in, first out. In spinlock they poll, for users who may not
// subscribe: see [WithoutPubSub]. Package rwlock has a lock with two halves, for readers and for writers.
// Package multilock holds several locks at once, and redlock has one over several servers. The others are
// semaphore, countdown (a latch) and barrier. Package once runs something once, or once a tick. Package
// leader has one of many processes lead. Package fence writes to Redis what no late holder can overwrite.
//
// # Guarantees
//
// At most one hold of a lock is trusted at a time, or only holds that read, as long as Redis keeps its data
// and clocks run at about the same speed. A hold is trusted until the moment its last successful request was
// sent, plus the lease. The lease in Redis is not shorter.
//
// Redis replicates asynchronously, so a failover can lose the lock. Then the holder's context ends as soon as
// its client has reached the new primary. For that while only the fencing token separates the two holders.
// See [WithReplicas] for grants that survive it.
//
// A fencing token is greater than every token that was given out for the lock before. Store it with what the
// lock guards, and refuse writes with a smaller one (Martin Kleppmann, "How to do distributed locking").
//
// A waiter is woken by its grant. Should the message or the connection be lost, it asks again: when the
// subscription is back, when the holder's lease ends, and every two seconds at least; sooner where another
// client's lease is shorter.
//
// When a context ends, or a process dies, nothing of it stays. Entries in a queue are removed or skipped, and
// every key has a time to live.
//
// # Servers
//
// Redis 6.2 or later, Valkey, Sentinel, and Cluster from Redis 7.0.
//
// The keys of a lock named N (after the key prefix) are N, latchkey_queue:{N}, latchkey_pace:{N},
// latchkey_called:{N} and redisson_lock_token:{N}, without the braces if N has some. Channels are
// latchkey_inbox:*. A probe touches latchkey_probe:{N}, which never exists. A client tells who it is in
// latchkey_client:{...}, while it holds or waits: see [Identity]. latchkey_forced:{N} has who took the lock
// away last. docs/operations.md has an access rule for all primitives.
//
// Nothing is guaranteed where keys may be evicted: use maxmemory-policy noeviction. Times are the server's,
// so the clocks of a primary and its replicas must agree.
package latchkey

import (
	"context"

	"github.com/latchkey-go/latchkey/internal/address"
	"github.com/latchkey-go/latchkey/internal/core"
	"github.com/latchkey-go/latchkey/internal/session"
)

// Client is a connection to Redis with an identity: its id is part of every owner id that it writes. One
// client serves any number of locks and goroutines. Its methods are safe for concurrent use. The zero value
// is not usable: see [Open].
//
// It has one connection for commands and one for its inbox, and a third once it has used latches or barriers;
// none but the first with [WithoutPubSub]. With Sentinel it has also one to a sentinel. A cluster client has
// up to two to every node. With [WithReplicas] there are further ones, as many as acquire at the same time.
type Client handle

// handle is what the packages of this module make of a client, and back.
type handle = session.Handle

// Open returns a client for a URL as redis://user:password@host:6379/0, rediss:// or unix://. docs/deploy.md has all
// parameters. For what a URL cannot say, and for clients of rueidis that you have, see package rueidisclient. It dials, and fails with [ErrUnavailable] while Redis cannot be reached:
// see [WithLazyConnect]. A malformed URL, and options out of range, are [ErrInvalid]; its text has nothing
// of a user or a password, whose special characters must be escaped, as %2F for /. docs/operations.md says
// what its other errors mean.
func Open(url string, opts ...Option) (*Client, error) {
	option, err := address.Parse(url)
	if err != nil {
		return nil, err
	}
	c, err := core.Open(option, core.Options(opts))
	return (*Client)(c.Handle()), err
}

// Check publishes to the client's own inbox, and returns once it has received the message: the whole way that
// a grant takes. Use it as a health check. When ctx ends before, the error is the context's, joined with
// [ErrUnavailable] if Check took more than 50 ms. Where scripts do not see the inbox, as behind a proxy that
// sends subscriptions to another server, it is [ErrUnavailable] at once. For a user who may not subscribe, or
// publish, it says so at once. After Close it is [ErrClosed]. A connection that ends in between, as one that
// was idle for too long, is no failure: the check is sent again, once.
func (c *Client) Check(ctx context.Context) error { return (*session.Handle)(c).Client().Check(ctx) }

// Shutdown refuses new acquires with [ErrClosed], also those that would re-enter. It ends all waiters with
// ErrClosed, and takes them out of the queues. Then it waits until everything that is held was unlocked, or
// ctx ends.
//
// When ctx ends first, Shutdown ends the contexts of the holds that are left with ErrClosed, and returns an
// error that names up to ten of them. It leaves their locks taken in Redis, because the code that they guard
// may still run. It renews them no more. An Unlock that comes before the lease is over still releases; a
// connection stays open for that.
//
// It takes less than a second longer than ctx, also when Redis is silent. A Shutdown whose context has ended
// is [Client.Close]. Further calls wait for the first, and cut it short when their context ends.
func (c *Client) Shutdown(ctx context.Context) error {
	return (*session.Handle)(c).Client().Shutdown(ctx)
}

// Close is Shutdown without waiting for the holders: a Client is an io.Closer. If something was held, the error names up
// to ten of them, and matches [ErrClosed]. A further Close returns nil. If Redis is silent, Close takes the release
// timeout and less than a second more: two seconds at most with the default.
func (c *Client) Close() error {
	return (*session.Handle)(c).Client().Close()
}
