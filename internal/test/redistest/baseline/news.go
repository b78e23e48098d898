package baseline

import (
	"context"
	"sync"

	"github.com/redis/rueidis"
)

// news wakes all who wait for a message of a channel. That is how Redisson waits: whoever does not find what
// it wants waits for a message, and looks again.
type news struct {
	commands, subscriptions rueidis.Client

	mu   sync.Mutex
	next chan struct{} // closed by the next message
	stop func()
}

func listen(addr, channel string) (*news, error) {
	commands, subscriptions, err := Clients(addr)
	if err != nil {
		return nil, err
	}
	n := &news{commands: commands, subscriptions: subscriptions, next: make(chan struct{})}
	n.stop, err = Subscribe(subscriptions, channel, func(string) {
		n.mu.Lock()
		defer n.mu.Unlock()
		close(n.next)
		n.next = make(chan struct{})
	})
	if err != nil {
		n.stop = func() {}
		n.close()
		return nil, err
	}
	return n, nil
}

func (n *news) after() <-chan struct{} {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.next
}

// awaiting looks until it is done, after every message.
func (n *news) awaiting(ctx context.Context, look func() (bool, error)) error {
	for {
		after := n.after()
		if done, err := look(); done || err != nil {
			return err
		}
		select {
		case <-after:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (n *news) close() {
	n.stop()
	n.subscriptions.Close()
	n.commands.Close()
}
