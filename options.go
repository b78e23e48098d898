package latchkey

import (
	"log/slog"
	"time"

	"github.com/latchkey-go/latchkey/internal/session"
)

// Option configures a client: see [Open]. A nil Option does nothing.
type Option interface{ clientOption }

type clientOption = session.Setter

// WithKeyPrefix puts a prefix before the name of every primitive, to keep applications apart. Default: none. Braces in
// the prefix keep all names in one slot of a cluster. They must be balanced.
func WithKeyPrefix(prefix string) Option {
	return session.Option(func(o *session.Options) { o.Prefix = prefix })
}

// WithLazyConnect makes [Open] return without a connection, for services that may start before Redis. The client dials
// in the background. A call waits for the first dial, a second at most. After that the client behaves as while Redis
// is away. The log, the Down hook and the errors say why there is no connection. Default: Open dials, and returns
// [ErrUnavailable].
//
// It is for a single server (one address) and for Sentinel. Several addresses without a Sentinel are [ErrInvalid], and
// so is rueidisclient.Wrap. A client that finds a node of a cluster closes, and logs it.
func WithLazyConnect() Option { return session.Option(func(o *session.Options) { o.Lazy = true }) }

// WithoutPubSub opens a client that subscribes to nothing, for servers, proxies and users without pub/sub. Only
// packages spinlock and redlock work with it, because their waiters can poll. All others return [ErrInvalid]. The
// client has one connection, or one to every node of a cluster. Check sends a command then. The client learns that a
// lock was taken away by its next renewal.
func WithoutPubSub() Option {
	return session.Option(func(o *session.Options) { o.WithoutPubSub = true })
}

// WithRedisson makes locks, read-write locks and semaphores take turns with the ones of Java processes that use Redisson:
// each side hears the releases of the other, and neither starves. Set it on all clients that share a name with
// Redisson. Without it the two sides exclude each other all the same, but a waiter sleeps until its next question: two
// seconds for ours, the holder's lease for Redisson's. Default: without, because it costs each acquire and release
// some commands in Redis. docs/redisson.md says what is shared, object by object.
func WithRedisson() Option { return session.Option(func(o *session.Options) { o.Redisson = true }) }

// WithDeclaredKeys makes each script call declare all its keys, for servers and proxies that refuse undeclared ones.
// [Open] finds that out by itself. Set it for rueidisclient.Wrap, and for a server whose error does not say
// "undeclared key". Default: a call declares one key, and the script makes the others from it.
//
// It costs Redis 7 to 13 % more instructions for a free lock, and 9 to 19 % for a read-write lock or a permit. Some
// calls of read-write locks, plain permits and barriers take a second trip.
func WithDeclaredKeys() Option {
	return session.Option(func(o *session.Options) { o.DeclaredKeys = true })
}

// WithCommandTimeout sets how long TryLock tries, and how long a connection may be silent while a command waits for
// its reply (a second at least). More than 0; default: 1 s.
func WithCommandTimeout(d time.Duration) Option {
	return session.Option(func(o *session.Options) { o.CommandTimeout = d })
}

// WithReleaseTimeout sets how long Unlock waits for its reply if its context has ended. More than 0; default: 1 s.
func WithReleaseTimeout(d time.Duration) Option {
	return session.Option(func(o *session.Options) { o.ReleaseTimeout = d })
}

// WithMaxWaiters sets how many may wait for one name: entries in its queue in Redis, and goroutines of this client. At
// least 1; default: 100,000.
func WithMaxWaiters(n int) Option {
	return session.Option(func(o *session.Options) { o.MaxWaiters = n })
}

// WithReplicas makes an acquire succeed only if n replicas have it within timeout. Otherwise it is undone, and returns
// [ErrNotReplicated]; also after an outage between grant and answer that is longer than timeout and the command
// timeout together. n is at least 0, the default: no waiting. timeout is more than 0 and less than the lease.
//
// Without it, a primary that fails can lose its last grants: Redis replicates asynchronously. The next primary may
// grant the lock again, before the first holder has heard of the failover. With it, one of those n replicas, once
// promoted, knows every hold that is within its lease. As a rule the replica that has received most is promoted.
//
// It is no consensus. A primary that only its holder can still reach goes on renewing a lock that its successor frees
// after the lease. Set min-replicas-to-write in Redis, with a min-replicas-max-lag below the lease: such a primary
// refuses then.
//
// It costs a trip to Redis, and one from there to the replicas, over a pool of connections of its own. TryLock waits
// for it too; releases, renewals and local hand-offs do not. Latches and barriers return [ErrInvalid] on such a
// client.
func WithReplicas(n int, timeout time.Duration) Option {
	return session.Option(func(o *session.Options) { o.Replicas, o.ReplicaTimeout = n, timeout })
}

// WithSlow logs, once each and while it lasts, a wait for a lock or permits that is longer than wait, and a hold that
// is longer than hold. The line has the name, and the place in your source. For a wait it also has the holder, since
// when, and how many are queued. 0: do not log these. Neither may be negative. Default: none. An attempt that does not
// wait is not slow, and neither is an Await of a latch or barrier, which waits for work.
func WithSlow(wait, hold time.Duration) Option {
	return session.Option(func(o *session.Options) { o.SlowWait, o.SlowHold = wait, hold })
}

// WithLogger sets the log for lost locks, failed renewals, outages and failed jobs. Default, and for nil:
// [slog.Default] as it is when something is logged. For no log use [slog.DiscardHandler].
func WithLogger(l *slog.Logger) Option {
	return session.Option(func(o *session.Options) {
		if l == nil {
			l = session.StandardLogger()
		}
		o.Logger = l
	})
}
