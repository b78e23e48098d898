package session

import (
	"log/slog"
	"time"
)

// ClientOptions are what the options of the root package set.
type Options struct {
	Prefix         string
	Lease          time.Duration
	CommandTimeout time.Duration
	ReleaseTimeout time.Duration
	MaxWaiters     int
	Lazy           bool // Open does not wait for a connection
	Replicas       int  // 0: an acquire does not wait for replicas
	ReplicaTimeout time.Duration
	Logger         *slog.Logger
	Observer       Observer
}

// The defaults of [ClientOptions] and the bounds of a lease.
const (
	DefaultLease          = 10 * time.Second
	DefaultCommandTimeout = time.Second
	DefaultReleaseTimeout = time.Second
	DefaultMaxWaiters     = 100_000
	MinLease              = 10 * time.Millisecond
	MaxLease              = 24 * time.Hour
)

// DefaultClientOptions returns the options of a client that was given none.
func DefaultOptions() Options {
	return Options{
		Lease:          DefaultLease,
		CommandTimeout: DefaultCommandTimeout,
		ReleaseTimeout: DefaultReleaseTimeout,
		MaxWaiters:     DefaultMaxWaiters,
		Logger:         slog.New(slog.DiscardHandler),
	}
}

func (o *Options) Validate() error {
	switch {
	case o.CommandTimeout <= 0:
		return Invalid("the command timeout must be more than 0, not %v", o.CommandTimeout)
	case o.ReleaseTimeout <= 0:
		return Invalid("the release timeout must be more than 0, not %v", o.ReleaseTimeout)
	case o.MaxWaiters < 1:
		return Invalid("the maximum of waiters must be at least 1, not %d", o.MaxWaiters)
	case o.Replicas < 0:
		return Invalid("the number of replicas must be at least 0, not %d", o.Replicas)
	case o.Replicas > 0 && o.ReplicaTimeout <= 0:
		return Invalid("the time to wait for replicas must be more than 0, not %v", o.ReplicaTimeout)
	}
	return ValidLease(o.Lease)
}

func ValidLease(d time.Duration) error {
	if d < MinLease || d > MaxLease {
		return Invalid("a lease must be from %v to %v, not %v", MinLease, MaxLease, d)
	}
	return nil
}
