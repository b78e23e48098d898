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

// Connections are the connections of a rueidis client that our client owns. Our client can close them without a word
// to the server. The server may be silent, and rueidis would wait for its answer. Methods are safe for concurrent
// use.
type Connections struct {
	mu  sync.Mutex
	all map[*connection]struct{}
	at  string // the address of the last connection

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

// Dialer is the function with which a rueidis client dials.
type Dialer = func(context.Context, string, *net.Dialer, *tls.Config) (net.Conn, error)

// Track returns the option with another dialer. This dialer dials as before, and enters each connection in s until
// the connection closes.
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

// dialerOf returns the dialer of a rueidis client with this option.
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

// add keeps a connection. After End it closes the connection instead: rueidis would keep a connection that it began
// to dial before its Close.
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

// End closes all connections, and lets no others come. It gives up each dial that is under way, or closes the dial's
// connection at once.
func (s *Connections) End() {
	s.mu.Lock()
	s.stopDialling()
	s.mu.Unlock()
	s.Cut()
}

// At returns the address of the last connection that was dialled.
func (s *Connections) At() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.at
}

// Cut closes all open connections. Commands that wait for a reply fail at once. Later commands dial again.
func (s *Connections) Cut() {
	s.mu.Lock()
	all := s.all
	s.all = map[*connection]struct{}{}
	s.mu.Unlock()
	for c := range all {
		_ = c.Conn.Close() // its users find out
	}
}
