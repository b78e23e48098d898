package hub

import (
	"context"
	"sync"

	"github.com/redis/rueidis"
)

// Source is where a hub subscribes.
//
// Nothing here ever sends UNSUBSCRIBE. rueidis v1.0.79 sends a PING behind each, counts what comes back, and
// panics when the server answers one of the two with an error, as a server does that is BUSY, LOADING, out of
// disk, or cut off from its primary. A subscription ends with its connection instead.
type Source interface {
	// Receive subscribes to a channel and hands on its messages until the subscription, or ctx, ends. After ctx
	// has ended the server still counts the subscription, until Cut.
	Receive(ctx context.Context, channel string, heard func(rueidis.PubSubMessage)) error
	// Left is told that a channel was given up, while so many others stay. It may end the connection, so that
	// the channels that nobody listens to any more do not grow without bound.
	Left(others int)
	// Cut ends the connections, and with them all subscriptions. It does not wait for that.
	Cut()
	// Wait returns when what Cut began is over.
	Wait()
}

// abandoned is how many channels nobody listens to may stay subscribed beside few others.
var abandoned = 1000 // fewer in a test

// tooMany reports whether it is worth a connection to be rid of what was left. It is not more than one new
// subscription for each channel that was given up.
func tooMany(left, others int) bool { return left > max(abandoned, others) }

// Dedicated subscribes on a connection of its own, which it takes from the pool of a client that is not a
// cluster's.
type Dedicated struct {
	Client rueidis.Client

	mu     sync.Mutex
	line   *line // nil: none
	ending sync.WaitGroup
}

// line is one connection.
type line struct {
	ready  chan struct{} // closed once client is set
	client rueidis.DedicatedClient

	// guarded by the source's mutex
	left    int  // channels that nobody listens to any more
	dropped bool // it was closed, or is about to be
}

// Receive is of [Source].
func (d *Dedicated) Receive(ctx context.Context, channel string, heard func(rueidis.PubSubMessage)) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	l := d.connect()
	err := l.client.Receive(ctx, l.client.B().Subscribe().Channel(channel).Build(), heard)
	if _, refused := rueidis.IsRedisErr(err); ctx.Err() == nil && !refused {
		d.drop(l) // it is broken: the next one begins anew
	}
	return err
}

// connect returns the connection there is, or a new one. It dials without the mutex, so that Cut does not
// wait for that.
func (d *Dedicated) connect() *line {
	d.mu.Lock()
	l := d.line
	if l != nil {
		d.mu.Unlock()
		<-l.ready
		return l
	}
	l = &line{ready: make(chan struct{})}
	d.line = l
	d.mu.Unlock()
	l.client, _ = d.Client.Dedicate() // what it returns beside is the client's Close without the closing
	close(l.ready)
	return l
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
func (d *Dedicated) Left(others int) {
	d.mu.Lock()
	l := d.line
	if l != nil {
		l.left++
	}
	renew := l != nil && tooMany(l.left, others)
	d.mu.Unlock()
	if renew {
		d.drop(l)
	}
}

// Cut is of [Source].
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

// Sharded subscribes to the shard channels of a cluster, on the connections that the client has to its nodes.
type Sharded struct {
	Client rueidis.Client
	Close  func() // ends the connections; nil: they are somebody else's, and what was left stays until they end

	mu   sync.Mutex
	left int
}

// Receive is of [Source].
func (s *Sharded) Receive(ctx context.Context, channel string, heard func(rueidis.PubSubMessage)) error {
	return s.Client.Receive(ctx, s.Client.B().Ssubscribe().Channel(channel).Build(), heard)
}

// Left is of [Source].
func (s *Sharded) Left(others int) {
	s.mu.Lock()
	s.left++
	renew := tooMany(s.left, others)
	if renew {
		s.left = 0
	}
	s.mu.Unlock()
	if renew {
		s.Cut()
	}
}

// Cut is of [Source].
func (s *Sharded) Cut() {
	if s.Close != nil {
		s.Close()
	}
}

// Wait is of [Source].
func (s *Sharded) Wait() {}
