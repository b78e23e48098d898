package hub

import (
	"context"
	"errors"
	"math"
	"slices"
	"sync"

	"github.com/redis/rueidis"
)

var errEnded = errors.New("the connection was closed")

// Dedicated subscribes on a connection of its own. It takes the connection from the pool of a client that is not a
// cluster's. However many channels there are, one goroutine subscribes to them, and the reader of the connection
// delivers the messages. Set Client before the first use.
type Dedicated struct {
	// Client lends the connection.
	Client rueidis.Client

	mu         sync.Mutex
	connection *connection // nil: none
	running    sync.WaitGroup
}

// connection is a connection that was taken from the pool.
type connection struct {
	ready  chan struct{} // closed once client is set, with its hooks
	wake   chan struct{} // capacity 1: something is pending
	client rueidis.DedicatedClient

	// guarded by the source's mutex
	listeners map[string]*Subscription // by channel: the subscription that hears
	pending   []*Subscription          // not sent yet
	abandoned int                      // channels without listeners
	dropped   bool                     // it was closed, or is about to be
}

// Subscribe implements [Source].
func (d *Dedicated) Subscribe(s *Subscription) {
	d.mu.Lock()
	defer d.mu.Unlock()
	c := d.connection
	if c == nil {
		c = &connection{ready: make(chan struct{}), wake: make(chan struct{}, 1), listeners: map[string]*Subscription{}}
		d.connection = c
		d.running.Go(func() { d.run(c) })
	}
	s.connection = c
	c.listeners[s.Name()] = s
	c.pending = append(c.pending, s)
	select {
	case c.wake <- struct{}{}:
	default: // serve will look anyway
	}
}

// Drop implements [Source].
func (d *Dedicated) Drop(s *Subscription) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if all := s.connection.listeners; all[s.Name()] == s {
		delete(all, s.Name())
	}
}

// run connects, and subscribes to what is pending until the connection ends. Then run tells each subscription of the
// connection that it has ended.
func (d *Dedicated) run(c *connection) {
	c.client, _ = d.Client.Dedicate() // its second result only gives the connection back to the pool
	// drop waits for ready before it closes the connection. rueidis begins to read a connection when the hooks are
	// set. If Close came at the same moment, rueidis would not begin to read, and Close would wait for an answer that
	// no goroutine reads.
	over := c.client.SetPubSubHooks(d.hooks(c))
	close(c.ready)
	err := d.serve(c, over)
	d.drop(c)
	d.mu.Lock()
	all := c.listeners // Subscribe adds none any more
	c.listeners = nil
	d.mu.Unlock()
	for _, s := range all {
		s.Ended(err)
	}
}

// hooks returns the hooks that deliver what comes. They run on the reader of the connection, so nothing in them may
// block.
func (d *Dedicated) hooks(c *connection) rueidis.PubSubHooks {
	return rueidis.PubSubHooks{
		OnMessage: func(m rueidis.PubSubMessage) {
			if s := d.listener(c, m.Channel); s != nil {
				s.Heard(m.Message)
			}
		},
		OnSubscription: func(p rueidis.PubSubSubscription) {
			if s := d.listener(c, p.Channel); s != nil && p.Kind == "subscribe" {
				s.Confirmed()
			}
		},
	}
}

// serve subscribes to what is pending until the connection ends, and returns why the connection ended.
func (d *Dedicated) serve(c *connection, over <-chan error) error {
	for {
		select {
		case err := <-over:
			if err == nil {
				err = errEnded
			}
			return err
		case <-c.wake:
			if err := d.subscribePending(c); err != nil {
				return err
			}
		}
	}
}

func (d *Dedicated) listener(c *connection, channel string) *Subscription {
	d.mu.Lock()
	defer d.mu.Unlock()
	return c.listeners[channel]
}

// subscribeBatch is how many subscriptions are sent at a time.
const subscribeBatch = 100

// subscribePending subscribes to all that is pending. If it returns an error, the connection is over.
func (d *Dedicated) subscribePending(c *connection) error {
	d.mu.Lock()
	pending := c.pending
	c.pending = nil
	wanted := slices.DeleteFunc(pending, func(s *Subscription) bool { return c.listeners[s.Name()] != s })
	d.mu.Unlock()
	for some := range slices.Chunk(wanted, subscribeBatch) {
		commands := make([]rueidis.Completed, len(some))
		for i, s := range some { // one command each: the server may refuse one of them
			commands[i] = c.client.B().Subscribe().Channel(s.Name()).Build()
		}
		for i, result := range c.client.DoMulti(context.Background(), commands...) {
			err := result.Error()
			if err == nil {
				continue
			}
			if _, refused := rueidis.IsRedisErr(err); !refused {
				return err
			}
			d.Drop(some[i])
			some[i].Ended(err)
		}
	}
	return nil
}

// Ask sends a command on the connection that listens, and returns the text of the reply. No command of the client's
// users waits behind it there.
func (d *Dedicated) Ask(ctx context.Context, words ...string) (string, error) {
	d.mu.Lock()
	c := d.connection
	d.mu.Unlock()
	if c == nil {
		return "", errEnded
	}
	select {
	case <-c.ready:
		return c.client.Do(ctx, c.client.B().Arbitrary(words...).Build()).ToString()
	default:
		return "", errEnded
	}
}

// drop closes a connection, in the background.
func (d *Dedicated) drop(c *connection) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.connection == c {
		d.connection = nil
	}
	if c.dropped {
		return
	}
	c.dropped = true
	d.running.Go(func() {
		<-c.ready
		c.client.Close() // rueidis sends a PING, waits for a second at most, and closes the connection
	})
}

// Abandoned implements [Source].
func (d *Dedicated) Abandoned(others int) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	c := d.connection
	if c == nil {
		return false
	}
	c.abandoned++
	if !tooMany(c.abandoned, others) {
		return false
	}
	c.abandoned = 0
	return true
}

// MaxIdle implements [Source]. A channel costs little memory here.
func (d *Dedicated) MaxIdle() int { return math.MaxInt }

// Cut implements [Source]. It does not wait for a connection that is being dialled, either.
func (d *Dedicated) Cut() {
	d.mu.Lock()
	c := d.connection
	d.mu.Unlock()
	if c != nil {
		d.drop(c)
	}
}

// Wait implements [Source].
func (d *Dedicated) Wait() { d.running.Wait() }
