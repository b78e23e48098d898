package latchkey

import (
	"context"
	"time"

	"github.com/latchkey-go/latchkey/internal/identity"
	"github.com/latchkey-go/latchkey/internal/session"
)

// Identity says which client an owner id in Redis stands for, in which process, and why it holds or waits. A client
// tells it in a record in Redis, while it holds or waits for longer than a second. Without a record, as in the first
// second or for Redisson, only Client is set. It is no proof: a user who may write to Redis can write another record.
type Identity struct {
	Client  string    // the id of the client ([Client.ID])
	Host    string    // the name of its machine, or container
	PID     int       // its process there
	Program string    // the name of the program, without its path
	Label   string    // see WithLabel
	Version string    // of this library; empty where its build does not say
	Opened  time.Time // when the client was made, by its own clock
	Since   time.Time // since when it holds or waits, by the server's clock; zero in the first second
	Note    string    // see WithNote; empty in the first second
}

// ID returns how all owner ids of the client begin, before the colon. CLIENT LIST shows its connections as
// latchkey:<id>, unless they are yours or have a name from you.
func (c *Client) ID() string { return (*session.Handle)(c).Client().IDs.Client }

// WithLabel sets what the client says of itself beside its host and process: the name of the service, or of a pod. At
// most 100 bytes of UTF-8; default: the name of the program.
func WithLabel(label string) Option {
	return session.Option(func(o *session.Options) { o.Label = label })
}

// WithoutRecord opens a client that keeps no record of who it is: see [Identity].
func WithoutRecord() Option { return session.Option(func(o *session.Options) { o.Untold = true }) }

// WithNote returns a context whose waits and holds say why. Inspect shows the note, cut to 200 bytes. Put no secret
// into it.
//
//	hold, err := lock.Lock(latchkey.WithNote(ctx, "order 42"))
func WithNote(ctx context.Context, note string) context.Context { return identity.WithNote(ctx, note) }
