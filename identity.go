package latchkey

import (
	"context"
	"time"

	"github.com/latchkey-go/latchkey/internal/identity"
	"github.com/latchkey-go/latchkey/internal/session"
)

// Identity says who an owner id in Redis stands for: which client, in which process, and why. The Inspect of
// each primitive that has holders returns it, of holders and of waiters.
//
// A client tells it in a record of its own in Redis, which it keeps while it holds or waits. What lasts less
// than a second is not told, so that an acquire costs nothing more. Only Client is set where it does not
// tell: in its first second, with [WithoutRecord], for users who may not write or read the record, for
// Redisson's owners, and some time after it was killed. Nothing depends on what is told: anybody who may
// write to Redis can write something else there.
type Identity struct {
	Client  string    // the id of the client ([Client.ID]), or what Redisson writes as one
	Host    string    // the name of its machine, or container
	PID     int       // its process there
	Program string    // the name of the program, without its path
	Label   string    // see WithLabel
	Version string    // of this library; empty where its build does not say
	Opened  time.Time // when the client was made, by its own clock
	Since   time.Time // since when it holds or waits, by the server's clock; zero while that is less than a second
	Note    string    // see WithNote; told together with Since
}

// ID returns what all owner ids of the client begin with, before the colon. It is also in the names of its
// connections in CLIENT LIST, as latchkey:<id>, unless the ClientName of rueidisclient.New says
// otherwise. Those of rueidisclient.Wrap have the names that their owner gave them, and those of a client [WithoutPubSub] none.
func (c *Client) ID() string { return (*session.Handle)(c).Client().IDs.Client }

// WithLabel sets what the client says of itself beside its host and process, for those who ask who holds a
// lock: the name of the service, or of a pod. At most 100 bytes of UTF-8; default: the name of the program.
// See [Identity].
func WithLabel(label string) Option {
	return session.Option(func(o *session.Options) { o.Label = label })
}

// WithoutRecord opens a client that tells nobody who it is: others see its id alone. Its own Inspect resolves
// its own owner ids all the same. See [Identity].
func WithoutRecord() Option { return session.Option(func(o *session.Options) { o.Untold = true }) }

// WithNote returns a context whose waits and holds say why: what is acquired with it shows the note in the
// Identity of an Inspect, once it has lasted for a second. Of a longer note the first 200 bytes are told.
//
//	hold, err := lock.Lock(latchkey.WithNote(ctx, "order 42"))
//
// A note costs nothing in Redis. It is no place for secrets: whoever may read the client's keys can read it.
func WithNote(ctx context.Context, note string) context.Context { return identity.WithNote(ctx, note) }
