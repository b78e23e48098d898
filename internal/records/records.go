// Package records is what the clients of a prefix tell each other. Each client keeps a record in Redis while it holds
// or waits for something. So others can say who holds a lock, and a client finds the circles of waits in which it is.
package records

import (
	"cmp"
	"context"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/redis/rueidis"

	"github.com/latchkey-go/latchkey/internal/identity"
)

// Records tells what one client does, and reads what others tell. Its methods are safe for concurrent use.
type Records struct {
	of      Client
	host    Host
	teller  teller
	watches watches
}

// Client describes the client whose records these are.
type Client struct {
	ID       string
	Prefix   string // before each name
	Label    string // of the program
	Untold   bool   // it writes no record
	Began    time.Time
	Commands rueidis.Client // makes commands. [Host.Ask] sends them
	Timeout  time.Duration  // of a command that no caller waits for
	Logger   *slog.Logger
	Closing  context.Context // ends when nothing may be acquired any more
	Stopped  context.Context // ends when nothing is sent any more
}

// Host is the client as its records see it. All methods are safe for concurrent use.
type Host interface {
	// After calls f after d, in a goroutine.
	After(d time.Duration, f func()) Timer
	// Go calls f in a goroutine, unless the client has stopped.
	Go(f func())
	// Ask sends commands in one trip. The end of ctx does not end a connection.
	Ask(ctx context.Context, commands ...rueidis.Completed) []rueidis.RedisResult
	// Tenures returns all tenures that the client knows.
	Tenures() []Tenure
	// TenuresOrTell returns what Tenures returns. If the client has no tenure, the host calls [Records.Tell] with the
	// next tenure.
	TenuresOrTell() []Tenure
	// Suffix returns the number of a tenure as it stands in an owner id.
	Suffix(number uint64) string
	// Lines returns the waits of goroutines that have no tenure yet.
	Lines(now time.Time) []Telling
	// HoldsAtClose reports whether something is held although the client is closed.
	HoldsAtClose() bool
}

// Timer is what After returns. It works as a timer of [time.AfterFunc].
type Timer interface {
	Reset(d time.Duration) bool
	Stop() bool
}

// Tenure is one tenure of the client.
type Tenure struct {
	Number uint64
	Told   interface{ Tell() Telling }
}

// Telling is what a tenure, or a goroutine that waits for one, tells of itself.
type Telling struct {
	Of     Subject         // what it holds, or waits for
	Since  time.Time       // zero: nothing is to be told
	Holds  bool            // otherwise it waits
	Caller context.Context // of the call that holds or waits; nil: not known
}

// Subject is a name that is held or waited for.
type Subject interface {
	// Name returns the name with the client's key prefix.
	Name() string
	// IsLock reports whether the name is a lock's, which has one owner at a time, or readers.
	IsLock() bool
	// ServerTime returns what the clock of the name's server shows at a moment, in µs since 1970; 0 if that is not
	// known.
	ServerTime(moment time.Time) int64
}

// New returns the records of a client. [Records.Tell] begins to write the client's own record.
func New(of Client, host Host) *Records {
	open, shut := context.WithCancel(context.Background())
	return &Records{of: of, host: host, teller: teller{open: open, shut: shut}}
}

// ShortName is a key without the client's prefix.
func (r *Records) ShortName(key string) string { return strings.TrimPrefix(key, r.of.Prefix) }

// key returns the key of the client's own record.
func (r *Records) key() string { return identity.Key(r.of.Prefix, r.of.ID) }

// self returns who this client is.
func (r *Records) self() identity.Party {
	return identity.PartyOf(r.of.ID, identity.New(r.of.Label, r.of.Began))
}

// own returns what the client's record is to tell now. tenures are all tenures of the client.
func (r *Records) own(tenures []Tenure) identity.Record {
	record := identity.New(r.of.Label, r.of.Began)
	slices.SortFunc(tenures, func(a, b Tenure) int { return cmp.Compare(a.Number, b.Number) }) // numbers grow with time
	now, size := time.Now(), 0
	for _, t := range tenures {
		if len(record.Tenures) == identity.MaxTenures {
			break
		}
		telling := t.Told.Tell()
		if telling.Since.IsZero() || now.Sub(telling.Since) < tellPause {
			continue
		}
		since := telling.Since.UnixMilli()
		if at := telling.Of.ServerTime(telling.Since); at > 0 {
			since = at / 1000
		}
		key := telling.Of.Name()
		if size += len(key); size > identity.MaxKeysSize {
			key = ""
		}
		record.Tenures = append(record.Tenures, identity.Tenure{
			Number: r.host.Suffix(t.Number), Since: since, Holds: telling.Holds, Key: identity.Name(key), Note: identity.NoteOf(telling.Caller),
		})
	}
	record.Waits = r.waits(tenures, now)
	return record
}
