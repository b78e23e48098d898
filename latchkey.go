// Package latchkey has what the locks and synchronizers of this module share: Redisson's, for Go, on Redis or Valkey.
// [Client] is the connection, [Lock] any lock, and [Hold] a lock that is held.
//
// Waiters block without polling. A release grants the lock to the next waiter in the same step. A hold is a context
// that ends the moment the lock is lost, and carries a fencing token.
//
//	c, err := latchkey.Open("redis://localhost:6379")
//	...
//	lock, err := rlock.New(c, "orders:42")
//	err = lock.Do(ctx, func(ctx context.Context, hold *latchkey.Hold) error {
//		return charge(ctx, hold.Token())
//	})
//
// Each primitive has a package: rlock (each process queues through one delegate), fairlock (all waiters queue first
// in, first out), spinlock (waiters poll, for users without pub/sub), rwlock (readers and writers), multilock (several
// locks at once), redlock (one lock over several servers), semaphore, countdown (a latch), barrier, once (something is
// done once, or once a tick), leader (one of many processes leads) and fence (writes to Redis that no late holder can
// overwrite). Package rueidisclient opens clients with a configuration of rueidis.
//
// # Guarantees
//
// At most one hold of a lock is trusted at a time, or only holds that read, as long as Redis keeps its data and clocks
// run at about the same speed. A hold is trusted for the lease, counted from when its last successful request was sent.
// The lease in Redis is not shorter.
//
// Redis replicates asynchronously, so a failover can lose the lock. Then the holder's context ends as soon as its
// client has reached the new primary. Until then only the fencing token separates the two holders. See [WithReplicas]
// for grants that survive a failover.
//
// A fencing token is greater than every token that was given out for the lock before. Store it with what the lock
// guards, and refuse writes with a smaller token (Martin Kleppmann, "How to do distributed locking").
//
// A waiter is woken by its grant. If the message or the connection is lost, the waiter asks again: when the
// subscription is back, when the holder's lease ends, and at least every two seconds.
//
// When a context ends, or a process dies, nothing of it stays. Entries in a queue are removed or skipped, and every
// key has a time to live.
//
// # Servers
//
// Redis 6.2 or later, Valkey, Sentinel, and Cluster from Redis 7.0.
//
// The keys of a lock named N (after the key prefix) are N, latchkey_queue:{N}, latchkey_pace:{N}, latchkey_called:{N},
// latchkey_forced:{N} and redisson_lock_token:{N}, without the braces if N has some. A probe touches
// latchkey_probe:{N}, which never exists. A client tells who it is in latchkey_client:{...}: see [Identity]. Channels
// are latchkey_inbox:*. docs/operations.md has an access rule for all primitives.
//
// Nothing is guaranteed if keys may be evicted: use maxmemory-policy noeviction. Times are the server's, so the clocks
// of a primary and its replicas must agree.
package latchkey

import (
	"context"

	"github.com/latchkey-go/latchkey/internal/address"
	"github.com/latchkey-go/latchkey/internal/core"
	"github.com/latchkey-go/latchkey/internal/session"
)

// Client is a connection to Redis with an identity: its id is part of every owner id that it writes. One client serves
// any number of locks and goroutines. The methods are safe for concurrent use. The zero value is not usable: see
// [Open].
//
// It has one connection for commands, one for its inbox, and a third once it has used latches or barriers; with
// [WithoutPubSub] the first alone. With Sentinel it has one more, and in a cluster up to two to every node. With
// [WithReplicas] it has further ones, as many as acquire at the same time.
type Client handle

// handle is what the packages of this module make of a client, and back.
type handle = session.Handle

// Open returns a client for a URL as redis://user:password@host:6379/0, rediss:// or unix://. docs/deploy.md has all
// parameters. For what a URL cannot say, and for rueidis clients that you have, see package rueidisclient.
//
// Open dials, and returns [ErrUnavailable] while Redis cannot be reached: see [WithLazyConnect]. A malformed URL, and
// options out of range, are [ErrInvalid]; the text has nothing of a user or a password. Escape their special
// characters, as %2F for /. docs/operations.md says what other errors mean.
func Open(url string, opts ...Option) (*Client, error) {
	option, err := address.Parse(url)
	if err != nil {
		return nil, err
	}
	c, err := core.Open(option, core.Options(opts))
	return (*Client)(c.Handle()), err
}

// Check publishes to the client's own inbox, and returns once the message is there: the whole way of a grant. Use it
// as a health check. If ctx ends first, the error is ctx's, joined with [ErrUnavailable] if Check took more than
// 50 ms. It is ErrUnavailable at once if scripts do not see the inbox, as behind a proxy that sends subscriptions to
// another server. For a user who may not subscribe or publish, the error says so. After Close it is [ErrClosed]. If a
// connection ends in between, the check is sent once more.
func (c *Client) Check(ctx context.Context) error { return (*session.Handle)(c).Client().Check(ctx) }

// Shutdown refuses new acquires with [ErrClosed], also re-entry. It ends all waiters with ErrClosed, and takes them
// out of the queues. Then it waits until everything that is held was unlocked, or ctx ends.
//
// If ctx ends first, Shutdown ends the contexts of the remaining holds with ErrClosed, and returns an error that names
// up to ten of them. It leaves their locks taken in Redis, and renews them no more: the code that they guard may still
// run. An Unlock within the lease still releases; a connection stays open for that.
//
// It takes less than a second longer than ctx, also if Redis is silent. With a context that has ended, Shutdown does
// not wait, as [Client.Close]. A further call waits for the first, and cuts it short when its own context ends.
func (c *Client) Shutdown(ctx context.Context) error {
	return (*session.Handle)(c).Client().Shutdown(ctx)
}

// Close is Shutdown without waiting for the holders: a Client is an io.Closer. If something was held, the error names up
// to ten of them, and matches [ErrClosed]. A further Close returns nil. If Redis is silent, Close takes the release
// timeout and less than a second more: two seconds at most with the default.
func (c *Client) Close() error {
	return (*session.Handle)(c).Client().Close()
}
