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
	go carry(theirs, server, rand.New(rand.NewPCG(n.seed, n.dialed<<1)))
	go carry(server, theirs, rand.New(rand.NewPCG(n.seed, n.dialed<<1|1)))
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
