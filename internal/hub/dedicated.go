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

// Dedicated subscribes on a connection of its own, which it takes from the pool of a client that is not a
// cluster's. However many channels there are, one goroutine subscribes to them, and the connection's reader
// hands on what is heard.
type Dedicated struct {
	Client rueidis.Client

	mu     sync.Mutex
	line   *line // nil: none
	ending sync.WaitGroup
}

// line is one connection.
type line struct {
	ready  chan struct{} // closed once client is set
	wake   chan struct{} // capacity 1: something is asked for
	client rueidis.DedicatedClient

	// guarded by the source's mutex
	named   map[string]*Subscription // of each channel the one that hears
	asked   []*Subscription          // not sent yet
	left    int                      // channels that nobody listens to any more
	dropped bool                     // it was closed, or is about to be
}

// Subscribe is of [Source].
func (d *Dedicated) Subscribe(s *Subscription) {
	d.mu.Lock()
	defer d.mu.Unlock()
	l := d.line
	if l == nil {
		l = &line{ready: make(chan struct{}), wake: make(chan struct{}, 1), named: map[string]*Subscription{}}
		d.line = l
		d.ending.Go(func() { d.run(l) })
	}
	s.line = l
	l.named[s.Name()] = s
	l.asked = append(l.asked, s)
	select {
	case l.wake <- struct{}{}:
	default: // it will look anyway
	}
}

// Drop is of [Source].
func (d *Dedicated) Drop(s *Subscription) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if named := s.line.named; named[s.Name()] == s {
		delete(named, s.Name())
	}
}

// run connects, subscribes to what is asked for, and tells all whose subscriptions end with the connection.
func (d *Dedicated) run(l *line) {
	l.client, _ = d.Client.Dedicate() // what it returns beside is the client's Close without the closing
	close(l.ready)
	over := l.client.SetPubSubHooks(rueidis.PubSubHooks{
		// Both run on the connection's reader: nothing there may block.
		OnMessage: func(m rueidis.PubSubMessage) {
			if s := d.listener(l, m.Channel); s != nil {
				s.Heard(m.Message)
			}
		},
		OnSubscription: func(p rueidis.PubSubSubscription) {
			if s := d.listener(l, p.Channel); s != nil && p.Kind == "subscribe" {
				s.Confirmed()
			}
		},
	})
	var err error
	for err == nil {
		select {
		case err = <-over:
			if err == nil {
				err = errEnded
			}
		case <-l.wake:
			err = d.ask(l)
		}
	}
	d.drop(l)
	d.mu.Lock()
	named := l.named // nobody is added any more
	l.named = nil
	d.mu.Unlock()
	for _, s := range named {
		s.Ended(err)
	}
}

func (d *Dedicated) listener(l *line, channel string) *Subscription {
	d.mu.Lock()
	defer d.mu.Unlock()
	return l.named[channel]
}

// together is how many subscriptions are asked for at a time.
const together = 100

// ask subscribes to all that is asked for. An error is one of the connection: it is over.
func (d *Dedicated) ask(l *line) error {
	d.mu.Lock()
	asked := l.asked
	l.asked = nil
	wanted := slices.DeleteFunc(asked, func(s *Subscription) bool { return l.named[s.Name()] != s })
	d.mu.Unlock()
	for some := range slices.Chunk(wanted, together) {
		commands := make([]rueidis.Completed, len(some))
		for i, s := range some { // one command each: the server may refuse one of them
			commands[i] = l.client.B().Subscribe().Channel(s.Name()).Build()
		}
		for i, result := range l.client.DoMulti(context.Background(), commands...) {
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

func (d *Dedicated) drop(l *line) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.line == l {
		d.line = nil
	}
	if l.dropped {
		return
	}
	l.dropped = true
	d.ending.Go(func() {
		<-l.ready
		l.client.Close() // a PING and a second of patience at most, and then the connection goes
	})
}

// Left is of [Source].
func (d *Dedicated) Left(others int) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	l := d.line
	if l == nil {
		return false
	}
	l.left++
	if !tooMany(l.left, others) {
		return false
	}
	l.left = 0
	return true
}

// Idle is of [Source]. A channel costs little memory here.
func (d *Dedicated) Idle() int { return math.MaxInt }

// Cut is of [Source]. It does not wait for a connection that is being dialled, either.
func (d *Dedicated) Cut() {
	d.mu.Lock()
	l := d.line
	d.mu.Unlock()
	if l != nil {
		d.drop(l)
	}
}

// Wait is of [Source].
func (d *Dedicated) Wait() { d.ending.Wait() }
