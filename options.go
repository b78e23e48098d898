package latchkey

import (
	"log/slog"
	"time"

	"github.com/latchkey-go/latchkey/internal/session"
)

// Option configures a client.
type Option func(*session.Options)

func options(opts []Option) session.Options {
	o := session.DefaultOptions()
	for _, opt := range opts {
		if opt != nil {
			opt(&o)
		}
	}
	return o
}

// WithKeyPrefix puts a prefix before the name of every lock, to keep applications apart. Default: none. A
// prefix may have braces, to keep all its locks in one slot of a cluster; they must be balanced.
func WithKeyPrefix(prefix string) Option { return func(o *session.Options) { o.Prefix = prefix } }

// WithLease sets the lease of locks that are not given one: how long a lock stays taken after its holder was
// killed, and how long a hold survives a Redis that is away. It is renewed every third of it. From 10 ms to
// 24 h; default: 10 s.
func WithLease(d time.Duration) Option { return func(o *session.Options) { o.Lease = d } }

// WithLazyConnect makes [Open] and [New] return without a connection, for services that may start before
// Redis: they dial in the background, and until they have, everything behaves as while Redis is away. It is
// for a single server (one address) and for Sentinel. With several addresses and no Sentinel, and in [Wrap],
// it is ErrInvalid; a client that turns out to talk to a node of a cluster is closed, which is logged.
// Default: they dial, and fail with ErrUnavailable.
func WithLazyConnect() Option { return func(o *session.Options) { o.Lazy = true } }

// WithCommandTimeout sets how long TryLock tries, and how long [New] lets a connection be silent while a
// command waits for its reply (a second at least). More than 0; default: 1 s.
func WithCommandTimeout(d time.Duration) Option {
	return func(o *session.Options) { o.CommandTimeout = d }
}

// WithReleaseTimeout sets how long Unlock waits for its reply when its context has ended. More than 0;
// default: 1 s.
func WithReleaseTimeout(d time.Duration) Option {
	return func(o *session.Options) { o.ReleaseTimeout = d }
}

// WithMaxWaiters sets how many may wait for one lock, semaphore or latch: entries in its queue in Redis, and
// goroutines of this client. At least 1; default: 100,000.
func WithMaxWaiters(n int) Option { return func(o *session.Options) { o.MaxWaiters = n } }

// WithReplicas makes an acquire succeed only when n replicas have it, within timeout: otherwise it is undone,
// and fails with ErrNotReplicated. It costs a further trip to Redis and one from there to the replicas, over
// a pool of connections of its own. A lock that package rlock passes on inside the process was replicated
// when the process got it; releases and renewals do not wait. n at least 0, which is the default: no waiting;
// a timeout of more than 0 and less than the lease. An outage between the grant and the answer of the
// replicas fails the acquire, too, when it lasts longer than the timeout and the command timeout.
//
// Redis replicates asynchronously. Without this, a primary that fails takes with it what it granted last, and
// its successor can grant the lock again while the first holder still trusts it, until that has heard of the
// failover. With it, a successor that is one of the n knows of every hold that is not older than its lease;
// as a rule the replica is promoted that has received most. It is no consensus: renewals do not wait, so that
// a primary which is cut off from everybody but the holder goes on renewing a lock that its successor lets go
// after the lease. Redis' own min-replicas-to-write, with a min-replicas-max-lag below the lease, makes such
// a primary refuse.
func WithReplicas(n int, timeout time.Duration) Option {
	return func(o *session.Options) { o.Replicas, o.ReplicaTimeout = n, timeout }
}

// WithLogger sets where lost locks, failed renewals and outages are logged. Default, and nil: nowhere.
func WithLogger(l *slog.Logger) Option {
	return func(o *session.Options) {
		if l == nil {
			l = slog.New(slog.DiscardHandler)
		}
		o.Logger = l
	}
}
