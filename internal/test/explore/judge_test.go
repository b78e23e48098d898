package explore_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/latchkey-go/latchkey"
)

func (r *run) violated(property, format string, args ...any) {
	r.broken = append(r.broken, property+": "+fmt.Sprintf(format, args...))
}

// always checks what must be true between two steps.
func (r *run) always() {
	r.mu.Lock()
	defer r.mu.Unlock()
	var taken int
	var inside []*user
	for _, u := range r.users {
		if u.doing != holding || r.clients[u.of].dead || !u.hold.Held() {
			continue
		}
		c := u.calls[u.next]
		taken += c.permits
		for _, o := range inside {
			if c.excludes(o.calls[o.next]) && !r.forced {
				r.violated("ME", "%s and %s hold", o.name, u.name)
			}
		}
		inside = append(inside, u)
		for _, name := range c.of {
			if !r.forced && !r.owns(u.of, name) {
				r.violated("TRUST", "%s holds %s, and Redis has\n%s", u.name, name, r.names.plain(r.data()))
			}
		}
	}
	if taken > capacity {
		r.violated("ME", "%d permits are held", taken)
	}
}

// owns reports whether a client has a lock in Redis.
func (r *run) owns(client int, name string) bool {
	fields, _ := r.server.HKeys(name)
	for _, f := range fields {
		if strings.HasPrefix(r.names.plain(f), fmt.Sprintf("c%d:", client)) {
			return true
		}
	}
	return false
}

// isOver reports whether all users have made their calls.
func (r *run) isOver() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, u := range r.users {
		if !r.clients[u.of].dead && (u.doing != idle || u.next < len(u.calls) && !r.clients[u.of].closed) {
			return false
		}
	}
	return true
}

// remains is what must not be left in Redis.
func (r *run) remains() (all []string) {
	for _, key := range r.server.Keys() {
		switch {
		case key == thing && r.server.Type(key) == "string": // of a semaphore: how many are free
			if free, _ := r.server.Get(key); free != fmt.Sprint(capacity) {
				all = append(all, key+" = "+free)
			}
		case slices.Contains(things, key), strings.Contains(key, "queue"), strings.HasSuffix(key, "}:timeout"):
			all = append(all, key)
		case r.server.TTL(key) <= 0 && r.server.Type(key) != "string":
			all = append(all, key+", without an end")
		}
	}
	return all
}

// returned looks at the error of a call. The mutex is held.
func (r *run) returned(u *user, c call, err error) {
	p := r.clients[u.of]
	switch {
	case u.ended && errors.Is(err, context.Canceled):
	case p.closed && errors.Is(err, latchkey.ErrClosed), p.dead:
	case c.attempt && errors.Is(err, latchkey.ErrNotAcquired):
	case r.lossy && c.attempt && errors.Is(err, latchkey.ErrUnavailable):
	case r.lossy && c.name == "Downgrade" && errors.Is(err, latchkey.ErrLost): // of the write hold
	default:
		r.violated("ERR", "%s: %s returns %v", u.name, c.name, err)
	}
}

// entered looks at a new hold. The mutex is held.
func (r *run) entered(u *user, c call) {
	if !u.hold.Held() || r.forced { // what was forced away may be on its way
		return
	}
	given := map[string]int64{}
	switch h := u.hold.(type) {
	case interface{ Tokens() map[string]int64 }:
		given = h.Tokens()
	case interface{ Token() int64 }:
		for _, name := range c.of {
			given[name] = h.Token()
		}
	}
	for name, token := range given {
		if last := r.last[name]; token < last || token == last && !c.shared {
			r.violated("TOK", "%s has token %d of %s after %d", u.name, token, name, last)
		}
		if !c.shared {
			r.last[name] = token
		}
	}
}

// ends looks at what is left when a path is over.
func (r *run) ends() {
	left := r.remains()
	if len(left) > 0 && !r.lossy && !r.polls && !r.lingering() {
		r.violated("LEFT", "%v", left)
	}
	r.flow()
	// What the dead have left in a queue, or of permits, goes when somebody comes upon it.
	if time.Sleep(r.recover); r.recover == soon && !r.lingering() {
		if left := r.remains(); len(left) > 0 {
			r.violated("LEFT", "after %v: %v\n%s", r.recover, left, r.names.plain(r.data()))
		}
	}
	r.closeAll()
	if left := r.remains(); len(left) > 0 && !r.lossy {
		r.violated("LEFT", "after Close: %v\n%s", left, r.names.plain(r.data()))
	}
	time.Sleep(lease + 2*time.Second) // what the dead held
	for _, key := range r.remains() {
		if slices.Contains(things, key) {
			r.violated("LEFT", "in the end: %s\n%s", key, r.names.plain(r.data()))
		}
	}
}

func (r *run) lingering() bool { return strings.HasPrefix(r.name, lingers.name) }
