package latchkeytest

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/internal/grant"
	"github.com/latchkey-go/latchkey/internal/session"
	"github.com/latchkey-go/latchkey/semaphore"
)

// Slow delays each later reply and message by d; 0 ends that. What is under way keeps its delay.
func (s *Server) Slow(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.late = d
}

// Down makes the server unreachable until [Server.Up]: all connections end, and new ones are refused. It
// keeps its data.
func (s *Server) Down() {
	s.mu.Lock()
	s.down = true
	s.mu.Unlock()
	s.cut(func(*link) bool { return true })
}

// Up ends what [Server.Down] began. Clients are back some milliseconds later, as after any outage.
func (s *Server) Up() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.down, s.missed = false, 0
}

// CutSubscriptions ends the connections that carry messages. Clients subscribe again at once; messages in
// between are lost.
func (s *Server) CutSubscriptions() { s.cut(func(l *link) bool { return l.subscribed.Load() }) }

// Kill ends a client as if its process were killed. It releases nothing, renews nothing, and its connections
// are cut. What it held stays taken until its leases end: see [Server.Pass]. A moment later its calls return
// latchkey.ErrClosed, and the contexts of its holds end with it. You may kill a client twice; a client of
// another server fails the test.
func (s *Server) Kill(c *latchkey.Client) {
	s.t.Helper()
	s.mu.Lock()
	p := s.clients[c]
	if p == nil {
		s.mu.Unlock()
		s.t.Fatalf("latchkeytest: Kill of a client that this server has not opened")
		return
	}
	p.dead = true
	s.mu.Unlock()
	s.orders.forget(p)
	s.cut(func(l *link) bool { return l.of == p })
	p.dying.Go(func() { _ = c.Close() })
}

// longestWait is for how long Pass waits on a real server.
const longestWait = time.Minute

// Pass lets time pass on the server: leases that no client renews end, and keys expire. It returns once the
// clients have heard of that and have asked again. So a waiter gets the lock of a dead process in
// milliseconds.
//
// On the embedded server no time passes for the clients of [Server.Open], nor for contexts and timers of the
// test. Clients that live keep what they hold, also with a fixed lease. While the server is [Server.Down], no
// lease can be renewed: holds whose leases end in that time are lost. Members of a barrier are not renewed: a
// Pass longer than their lease breaks the barrier. In a bubble of testing/synctest use time.Sleep instead.
//
// On a real server Pass waits for d. More than a minute there, and a negative d, fail the test.
func (s *Server) Pass(d time.Duration) {
	s.t.Helper()
	switch {
	case d < 0:
		s.t.Fatalf("latchkeytest: no clock is set back: Pass(%v)", d)
	case s.embedded == nil && d > longestWait:
		s.t.Fatalf("latchkeytest: the clock of a real server cannot be set: Pass(%v) would take as long; use shorter leases", d)
	case s.embedded == nil:
		time.Sleep(d)
		return
	}
	clients := s.living()
	s.mu.Lock()
	down := s.down
	if down {
		s.missed += d
	}
	missed := s.missed
	s.mu.Unlock()
	if down {
		s.tick(d)
		for _, c := range clients {
			c.Missed(missed)
		}
		return
	}
	catchUp(clients)
	for d > 0 {
		step := d
		for _, c := range clients {
			// Every lease was renewed after the last step. So in Redis as much is left of it as the client knows, and
			// it outlasts the next step.
			if least := c.Keeper.Shortest(); least > 0 {
				step = max(min(step, least/2), 1)
			}
		}
		s.tick(step)
		catchUp(clients)
		d -= step
	}
}

// living are the clients that were neither killed nor closed.
func (s *Server) living() (all []*session.Client) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for c, p := range s.clients {
		if inside := (*session.Handle)(c).Client(); !p.dead && inside.Closing.Err() == nil {
			all = append(all, inside)
		}
	}
	return all
}

func catchUp(clients []*session.Client) {
	for _, c := range clients {
		c.CatchUp()
	}
}

// errTaken is the reason of a loss by [Lose].
var errTaken = errors.New("latchkeytest took it away")

// Lose takes a hold away, as the end of its lease would. When it returns, the context of the hold has ended
// with latchkey.ErrLost, and another client may have the lock. Holds that share the lease are lost with it:
// holds that re-entered, and all readers of a process. The hold may be of any client.
//
// A hold that has ended fails the test. So does a hold of package redlock, which has several leases. So does
// a server that does not answer: the hold is lost then, and stays taken there until its lease ends.
func Lose[H *latchkey.Hold | *semaphore.Permits](t testing.TB, hold H) {
	t.Helper()
	var inside *grant.Hold
	switch hold := any(hold).(type) {
	case *latchkey.Hold:
		inside = (*grant.Hold)(hold)
	case *semaphore.Permits:
		inside = (*grant.Hold)(hold)
	}
	if err := inside.Lose(context.Background(), errTaken); err != nil {
		t.Fatalf("latchkeytest: Lose of %q: %v", inside.Name(), err)
	}
	forgetHold(inside)
}
