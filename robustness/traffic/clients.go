package traffic

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/rueidis"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/internal/session"
	"github.com/latchkey-go/latchkey/robustness/faults"
	"github.com/latchkey-go/latchkey/robustness/plan"
	"github.com/latchkey-go/latchkey/robustness/witness"
	"github.com/latchkey-go/latchkey/rueidisclient"
)

// The clients of a worker, by what is special about them.
const (
	plain    = iota
	proxied  // through the proxy, and connected when that can be
	prefixed // the prefix is not in the names
	another  // rueidis clients that are wrapped
	mute     // without pub/sub
	bounded  // few may wait; where there are replicas, they must have what it is granted
)

// client is one with all that was made with it.
type client struct {
	*latchkey.Client
	number  int64
	what    int
	others  []*latchkey.Client     // of the servers after the first one
	wrapped []rueidis.Client       // which are closed last
	dialled []*session.Connections // their connections
	closing atomic.Bool
	handles sync.Map // by text: what New returned
}

// Shutdown shuts the clients of all servers.
func (c *client) Shutdown(ctx context.Context) error {
	c.closing.Store(true)
	errs := make([]error, 1+len(c.others))
	var all sync.WaitGroup
	for n, one := range append([]*latchkey.Client{c.Client}, c.others...) {
		all.Go(func() { errs[n] = one.Shutdown(ctx) })
	}
	all.Wait()
	c.end()
	return errors.Join(errs...)
}

// close closes what the client was made of, at once.
func (c *client) close() {
	c.closing.Store(true)
	c.Close()
	for _, one := range c.others {
		one.Close()
	}
	c.end()
}

// end closes what the client does not own.
func (c *client) end() {
	for _, one := range c.wrapped {
		one.Close()
	}
	for _, dialled := range c.dialled {
		dialled.End() // rueidis keeps what it began to dial before its Close
	}
}

// labelled is what clients call themselves.
const labelled = "a client of the harness"

// options are those of the n-th client.
func (w *worker) options(n int) []latchkey.Option {
	options := []latchkey.Option{
		latchkey.WithLease(w.Lease()), latchkey.WithObserver(latchkey.Observer{Queued: queued, Waiting: func(latchkey.Event) {}}), latchkey.WithLogger(w.logger),
	}
	if n == bounded {
		options = append(options, latchkey.WithoutRecord(), latchkey.WithSlow(100*time.Millisecond, 100*time.Millisecond))
	} else {
		options = append(options, latchkey.WithLabel(labelled))
	}
	if w.Has(faults.Listening) {
		options = append(options, latchkey.WithRedisson())
	}
	switch n {
	case proxied:
		if w.Topology != plan.Cluster {
			options = append(options, latchkey.WithLazyConnect())
		}
	case prefixed:
		options = append(options, latchkey.WithKeyPrefix(plan.Prefix),
			latchkey.WithCommandTimeout(plan.Answers))
	case mute:
		options = append(options, latchkey.WithoutPubSub())
	case bounded:
		options = append(options, latchkey.WithMaxWaiters(3), latchkey.WithDeclaredKeys())
		if w.Replicated() {
			options = append(options, latchkey.WithReplicas(1, brief/2))
		}
	}
	return options
}

// open opens a client of some servers.
func (w *worker) open(c *client, n int, addresses ...string) (*latchkey.Client, error) {
	option := faults.Option(w.Plan, w.words, addresses...)
	if n == prefixed && len(addresses) == 1 && !w.Has("credentials rotate") { // a server that is known by its URL
		if address := "redis://" + addresses[0]; rand.IntN(2) == 0 {
			return latchkey.Open(address, w.options(n)...)
		} else if option, err := rueidisclient.ParseURL(address); err != nil {
			return nil, err
		} else {
			return rueidisclient.New(option, w.options(n)...)
		}
	}
	if n != another {
		return rueidisclient.New(option, w.options(n)...)
	}
	option.DisableCache, option.PipelineMultiplex, option.ConnWriteTimeout, option.Dialer.Timeout = true, -1, time.Second, time.Second
	option.Sentinel.TopologyRefreshInterval, option.ClusterOption.ShardsRefreshInterval = 500*time.Millisecond, 100*time.Millisecond
	dialled := session.NewConnections()
	option = dialled.Track(option)
	commands, err := rueidis.NewClient(option)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", latchkey.ErrUnavailable, err)
	}
	option.DisableRetry = true // as Wrap wants it
	subscriptions, err := rueidis.NewClient(option)
	if err != nil {
		commands.Close()
		dialled.End()
		return nil, fmt.Errorf("%w: %w", latchkey.ErrUnavailable, err)
	}
	opened, err := rueidisclient.Wrap(commands, subscriptions, w.options(n)...)
	if err != nil {
		commands.Close()
		subscriptions.Close()
		dialled.End()
		return nil, err
	}
	c.wrapped, c.dialled = append(c.wrapped, commands, subscriptions), append(c.dialled, dialled)
	return opened, nil
}

// reopen makes the n-th client, and puts it into the place of the one before.
func (w *worker) reopen(n int) {
	c := &client{number: w.numbers.Add(1), what: n}
	addresses := [][]string{w.Direct}
	if n == proxied {
		addresses[0] = w.Proxy
	}
	if w.Topology == plan.Three {
		addresses = slices.Collect(slices.Chunk(addresses[0], 1))
	}
	for _, some := range addresses {
		one := w.openSoon(c, n, some)
		switch {
		case one == nil:
			c.end()
			return
		case c.Client == nil:
			c.Client = one
		default:
			c.others = append(c.others, one)
		}
	}
	w.clients[n].Store(c)
}

// openSoon opens a client once that is possible. It returns nil when the episode is over before.
func (w *worker) openSoon(c *client, n int, addresses []string) *latchkey.Client {
	for {
		opened, err := w.open(c, n, addresses...)
		if err == nil {
			return opened
		}
		if !errors.Is(err, latchkey.ErrUnavailable) && len(w.Faults) == 0 {
			w.violation("error", "a client is not opened: %v", err)
		}
		if w.words.Stop().Load() > 0 {
			return nil
		}
		<-time.After(10 * time.Millisecond)
	}
}

// name is what an object is called on the client.
func (c *client) name(o plan.Object) string {
	if c.what == prefixed {
		return strings.TrimPrefix(o.Key, plan.Prefix)
	}
	return o.Key
}

// any returns one of the clients.
func (w *worker) any(rng *rand.Rand) *client {
	for {
		if c := w.clients[rng.IntN(mute)].Load(); c != nil {
			return c
		}
		if w.words.Stop().Load() > 0 {
			return nil
		}
		<-time.After(time.Millisecond)
	}
}

// special returns one of all clients: one of those that not all can be used with among them.
func (w *worker) special(rng *rand.Rand, o plan.Object, otherwise *client) *client {
	n := bounded
	if o.Mixed() && rng.IntN(2) == 0 {
		n = mute
	}
	if c := w.clients[n].Load(); c != nil && o.Family != plan.Counting && rng.IntN(8) == 0 {
		return c
	}
	return otherwise
}

// replace closes a client in one way or the other, and opens another one.
func (w *worker) replace(rng *rand.Rand) {
	n := rng.IntN(len(w.clients))
	c := w.clients[n].Load()
	if c == nil {
		return
	}
	r := w.witness.Ask(witness.Closing, plan.Object{Index: -1}, 0, 0, c.number)
	if rng.IntN(2) == 0 {
		c.close()
	} else {
		ctx, cancel := context.WithTimeout(context.Background(), time.Duration(rng.IntN(100))*time.Millisecond)
		_ = c.Shutdown(ctx) // what is still held is named
		cancel()
	}
	r.Answered(witness.Done, 0, 0)
	w.reopen(n)
}
