package integration

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"os"
	"os/exec"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey/internal/test/redistest"
)

// engine runs servers.
type engine interface {
	// launch starts one with these arguments, and the file as its configuration, if there is one.
	launch(t testing.TB, config string, args ...string) *node
	// reach returns where clients find a server that the other servers know by this address.
	reach(ctx context.Context, addr string) (string, error)
}

// node is one server.
type node struct {
	engine engine
	addr   string // as the other servers know it
	kill   func() // kill -9
	start  func() // after kill, with what was on its disk
	stop   func() // SIGSTOP
	resume func() // SIGCONT
}

var skipped atomic.Int64

// newEngine returns what servers run on here.
func newEngine(t testing.TB) engine {
	t.Helper()
	forced := os.Getenv("LATCHKEY_ENGINE") == "processes"
	if !forced {
		if e := newContainers(t); e != nil {
			return e
		}
		if redistest.Required("docker") {
			t.Fatal("LATCHKEY_REQUIRE has docker, and no Docker engine answers")
		}
	}
	if _, err := exec.LookPath("redis-server"); err != nil {
		if os.Getenv("LATCHKEY_REQUIRE") != "" {
			t.Fatal("LATCHKEY_REQUIRE is set, and there is neither a Docker engine nor a redis-server on the PATH")
		}
		skipped.Add(1)
		t.Skip("needs a Docker engine, or a redis-server on the PATH")
	}
	return processes{}
}

// processes are servers on this machine.
type processes struct{}

func (e processes) launch(t testing.TB, config string, args ...string) *node {
	t.Helper()
	s := redistest.NewConfigured(t, config, args...)
	return &node{
		engine: e, addr: s.Addr,
		kill: s.Kill, start: func() { s.Start(t) }, stop: func() { s.Stop(t) }, resume: func() { s.Continue(t) },
	}
}

func (processes) reach(_ context.Context, addr string) (string, error) { return addr, nil }

// option is how clients reach the servers of an engine. A server that is silent is given up after half a
// second: it must not take longer than a failover.
func option(e engine, addrs ...string) rueidis.ClientOption {
	return rueidis.ClientOption{
		InitAddress: addrs,
		DialCtxFn: func(ctx context.Context, addr string, d *net.Dialer, _ *tls.Config) (net.Conn, error) {
			addr, err := e.reach(ctx, addr)
			if err != nil {
				return nil, err
			}
			return d.DialContext(ctx, "tcp", addr)
		},
		Dialer:           net.Dialer{Timeout: 300 * time.Millisecond, KeepAlive: 200 * time.Millisecond},
		ConnWriteTimeout: 300 * time.Millisecond,
	}
}

// client is a plain client of this node alone, which waits as long as a busy machine needs.
func (n *node) client(t testing.TB) rueidis.Client {
	t.Helper()
	o := option(n.engine, n.addr)
	o.Dialer.Timeout, o.ConnWriteTimeout = patient, patient
	o.DisableCache, o.ForceSingleClient = true, true
	c, err := rueidis.NewClient(o)
	require.NoError(t, err)
	t.Cleanup(c.Close)
	return c
}

// ask sends one command and returns an error rather than failing: the node may be down.
func (n *node) ask(args ...string) (rueidis.RedisMessage, error) { return n.last(answering, args) }

// order is ask, of a node that is known to answer, on however busy a machine.
func (n *node) order(args ...string) (rueidis.RedisMessage, error) { return n.last(patient, args) }

// read is ask, of a replica.
func (n *node) read(args ...string) (rueidis.RedisMessage, error) {
	return n.last(answering, []string{"READONLY"}, args) // which is refused outside of a cluster, and not necessary there
}

// answering is when a node that answers has answered, as a rule: those that ask it ask again.
const answering = 500 * time.Millisecond

// last sends commands over a connection of their own and returns the reply to the last, within that time.
func (n *node) last(within time.Duration, commands ...[]string) (rueidis.RedisMessage, error) {
	o := option(n.engine, n.addr)
	o.DisableCache, o.ForceSingleClient, o.DisableRetry = true, true, true
	o.ConnWriteTimeout = within
	c, err := rueidis.NewClient(o)
	if err != nil {
		if c != nil {
			c.Close()
		}
		return rueidis.RedisMessage{}, err
	}
	defer c.Close()
	ctx, cancel := context.WithTimeout(context.Background(), within)
	defer cancel()
	var built []rueidis.Completed
	for _, args := range commands {
		built = append(built, c.B().Arbitrary(args...).Build())
	}
	return c.DoMulti(ctx, built...)[len(built)-1].ToMessage()
}

func (n *node) hostPort(t testing.TB) (host, port string) {
	t.Helper()
	host, port, err := net.SplitHostPort(n.addr)
	require.NoError(t, err)
	return host, port
}

// must sends one command that has to succeed.
func (n *node) must(t testing.TB, args ...string) string {
	t.Helper()
	m, err := n.order(args...)
	require.NoError(t, err, "%v", args)
	reply, err := m.ToAny()
	require.NoError(t, err, "%v", args)
	return fmt.Sprint(reply)
}
