package redistest

import (
	"bytes"
	"context"
	"crypto/tls"
	"math/rand/v2"
	"net"
	"sync"
	"syscall"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/rueidis"
)

// Network is between clients and an embedded server, in a synctest bubble, where time passes when all wait. What
// is sent arrives in order, and a little later.
type Network struct {
	Server *miniredis.Miniredis

	late func(random *rand.Rand) time.Duration
	seed uint64
	// pings are so far apart that rueidis sends on a link that is idle. With its second they were half the work of
	// tests that let hours pass.
	pings time.Duration

	mu      sync.Mutex
	dialed  uint64
	links   map[net.Conn]int  // the clients' ends, and of whom
	inboxes map[net.Conn]bool // links that have subscribed
	scripts int64             // that the server was sent
	stopped chan struct{}     // nothing reaches the server until it is closed; nil: it runs
	down    bool
	ways    sync.WaitGroup // each carries what one end sends
}

// NewNetwork returns a network in which packets are late by times that the seed says. It is called in a bubble.
func NewNetwork(seed uint64) *Network {
	return newNetwork(seed, func(random *rand.Rand) time.Duration {
		late := 50*time.Microsecond + time.Duration(random.Int64N(int64(500*time.Microsecond)))
		if random.IntN(100) == 0 { // it was lost, and is sent again
			late += time.Duration(random.Int64N(int64(200 * time.Millisecond)))
		}
		return late
	})
}

// newNetwork waits at first: a bubble begins in the year 2000, when the time in microseconds had 15 digits.
// Scripts compare times as text of 16, and would take each attempt for one that is over.
func newNetwork(seed uint64, late func(*rand.Rand) time.Duration) *Network {
	time.Sleep(time.Until(time.Date(2026, time.January, 1, 0, 0, 0, 0, time.UTC)))
	n := &Network{late: late, seed: seed, pings: time.Minute, links: map[net.Conn]int{}, inboxes: map[net.Conn]bool{}}
	n.start()
	return n
}

// start starts a server with nothing in it.
func (n *Network) start() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.Server, n.down = miniredis.NewMiniRedis(), false
	n.Server.ClockTTL(true)
}

// kill ends the server, until start.
func (n *Network) kill() {
	n.mu.Lock()
	n.down = true
	for link := range n.links {
		_ = link.Close()
	}
	clear(n.links)
	clear(n.inboxes)
	n.mu.Unlock()
	n.Server.Close()
}

// stop freezes the server: what is sent to it arrives when it goes on.
func (n *Network) stop(on bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	switch {
	case on && n.stopped == nil:
		n.stopped = make(chan struct{})
	case !on && n.stopped != nil:
		close(n.stopped)
		n.stopped = nil
	}
}

// Close ends the server, and all that is still on its way. No time passes in a bubble once its first goroutine
// has returned: a packet that is late then would be late for ever.
func (n *Network) Close() {
	n.stop(false)
	n.mu.Lock()
	n.down = true // a client that dials late gets nothing that would have to be waited for
	n.mu.Unlock()
	n.Server.Close()
	n.ways.Wait()
}

// Option is the server's address as rueidis wants it, for a client of that number.
func (n *Network) Option(client int) rueidis.ClientOption {
	o := optionOf("simulated:6379")
	o.DialCtxFn = func(context.Context, string, *net.Dialer, *tls.Config) (net.Conn, error) { return n.Dial(client) }
	o.Dialer.KeepAlive = n.pings
	return o
}

// Dial connects a client of that number.
func (n *Network) Dial(client int) (net.Conn, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.down {
		return nil, syscall.ECONNREFUSED
	}
	server, err := n.Server.Dial()
	if err != nil {
		return nil, err
	}
	mine, theirs := net.Pipe()
	n.links[mine] = client
	n.join(theirs, server, func(sent []byte) { n.arrives(mine, sent) })
	return mine, nil
}

// arrives waits until the server runs, and notes what it is sent.
func (n *Network) arrives(link net.Conn, sent []byte) {
	n.mu.Lock()
	stopped := n.stopped
	n.mu.Unlock()
	if stopped != nil {
		<-stopped
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.scripts += int64(bytes.Count(sent, []byte("\r\nEVAL"))) // a request is a packet, but for the text of a script
	if bytes.Contains(sent, []byte("\r\nSUBSCRIBE\r\n")) {
		n.inboxes[link] = true
	}
	if bytes.Contains(sent, []byte("\r\nSENTINEL\r\n")) {
		panic("rueidis holds a mutex while it asks a sentinel: a bubble may stand still for ever")
	}
}

// Cut ends the connections of a client, or of some of them.
func (n *Network) Cut(client int, some func() bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for link, of := range n.links {
		if of == client && some() {
			_ = link.Close() // the copy to it ends then
			delete(n.links, link)
			delete(n.inboxes, link)
		}
	}
}

// cutOf ends the connections that have subscribed, or all others.
func (n *Network) cutOf(subscribed bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for link := range n.links {
		if n.inboxes[link] == subscribed {
			_ = link.Close()
			delete(n.links, link)
			delete(n.inboxes, link)
		}
	}
}

// wire returns the two ends of a connection.
func (n *Network) wire() (one, other net.Conn) {
	one, a := net.Pipe()
	b, other := net.Pipe()
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.down {
		_, _ = a.Close(), b.Close()
		return one, other
	}
	n.join(a, b, func([]byte) {})
	return one, other
}

// join is called with the mutex. What a sends arrives when arrives returns.
func (n *Network) join(a, b net.Conn, arrives func([]byte)) {
	n.dialed++
	one, other := rand.New(rand.NewPCG(n.seed, n.dialed<<1)), rand.New(rand.NewPCG(n.seed, n.dialed<<1|1))
	n.ways.Go(func() { n.carry(a, b, one, arrives) })
	n.ways.Go(func() { n.carry(b, a, other, func([]byte) {}) })
}

// carry takes what one end sends to the other one. It takes it at once: a sender may hold a mutex, and in a
// bubble no time passes while a goroutine waits for that.
func (n *Network) carry(from, to net.Conn, random *rand.Rand, arrives func([]byte)) {
	type packet struct {
		bytes []byte
		at    time.Time
	}
	packets := make(chan packet, 10_000)
	go func() {
		defer close(packets)
		for last := time.Now(); ; {
			buffer := make([]byte, 1<<12)
			count, err := from.Read(buffer)
			if err != nil {
				return
			}
			if at := time.Now().Add(n.late(random)); at.After(last) {
				last = at
			}
			packets <- packet{buffer[:count], last}
		}
	}()
	for p := range packets {
		time.Sleep(time.Until(p.at))
		arrives(p.bytes)
		if _, err := to.Write(p.bytes); err != nil {
			break
		}
	}
	_, _ = from.Close(), to.Close() // the other direction closes them as well
	for range packets {             // until nothing more can come
	}
}
