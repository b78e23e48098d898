package latchkeytest

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/alicebob/miniredis/v2/server"
	"github.com/redis/rueidis"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/rueidisclient"
)

// Server is the Redis of one test, and the network between it and its clients. [NewServer] makes it; the zero
// value is not usable. Its methods are safe for concurrent use. Open, URL, Pass and Kill may fail the test at
// once: call them on the goroutine of the test, as [testing.TB] says of FailNow.
type Server struct {
	t      testing.TB
	config config
	prefix string
	option rueidis.ClientOption // of a client of it
	orders *orders

	embedded *miniredis.Miniredis // nil: it is a real one
	clock    sync.Mutex           // held while the clock of embedded is set
	passed   time.Duration        // how far that is ahead of ours; guarded by clock

	mu        sync.Mutex
	clients   map[*latchkey.Client]*process
	links     map[*link]struct{}
	listener  net.Listener // nil: no URL was asked for
	late      time.Duration
	down      bool
	missed    time.Duration // passed while it was down
	over      bool          // the test has ended
	carrying  sync.WaitGroup
	listening sync.WaitGroup
}

// process is a client, in place of a process of its own.
type process struct {
	server *Server
	client *latchkey.Client
	dead   bool           // guarded by the mutex of the server
	dying  sync.WaitGroup // its Close
}

// Open returns a client of a server of its own, for tests of one process. It is NewServer(t).Open(opts...).
func Open(t testing.TB, opts ...latchkey.Option) *latchkey.Client {
	t.Helper()
	return NewServer(t).Open(opts...)
}

// NewServer starts an empty server that ends with the test. With [OnRedis] the server runs already. An
// address that cannot be used fails the test.
func NewServer(t testing.TB, opts ...Option) *Server {
	t.Helper()
	s := &Server{t: t, clients: map[*latchkey.Client]*process{}, links: map[*link]struct{}{}}
	for _, opt := range opts {
		if opt != nil {
			opt(&s.config)
		}
	}
	if s.config.class == nil {
		s.config.class = Class
	}
	if s.config.url != "" {
		s.useReal()
	} else {
		s.embed()
	}
	s.orders = ordersOf(t, s.config.across)
	began()
	t.Cleanup(s.close)
	return s
}

// firstYear is a year in which the time in microseconds has 16 digits, as scripts expect it. A bubble of
// testing/synctest begins in the year 2000.
const firstYear = 2002

func (s *Server) embed() {
	if now := time.Now(); now.Year() < firstYear {
		s.passed = time.Date(firstYear, time.January, 1, 0, 0, 0, 0, time.UTC).Sub(now)
	}
	s.embedded = miniredis.NewMiniRedis()
	s.tick(0)
	s.embedded.ClockTTL(true)
	if first, err := s.embedded.Dial(); err == nil { // which makes its commands
		_ = first.Close() // nothing was sent on it
	}
	s.embedded.Server().SetPreHook(func(p *server.Peer, command string, _ ...string) bool {
		if command == "CLUSTER" { // as a single Redis says. By itself it tells of a cluster of one, at no address
			p.WriteError("ERR This instance has cluster support disabled")
			return true
		}
		return false
	})
	s.option = rueidis.ClientOption{InitAddress: []string{"latchkeytest:6379"}, ForceSingleClient: true, DisableCache: true}
}

func (s *Server) useReal() {
	option, err := rueidis.ParseURL(s.config.url)
	if err != nil { // without the URL, which may have a password
		s.t.Fatalf("latchkeytest: the address of OnRedis must be a URL as redis://host:port")
	}
	s.option, s.prefix = option, "latchkeytest-"+rand.Text()+":"
}

// tick has time pass on the embedded server, and sets its clock. That is called before each request, so that
// no command sees a clock which is late by more than the request took.
func (s *Server) tick(d time.Duration) {
	if s.embedded == nil {
		return
	}
	s.clock.Lock()
	defer s.clock.Unlock()
	s.passed += d
	s.embedded.SetTime(time.Now().Add(s.passed))
}

// Open returns a client of the server. It is closed when the test ends. Each client stands for a process. The
// options are as for latchkey.Open; the kit's own hooks run before the hooks of WithObserver. A client that
// cannot be opened fails the test.
func (s *Server) Open(opts ...latchkey.Option) *latchkey.Client {
	s.t.Helper()
	p := &process{server: s}
	option := s.option
	option.DialCtxFn = func(ctx context.Context, address string, d *net.Dialer, config *tls.Config) (net.Conn, error) {
		return s.dial(p, func() (net.Conn, error) { return s.reach(ctx, address, d, config) })
	}
	c, err := rueidisclient.New(option, append(append([]latchkey.Option(nil), opts...), s.watch(p))...)
	if err != nil {
		s.t.Fatalf("latchkeytest: %v", err)
	}
	s.mu.Lock()
	p.client = c
	s.clients[c] = p
	s.mu.Unlock()
	s.t.Cleanup(func() {
		s.t.Helper()
		s.tellHeld(p)
		c.Close()
		p.dying.Wait()
	})
	return c
}

// URL returns where other programs, and clients of other kinds, reach the server, as redis://127.0.0.1:1234.
// All faults but Kill reach such a client. The kit does not check its locks' order, close it, or log what it
// holds. On a real server it is the URL of OnRedis: then no faults reach such a client, and its names should
// begin with [Server.Prefix].
func (s *Server) URL() string {
	s.t.Helper()
	if s.embedded == nil {
		return s.config.url
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.listener == nil {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			s.t.Fatalf("latchkeytest: %v", err)
		}
		s.listener = listener
		s.listening.Go(func() { s.accept(listener) })
	}
	return "redis://" + s.listener.Addr().String()
}

// Prefix returns what is before the names of this test in Redis: empty on the embedded server. A prefix of
// latchkey.WithKeyPrefix comes behind it.
func (s *Server) Prefix() string { return s.prefix }

// close ends the server with its test. The clients have been closed.
func (s *Server) close() {
	s.t.Helper()
	if s.embedded == nil {
		s.removeKeys()
	}
	s.mu.Lock()
	s.over, s.down = true, true
	listener := s.listener
	s.mu.Unlock()
	if listener != nil {
		_ = listener.Close() // ends accept
	}
	s.cut(func(*link) bool { return true })
	s.listening.Wait()
	s.carrying.Wait()
	if s.embedded != nil {
		s.embedded.Close()
	}
	ended(s.t, s.config.leaky)
}
