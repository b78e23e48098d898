package latchkey

import (
	"fmt"
	"log/slog"
	"time"

	"github.com/latchkey-go/latchkey/internal/identity"
)

// State is what [Lock.Inspect] returns. It may be out of date when it arrives.
type State struct {
	// Holder is who holds the lock. The zero value says that it is free.
	Holder Holder
	// Readers is how many entries the readers of a read-write lock have: as a rule one for a process. Holder is the one
	// with the longest lease.
	Readers int
	// Waiting is the number of entries in the queue.
	Waiting int
	// Waiters has the first 1000 entries, the next one first.
	Waiters []Waiter
	// Forced is the client that took the lock away within the last day; Since is when, Note why: see [Lock.ForceUnlock].
	Forced Identity
}

// Holder is one that holds a lock, permits or a lead. The zero value says that none does.
type Holder struct {
	Identity // who it is, as far as its client tells

	Owner     string        // its owner id: <client id>:<number>, or an id of Redisson
	Mine      bool          // it belongs to the client that asks
	Mode      Mode          // how it has the lock
	Permits   int           // how many it holds; 0 for a lock
	Token     int64         // its fencing token, or the first one that it shares; 0: it has none, as Redisson's RLock
	Remaining time.Duration // until its lease ends, unless that is renewed; negative: never
}

// Waiter is one that waits in the queue of a lock or semaphore.
type Waiter struct {
	Identity // who it is, as far as its client tells

	Owner   string // its owner id: <client id>:<number>
	Mine    bool   // it belongs to the client that asks
	Mode    Mode   // how it wants the lock
	Permits int    // for how many it waits; 0 for a lock
}

// Mode says how a [Holder] has a lock, or a [Waiter] wants it. It is empty for the whole lock, and for permits.
type Mode string

// The modes.
const (
	ModeRead  Mode = "read"  // of a read-write lock
	ModeWrite Mode = "write" // of a read-write lock
	ModeRest  Mode = "rest"  // the last holder has unlocked, and WithMinHold keeps the lock taken
	// ModeLinger: the client that asks keeps the lock without a hold (rlock.WithLinger). A request for it ends that.
	ModeLinger Mode = "linger"
	// ModeMayLinger: another client has the lock, or keeps it without a hold: Redis does not know.
	ModeMayLinger Mode = "may linger"
)

// holderOf makes a holder of an inner one.
func holderOf(h identity.Holder) Holder {
	return Holder{
		Identity: Identity(h.Party), Owner: h.Owner, Mine: h.Mine, Mode: Mode(h.Mode), Permits: h.Permits, Token: h.Token, Remaining: h.Remaining,
	}
}

// String says in words who holds the lock, and how many wait.
func (s State) String() string {
	text := "free"
	if s.Holder.Owner != "" {
		text = fmt.Sprintf("held by %v", s.Holder)
	}
	return fmt.Sprintf("%s, %d waiting", text, s.Waiting)
}

// LogValue is a group of holder, if there is one, and waiting.
func (s State) LogValue() slog.Value {
	attributes := []slog.Attr{slog.Int("waiting", s.Waiting)}
	if s.Holder.Owner != "" {
		attributes = append([]slog.Attr{slog.Any("holder", s.Holder)}, attributes...)
	}
	return slog.GroupValue(attributes...)
}

// String is the label, the host and the process; or the id of a client that tells nothing.
func (i Identity) String() string { return identity.Party(i).String() }

// LogValue is a group of what is known of label, host, pid, client, note and since.
func (i Identity) LogValue() slog.Value {
	about := identity.Party(i).About()
	attributes := make([]slog.Attr, 0, len(about))
	for _, a := range about {
		attributes = append(attributes, slog.Any(a.Key, a.Value))
	}
	return slog.GroupValue(attributes...)
}
