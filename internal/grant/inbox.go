package grant

import (
	"context"
	"sync"

	"github.com/latchkey-go/latchkey/internal/hub"
)

// inbox has the channels on which a client hears of one name. The zero value is closed.
type inbox struct {
	mu sync.Mutex

	// channel is in the slot of the name. It is open while a goroutine may wait. Only a cluster client has it: any
	// other client has one inbox for all names.
	users   int
	channel *hub.Channel
	lately  bool // channel was open, and the client may still listen to it

	// listeners wait for announced releases, and are not in the queue.
	listeners map[*listener]struct{}
	released  *hub.Channel // open while there are listeners, or turns is set
	ear       *hub.Channel // open with released, if the client takes turns with processes of Redisson
	turns     bool         // waiters take turns with processes of Redisson
}

type listener struct{ heard func() }

// Inbox implements [wait.Server].
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

// hears returns the channel on which the client hears of the name; nil while the client has no channel.
func (q *Queue) hears() *hub.Channel {
	if !q.At.Client.Sharded {
		return q.At.Client.Inbox
	}
	q.inbox.mu.Lock()
	defer q.inbox.mu.Unlock()
	return q.inbox.channel
}

// Listening implements [wait.Server].
func (q *Queue) Listening() bool {
	if !q.At.Client.Sharded {
		return q.At.Client.Inbox != nil && q.At.Client.Inbox.Up()
	}
	q.inbox.mu.Lock()
	defer q.inbox.mu.Unlock()
	return q.inbox.channel != nil && q.inbox.channel.Up()
}

// hearing returns a number that stays the same while the client hears of the name without a gap; 0 while the client
// is deaf.
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

// enter counts a goroutine that may need the inbox of the name, until exit. The first goroutine that waits for the
// inbox opens it; a goroutine that polls never waits for it. If the inbox was closed but the client still listens to
// it, enter reopens it at once, so that the first request of the goroutine may queue.
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

// ListenForReleases calls heard for each announced release, and whenever the client may have missed a release, until
// the caller calls stop. heard must not block, lock anything of the queue, or call stop. A client without
// subscriptions never calls heard.
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

// openReleased opens the channel of releases, until closeReleased finds that no goroutine needs the channel. If the
// client takes turns, openReleased first opens the ear, and opens the channel of releases only when Redis has
// confirmed the ear: the scripts take a client that listens to the channel of releases alone for a waiter of
// Redisson. The caller holds the mutex of the inbox.
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

// earConfirmed opens the channel of releases, which waited for the ear.
func (q *Queue) earConfirmed() {
	i := &q.inbox
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.ear != nil { // else closeReleased has closed the ear
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

// tell calls every listener. It may run on the goroutine that reads the subscription.
func (i *inbox) tell() {
	i.mu.Lock()
	defer i.mu.Unlock()
	for l := range i.listeners {
		l.heard()
	}
}
