package latchkeytest

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"net"
	"sync/atomic"
	"time"
)

// link is a connection of a client to the server, in two parts, between which everything passes through here.
type link struct {
	client, server net.Conn
	of             *process      // nil: of a client that came by the URL
	subscribed     atomic.Bool   // it has messages to carry
	closed         chan struct{} // with both ends
	closing        atomic.Bool
}

func (l *link) close() {
	if l.closing.CompareAndSwap(false, true) {
		close(l.closed)
		_, _ = l.client.Close(), l.server.Close() // both sides hear of it there
	}
}

var (
	errDown = errors.New("latchkeytest: the server is down")
	errDead = errors.New("latchkeytest: the process of this client was killed")
)

// reach connects to the server itself.
func (s *Server) reach(ctx context.Context, address string, d *net.Dialer, config *tls.Config) (net.Conn, error) {
	switch {
	case s.embedded != nil:
		return s.embedded.Dial()
	case s.option.DialCtxFn != nil: // of a unix:// URL
		return s.option.DialCtxFn(ctx, address, d, config)
	case config != nil:
		secure := tls.Dialer{NetDialer: d, Config: config}
		return secure.DialContext(ctx, "tcp", address)
	default:
		return d.DialContext(ctx, "tcp", address)
	}
}

// refusal is why a process cannot connect; nil if it can. The mutex is held.
func (s *Server) refusal(p *process) error {
	switch {
	case p != nil && p.dead:
		return errDead
	case s.down:
		return errDown
	default:
		return nil
	}
}

// dial connects a client to the server, and returns the client's end.
func (s *Server) dial(p *process, reach func() (net.Conn, error)) (net.Conn, error) {
	mine, theirs := net.Pipe()
	return mine, s.connect(p, theirs, reach)
}

// connect links an end of a client to the server, unless that is away. It closes the end if it cannot.
func (s *Server) connect(p *process, client net.Conn, reach func() (net.Conn, error)) error {
	s.mu.Lock()
	err := s.refusal(p)
	s.mu.Unlock()
	var server net.Conn
	if err == nil {
		server, err = reach()
	}
	if err != nil {
		_ = client.Close() // nothing was sent on it
		return err
	}
	l := &link{client: client, server: server, of: p, closed: make(chan struct{})}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.refusal(p); err != nil { // it went away meanwhile
		l.close()
		return err
	}
	s.links[l] = struct{}{}
	s.carrying.Go(func() { s.carry(l, client, server, s.request) })
	s.carrying.Go(func() { s.carry(l, server, client, s.reply) })
	return nil
}

// accept links the connections that come by the URL.
func (s *Server) accept(listener net.Listener) {
	for {
		client, err := listener.Accept()
		if err != nil {
			return
		}
		_ = s.connect(nil, client, s.embedded.Dial) // the client hears of an error by the end of its connection
	}
}

// packet is what came in one piece, and when it is to go on.
type packet struct {
	bytes []byte
	at    time.Time
}

// undelivered is how many packets one direction of a link keeps.
const undelivered = 10_000

// carry takes what one end sends to the other one, until either is closed. It takes it at once, also while it
// is to be late: a client that could not send would be held up with a mutex in its hand.
func (s *Server) carry(l *link, from, to net.Conn, look func(*link, []byte) time.Time) {
	packets := make(chan packet, undelivered)
	s.carrying.Go(func() {
		defer close(packets)
		for {
			buffer := make([]byte, 1<<14)
			n, err := from.Read(buffer)
			if n > 0 {
				packets <- packet{buffer[:n], look(l, buffer[:n])}
			}
			if err != nil {
				return
			}
		}
	})
	for p := range packets {
		if l.awaits(p.at) {
			if from == l.client {
				s.tick(0)
			}
			if _, err := to.Write(p.bytes); err == nil {
				continue
			}
		}
		break
	}
	s.mu.Lock()
	delete(s.links, l)
	s.mu.Unlock()
	l.close()
	for range packets { // until nothing more can come
	}
}

// awaits waits until a moment, and returns false when the link is closed by then.
func (l *link) awaits(at time.Time) bool {
	if d := time.Until(at); d > 0 {
		timer := time.NewTimer(d)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-l.closed:
			return false
		}
	}
	return true
}

// request looks at what a client sends. A request is in one piece as a rule: clients flush whole ones.
func (s *Server) request(l *link, request []byte) time.Time {
	if !l.subscribed.Load() && bytes.Contains(bytes.ToUpper(request), []byte("SUBSCRIBE\r\n")) {
		l.subscribed.Store(true)
	}
	return time.Time{}
}

// reply says when something of the server is to arrive.
func (s *Server) reply(*link, []byte) time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.late == 0 {
		return time.Time{}
	}
	return time.Now().Add(s.late)
}

// cut closes some of the connections. Their clients hear of it at once, and connect again if they may.
func (s *Server) cut(which func(*link) bool) {
	s.mu.Lock()
	var chosen []*link
	for l := range s.links {
		if which(l) {
			chosen = append(chosen, l)
		}
	}
	s.mu.Unlock()
	for _, l := range chosen {
		l.close()
	}
}
