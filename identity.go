package latchkey

import (
	"context"
	"time"

	"github.com/latchkey-go/latchkey/internal/identity"
	"github.com/latchkey-go/latchkey/internal/session"
)

// Identity says which client an owner id in Redis stands for, in which process, and why it holds or waits. The Inspect
// of each primitive with holders returns it.
//
// A client tells it in a record in Redis, which it keeps while it holds or waits for longer than a second. So an
// acquire costs nothing more. If there is no record, only Client is set: in the first second, [WithoutRecord], for
// users who may not write or read records, for owners of Redisson, and some time after a client was killed. Do not
// rely on it for security: a user who may write to Redis can write another record.
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

// ID returns how all owner ids of the client begin, before the colon. CLIENT LIST shows it in the names of the
// connections, as latchkey:<id>, unless a ClientName is set, the connections are yours (rueidisclient.Wrap), or the
// client is [WithoutPubSub].
func (c *Client) ID() string { return (*session.Handle)(c).Client().IDs.Client }

// WithLabel sets what the client says of itself beside its host and process: the name of the service, or of a pod. At
// most 100 bytes of UTF-8; default: the name of the program. See [Identity].
func WithLabel(label string) Option {
	return session.Option(func(o *session.Options) { o.Label = label })
}

// WithoutRecord opens a client that keeps no record of who it is: other clients see its id alone. See [Identity].
func WithoutRecord() Option { return session.Option(func(o *session.Options) { o.Untold = true }) }

// WithNote returns a context whose waits and holds say why. Inspect shows the note in the Identity, once the wait or
// hold has lasted for a second. A longer note is cut to 200 bytes.
//
//	hold, err := lock.Lock(latchkey.WithNote(ctx, "order 42"))
//
// A note costs nothing in Redis. Put no secret into it: all who may read the client's keys can read it.
func WithNote(ctx context.Context, note string) context.Context { return identity.WithNote(ctx, note) }
