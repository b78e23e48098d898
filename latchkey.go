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
// Each primitive has a package: rlock (a process queues once), fairlock (first in, first out), spinlock (waiters
// poll), rwlock (readers and writers), multilock (several locks at once), redlock (one lock over several servers),
// semaphore, countdown (a latch), barrier, once (something is done once, or once a tick), leader (one of many
// processes leads) and fence (writes that no late holder can overwrite).
//
// # Guarantees
//
// At most one hold of a lock is trusted at a time, or only holds that read, as long as Redis keeps its data and clocks
// run at about the same speed. A hold is trusted for its lease, counted from when its last successful request was
// sent.
//
// A failover can lose a lock, because Redis replicates asynchronously. The holder's context ends once its client
// reaches the new primary. Until then only the fencing token separates two holders: store it with what the lock
// guards, and refuse writes with a smaller one (Martin Kleppmann, "How to do distributed locking"). See also
// [WithReplicas].
//
// Servers are Redis 6.2 or later, Valkey, Sentinel, and Cluster from Redis 7.0, with maxmemory-policy noeviction. The
// clocks of a primary and its replicas must agree. docs/operations.md has the keys and channels of each primitive, and
// an access rule.
package latchkey

import (
	"context"

	"github.com/latchkey-go/latchkey/internal/address"
	"github.com/latchkey-go/latchkey/internal/core"
	"github.com/latchkey-go/latchkey/internal/session"
)

// Client is a connection to Redis with an identity. One client serves any number of locks and goroutines. The methods
// are safe for concurrent use. The zero value is not usable: see [Open]. docs/operations.md has its connections.
type Client handle

// handle is what the packages of this module make of a client, and back.
type handle = session.Handle

// Open returns a client for a URL as redis://user:password@host:6379/0, rediss:// or unix://. docs/deploy.md has all
// parameters. For what a URL cannot say, see package rueidisclient.
//
// Open dials, and returns [ErrUnavailable] while Redis cannot be reached: see [WithLazyConnect]. A malformed URL, and
// options out of range, are [ErrInvalid]. The text never has a user or a password.
func Open(url string, opts ...Option) (*Client, error) {
	option, err := address.Parse(url)
	if err != nil {
		return nil, err
	}
	c, err := core.Open(option, core.Options(opts))
	return (*Client)(c.Handle()), err
}

// Check publishes to the client's own inbox, and returns once the message is there. Use it as a health check. If ctx
// ends first, the error is ctx's, joined with [ErrUnavailable] if Check took more than 50 ms.
func (c *Client) Check(ctx context.Context) error { return (*session.Handle)(c).Client().Check(ctx) }

// Shutdown ends all waiters, and refuses new acquires, with [ErrClosed]. Then it waits until everything that is held
// was unlocked, or ctx ends. If ctx ends first, Shutdown ends the contexts of the remaining holds with ErrClosed, and
// returns an error that names up to ten of them. Their code may still run, so their locks stay taken until the lease
// ends, or an Unlock within it. A further call waits for the first.
func (c *Client) Shutdown(ctx context.Context) error {
	return (*session.Handle)(c).Client().Shutdown(ctx)
}

// Close is Shutdown without waiting for the holders, within the command timeout and a second: a Client is an io.Closer. If something was
// held, the error matches [ErrClosed]. A further Close returns nil.
func (c *Client) Close() error {
	return (*session.Handle)(c).Client().Close()
}
