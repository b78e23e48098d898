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
	// Readers is how many entries the readers of a read-write lock have in Redis; 0 for other locks. As a rule the
	// readers of a process share one entry. A reader has its own entry if its lease, or its shortest or longest hold,
	// differs, if it came after a queued writer, or if its client had not yet heard of the name. Holder is one of them,
	// with the longest lease.
	Readers int
	// Waiting is the number of entries in the queue.
	Waiting int
	// Waiters has the first 1000 entries, the next one first.
	Waiters []Waiter
	// Forced is the client that last took the lock away with [Lock.ForceUnlock], within a day, if that client tells.
	// Since is when, and Note is the reason.
	Forced Identity
}

// Holder is one that holds a lock, permits or a lead, as an Inspect tells. The zero value says that none does.
type Holder struct {
	Identity // who it is, as far as its client tells

	Owner     string        // its owner id: <client id>:<number>, or an id of Redisson; after a Detach one of the client that detached
	Mine      bool          // it belongs to the client that asks
	Mode      Mode          // how it has the lock
	Permits   int           // how many it holds; 0 for a lock
	Token     int64         // its fencing token; the first one if goroutines of its process share some; 0: it has none, as Redisson's RLock
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

// Mode says how a [Holder] has a lock, or a [Waiter] wants it. The zero value stands for the whole lock, or permits.
type Mode string

// The modes.
const (
	ModeRead  Mode = "read"  // of a read-write lock
	ModeWrite Mode = "write" // of a read-write lock
	ModeRest  Mode = "rest"  // the last holder has unlocked, and WithMinHold keeps the lock taken
	// ModeLinger: the client that asks keeps the lock without a hold (rlock.WithLinger). A request for it ends that.
	ModeLinger Mode = "linger"
	// ModeMayLinger: another client has the lock, and may keep it without a hold: Redis does not know. It is also the
	// mode of a hold whose Wanted was called.
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

// LogValue is the state in a log of package slog: a group of holder, if there is one, and waiting.
func (s State) LogValue() slog.Value {
	attributes := []slog.Attr{slog.Int("waiting", s.Waiting)}
	if s.Holder.Owner != "" {
		attributes = append([]slog.Attr{slog.Any("holder", s.Holder)}, attributes...)
	}
	return slog.GroupValue(attributes...)
}

// String says in words who it is: the label, the host and the process; or the id of a client that tells nothing. What
// does not print is replaced.
func (i Identity) String() string { return identity.Party(i).String() }

// LogValue is the identity in a log of package slog: a group of what is known of label, host, pid, client, note and
// since.
func (i Identity) LogValue() slog.Value {
	about := identity.Party(i).About()
	attributes := make([]slog.Attr, 0, len(about))
	for _, a := range about {
		attributes = append(attributes, slog.Any(a.Key, a.Value))
	}
	return slog.GroupValue(attributes...)
}
