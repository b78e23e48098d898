package property_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"math/rand/v2"
	"net"
	"sync"
	"time"

	"github.com/redis/rueidis"
)

// link is what a client's connections go through. On a busy machine a goroutine, or a thread, may get no time
// for long, and whatever is to be sent or read meanwhile is late. A link is late by itself: now and then, or
// for as long as a test says.
type link struct {
	stalls *rand.Rand // nil: it is never late by itself

	mu               sync.Mutex
	sending, reading chan struct{} // closed to go on; nil: nothing is held up
	held             bytes.Buffer  // what may not be sent yet
}

// How often a link is late, of the times that something passes, and by how much at most.
const (
	seldom = 150
	stall  = 200 * time.Millisecond
)

// through returns the option of a client whose connections go through the link.
func (l *link) through(o rueidis.ClientOption) rueidis.ClientOption {
	o.DialCtxFn = func(ctx context.Context, addr string, d *net.Dialer, _ *tls.Config) (net.Conn, error) {
		c, err := d.DialContext(ctx, "tcp", addr)
		if err != nil {
			return nil, err
		}
		return &stallingConn{c, l}, nil
	}
	return o
}

// holdUp keeps what is sent, or what is read, until goOn is called.
func (l *link) holdUp(direction *chan struct{}) (goOn func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	gate := make(chan struct{})
	*direction = gate
	l.held.Reset()
	return sync.OnceFunc(func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		*direction = nil
		close(gate)
	})
}

// note keeps what is to be sent while sending is held up.
func (l *link) note(b []byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.sending != nil {
		l.held.Write(b)
	}
}

// holds reports whether a call of a script with that text among its arguments is held up.
func (l *link) holds(text string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return bytes.Contains(l.held.Bytes(), []byte("EVALSHA")) && bytes.Contains(l.held.Bytes(), []byte(text))
}

// pass returns when something may go on in that direction.
func (l *link) pass(direction *chan struct{}) {
	l.mu.Lock()
	gate, late := *direction, time.Duration(0)
	if l.stalls != nil && l.stalls.IntN(seldom) == 0 {
		late = time.Duration(l.stalls.Int64N(int64(stall)))
	}
	l.mu.Unlock()
	if gate != nil {
		<-gate
	}
	if late > 0 {
		<-time.After(late)
	}
}

type stallingConn struct {
	net.Conn
	link *link
}

func (c *stallingConn) Write(b []byte) (int, error) {
	c.link.note(b)
	c.link.pass(&c.link.sending)
	return c.Conn.Write(b)
}

func (c *stallingConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	c.link.pass(&c.link.reading)
	return n, err
}
