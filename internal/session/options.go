package session

import (
	"log/slog"
	"time"
	"unicode/utf8"

	"github.com/latchkey-go/latchkey/internal/fail"
	"github.com/latchkey-go/latchkey/internal/identity"
	"github.com/latchkey-go/latchkey/internal/lua"
)

// Options are the settings that the options of the root package change. The root package documents them.
// [DefaultOptions] returns usable options; the zero value is invalid.
type Options struct {
	Prefix         string        // before each name
	Lease          time.Duration // where the user gives no other lease
	CommandTimeout time.Duration // of one attempt
	MaxWaiters     int           // of one name
	Lazy           bool          // Open does not wait for a connection
	WithoutPubSub  bool          // the client subscribes to nothing
	Redisson       bool          // the client takes turns with processes of Redisson
	DeclaredKeys   bool          // the server refuses scripts with keys that their calls have not named
	Replicas       int           // how many replicas must have a grant; 0: an acquire does not wait for replicas
	ReplicaTimeout time.Duration // how long an acquire waits for the replicas
	Label          string        // for users who ask which client holds; empty: the program's name
	Untold         bool          // the client writes no record of itself
	SlowWait       time.Duration // the client logs a wait that lasts this long; 0: never
	SlowHold       time.Duration // the client logs a hold that lasts this long; 0: never
	Logger         *slog.Logger  // not nil
	Observer       Observer
}

// Setter is the interface of the root package's client options.
type Setter interface{ SetClient(o *Options) }

// Option is the usual Setter.
type Option func(*Options)

// SetClient calls the function.
func (f Option) SetClient(o *Options) { f(o) }

// The defaults of [Options], and the bounds of a lease.
const (
	DefaultLease          = 10 * time.Second
	DefaultCommandTimeout = time.Second
	DefaultMaxWaiters     = lua.DefaultLongest
	MinLease              = 10 * time.Millisecond
	MaxLease              = 24 * time.Hour
)

// DefaultOptions returns the options of a client whose user gave none.
func DefaultOptions() Options {
	return Options{
		Lease:          DefaultLease,
		CommandTimeout: DefaultCommandTimeout,
		MaxWaiters:     DefaultMaxWaiters,
		Logger:         StandardLogger(),
	}
}

// Validate returns an error that matches ErrInvalid for the first option that is out of range.
func (o *Options) Validate() error {
	switch {
	case o.CommandTimeout <= 0:
		return fail.Invalid("the command timeout must be more than 0, not %v", o.CommandTimeout)
	case o.MaxWaiters < 1:
		return fail.Invalid("the maximum of waiters must be at least 1, not %d", o.MaxWaiters)
	case o.SlowWait < 0 || o.SlowHold < 0:
		return fail.Invalid("a wait or a hold is slow after a time that is not negative, not %v and %v", o.SlowWait, o.SlowHold)
	case o.Replicas < 0:
		return fail.Invalid("the number of replicas must be at least 0, not %d", o.Replicas)
	case o.Replicas > 0 && o.ReplicaTimeout <= 0:
		return fail.Invalid("the time to wait for replicas must be more than 0, not %v", o.ReplicaTimeout)
	case o.Replicas > 0 && o.ReplicaTimeout >= o.Lease:
		return fail.Invalid("the time to wait for replicas must be less than the lease of %v, not %v", o.Lease, o.ReplicaTimeout)
	}
	if len(o.Label) > identity.MaxLabel || !utf8.ValidString(o.Label) {
		return fail.Invalid("a label must be UTF-8, and at most %d bytes long, not %d", identity.MaxLabel, len(o.Label))
	}
	if err := lua.ValidPrefix(o.Prefix); err != nil {
		return fail.Invalid("the key prefix cannot be used: %w", err)
	}
	return ValidLease(o.Lease)
}

// ValidLease returns an error that matches ErrInvalid for a lease that is shorter than [MinLease] or longer
// than [MaxLease].
func ValidLease(d time.Duration) error {
	if d < MinLease || d > MaxLease {
		return fail.Invalid("a lease must be from %v to %v, not %v", MinLease, MaxLease, d)
	}
	return nil
}
