package core

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"sync/atomic"

	"github.com/redis/rueidis"

	"github.com/latchkey-go/latchkey/internal/lua"
	"github.com/latchkey-go/latchkey/internal/retry"
	"github.com/latchkey-go/latchkey/internal/session"
)

// openLazily returns a client that dials in the background. What kind of servers these are must be known
// without asking them: a cluster has keys, channels and scripts of its own. It is known of a single server
// and of Sentinel.
func openLazily(option rueidis.ClientOption, o session.Options) (*session.Client, error) {
	connections := session.NewConnections()
	option = connections.Track(tuned(option, o))
	single := option.Sentinel.MasterSet == ""
	if single && len(option.InitAddress) != 1 {
		return nil, invalid("a cluster cannot be connected to lazily: give one address, or a Sentinel")
	}
	option.ForceSingleClient = single
	client, err := newLazyClient(option)
	if err != nil {
		return nil, invalid("%w", err)
	}
	c := ownClient(client, client, o, connections)
	if single {
		c.Go(func() { refuseCluster(c, client.over) })
	}
	return c, nil
}

// refuseCluster closes the client when the server turns out to be a node of a cluster: most names are not
// there. It asks once nothing is dialled any more.
func refuseCluster(c *session.Client, dialled <-chan struct{}) {
	select {
	case <-dialled:
	case <-c.Closing.Done():
		return
	}
	if cluster, err := isCluster(context.Background(), c.Conn.Client); err != nil || !cluster {
		return
	}
	c.Options.Logger.Error("latchkey: WithLazyConnect was given a node of a cluster: the client is closed")
	// In a goroutine of its own, because Shutdown waits for this one. Its error says that something was held,
	// and nothing is.
	go func() { _ = c.Shutdown(context.Background()) }()
}

// lazyClient is a rueidis client that is still to come. Until then every command fails at once, unsent. Its
// methods are rueidis', which documents them.
type lazyClient struct {
	rueidis.Client // a stand-in, which cannot dial
	mode           rueidis.ClientMode
	dialled        atomic.Pointer[rueidis.Client] // nil: not yet
	stop           context.CancelFunc
	over           chan struct{} // closed when nothing is dialled any more
}

var errNotYet = fmt.Errorf("%w: no connection yet", lua.ErrUnsent)

// newLazyClient returns a client that has begun to dial.
func newLazyClient(option rueidis.ClientOption) (*lazyClient, error) {
	blocked := func(context.Context, string, *net.Dialer, *tls.Config) (net.Conn, error) { return nil, errNotYet }
	standIn, err := rueidis.NewClient(rueidis.ClientOption{
		InitAddress: option.InitAddress, ForceSingleClient: true, DisableCache: true, DialCtxFn: blocked,
	})
	if standIn == nil {
		return nil, err
	}
	ctx, stop := context.WithCancel(context.Background())
	l := &lazyClient{Client: standIn, mode: rueidis.ClientModeStandalone, stop: stop, over: make(chan struct{})}
	if option.Sentinel.MasterSet != "" {
		l.mode = rueidis.ClientModeSentinel
	}
	dial := option.DialCtxFn
	option.DialCtxFn = func(
		inner context.Context, address string, dialer *net.Dialer, config *tls.Config,
	) (net.Conn, error) {
		merged, end := retry.Until(inner, ctx) // Close does not wait for a dial
		defer end()
		return dial(merged, address, dialer, config)
	}
	go l.connect(ctx, option)
	return l, nil
}

// connect dials until it succeeds, or ctx ends.
func (l *lazyClient) connect(ctx context.Context, option rueidis.ClientOption) {
	defer close(l.over)
	var backoff retry.Backoff
	for ctx.Err() == nil {
		if client, err := dial(option); err == nil {
			l.dialled.Store(&client)
			return
		}
		_ = retry.Sleep(ctx, backoff.Next()) // the loop looks at ctx
	}
}

// current returns the client that was dialled, or the stand-in.
func (l *lazyClient) current() rueidis.Client {
	if client := l.dialled.Load(); client != nil {
		return *client
	}
	return l.Client
}

// Do sends a command.
func (l *lazyClient) Do(ctx context.Context, cmd rueidis.Completed) rueidis.RedisResult {
	return l.current().Do(ctx, cmd)
}

// DoMulti sends several commands.
func (l *lazyClient) DoMulti(ctx context.Context, multi ...rueidis.Completed) []rueidis.RedisResult {
	return l.current().DoMulti(ctx, multi...)
}

// Dedicated lends a connection to f.
func (l *lazyClient) Dedicated(f func(rueidis.DedicatedClient) error) error {
	return l.current().Dedicated(f)
}

// Dedicate lends a connection.
func (l *lazyClient) Dedicate() (rueidis.DedicatedClient, func()) { return l.current().Dedicate() }

// Nodes returns the servers.
func (l *lazyClient) Nodes() map[string]rueidis.Client { return l.current().Nodes() }

// Mode returns the mode of the client to come.
func (l *lazyClient) Mode() rueidis.ClientMode { return l.mode }

// Close closes what there is, and gives up what is being dialled.
func (l *lazyClient) Close() {
	l.stop()
	<-l.over
	l.current().Close()
	l.Client.Close()
}
