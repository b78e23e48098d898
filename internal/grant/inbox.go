package grant

import (
	"context"
	"sync"

	"github.com/latchkey-go/latchkey/internal/hub"
)

// inbox is where a client hears of one name. The zero value is closed.
type inbox struct {
	mu sync.Mutex

	// A channel in the slot of the name, open while somebody may wait. Only cluster clients have it: others have
	// one inbox for all names.
	users   int
	channel *hub.Channel
	lately  bool // it was open, and may be listened to still

	// Who waits for announced releases, without being queued.
	listeners map[*listener]struct{}
	released  *hub.Channel // open while there are listeners, or turns are taken
	ear       *hub.Channel // open with that, where the client takes turns with processes of Redisson
	turns     bool         // waiters take turns
}

type listener struct{ heard func() }

// Inbox is of [wait.Server].
func (q *Queue) Inbox(ctx context.Context) error {
	if !q.At.Client.Sharded {
		return q.At.Client.Inbox.Wait(ctx)
	}
	return q.listen().Wait(ctx)
}

// listen opens the inbox of the name.
func (q *Queue) listen() *hub.Channel {
	q.inbox.mu.Lock()
	defer q.inbox.mu.Unlock()
	if q.inbox.channel == nil {
		q.inbox.channel = q.At.Client.Hub.Open(q.At.Keys.Inbox(q.At.Client.IDs.Client), q.RecheckAll)
		q.inbox.lately = true
	}
	return q.inbox.channel
}

// hears returns the channel on which the client hears of the name; nil while there is none.
func (q *Queue) hears() *hub.Channel {
	if !q.At.Client.Sharded {
		return q.At.Client.Inbox
	}
	q.inbox.mu.Lock()
	defer q.inbox.mu.Unlock()
	return q.inbox.channel
}

// Listening is of [wait.Server].
func (q *Queue) Listening() bool {
	if !q.At.Client.Sharded {
		return q.At.Client.Inbox != nil && q.At.Client.Inbox.Up()
	}
	q.inbox.mu.Lock()
	defer q.inbox.mu.Unlock()
	return q.inbox.channel != nil && q.inbox.channel.Up()
}

// hearing returns a number that is the same for as long as the client hears of the name; 0 while it does not.
func (q *Queue) hearing() uint64 {
	if !q.At.Client.Sharded {
		if q.At.Client.Inbox == nil {
			return 0
		}
		return q.At.Client.Inbox.Unbroken()
	}
	q.inbox.mu.Lock()
	defer q.inbox.mu.Unlock()
	if q.inbox.channel == nil {
		return 0
	}
	return q.inbox.channel.Unbroken()
}

// enter counts a goroutine that may need the inbox of the name, until exit. The inbox is opened when it is
// waited for: one that polls never does. One that is listened to still is used at once, so that the first
// request of the goroutine may queue.
func (q *Queue) enter() {
	if !q.countsUsers() {
		return
	}
	q.inbox.mu.Lock()
	defer q.inbox.mu.Unlock()
	q.inbox.users++
	if q.inbox.channel == nil && q.inbox.lately {
		q.inbox.channel = q.At.Client.Hub.Reopen(q.At.Keys.Inbox(q.At.Client.IDs.Client))
		q.inbox.lately = q.inbox.channel != nil
	}
}

func (q *Queue) exit() {
	if !q.countsUsers() {
		return
	}
	q.inbox.mu.Lock()
	defer q.inbox.mu.Unlock()
	if q.inbox.users--; q.inbox.users > 0 {
		return
	}
	if q.inbox.channel != nil {
		q.inbox.channel.Close()
		q.inbox.channel = nil
	}
	q.inbox.turns = false
	q.inbox.closeReleased()
}

func (q *Queue) countsUsers() bool { return q.At.Client.Sharded || q.At.Client.Options.Redisson }

// ListenForReleases calls heard for each release that is announced, and whenever one may have been missed,
// until stop is called. heard must not block, nor lock anything of the queue, nor call stop. On a client
// without subscriptions it is never called.
func (p *Primitive) ListenForReleases(heard func()) (stop func()) {
	q := p.Queue
	if q.At.Client.Inbox == nil {
		return func() {}
	}
	l, i := &listener{heard}, &q.inbox
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.listeners == nil {
		i.listeners = map[*listener]struct{}{}
	}
	i.listeners[l] = struct{}{}
	q.openReleased()
	return func() {
		i.mu.Lock()
		defer i.mu.Unlock()
		delete(i.listeners, l)
		i.closeReleased()
	}
}

// openReleased opens the channel of releases, until closeReleased finds that it is not needed. Where the client
// takes turns it listens to the ear first, until Redis has confirmed that: a client that listens to the other
// channel alone is taken for a waiter of Redisson. The mutex of the inbox is held.
func (q *Queue) openReleased() {
	i := &q.inbox
	if i.released != nil {
		return
	}
	if q.takesTurns() {
		if i.ear == nil {
			i.ear = q.At.Client.Hub.Listen(q.At.Keys.Ear(), q.earConfirmed, func(string) {})
		}
		if !i.ear.Up() {
			return
		}
	}
	i.released = q.At.Client.Hub.Listen(q.At.Keys.Released(), q.releasesConfirmed, q.heardRelease)
}

// earConfirmed opens what waited for the ear.
func (q *Queue) earConfirmed() {
	i := &q.inbox
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.ear != nil { // else it is not needed any more
		q.openReleased()
	}
}

func (i *inbox) closeReleased() {
	if len(i.listeners) > 0 || i.turns {
		return
	}
	for _, c := range []*hub.Channel{i.released, i.ear} {
		if c != nil {
			c.Close()
		}
	}
	i.released, i.ear = nil, nil
}

// tell runs where the subscription is read.
func (i *inbox) tell() {
	i.mu.Lock()
	defer i.mu.Unlock()
	for l := range i.listeners {
		l.heard()
	}
}
