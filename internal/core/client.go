package core

import (
	"context"
	"crypto/rand"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/rueidis"
	"golang.org/x/sync/errgroup"

	"github.com/latchkey-go/latchkey/internal/hub"
	"github.com/latchkey-go/latchkey/internal/lease"
	"github.com/latchkey-go/latchkey/internal/lua"
	"github.com/latchkey-go/latchkey/internal/wait"
)

// Client is the inside of the root package's Client.
type Client struct {
	id       string
	conn     lua.Conn
	close    func() // closes what the client owns
	sharded  bool
	options  ClientOptions
	hub      *hub.Hub
	inbox    *hub.Channel // the one standing inbox; with sharded pub/sub, that of health checks
	keeper   *lease.Keeper
	health   [slots]*wait.Health
	seen     atomic.Int64 // highest token
	sequence atomic.Uint64
	began    time.Time

	closing  context.Context // ends when nothing may be acquired any more; its cause is ErrClosed
	refuse   context.CancelCauseFunc
	stopped  context.Context // ends when nothing is sent any more
	stop     context.CancelFunc
	shutdown sync.Once
	patient  context.Context // ends when Shutdown waits no longer
	hurry    context.CancelFunc

	mu        sync.Mutex
	running   sync.WaitGroup // of Go; added to under mu, not after isStopped
	isStopped bool
	tenures   map[uint64]*tenure // whatever Redis may know of: waiters, holds, and those that are leaving
	waiters   tally              // of tenures that are not held
	holds     tally              // of those that are
	resources registry[resource]
	circles   registry[circle]
	pings     map[uint64]chan struct{}
}

// slots is how finely a cluster client tells which part of the cluster is away. Others use one.
const slots = 64

// Open dials and returns a client that owns its two rueidis clients.
func Open(option rueidis.ClientOption, o ClientOptions) (*Client, error) {
	if err := o.validate(); err != nil {
		return nil, err
	}
	if option.ReplicaOnly || option.SendToReplicas != nil || len(option.Standalone.ReplicaAddress) > 0 {
		return nil, invalid("locks live on primaries: ReplicaOnly, SendToReplicas and ReplicaAddress cannot be used")
	}
	commands, err := dial(tuned(option, o))
	if err != nil {
		return nil, fmt.Errorf("latchkey: %w: %w", ErrUnavailable, err)
	}
	if commands.Mode() == rueidis.ClientModeCluster {
		if option.ForceSingleClient, err = onlyLooksLikeACluster(commands, o); err != nil {
			commands.Close()
			return nil, err
		}
		if option.ForceSingleClient {
			commands.Close()
			return Open(option, o)
		}
	}
	listening := tuned(option, o)
	listening.DisableRetry = true // so that a lost subscription is known at once, not when it is back
	subscriptions, err := dial(listening)
	if err != nil {
		commands.Close()
		return nil, fmt.Errorf("latchkey: %w: %w", ErrUnavailable, err)
	}
	c, err := Wrap(commands, subscriptions, o)
	if err != nil {
		commands.Close()
		subscriptions.Close()
		return nil, err
	}
	c.close = func() {
		subscriptions.Close()
		commands.Close()
	}
	return c, nil
}

// dial is rueidis.NewClient, which returns a client also with an error when it was told that there is a single server.
func dial(option rueidis.ClientOption) (rueidis.Client, error) {
	client, err := rueidis.NewClient(option)
	if err != nil {
		if client != nil {
			client.Close()
		}
		return nil, err
	}
	return client, nil
}

// tuned sets what the client needs of rueidis and leaves what the caller set.
func tuned(option rueidis.ClientOption, o ClientOptions) rueidis.ClientOption {
	// One connection for all commands: what is sent later runs later, so that a cancel cannot overtake its acquire.
	option.PipelineMultiplex = -1
	option.DisableCache = true // nothing is cached, and tracking would cost a round trip at each connection
	if option.ConnWriteTimeout == 0 {
		option.ConnWriteTimeout = max(o.CommandTimeout, time.Second) // a silent server is given up, and its commands with it
	}
	if option.Dialer.Timeout == 0 {
		option.Dialer.Timeout = max(o.CommandTimeout, time.Second) // while Sentinel is asked, rueidis waits for a dial
	}
	if option.ReadBufferEachConn == 0 {
		option.ReadBufferEachConn = 1 << 16
	}
	if option.WriteBufferEachConn == 0 {
		option.WriteBufferEachConn = 1 << 16
	}
	if option.ClusterOption.ShardsRefreshInterval == 0 {
		// rueidis spreads what this begins over up to a second more, and over half a minute in a large cluster.
		option.ClusterOption.ShardsRefreshInterval = 100 * time.Millisecond
	}
	if option.Sentinel.MasterSet != "" {
		if option.Sentinel.TopologyRefreshInterval == 0 {
			option.Sentinel.TopologyRefreshInterval = 500 * time.Millisecond // a missed event must not cost more
		}
		if option.Sentinel.Dialer.Timeout == 0 {
			option.Sentinel.Dialer.Timeout = option.Dialer.Timeout
		}
	}
	return option
}

// onlyLooksLikeACluster tells a server that answers CLUSTER SLOTS without being a cluster (embedded ones for tests do)
// from a cluster, and refuses a cluster without sharded pub/sub.
func onlyLooksLikeACluster(client rueidis.Client, o ClientOptions) (bool, error) {
	ctx, cancel := context.WithTimeout(context.Background(), max(o.CommandTimeout, time.Second))
	defer cancel()
	probe := client.B().Arbitrary("PUBSUB", "SHARDNUMSUB").Keys("latchkey_probe").Build()
	err := client.Do(ctx, probe).Error()
	if _, refused := rueidis.IsRedisErr(err); !refused {
		return false, nil
	}
	info, infoErr := client.Do(ctx, client.B().Info().Section("cluster").Build()).ToString()
	if infoErr == nil && strings.Contains(info, "cluster_enabled:1") {
		return false, fmt.Errorf("latchkey: a cluster must run Redis 7.0 or later, for sharded pub/sub: %w", err)
	}
	return true, nil
}

// Wrap returns a client on rueidis clients that stay the caller's.
func Wrap(commands, subscriptions rueidis.Client, o ClientOptions) (*Client, error) {
	if err := o.validate(); err != nil {
		return nil, err
	}
	if commands == nil || subscriptions == nil {
		return nil, invalid("a rueidis client is nil")
	}
	c := &Client{
		id:        rand.Text(),
		began:     time.Now(),
		conn:      lua.Conn{Client: commands},
		close:     func() {},
		sharded:   commands.Mode() == rueidis.ClientModeCluster,
		options:   o,
		tenures:   map[uint64]*tenure{},
		resources: registry[resource]{},
		circles:   registry[circle]{},
		pings:     map[uint64]chan struct{}{},
	}
	c.closing, c.refuse = context.WithCancelCause(context.Background())
	c.patient, c.hurry = context.WithCancel(context.Background())
	c.stopped, c.stop = context.WithCancel(context.Background())
	c.keeper = lease.NewKeeper(c.stopped, renewer{c})
	c.hub = hub.New(subscriptions, c.sharded, c.deliver, o.Logger)
	for i := range c.health {
		c.health[i] = c.newHealth()
	}
	inbox := lua.Inbox(c.id)
	if c.sharded {
		inbox = lua.Inbox("{" + c.id + "}")
	}
	c.inbox = c.hub.Open(inbox, c.confirmed)
	return c, nil
}

func (c *Client) newHealth() *wait.Health {
	return &wait.Health{
		Context: c.stopped,
		Go:      c.Go,
		Down: func(err error) {
			c.options.Logger.Warn("latchkey: redis is away", "error", err)
			c.options.Observer.down(err)
		},
		Lasting: func() {
			if !c.sharded { // there, other nodes may be well; a grant that reaches nobody costs the short lease
				c.hub.Suspend()
			}
		},
		Patience: c.options.Lease / 3,
		Up: func(away time.Duration) {
			c.options.Logger.Info("latchkey: redis is back", "away", away)
			c.hub.Resume()
			c.keeper.RenewAll()
			c.options.Observer.up(away)
			c.Go(c.recheckAll)
		},
	}
}

// Go runs f in a goroutine that Close waits for; not at all once the client is closed.
func (c *Client) Go(f func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.isStopped {
		c.running.Go(f)
	}
}

// confirmed runs after each confirmation of the standing inbox: what was published before it may be lost.
func (c *Client) confirmed() {
	c.options.Observer.subscribed()
	c.keeper.RenewAll()
	if !c.sharded {
		c.recheckAll()
	}
}

func (c *Client) recheckAll() {
	c.mu.Lock()
	rooms := make([]*resource, 0, len(c.resources))
	for _, p := range c.resources {
		if r := p.Value(); r != nil {
			rooms = append(rooms, r)
		}
	}
	c.mu.Unlock()
	var g errgroup.Group
	g.SetLimit(64)
	for _, r := range rooms {
		g.Go(func() error { r.room.RecheckAll(); return nil })
	}
	_ = g.Wait() // the rooms report to their waiters
}

// deliver takes an inbox message. It runs where the subscription is read: it neither blocks nor calls the client.
func (c *Client) deliver(m lua.Message) {
	if m.Kind == lua.Unknown {
		c.Go(c.recheckAll)
		return
	}
	t := c.tenure(m.Number)
	if t != nil && t.keys.Name() != m.Name {
		t = nil
	}
	switch m.Kind {
	case lua.Ping:
		c.ponged(m.Number)
	case lua.Grant:
		c.saw(m.Token)
		if t == nil || !t.room.Granted(&t.waiter, m) {
			c.Go(func() { c.refuseGrant(t, m) })
		}
	case lua.Ask:
		if t != nil {
			c.Go(t.room.RecheckAll)
		}
	case lua.Forced:
		if t != nil {
			c.Go(func() { t.taken(m.Token, errForced) })
		}
	case lua.Want:
		if t != nil {
			t.want()
		}
	case lua.Ends:
		if t != nil {
			t.room.Ends(time.Duration(m.Lease) * time.Millisecond)
		}
	}
}

// tenure finds one by its number.
func (c *Client) tenure(n uint64) *tenure {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.tenures[n]
}

func (c *Client) ponged(n uint64) {
	c.mu.Lock()
	ping := c.pings[n]
	c.mu.Unlock()
	select {
	case ping <- struct{}{}:
	default: // nobody waits for it any more
	}
}

// refuseGrant releases what was granted to a tenure that is over (rule 3): a late copy of its acquire had queued again. When
// t is not nil it holds, or is about to, and has just learnt that what it was granted up to the message's token is gone.
func (c *Client) refuseGrant(t *tenure, m lua.Message) {
	if t != nil {
		t.taken(m.Token, lease.ErrGone)
	}
	keys, err := lua.NewKeys(m.Family, m.Name, c.sharded)
	if err == nil {
		d := lua.Departure{Owner: lua.Owner(c.id, m.Number)}
		_, err = c.conn.Leave(context.Background(), keys, []lua.Departure{d}, c.seen.Load())
	}
	if err != nil {
		c.options.Logger.Warn("latchkey: a grant for nobody was not released; its lease runs out", "name", m.Name, "error", err)
	}
}

// saw remembers the highest token.
func (c *Client) saw(token int64) {
	for {
		seen := c.seen.Load()
		if token <= seen || c.seen.CompareAndSwap(seen, token) {
			return
		}
	}
}

// Check is documented by the root package.
func (c *Client) Check(ctx context.Context) error {
	if c.closing.Err() != nil {
		return fmt.Errorf("latchkey: %w", ErrClosed)
	}
	n := c.sequence.Add(1)
	heard := make(chan struct{}, 1)
	c.mu.Lock()
	c.pings[n] = heard
	c.mu.Unlock()
	defer func() {
		c.mu.Lock()
		delete(c.pings, n)
		c.mu.Unlock()
	}()
	open, stop := wait.Until(ctx, c.closing)
	defer stop()
	if err := c.inbox.Wait(open); err != nil {
		if c.closing.Err() != nil {
			return fmt.Errorf("latchkey: %w", ErrClosed)
		}
		return fmt.Errorf("latchkey: the inbox is not subscribed: %w: %w", ErrUnavailable, err)
	}
	// With the caller's context: one that can be cancelled makes rueidis run its connection in the background from then on,
	// which costs a single goroutine a fifth of its speed.
	if err := c.conn.Ping(withoutDeadline(ctx), c.inbox.Name(), n, c.sharded); err != nil {
		return fmt.Errorf("latchkey: %w", outcome(err))
	}
	select {
	case <-heard:
		return nil
	case <-c.closing.Done():
		return fmt.Errorf("latchkey: %w", ErrClosed)
	case <-ctx.Done():
		return fmt.Errorf("latchkey: the inbox does not hear: %w: %w", ErrUnavailable, context.Cause(ctx))
	}
}

// Shutdown is documented by the root package.
func (c *Client) Shutdown(ctx context.Context) error {
	defer context.AfterFunc(ctx, c.hurry)()
	var err error
	c.shutdown.Do(func() {
		c.refuse(ErrClosed)
		for _, t := range c.all() {
			t.room.Interrupt(&t.waiter)
		}
		leaving, cancel := context.WithTimeout(context.WithoutCancel(ctx), c.options.ReleaseTimeout)
		defer cancel()
		var resigned sync.WaitGroup
		resigned.Go(func() { c.resign(leaving) })
		_ = c.none(leaving, &c.waiters) // entries that stay are dropped by the next grant: the inbox goes with us
		resigned.Wait()
		if c.none(c.patient, &c.holds) != nil {
			err = fmt.Errorf("latchkey: locks are still held: %w", context.Canceled)
			if ctx.Err() != nil {
				err = fmt.Errorf("latchkey: locks are still held: %w", ended(ctx))
			}
		}
		c.finish()
	})
	return err
}

// finish ends everything. What is still held is told so, and keeps its lease in Redis: its code may still run.
func (c *Client) finish() {
	for _, t := range c.all() {
		c.keeper.Lose(&t.item, ErrClosed)
	}
	c.hub.Close() // the inbox goes first, so that nothing is granted to a client that leaves
	c.stop()
	c.mu.Lock()
	c.isStopped = true
	c.mu.Unlock()
	c.running.Wait()
	c.close()
}

func (c *Client) all() []*tenure {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Collect(maps.Values(c.tenures))
}

// tally counts tenures, guarded by the client's mutex.
type tally struct {
	n    int
	zero chan struct{} // closed at 0; nil when nobody waits for that
}

func (t *tally) add(n int) {
	t.n += n
	if t.n == 0 && t.zero != nil {
		close(t.zero)
		t.zero = nil
	}
}

// none returns when the tally is 0, or with the cause when ctx ends.
func (c *Client) none(ctx context.Context, t *tally) error {
	c.mu.Lock()
	if t.n == 0 {
		c.mu.Unlock()
		return nil
	}
	if t.zero == nil {
		t.zero = make(chan struct{})
	}
	zero := t.zero
	c.mu.Unlock()
	select {
	case <-zero:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
