package explore_test

import (
	"context"
	"crypto/tls"
	"fmt"
	"hash/fnv"
	"net"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/rueidisclient"
)

// lease is that of all clients.
const lease = 3 * time.Second

// run is one path: clients, their users, and the server.
type run struct {
	*scene
	*network

	server  *miniredis.Miniredis
	clients []*process
	users   []*user
	left    map[fault]int // faults that may still happen
	mending map[int]bool  // clients that are about to connect again
	names   names
	lossy   bool          // something was lost
	recover time.Duration // how long it may take until all is well again
	forced  bool          // ForceUnlock was called
	waited  time.Duration // that passed since there was nothing else to do
	path    []string
	broken  []string // properties, and how

	mu   sync.Mutex
	last map[string]int64 // of each name the greatest token of those who exclude others
}

// process is a client.
type process struct {
	client *latchkey.Client
	seen   uint64 // a print of all that it has seen
	dead   bool
	closed bool
}

type doing uint8

const (
	idle doing = iota
	calling
	holding
	leaving
)

// user is a goroutine of a client, which calls one thing after the other.
type user struct {
	name   string
	of     int
	calls  []call
	next   int
	cancel context.CancelFunc
	ended  bool // its context has

	// Guarded by the run's mutex.
	doing doing
	hold  tenancy
	leave func(context.Context) error
}

func newRun(t *testing.T, s *scene) *run {
	// Scripts compare times as text of 16 digits: see internal/test/property.
	time.Sleep(time.Until(time.Date(2026, time.January, 1, 0, 0, 0, 0, time.UTC)))
	r := &run{scene: s, network: newNetwork(), server: miniredis.NewMiniRedis(), left: map[fault]int{}, last: map[string]int64{}, mending: map[int]bool{}, names: names{ids: map[string]string{}}}
	for f, n := range s.faults {
		r.left[f] = n
	}
	r.server.ClockTTL(true)
	for n, of := range s.users {
		var c *latchkey.Client
		var err error
		options := append([]latchkey.Option{latchkey.WithLease(lease), latchkey.WithoutRecord()}, s.client...)
		go func() { c, err = rueidisclient.New(r.option(n), options...) }()
		r.settle(everything)
		require.NoError(t, err)
		require.NotNil(t, c)
		r.clients = append(r.clients, &process{client: c})
		meaning := s.make(t, c)
		for i, letters := range of {
			u := &user{name: fmt.Sprintf("c%d.u%d", n, i), of: n}
			for _, letter := range letters {
				u.calls = append(u.calls, meaning[string(letter)])
			}
			r.users = append(r.users, u)
		}
	}
	r.settle(everything)
	return r
}

func (r *run) option(client int) rueidis.ClientOption {
	return rueidis.ClientOption{
		InitAddress: []string{"explored:6379"}, ForceSingleClient: true, DisableCache: true, PipelineMultiplex: -1,
		ReadBufferEachConn: 1 << 11, WriteBufferEachConn: 1 << 11, RingScaleEachConn: 4,
		Dialer: net.Dialer{KeepAlive: time.Hour}, // rueidis asks on an idle link each second else, which is no step
		DialCtxFn: func(context.Context, string, *net.Dialer, *tls.Config) (net.Conn, error) {
			server, err := r.server.Dial()
			if err != nil {
				return nil, err
			}
			return r.dial(client, server)
		},
	}
}

// What goes through at once.
type through bool

const (
	whatIsFree through = false
	everything through = true
)

// settle lets goroutines run until all wait, and lets through what goes at once.
func (r *run) settle(what through) {
	for r.settleOnce(what) {
	}
}

func (r *run) settleOnce(what through) (again bool) {
	synctest.Wait()
	for _, l := range r.all() {
		asked, said, broken := l.heads()
		switch {
		case broken && asked == nil:
			l.end()
		case asked != nil && !broken && (bool(what) || !asked.isScript() && !asked.subscribes()):
			r.learn(l, asked)
			l.run(!asked.subscribes() && !asked.isScript())
			again = true
		case said != nil && (bool(what) || said.isFree()):
			l.deliver()
			again = true
		default:
			continue
		}
		synctest.Wait()
	}
	return again
}

// learn keeps the id of a client, which its subscription shows.
func (r *run) learn(l *link, f *frame) {
	if f.subscribes() && len(f.words) == 2 {
		for _, id := range ids.FindAllString(f.words[1], -1) {
			r.names.ids[id] = fmt.Sprintf("c%d", l.of)
		}
	}
}

// all returns the links that are not closed, in an order that does not differ from one run to the next.
func (n *network) all() (all []*link) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.links = slices.DeleteFunc(n.links, func(l *link) bool { return l.isClosed })
	all = slices.Clone(n.links)
	slices.SortStableFunc(all, func(a, b *link) int { return a.of - b.of })
	return all
}

// heads returns the first of what is under way in both directions; nil where nothing is.
func (l *link) heads() (asked, said *frame, broken bool) {
	l.network.mu.Lock()
	defer l.network.mu.Unlock()
	if len(l.asked) > 0 {
		f := l.asked[0]
		asked = &f
	}
	if len(l.said) > 0 {
		f := l.said[0]
		said = &f
	}
	return asked, said, l.broken
}

// sees notes what a client has seen.
func (r *run) sees(c int, what string) {
	h := fnv.New64a()
	fmt.Fprintf(h, "%d %s", r.clients[c].seen, what)
	r.clients[c].seen = h.Sum64()
}

// begin is what a user does next.
func (r *run) begin(u *user) {
	c := u.calls[u.next]
	ctx, cancel := context.WithCancel(context.Background())
	u.cancel, u.ended = cancel, false
	r.mu.Lock()
	u.doing = calling
	r.mu.Unlock()
	go func() {
		h, leave, err := c.take(ctx)
		r.mu.Lock()
		defer r.mu.Unlock()
		if err != nil {
			u.doing = idle
			u.next++
			cancel()
			r.returned(u, c, err)
			return
		}
		u.hold, u.leave, u.doing = h, leave, holding
		r.entered(u, c)
	}()
}

// end gives back what a user holds.
func (r *run) end(u *user) {
	r.mu.Lock()
	u.doing = leaving
	leave, c := u.leave, u.calls[u.next]
	r.mu.Unlock()
	go func() {
		err := leave(context.Background())
		r.mu.Lock()
		defer r.mu.Unlock()
		u.doing = idle
		u.next++
		u.cancel()
		p := r.clients[u.of]
		if err != nil && !r.lossy && !p.closed && !p.dead {
			r.violated("ERR", "%s gives back what %s returned: %v", u.name, c.name, err)
		}
	}()
}
