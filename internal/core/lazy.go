package core

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/rueidis"

	"github.com/latchkey-go/latchkey/internal/lua"
	"github.com/latchkey-go/latchkey/internal/retry"
	"github.com/latchkey-go/latchkey/internal/session"
)

// openLazily returns a client that dials in the background. It must know what kind of servers these are without
// asking them: a cluster has keys, channels and scripts of its own. For a single server and for Sentinel, openLazily
// knows the kind.
func openLazily(option rueidis.ClientOption, o session.Options, id string) (*session.Client, error) {
	connections := session.NewConnections()
	option = connections.Track(option)
	single := option.Sentinel.MasterSet == ""
	if single && len(option.InitAddress) != 1 {
		return nil, invalid("a cluster cannot be connected to lazily: give one address, or a Sentinel")
	}
	option.ForceSingleClient = single
	client, err := newLazyClient(option)
	if err != nil {
		return nil, invalid("%w", err)
	}
	c := ownClient(id, client, client, o, connections)
	context.AfterFunc(c.Closing, client.hasTried)
	go client.connect(option, o.Prefix, c.NotConnected, func() { c.Conn.Declares.Store(true) })
	if single {
		c.Go(func() { refuseCluster(c, client.over) })
	}
	return c, nil
}

// refuseCluster closes the client if the server turns out to be a node of a cluster: most names are not on that node.
// refuseCluster asks the server once nothing is dialled any more.
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
	// Shutdown runs in a goroutine of its own, because it waits for this one. Its error says that something was held,
	// and nothing is held.
	go func() { _ = c.Shutdown(context.Background()) }()
}

// lazyClient is a rueidis client that is still to come. Until then every command fails, unsent: at once, or after the
// wait for the first dial. rueidis documents the methods.
type lazyClient struct {
	rueidis.Client // a stand-in, which cannot dial
	mode           rueidis.ClientMode
	dialled        atomic.Pointer[rueidis.Client] // nil: not yet
	reason         atomic.Pointer[error]          // why the last dial failed; nil: none has
	tried          chan struct{}                  // closed when calls do not wait for the first dial any more
	tryOnce        sync.Once                      // closes tried
	ending         context.Context                // ends with Close
	stop           context.CancelFunc
	over           chan struct{} // closed when nothing is dialled any more
}

var errNotYet = fmt.Errorf("%w: no connection yet", lua.ErrUnsent)

// firstDial is how long calls wait for the first dial at most. At a normal start the dial takes less, and no call
// fails.
const firstDial = time.Second

// maxTold is how many reasons connect tells, if each is a new one.
const maxTold = 20

// newLazyClient returns a client that dials once [lazyClient.connect] runs.
func newLazyClient(option rueidis.ClientOption) (*lazyClient, error) {
	l := &lazyClient{mode: rueidis.ClientModeStandalone, tried: make(chan struct{}), over: make(chan struct{})}
	if option.Sentinel.MasterSet != "" {
		l.mode = rueidis.ClientModeSentinel
	}
	blocked := func(context.Context, string, *net.Dialer, *tls.Config) (net.Conn, error) { return nil, l.notYet() }
	standIn, err := rueidis.NewClient(rueidis.ClientOption{
		InitAddress: option.InitAddress, ForceSingleClient: true, DisableCache: true, DialCtxFn: blocked,
		DisableRetry: true, // it would repeat a command on the stand-in for ever
	})
	if standIn == nil {
		return nil, err
	}
	l.Client = standIn
	l.ending, l.stop = context.WithCancel(context.Background())
	return l, nil
}

// notYet is the error of a command that was not sent. It says why there is no connection, as far as that is
// known.
func (l *lazyClient) notYet() error {
	if reason := l.reason.Load(); reason != nil {
		return fmt.Errorf("%w: %w", errNotYet, lua.Quiet(*reason))
	}
	return errNotYet
}

// hasTried ends the wait of calls for the first dial.
func (l *lazyClient) hasTried() { l.tryOnce.Do(func() { close(l.tried) }) }

// connect dials until a dial succeeds, or Close. It calls failed once for each reason of a failure, with the error of
// a command that was not sent, and when the dial began. If the server wants all keys named, connect calls strict
// before the client sends a command.
func (l *lazyClient) connect(
	option rueidis.ClientOption, prefix string, failed func(err error, began time.Time), strict func(),
) {
	defer close(l.over)
	defer l.hasTried()
	defer time.AfterFunc(firstDial, l.hasTried).Stop()
	option.DialCtxFn = l.unlessClosed(option.DialCtxFn)
	var backoff retry.Backoff
	told := map[string]bool{} // two reasons may take turns
	for l.ending.Err() == nil {
		began := time.Now()
		client, isStrict, err := connect(option, prefix)
		if err == nil {
			if isStrict {
				strict()
			}
			l.dialled.Store(&client)
			return
		}
		if l.ending.Err() != nil {
			return
		}
		l.reason.Store(&err)
		if why := gist(err); !told[why] && len(told) < maxTold {
			told[why] = true
			failed(l.notYet(), began)
		}
		l.hasTried()
		_ = retry.Sleep(l.ending, backoff.Next()) // the loop looks at l.ending
	}
}

// gist returns the text that two errors have in common if they differ only in ports and addresses.
func gist(err error) string {
	var network *net.OpError
	if errors.As(err, &network) {
		return network.Op + ": " + network.Err.Error()
	}
	return err.Error()
}

// unlessClosed returns a dialer that gives up at Close: Close does not wait for a dial.
func (l *lazyClient) unlessClosed(dial session.Dialer) session.Dialer {
	return func(ctx context.Context, address string, dialer *net.Dialer, config *tls.Config) (net.Conn, error) {
		merged, end := retry.Until(ctx, l.ending)
		defer end()
		return dial(merged, address, dialer, config)
	}
}

// current returns the client that was dialled, or the stand-in. It waits for the first dial, unless ctx ends
// before.
func (l *lazyClient) current(ctx context.Context) rueidis.Client {
	if l.dialled.Load() == nil {
		select {
		case <-l.tried:
		case <-ctx.Done():
		}
	}
	return l.now()
}

// now is current without a wait.
func (l *lazyClient) now() rueidis.Client {
	if client := l.dialled.Load(); client != nil {
		return *client
	}
	return l.Client
}

// Do sends a command.
func (l *lazyClient) Do(ctx context.Context, cmd rueidis.Completed) rueidis.RedisResult {
	return l.current(ctx).Do(ctx, cmd)
}

// DoMulti sends several commands.
func (l *lazyClient) DoMulti(ctx context.Context, multi ...rueidis.Completed) []rueidis.RedisResult {
	return l.current(ctx).DoMulti(ctx, multi...)
}

// Dedicated lends a connection to f.
func (l *lazyClient) Dedicated(f func(rueidis.DedicatedClient) error) error {
	return l.current(context.Background()).Dedicated(f)
}

// Dedicate lends a connection.
func (l *lazyClient) Dedicate() (rueidis.DedicatedClient, func()) {
	return l.current(context.Background()).Dedicate()
}

// Nodes returns the servers, and does not wait.
func (l *lazyClient) Nodes() map[string]rueidis.Client { return l.now().Nodes() }

// Mode returns the mode of the client to come.
func (l *lazyClient) Mode() rueidis.ClientMode { return l.mode }

// Close closes the clients, and gives up a dial that is under way.
func (l *lazyClient) Close() {
	l.stop()
	<-l.over
	l.now().Close()
	l.Client.Close()
}
