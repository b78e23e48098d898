package latchkey

import (
	"log/slog"
	"time"

	"github.com/latchkey-go/latchkey/internal/session"
)

// Option configures a client: see [Open]. A nil one does nothing.
type Option interface{ clientOption }

type clientOption = session.Setter

// WithKeyPrefix puts a prefix before the name of every primitive, to keep applications apart. Default: none.
// A prefix may have braces, to keep all its names in one slot of a cluster. They must be balanced.
func WithKeyPrefix(prefix string) Option {
	return session.Option(func(o *session.Options) { o.Prefix = prefix })
}

// WithLazyConnect makes [Open] return without a connection, for services that may start before
// Redis. They dial in the background. A call waits for the first dial, for a second at most. Until they are
// connected, everything behaves as while Redis is away. The log, the Down hook and the errors say why there
// is no connection. Default: they dial, and fail with [ErrUnavailable].
//
// It is for a single server (one address) and for Sentinel. With several addresses and no Sentinel it is
// [ErrInvalid], as for rueidisclient.Wrap. A client that turns out to talk to a node of a cluster is closed, which is
// logged.
func WithLazyConnect() Option { return session.Option(func(o *session.Options) { o.Lazy = true }) }

// WithoutPubSub opens a client that subscribes to nothing, for servers and proxies without pub/sub, and for
// users who may not subscribe. Only packages spinlock and redlock work with it, as their waiters can do with
// asking from time to time. All others refuse it with [ErrInvalid], because their waiters would hear of
// nothing. Check sends a command then. Such a client has one connection, or one to every node of a cluster.
// It learns that a lock was taken from it by its next renewal.
func WithoutPubSub() Option {
	return session.Option(func(o *session.Options) { o.WithoutPubSub = true })
}

// WithRedisson has the locks, read-write locks and semaphores of the client take turns with those of Java
// processes that use Redisson: each side hears what the other releases, and neither starves. Without it they
// exclude each other all the same, but a waiter sleeps until its next question: of ours two seconds, of
// Redisson's the lease of the holder. All clients that share a name with Redisson should have it. Default:
// without, because it costs each acquire and release some commands in Redis.
//
// docs/redisson.md has what is shared, object by object, and what is not.
func WithRedisson() Option { return session.Option(func(o *session.Options) { o.Redisson = true }) }

// WithDeclaredKeys has each call of a script declare all keys that the script uses, for servers and proxies
// that refuse others. [Open] finds out by itself. So the option is for rueidisclient.Wrap, and for servers
// with another text of that error than "undeclared key". Default: a call declares one key of a name, and the
// script makes the others from it.
//
// With it a free lock costs Redis 7 to 13 % more instructions, a read-write lock or a permit 9 to 19 %. Calls
// of read-write locks, of plain permits and of barriers may take a second trip, where their script finds out
// in Redis which keys it needs.
func WithDeclaredKeys() Option {
	return session.Option(func(o *session.Options) { o.DeclaredKeys = true })
}

// WithCommandTimeout sets how long TryLock tries. It is also how long [Open] lets a connection be silent while
// a command waits for its reply, but then a second at least. More than 0; default: 1 s.
func WithCommandTimeout(d time.Duration) Option {
	return session.Option(func(o *session.Options) { o.CommandTimeout = d })
}

// WithReleaseTimeout sets how long Unlock waits for its reply when its context has ended. More than 0;
// default: 1 s.
func WithReleaseTimeout(d time.Duration) Option {
	return session.Option(func(o *session.Options) { o.ReleaseTimeout = d })
}

// WithMaxWaiters sets how many may wait for one name: entries in its queue in Redis, and goroutines of this
// client. At least 1; default: 100,000.
func WithMaxWaiters(n int) Option {
	return session.Option(func(o *session.Options) { o.MaxWaiters = n })
}

// WithReplicas makes an acquire succeed only when n replicas have it within timeout. Otherwise it is undone,
// and fails with [ErrNotReplicated]. So it does when an outage between the grant and the replicas' answer
// lasts longer than timeout and the command timeout together. n is at least 0, which is the default: no
// waiting. timeout is more than 0 and less than the lease.
//
// It costs a further trip to Redis, and one from there to the replicas, over a pool of connections of its
// own. A TryLock waits for it as well. Releases and renewals do not wait. A lock that comes by a local
// hand-off of package rlock was replicated when the process got it. Latches and barriers refuse such a client
// with [ErrInvalid].
//
// Redis replicates asynchronously. Without this, a primary that fails takes with it what it granted last. Its
// successor can grant the lock again while the first holder still trusts it, until that has heard of the
// failover. With it, a successor that is one of the n knows of every hold that is not older than its lease.
// As a rule the replica is promoted that has received most.
//
// It is no consensus. A primary that is cut off from everybody but the holder goes on renewing a lock that
// its successor lets go after the lease. Redis' own min-replicas-to-write, with a min-replicas-max-lag below
// the lease, makes such a primary refuse.
func WithReplicas(n int, timeout time.Duration) Option {
	return session.Option(func(o *session.Options) { o.Replicas, o.ReplicaTimeout = n, timeout })
}

// WithSlow has the logger told, once each and while it lasts, of a wait for a lock or permits that lasts
// longer than wait, and of a hold that lasts longer than hold: with its name, the place in the source that
// called latchkey, and of a lock that is waited for who holds it, since when, and how many are queued. 0: not
// of those. Neither may be negative. Default: none.
//
// An attempt that does not wait is not slow. Nor is an Await of a latch or barrier, which waits for work.
func WithSlow(wait, hold time.Duration) Option {
	return session.Option(func(o *session.Options) { o.SlowWait, o.SlowHold = wait, hold })
}

// WithLogger sets where lost locks, failed renewals, outages and failed jobs are logged. Default, and nil:
// warnings and errors go to [slog.Default], as it is set when they are logged. A logger of
// [slog.DiscardHandler] drops all.
func WithLogger(l *slog.Logger) Option {
	return session.Option(func(o *session.Options) {
		if l == nil {
			l = session.StandardLogger()
		}
		o.Logger = l
	})
}
