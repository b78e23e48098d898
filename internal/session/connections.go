package session

import (
	"context"
	"crypto/tls"
	"net"
	"sync"

	"github.com/redis/rueidis"

	"github.com/latchkey-go/latchkey/internal/retry"
)

// connections are those of a rueidis client that is ours, so that they can be ended without a word to the
// server, which may be silent: rueidis waits for its answer otherwise. Methods are safe for concurrent use.
type Connections struct {
	mu  sync.Mutex
	all map[*connection]struct{}

	over   context.Context // ended by finish
	finish context.CancelFunc
}

func NewConnections() *Connections {
	s := &Connections{}
	s.over, s.finish = context.WithCancel(context.Background())
	return s
}

type connection struct {
	net.Conn
	among *Connections
}

// Close forgets the connection, too.
func (c *connection) Close() error {
	c.among.mu.Lock()
	delete(c.among.all, c)
	c.among.mu.Unlock()
	return c.Conn.Close()
}

// track returns the option with a dialer that dials as before, and remembers the connections.
func (s *Connections) Track(option rueidis.ClientOption) rueidis.ClientOption {
	dial, old := option.DialCtxFn, option.DialFn
	if dial == nil {
		dial = func(ctx context.Context, address string, dialer *net.Dialer, config *tls.Config) (net.Conn, error) {
			switch {
			case old != nil:
				return old(address, dialer, config)
			case config != nil:
				secure := tls.Dialer{NetDialer: dialer, Config: config}
				return secure.DialContext(ctx, "tcp", address)
			}
			return dialer.DialContext(ctx, "tcp", address)
		}
	}
	option.DialCtxFn = func(ctx context.Context, address string, dialer *net.Dialer, config *tls.Config) (net.Conn, error) {
		ctx, stop := retry.Until(ctx, s.over) // rueidis' Close would wait for the dial
		defer stop()
		inner, err := dial(ctx, address, dialer, config)
		if err != nil {
			return nil, err
		}
		c := &connection{inner, s}
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.over.Err() != nil { // rueidis would keep what it began to dial before its Close
			_ = inner.Close() // nothing was sent on it
			return nil, net.ErrClosed
		}
		if s.all == nil {
			s.all = map[*connection]struct{}{}
		}
		s.all[c] = struct{}{}
		return c, nil
	}
	return option
}

// end is cut for good: what is being dialled is given up, or closed as soon as it is there.
func (s *Connections) End() {
	s.mu.Lock()
	s.finish()
	s.mu.Unlock()
	s.Cut()
}

// cut ends all connections there are. Commands that wait for a reply fail at once; later ones dial again.
func (s *Connections) Cut() {
	s.mu.Lock()
	all := s.all
	s.all = nil
	s.mu.Unlock()
	for c := range all {
		_ = c.Conn.Close() // nobody is told: whoever uses it finds out
	}
}
