package records

import (
	"context"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"sync"
	"time"

	"github.com/latchkey-go/latchkey/internal/deadlock"
	"github.com/latchkey-go/latchkey/internal/fail"
	"github.com/latchkey-go/latchkey/internal/identity"
	"github.com/latchkey-go/latchkey/internal/lua"
)

// watches has the waits of a client that end when they are the youngest of a circle. The zero value is ready.
type watches struct {
	mu  sync.Mutex
	all map[*Watch]struct{}

	looking sync.Mutex // held while the waits of this client are gathered
	own     []identity.Wait
	looked  time.Time
}

// Watch is one wait of watches.
type Watch struct {
	in     *Records
	of     Subject
	caller context.Context
	since  time.Time
	end    context.CancelCauseFunc
	timer  Timer
	last   deadlock.Circle // what the last look found; only the look that runs has it
}

// Watch begins to look whether the wait of caller is in a circle: once a second, after the wait has lasted for a
// second. It ends the wait if it finds the circle a second time, and no younger wait of the circle would end as well.
// Call stop when the wait is over.
func (r *Records) Watch(of Subject, caller context.Context, end context.CancelCauseFunc) (stop func()) {
	w := &Watch{in: r, of: of, caller: caller, since: time.Now(), end: end}
	r.watches.mu.Lock()
	if r.watches.all == nil {
		r.watches.all = map[*Watch]struct{}{}
	}
	r.watches.all[w] = struct{}{}
	w.timer = r.host.After(lookPause, w.look)
	r.watches.mu.Unlock()
	return func() {
		r.watches.mu.Lock()
		defer r.watches.mu.Unlock()
		delete(r.watches.all, w)
		w.timer.Stop()
	}
}

// lookPause is a little longer than a record may be out of date.
const lookPause = tellPause + 100*time.Millisecond

// look looks for a circle, and schedules the next look.
func (w *Watch) look() {
	r := w.in
	first := deadlock.Wait{Who: r.self(), Wait: w.record()}
	if len(first.Holds) > 0 { // else the caller has given back what it held
		circle := deadlock.Find(first, func(key string) []deadlock.Wait { return r.during(first, key) })
		if circle != nil && circle.Same(w.last) && circle.IsVictim(first) {
			w.end(fmt.Errorf("%w: %s", fail.ErrDeadlock, circle.String(r.ShortName)))
			return
		}
		w.last = circle
	}
	r.watches.mu.Lock()
	defer r.watches.mu.Unlock()
	if _, goesOn := r.watches.all[w]; goesOn {
		w.timer.Reset(lookPause)
	}
}

// record returns what others are to know of the wait.
func (w *Watch) record() identity.Wait {
	wait := waitOf(w.telling())
	wait.Checked = true
	return wait
}

func (w *Watch) telling() Telling { return Telling{Of: w.of, Since: w.since, Caller: w.caller} }

// waitOf returns what others are to know of a wait. If the wait holds up no other wait, the result has no holds.
func waitOf(telling Telling) identity.Wait {
	return identity.Wait{
		Key: identity.Name(telling.Of.Name()), Since: telling.Since.UnixMicro(), Note: identity.NoteOf(telling.Caller), Holds: identity.HeldIn(telling.Caller),
	}
}

// ownWaits returns the waits that this client tells. Looks at about the same time share one result.
func (r *Records) ownWaits() []identity.Wait {
	const fresh = 50 * time.Millisecond
	w := &r.watches
	w.looking.Lock()
	defer w.looking.Unlock()
	if now := time.Now(); now.Sub(w.looked) > fresh {
		w.own = r.waits(r.host.Tenures(), now)
		w.looked = now
	}
	return w.own
}

// during returns the waits that last while their callers hold key, as far as the clients tell. It knows the waits of
// this client without Redis. If the caller of first holds key, during returns first alone.
func (r *Records) during(first deadlock.Wait, key string) (all []deadlock.Wait) {
	ctx, cancel := context.WithTimeout(r.of.Stopped, r.of.Timeout)
	defer cancel()
	fields, err := r.host.Ask(ctx, r.of.Commands.B().Hkeys().Key(key).Build())[0].AsStrSlice()
	if err != nil { // key is no lock, or its server is away: the next look is soon enough
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
	mine := func(field string) bool { return lua.ClientOf(field) == r.of.ID }
	if slices.ContainsFunc(fields, mine) {
		add(r.self(), r.ownWaits())
	}
	others, _ := r.read(ctx, key, slices.DeleteFunc(fields, mine))
	for client, record := range others {
		add(identity.PartyOf(client, record), record.Waits)
	}
	return all
}

// waits returns what the client tells of its waits: each wait whose caller holds something. With more than tellMany
// tenures it returns no waits: the client would tell them too seldom for others to believe them.
func (r *Records) waits(tenures []Tenure, now time.Time) (all []identity.Wait) {
	if len(tenures) > tellMany {
		return nil
	}
	size := 0
	add := func(telling Telling) {
		if len(all) < identity.MaxWaits && !telling.Since.IsZero() && now.Sub(telling.Since) >= tellPause && telling.Of.IsLock() {
			w := waitOf(telling)
			if size += w.Size(); len(w.Holds) > 0 && size <= identity.MaxWaitsSize {
				all = append(all, w)
			}
		}
	}
	watched := map[watchedWait]bool{}
	for _, w := range r.watches.oldestFirst() {
		if by := waitBy(w.telling()); by.key != "" {
			watched[by] = true
		}
		add(w.telling())
	}
	for i := range all {
		all[i].Checked = true
	}
	for _, t := range tenures {
		if telling := t.Told.Tell(); !telling.Holds && !watched[waitBy(telling)] {
			add(telling)
		}
	}
	for _, telling := range r.host.Lines(now) {
		if !watched[waitBy(telling)] {
			add(telling)
		}
	}
	return all
}

// oldestFirst returns all watches.
func (w *watches) oldestFirst() []*Watch {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.SortedFunc(maps.Keys(w.all), func(a, b *Watch) int { return a.since.Compare(b.since) })
}

// watchedWait identifies a wait that has a Watch: the same wait comes again as a tenure, or in a line.
type watchedWait struct {
	key    string
	caller context.Context
}

// waitBy returns what identifies a wait. It returns the zero value if the caller's context is not known, or cannot be
// compared: then the record may have the wait twice.
func waitBy(wait Telling) watchedWait {
	if wait.Caller == nil || !reflect.ValueOf(wait.Caller).Comparable() {
		return watchedWait{}
	}
	return watchedWait{wait.Of.Name(), wait.Caller}
}
