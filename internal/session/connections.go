package session

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"syscall"

	"github.com/redis/rueidis"

	"github.com/latchkey-go/latchkey/internal/retry"
)

// Connections are the connections of a rueidis client that is ours. They can be closed without a word to the server,
// which may be silent: rueidis would wait for its answer. Methods are safe for concurrent use.
type Connections struct {
	mu  sync.Mutex
	all map[*connection]struct{}
	at  string // where the last one leads

	dialling     context.Context // ends with End
	stopDialling context.CancelFunc
}

// NewConnections returns an empty set, to which [Connections.Track] adds.
func NewConnections() *Connections {
	s := &Connections{all: map[*connection]struct{}{}}
	s.dialling, s.stopDialling = context.WithCancel(context.Background())
	return s
}

type connection struct {
	net.Conn
	among *Connections
}

// Close also forgets the connection.
func (c *connection) Close() error {
	c.among.mu.Lock()
	delete(c.among.all, c)
	c.among.mu.Unlock()
	return c.Conn.Close()
}

// Dialer is what a rueidis client dials with.
type Dialer = func(context.Context, string, *net.Dialer, *tls.Config) (net.Conn, error)

// Track returns the option with another dialer. It dials as before, and enters each connection in s until that closes.
func (s *Connections) Track(option rueidis.ClientOption) rueidis.ClientOption {
	dial := dialerOf(option)
	option.DialCtxFn = func(ctx context.Context, address string, d *net.Dialer, config *tls.Config) (net.Conn, error) {
		ctx, stop := retry.Until(ctx, s.dialling) // rueidis' Close would wait for the dial
		defer stop()
		inner, err := dial(ctx, address, d, config)
		if err != nil {
			return nil, err
		}
		return s.add(inner)
	}
	return option
}

// dialerOf returns what a rueidis client with this option dials with.
func dialerOf(option rueidis.ClientOption) Dialer {
	if option.DialCtxFn != nil {
		return option.DialCtxFn
	}
	old := option.DialFn
	return func(ctx context.Context, address string, d *net.Dialer, config *tls.Config) (net.Conn, error) {
		switch {
		case old != nil:
			return old(address, d, config)
		case config != nil:
			secure := tls.Dialer{NetDialer: d, Config: config}
			c, err := secure.DialContext(ctx, "tcp", address)
			return c, handshakeError(err)
		}
		return d.DialContext(ctx, "tcp", address)
	}
}

// errHandshake hints at the usual reason: a server that does not speak TLS waits for the end of a command.
var errHandshake = errors.New("the TLS handshake got no answer, does the server speak TLS there?")

// handshakeError adds to the error of a TLS dial that there was a connection, and that the server did not
// answer on it.
func handshakeError(err error) error {
	var network *net.OpError
	timeout := errors.Is(err, context.DeadlineExceeded) || errors.Is(err, os.ErrDeadlineExceeded)
	switch {
	case err == nil, errors.As(err, &network) && network.Op == "dial":
		return err
	case timeout, errors.Is(err, io.EOF), errors.Is(err, syscall.ECONNRESET):
		return fmt.Errorf("%w: %w", errHandshake, err)
	}
	return err
}

// add keeps a connection. After End it closes it: rueidis would keep what it began to dial before its Close.
func (s *Connections) add(inner net.Conn) (net.Conn, error) {
	c := &connection{inner, s}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.dialling.Err() != nil {
		_ = inner.Close() // nothing was sent on it
		return nil, net.ErrClosed
	}
	s.all[c], s.at = struct{}{}, inner.RemoteAddr().String()
	return c, nil
}

// End closes all connections for good. What is being dialled is given up, or closed as soon as it is there.
func (s *Connections) End() {
	s.mu.Lock()
	s.stopDialling()
	s.mu.Unlock()
	s.Cut()
}

// At is where the last connection leads that was dialled.
func (s *Connections) At() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.at
}

// Cut closes all connections that there are. Commands that wait for a reply fail at once. Later ones dial
// again.
func (s *Connections) Cut() {
	s.mu.Lock()
	all := s.all
	s.all = map[*connection]struct{}{}
	s.mu.Unlock()
	for c := range all {
		_ = c.Conn.Close() // its users find out
	}
}
