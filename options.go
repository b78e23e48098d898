package latchkey

import (
	"log/slog"
	"time"

	"github.com/latchkey-go/latchkey/internal/session"
)

// Option configures a client: see [Open]. A nil Option does nothing.
type Option interface{ clientOption }

type clientOption = session.Setter

// WithKeyPrefix puts a prefix before the name of every primitive. Default: none. Braces in it, which must be balanced,
// keep all names in one slot of a cluster.
func WithKeyPrefix(prefix string) Option {
	return session.Option(func(o *session.Options) { o.Prefix = prefix })
}

// WithLazyConnect makes [Open] return without a connection, for services that may start before Redis. The client dials
// in the background. A call waits for the first dial, a second at most. It is for a single server and for Sentinel: a
// client that finds a node of a cluster closes.
func WithLazyConnect() Option { return session.Option(func(o *session.Options) { o.Lazy = true }) }

// WithoutPubSub opens a client that subscribes to nothing, for servers, proxies and users without pub/sub. Only
// packages spinlock and redlock work with it: all others return [ErrInvalid].
func WithoutPubSub() Option {
	return session.Option(func(o *session.Options) { o.WithoutPubSub = true })
}

// WithRedisson makes locks, read-write locks and semaphores take turns with Java processes that use Redisson. It costs
// Redis a few commands more. Set it on all clients that share a name with Redisson. Default: both sides exclude each
// other, but a waiter may sleep for two seconds, and one of Redisson for the holder's lease.
func WithRedisson() Option { return session.Option(func(o *session.Options) { o.Redisson = true }) }

// WithDeclaredKeys makes each script call declare all its keys, for servers and proxies that refuse undeclared ones.
// [Open] finds that out by itself; rueidisclient.Wrap does not. It costs Redis 7 to 19 % more instructions.
func WithDeclaredKeys() Option {
	return session.Option(func(o *session.Options) { o.DeclaredKeys = true })
}

// WithCommandTimeout bounds a TryLock, an Unlock whose context has ended, and how long a connection may be silent while
// a command waits (a second at least). More than 0; default: 1 s.
func WithCommandTimeout(d time.Duration) Option {
	return session.Option(func(o *session.Options) { o.CommandTimeout = d })
}

// WithMaxWaiters sets how many may wait for one name: in its queue in Redis, and as goroutines of this client. At
// least 1; default: 100,000.
func WithMaxWaiters(n int) Option {
	return session.Option(func(o *session.Options) { o.MaxWaiters = n })
}

// WithReplicas makes an acquire succeed only if n replicas have it within timeout. Otherwise it is undone, and returns
// [ErrNotReplicated]. n is at least 0, the default: no waiting. timeout is more than 0 and less than the lease.
//
// Without it, a primary that fails can lose its last grants. With it, one of those n replicas, once promoted, knows
// every hold within its lease. It is no consensus: set min-replicas-to-write in Redis, with a min-replicas-max-lag
// below the lease, so that a primary that was cut off renews nothing.
//
// An acquire takes a trip more, and one from there to the replicas, over connections of its own. Latches and barriers
// return [ErrInvalid] on such a client.
func WithReplicas(n int, timeout time.Duration) Option {
	return session.Option(func(o *session.Options) { o.Replicas, o.ReplicaTimeout = n, timeout })
}

// WithSlow logs, once and while it lasts, a wait for a lock or permits longer than wait, and a hold longer than hold,
// with the place in your source. 0: do not log these. Default: none.
func WithSlow(wait, hold time.Duration) Option {
	return session.Option(func(o *session.Options) { o.SlowWait, o.SlowHold = wait, hold })
}

// WithLogger sets the log for lost locks, failed renewals, outages and failed jobs. Default, and for nil:
// [slog.Default]. For no log use [slog.DiscardHandler].
func WithLogger(l *slog.Logger) Option {
	return session.Option(func(o *session.Options) {
		if l == nil {
			l = session.StandardLogger()
		}
		o.Logger = l
	})
}
