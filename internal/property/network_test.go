package property_test

import (
	"context"
	"crypto/tls"
	"math/rand/v2"
	"net"
	"sync"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/rueidis"
)

// network is between the clients of a simulation and its server. What is sent arrives in order, and late by a
// time that the seed says. In a synctest bubble that costs nothing.
type network struct {
	server *miniredis.Miniredis
	seed   uint64

	mu     sync.Mutex
	dialed uint64
	links  map[net.Conn]int // the clients' ends, and of whom
	ways   sync.WaitGroup   // each carries what one end sends
}

// newNetwork is called in a synctest bubble. A bubble begins in the year 2000, when the time in microseconds
// had 15 digits. Scripts compare times as text of 16, and would take each attempt for one that is over.
func newNetwork(seed uint64) *network {
	time.Sleep(time.Until(time.Date(2026, time.January, 1, 0, 0, 0, 0, time.UTC)))
	n := &network{server: miniredis.NewMiniRedis(), seed: seed, links: map[net.Conn]int{}}
	n.server.ClockTTL(true)
	return n
}

// close ends the server, and all that is still on its way. No time passes in a synctest bubble once its first
// goroutine has returned: a packet that is late then would be late for ever.
func (n *network) close() {
	n.server.Close()
	n.ways.Wait()
}

// option is a client's way to the server.
func (n *network) option(client int) rueidis.ClientOption {
	return rueidis.ClientOption{
		InitAddress: []string{"simulated:6379"}, ForceSingleClient: true, DisableCache: true, PipelineMultiplex: -1,
		DialCtxFn: func(context.Context, string, *net.Dialer, *tls.Config) (net.Conn, error) { return n.dial(client) },
	}
}

func (n *network) dial(client int) (net.Conn, error) {
	server, err := n.server.Dial()
	if err != nil {
		return nil, err
	}
	mine, theirs := net.Pipe()
	n.mu.Lock()
	defer n.mu.Unlock()
	n.dialed++
	n.links[mine] = client
	one, other := rand.New(rand.NewPCG(n.seed, n.dialed<<1)), rand.New(rand.NewPCG(n.seed, n.dialed<<1|1))
	n.ways.Go(func() { carry(theirs, server, one) })
	n.ways.Go(func() { carry(server, theirs, other) })
	return mine, nil
}

// carry takes what one end sends to the other one. It takes it at once: whoever sends may hold a mutex, and
// in a bubble no time passes while somebody else waits for that.
func carry(from, to net.Conn, random *rand.Rand) {
	type packet struct {
		bytes []byte
		at    time.Time
	}
	packets := make(chan packet, 10_000)
	go func() {
		defer close(packets)
		for last := time.Now(); ; {
			bytes := make([]byte, 1<<12)
			count, err := from.Read(bytes)
			if err != nil {
				return
			}
			late := 50*time.Microsecond + time.Duration(random.Int64N(int64(500*time.Microsecond)))
			if random.IntN(100) == 0 { // it was lost, and is sent again
				late += time.Duration(random.Int64N(int64(200 * time.Millisecond)))
			}
			if at := time.Now().Add(late); at.After(last) {
				last = at
			}
			packets <- packet{bytes[:count], last}
		}
	}()
	for p := range packets {
		time.Sleep(time.Until(p.at))
		if _, err := to.Write(p.bytes); err != nil {
			break
		}
	}
	_, _ = from.Close(), to.Close() // the other direction closes them as well
	for range packets {             // until nothing more can come
	}
}

// cut ends the connections of a client, or of some of them.
func (n *network) cut(client int, some func() bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for link, of := range n.links {
		if of == client && some() {
			_ = link.Close() // the copy to it ends then
			delete(n.links, link)
		}
	}
}
