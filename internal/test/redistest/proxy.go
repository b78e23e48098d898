package redistest

import (
	"context"
	"crypto/tls"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"
)

// Verdict is what a proxy does with a request.
type Verdict int

// The verdicts.
const (
	Pass        Verdict = iota
	LoseReply           // the server runs it; its reply is dropped and the connection closed
	LoseRequest         // the connection is closed before the server sees it
	Keep                // the server sees it at Deliver, and not before; the client's connection is closed meanwhile
	Withhold            // as Keep, but the client's connection stays open, and silent
	Delay               // the server sees it at Deliver; what follows on the connection waits behind it
	DelayReply          // the server runs it; its reply, and what follows, comes at Deliver
	Hang                // the server never sees it, nor what follows on the connection, which stays open and silent
	Forge               // the server never sees it; the client gets the reply that was given to Forge
	ForgeReply          // the server runs it, and the client gets that reply in place of the server's
)

// Proxy stands between clients and a server and loses, keeps or delays what a test names.
type Proxy struct {
	Addr string

	server   *Server
	listener net.Listener // nil where time is virtual
	running  sync.WaitGroup
	judge    atomic.Pointer[func(request string) Verdict]
	forged   atomic.Pointer[string]
	silent   atomic.Bool
	vanished atomic.Bool
	over     chan struct{} // closed with the test

	mu      sync.Mutex
	links   map[*link]struct{}
	deliver []func()
	gates   []chan struct{}
}

type link struct {
	client, server net.Conn
	lose, kept     atomic.Bool
	delivered      atomic.Bool                   // what was kept is the last that the server gets
	forge          atomic.Bool                   // the next reply
	gate           atomic.Pointer[chan struct{}] // the next reply waits for it
	active         atomic.Int64                  // when something passed, in ns since the epoch
	ended          chan struct{}                 // closed when the server's end was read to its end
}

func (l *link) close() {
	_ = l.client.Close() // closed twice when both ends go
	if !l.kept.Load() {
		_ = l.server.Close()
	}
}

// NewProxy returns a proxy of the server, closed with the test.
func NewProxy(t testing.TB, s *Server) *Proxy {
	t.Helper()
	p := &Proxy{Addr: s.Addr, server: s, links: map[*link]struct{}{}, over: make(chan struct{})}
	if s.network == nil {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
		p.Addr, p.listener = listener.Addr().String(), listener
		p.running.Go(p.accept)
	}
	t.Cleanup(func() {
		if p.listener != nil {
			_ = p.listener.Close() // ends accept
		}
		close(p.over)
		p.Deliver()
		p.KillAll()
		p.running.Wait()
	})
	return p
}

// Option is the proxy's address as rueidis wants it.
func (p *Proxy) Option() rueidis.ClientOption {
	o := optionOf(p.Addr)
	if n := p.server.network; n != nil {
		o.DialCtxFn = func(context.Context, string, *net.Dialer, *tls.Config) (net.Conn, error) {
			mine, theirs := n.wire()
			p.serve(theirs)
			return mine, nil
		}
	}
	return o
}

// Judge sets what happens to each chunk that a client sends from now on; nil: everything passes.
func (p *Proxy) Judge(f func(request string) Verdict) {
	if f == nil {
		p.judge.Store(nil)
		return
	}
	p.judge.Store(&f)
}

// Forge sets the reply to requests with that verdict, as it is on the wire.
func (p *Proxy) Forge(reply string) { p.forged.Store(&reply) }

// Once returns a judge that gives the verdict to the first request that matches, and how often it did.
func Once(verdict Verdict, match func(request string) bool) (func(string) Verdict, *atomic.Int64) {
	var count atomic.Int64
	return func(request string) Verdict {
		if match(request) && count.CompareAndSwap(0, 1) {
			return verdict
		}
		return Pass
	}, &count
}

// Silence makes the proxy swallow everything in both directions, without closing anything, until it is called
// with false.
func (p *Proxy) Silence(on bool) { p.silent.Store(on) }

// Vanish has Redis see of the clients what it sees of a host that is lost: nothing comes from them any more, and their
// connections stay, also when they have closed them.
func (p *Proxy) Vanish() {
	p.vanished.Store(true)
	p.Silence(true)
}

// KillAll closes all connections.
func (p *Proxy) KillAll() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for l := range p.links {
		l.close()
	}
}

// Die has Redis see of the clients what it sees of processes that are killed: their connections close, and nothing
// comes from them any more.
func (p *Proxy) Die() {
	p.Judge(func(string) Verdict { return LoseRequest })
	p.KillAll()
}

// KillIdle closes the connections on which nothing passed for so long.
func (p *Proxy) KillIdle(d time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for l := range p.links {
		if time.Since(time.Unix(0, l.active.Load())) > d {
			l.close()
		}
	}
}

// Deliver lets the server see what was kept or delayed.
func (p *Proxy) Deliver() {
	p.mu.Lock()
	kept, gates := p.deliver, p.gates
	p.deliver, p.gates = nil, nil
	p.mu.Unlock()
	for _, f := range kept {
		f()
	}
	for _, gate := range gates {
		close(gate)
	}
}

func (p *Proxy) accept() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		p.serve(client)
	}
}

// serve connects a client.
func (p *Proxy) serve(client net.Conn) {
	server, err := p.server.dial()
	if err != nil {
		_ = client.Close() // the server is down, and so are we
		return
	}
	l := &link{client: client, server: server, ended: make(chan struct{})}
	l.active.Store(time.Now().UnixNano())
	p.mu.Lock()
	p.links[l] = struct{}{}
	p.mu.Unlock()
	p.running.Go(func() { p.requests(l) })
	p.running.Go(func() { p.replies(l) })
}

func (p *Proxy) requests(l *link) {
	defer p.forget(l)
	buffer := make([]byte, 1<<16)
	hangs := false
	for {
		n, err := l.client.Read(buffer)
		if err != nil {
			if p.vanished.Load() {
				<-p.over
			}
			return
		}
		l.active.Store(time.Now().UnixNano())
		if p.silent.Load() {
			continue
		}
		switch p.verdict(string(buffer[:n])) {
		case Pass:
		case LoseReply:
			l.lose.Store(true)
		case LoseRequest:
			return
		case Hang:
			hangs = true
		case ForgeReply:
			l.forge.Store(true)
		case Forge:
			if _, err := io.WriteString(l.client, *p.forged.Load()); err != nil {
				return
			}
			continue
		case Keep:
			p.keep(l, append([]byte(nil), buffer[:n]...))
			return
		case Withhold:
			p.keep(l, append([]byte(nil), buffer[:n]...))
			_, _ = io.Copy(io.Discard, l.client) // until that end is closed
			return
		case Delay:
			<-p.gate()
		case DelayReply:
			gate := p.gate()
			l.gate.Store(&gate)
		}
		if hangs {
			continue
		}
		if _, err := l.server.Write(buffer[:n]); err != nil {
			return
		}
	}
}

// gate is closed by Deliver.
func (p *Proxy) gate() chan struct{} {
	gate := make(chan struct{})
	p.mu.Lock()
	defer p.mu.Unlock()
	p.gates = append(p.gates, gate)
	return gate
}

func (p *Proxy) verdict(request string) Verdict {
	if judge := p.judge.Load(); judge != nil {
		return (*judge)(request)
	}
	return Pass
}

// keep holds the server's end open, with a request that it has not seen: a copy that travels slowly.
func (p *Proxy) keep(l *link, request []byte) {
	l.kept.Store(true)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.deliver = append(p.deliver, func() {
		l.delivered.Store(true)
		if _, err := l.server.Write(request); err == nil {
			<-l.ended // it has run
		}
		_ = l.server.Close()
	})
}

func (p *Proxy) replies(l *link) {
	defer close(l.ended)
	buffer := make([]byte, 1<<16)
	for {
		n, err := l.server.Read(buffer)
		if err != nil || l.lose.Load() {
			l.close()
			return
		}
		l.active.Store(time.Now().UnixNano())
		if p.silent.Load() {
			continue
		}
		if gate := l.gate.Swap(nil); gate != nil {
			<-*gate
		}
		reply := buffer[:n]
		if l.forge.CompareAndSwap(true, false) {
			reply = []byte(*p.forged.Load())
		}
		if _, err := l.client.Write(reply); err != nil || l.delivered.Load() { // the client may be open still
			l.close()
			return
		}
	}
}

func (p *Proxy) forget(l *link) {
	l.close()
	p.mu.Lock()
	delete(p.links, l)
	p.mu.Unlock()
}
