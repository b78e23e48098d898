package property_test

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/latchkey-go/latchkey/internal/session"
)

// What was given up has returned, and what it has sent is still on its way. Until Redis has heard of that, an
// entry may come that the model would take for that of somebody else, and a semaphore may be made again that
// was deleted.
//
// A cancel is repeated when its acquire was not answered: for a second, or for up to a minute if Redis was
// silent for long. It serves the queue as one of its own kind. When the name is another kind of thing by
// then, it drops those who wait for that: an entry of counting permits, say, that asks for more than there
// would be of leased ones. They queue again, behind others. Whoever uses a name as one kind of thing only, as
// the documentation says, does not see it.

// heard waits until Redis has heard of all who were given up under the name.
func (p *place) heard() {
	p.t.Helper()
	p.soon(func() string {
		for n := range p.clients {
			if unheard, _ := p.leaving(n); unheard {
				return fmt.Sprintf("Redis has not heard of what client %d has given up", n)
			}
		}
		return ""
	})
}

// mayBecome reports whether the name may be used in this way now: it was before, or nothing more is sent of
// what was given up. Latches and barriers have no queue.
func (p *place) mayBecome(f family) bool {
	_, latch := f.(*latches)
	_, barrier := f.(*barriers)
	if latch || barrier || p.last == f {
		return true
	}
	for n := range p.clients {
		if _, unsettled := p.leaving(n); unsettled {
			p.done["a name that stays what it was, as something is still cancelled"]++
			return false
		}
	}
	p.last = f
	return true
}

func (p *place) leaving(client int) (unheard, unsettled bool) {
	return (*session.Handle)(p.clients[client]).Client().Leaving(p.name)
}

// inRedis is what there is now under the name and in its queue, and which clients may still change that by
// what was given up.
func (p *place) inRedis() string {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second) // it may be stuck
	defer cancel()
	queue := "latchkey_queue:{" + p.name + "}"
	if strings.Contains(p.name, "{") {
		queue = "latchkey_queue:" + p.name
	}
	kind, err := p.plain.Do(ctx, p.plain.B().Type().Key(p.name).Build()).ToString()
	value, _ := p.plain.Do(ctx, p.plain.B().Get().Key(p.name).Build()).ToString()
	entries, err1 := p.plain.Do(ctx, p.plain.B().Lrange().Key(queue).Start(0).Stop(-1).Build()).AsStrSlice()
	text := fmt.Sprintf("In Redis there is %s %s (%v), and %q (%v) waits.", kind, value, err, entries, err1)
	for n := range p.clients {
		unheard, unsettled := p.leaving(n)
		text += fmt.Sprintf(" Client %d is %s. What it gave up: unheard %v, unsettled %v.", n, p.ids[n], unheard, unsettled)
	}
	return text
}
