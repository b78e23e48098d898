package core

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync/atomic"

	"github.com/redis/rueidis"

	"github.com/latchkey-go/latchkey/internal/lua"
	"github.com/latchkey-go/latchkey/internal/retry"
	"github.com/latchkey-go/latchkey/internal/session"
)

// openLazily returns a client that dials in the background. What kind of servers these are must be known
// without asking them, which it is for a single one and for Sentinel: a cluster has keys, channels and
// scripts of its own.
func openLazily(option rueidis.ClientOption, o session.Options) (*session.Client, error) {
	owned := session.NewConnections()
	option = owned.Track(tuned(option, o))
	single := option.Sentinel.MasterSet == ""
	if single && len(option.InitAddress) != 1 {
		return nil, session.Wrap("", session.Invalid("a cluster cannot be connected to lazily: give one address, or a Sentinel"))
	}
	option.ForceSingleClient = single
	client, err := deferClient(option)
	if err != nil {
		return nil, session.Wrap("", session.Invalid("%w", err))
	}
	c := ownClient(client, client, o, owned)
	if single {
		c.Go(func() { refuseCluster(c) })
	}
	return c, nil
}

// refuseCluster closes the client when the server turns out to be of a cluster: most of its names are not
// there.
func refuseCluster(c *session.Client) {
	if c.Inbox.Wait(c.Closing) != nil {
		return
	}
	info, err := c.Conn.Client.Do(context.Background(), c.Conn.Client.B().Info().Section("cluster").Build()).ToString()
	if err != nil || !strings.Contains(info, "cluster_enabled:1") {
		return
	}
	c.Options.Logger.Error("latchkey: WithLazyConnect was given a node of a cluster: the client is closed")
	go func() { _ = c.Shutdown(context.Background()) }() // Shutdown waits for this goroutine; nothing is held that it could wait for
}

// deferred is a client that is still to come. Until then whatever is asked of it fails at once,
// unsent.
type deferred struct {
	rueidis.Client // a stand-in, which cannot dial
	mode           rueidis.ClientMode
	real           atomic.Pointer[rueidis.Client]
	stop           context.CancelFunc
	over           chan struct{} // closed when nothing is dialled any more
}

var errNotYet = fmt.Errorf("%w: no connection yet", lua.ErrUnsent)

func deferClient(option rueidis.ClientOption) (*deferred, error) {
	blocked := func(context.Context, string, *net.Dialer, *tls.Config) (net.Conn, error) { return nil, errNotYet }
	standIn, err := rueidis.NewClient(rueidis.ClientOption{
		InitAddress: option.InitAddress, ForceSingleClient: true, DisableCache: true, DialCtxFn: blocked,
	})
	if standIn == nil {
		return nil, errors.Join(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	d := &deferred{Client: standIn, mode: rueidis.ClientModeStandalone, stop: stop, over: make(chan struct{})}
	if option.Sentinel.MasterSet != "" {
		d.mode = rueidis.ClientModeSentinel
	}
	dials := option.DialCtxFn
	option.DialCtxFn = func(
		inner context.Context, address string, dialer *net.Dialer, config *tls.Config,
	) (net.Conn, error) {
		merged, end := retry.Until(inner, ctx) // Close does not wait for a dial
		defer end()
		return dials(merged, address, dialer, config)
	}
	go d.connect(ctx, option)
	return d, nil
}

func (d *deferred) connect(ctx context.Context, option rueidis.ClientOption) {
	defer close(d.over)
	var backoff retry.Backoff
	for ctx.Err() == nil {
		if client, err := dial(option); err == nil {
			d.real.Store(&client)
			return
		}
		_ = retry.Sleep(ctx, backoff.Next()) // the loop looks at ctx
	}
}

func (d *deferred) now() rueidis.Client {
	if client := d.real.Load(); client != nil {
		return *client
	}
	return d.Client
}

// Do is rueidis', as are the methods that follow.
func (d *deferred) Do(ctx context.Context, cmd rueidis.Completed) rueidis.RedisResult {
	return d.now().Do(ctx, cmd)
}

// DoMulti sends several commands.
func (d *deferred) DoMulti(ctx context.Context, multi ...rueidis.Completed) []rueidis.RedisResult {
	return d.now().DoMulti(ctx, multi...)
}

// Dedicated lends a connection.
func (d *deferred) Dedicated(f func(rueidis.DedicatedClient) error) error {
	return d.now().Dedicated(f)
}

// Dedicate lends a connection.
func (d *deferred) Dedicate() (rueidis.DedicatedClient, func()) { return d.now().Dedicate() }

// Nodes are the servers.
func (d *deferred) Nodes() map[string]rueidis.Client { return d.now().Nodes() }

// Mode is what is to come.
func (d *deferred) Mode() rueidis.ClientMode { return d.mode }

// Close ends what there is, and what is being dialled.
func (d *deferred) Close() {
	d.stop()
	<-d.over
	d.now().Close()
	d.Client.Close()
}
