package grant

import (
	"sync"

	"github.com/latchkey-go/latchkey/internal/hub"
)

// ear is who waits for announced releases of one name, without being queued. The zero value hears nothing.
type ear struct {
	mu        sync.Mutex
	listeners map[*listener]struct{}
	channel   *hub.Channel // open while there are listeners
}

type listener struct{ heard func() }

// ListenForReleases calls heard for each release that is announced, and whenever one may have been missed,
// until stop is called. It must not block. On a client without subscriptions it is never called.
func (p *Primitive) ListenForReleases(heard func()) (stop func()) {
	q := p.Queue
	if q.At.Client.Inbox == nil {
		return func() {}
	}
	l, e := &listener{heard}, &q.ear
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.listeners == nil {
		e.listeners = map[*listener]struct{}{}
	}
	e.listeners[l] = struct{}{}
	if e.channel == nil {
		e.channel = q.At.Client.Hub.Listen(q.At.Keys.Released(), e.tell, func(string) { e.tell() })
	}
	return func() {
		e.mu.Lock()
		defer e.mu.Unlock()
		delete(e.listeners, l)
		if len(e.listeners) == 0 && e.channel != nil {
			e.channel.Close()
			e.channel = nil
		}
	}
}

// tell runs where the subscription is read.
func (e *ear) tell() {
	e.mu.Lock()
	defer e.mu.Unlock()
	for l := range e.listeners {
		l.heard()
	}
}
