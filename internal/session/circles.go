package session

import (
	"context"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/latchkey-go/latchkey/internal/deadlock"
	"github.com/latchkey-go/latchkey/internal/fail"
	"github.com/latchkey-go/latchkey/internal/identity"
	"github.com/latchkey-go/latchkey/internal/lua"
)

// watches are the waits of a client that end when they are the youngest of a circle. The zero value is ready.
type watches struct {
	mu  sync.Mutex
	all map[*Watch]struct{}

	looking sync.Mutex // held while the waits of this client are gathered
	own     []identity.Wait
	looked  time.Time
}

// Watch is one of them.
type Watch struct {
	target *Target
	caller context.Context
	since  time.Time
	end    context.CancelCauseFunc
	date   *Date
	last   deadlock.Circle // that was found the last time; only the one look that runs has it
}

// Watch begins to look whether the wait of a caller is in a circle: once a second, when it has lasted for a
// second. It ends the wait when the circle is found a second time and no wait of it is younger that would end
// as well. stop must be called when the wait is over.
func (t *Target) Watch(caller context.Context, end context.CancelCauseFunc) (stop func()) {
	c := t.Client
	w := &Watch{target: t, caller: caller, since: time.Now(), end: end}
	c.watches.mu.Lock()
	if c.watches.all == nil {
		c.watches.all = map[*Watch]struct{}{}
	}
	c.watches.all[w] = struct{}{}
	w.date = c.AfterFunc(lookPause, func() { c.GoSparingly(w.look) })
	c.watches.mu.Unlock()
	return func() {
		c.watches.mu.Lock()
		defer c.watches.mu.Unlock()
		delete(c.watches.all, w)
		w.date.Stop()
	}
}

// lookPause is a little longer than what is told may be old.
const lookPause = tellPause + 100*time.Millisecond

// look looks for a circle, and has itself called again.
func (w *Watch) look() {
	c := w.target.Client
	first := w.wait()
	if len(first.Holds) > 0 { // else what was held is given back
		circle := deadlock.Find(first, func(key string) []deadlock.Wait { return c.during(first, key) })
		if circle != nil && circle.Same(w.last) && circle.IsVictim(first) {
			w.end(fmt.Errorf("%w: %s", fail.ErrDeadlock, circle.String(c.ShortName)))
			return
		}
		w.last = circle
	}
	c.watches.mu.Lock()
	defer c.watches.mu.Unlock()
	if _, goesOn := c.watches.all[w]; goesOn {
		w.date.Reset(lookPause)
	}
}

// ShortName is a key without the client's prefix.
func (c *Client) ShortName(key string) string { return strings.TrimPrefix(key, c.Options.Prefix) }

// wait is what others are told of it.
func (w *Watch) wait() deadlock.Wait {
	c := w.target.Client
	return deadlock.Wait{Who: c.self(), Wait: w.record()}
}

func (w *Watch) record() identity.Wait {
	telling := waitOf(w.target, Telling{Since: w.since, Caller: w.caller})
	telling.Checked = true
	return telling
}

// self is who this client is.
func (c *Client) self() identity.Party {
	return identity.PartyOf(c.IDs.Client, identity.New(c.Options.Label, c.Began))
}

// waitOf is what others are told of a wait. It has no holds when it holds up no other wait.
func waitOf(t *Target, telling Telling) identity.Wait {
	return identity.Wait{
		Key: identity.Name(t.Keys.Name()), Since: telling.Since.UnixMicro(), Note: identity.NoteOf(telling.Caller), Holds: identity.HeldIn(telling.Caller),
	}
}

// ownWaits are the waits that this client tells. Many looks at a time share what was gathered.
func (c *Client) ownWaits() []identity.Wait {
	const fresh = 50 * time.Millisecond
	w := &c.watches
	w.looking.Lock()
	defer w.looking.Unlock()
	if now := time.Now(); now.Sub(w.looked) > fresh {
		w.own = c.waitsTold(c.tenures(), now)
		w.looked = now
	}
	return w.own
}

// during returns the waits that last while somebody has a key, as far as their clients tell. Of this client
// it knows them itself, and of first without asking its client.
func (c *Client) during(first deadlock.Wait, key string) (all []deadlock.Wait) {
	ctx, cancel := context.WithTimeout(c.Stopped, c.Options.CommandTimeout)
	defer cancel()
	fields, err := c.Conn.Client.Do(WithoutDeadline(ctx), c.Conn.Client.B().Hkeys().Key(key).Build()).AsStrSlice()
	if err != nil { // it is no lock, or its server is away: then the next look is soon enough
		return nil
	}
	owners := map[string]bool{}
	for _, field := range fields {
		owners[identity.OwnerOf(field)] = true
	}
	has := func(owner string) bool { return owners[owner] }
	if first.HasHeld(key, has) {
		return []deadlock.Wait{first}
	}
	add := func(who identity.Party, waits []identity.Wait) {
		for _, w := range waits {
			if w.HasHeld(key, has) {
				all = append(all, deadlock.Wait{Who: who, Wait: w})
			}
		}
	}
	mine := func(field string) bool { return lua.ClientOf(field) == c.IDs.Client }
	if slices.ContainsFunc(fields, mine) {
		add(c.self(), c.ownWaits())
	}
	others, _ := c.records(ctx, key, slices.DeleteFunc(fields, mine))
	for client, record := range others {
		add(identity.PartyOf(client, record), record.Waits)
	}
	return all
}

// waitsTold are the waits that last while their callers hold something. With more than tellMany tenures there are
// none: they would be told too seldom to be believed.
func (c *Client) waitsTold(tenures []Tenure, now time.Time) (all []identity.Wait) {
	if len(tenures) > tellMany {
		return nil
	}
	size := 0
	add := func(t *Target, telling Telling) {
		if len(all) < identity.MaxWaits && !telling.Since.IsZero() && now.Sub(telling.Since) >= tellPause && isLock(t) {
			w := waitOf(t, telling)
			if size += w.Size(); len(w.Holds) > 0 && size <= identity.MaxWaitsSize {
				all = append(all, w)
			}
		}
	}
	watched := map[watchedWait]bool{}
	for _, w := range c.watches.oldestFirst() {
		if by := waitBy(w.target, w.caller); by.key != "" {
			watched[by] = true
		}
		add(w.target, Telling{Since: w.since, Caller: w.caller})
	}
	for i := range all {
		all[i].Checked = true
	}
	for _, t := range tenures {
		if telling := t.Tell(); !telling.Holds && !watched[waitBy(t.Target(), telling.Caller)] {
			add(t.Target(), telling)
		}
	}
	for _, q := range c.queues() {
		at, line := q.TellLine(now)
		for _, telling := range line {
			if !watched[waitBy(at, telling.Caller)] {
				add(at, telling)
			}
		}
	}
	return all
}

// oldestFirst are all of them.
func (w *watches) oldestFirst() []*Watch {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.SortedFunc(maps.Keys(w.all), func(a, b *Watch) int { return a.since.Compare(b.since) })
}

// watchedWait is by what a wait is known that is watched: it has a tenure as well, or stands in a line.
type watchedWait struct {
	key    string
	caller context.Context
}

// waitBy returns how the wait of a caller is known. It is the zero value when the caller's context cannot be
// compared, or is not known: its wait may be told twice.
func waitBy(t *Target, caller context.Context) watchedWait {
	if caller == nil || !reflect.ValueOf(caller).Comparable() {
		return watchedWait{}
	}
	return watchedWait{t.Keys.Name(), caller}
}

// isLock reports whether what a target is of has an owner at a time, or readers.
func isLock(t *Target) bool {
	switch t.Keys.Family() {
	case lua.Locks, lua.ReadWrite, lua.Leader:
		return true
	}
	return false
}
