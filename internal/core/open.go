package core

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/redis/rueidis"

	"github.com/latchkey-go/latchkey/internal/fail"
	"github.com/latchkey-go/latchkey/internal/identity"
	"github.com/latchkey-go/latchkey/internal/lua"
	"github.com/latchkey-go/latchkey/internal/preflight"
	"github.com/latchkey-go/latchkey/internal/session"
)

// Open dials, and returns a client that owns the rueidis clients that it makes. Errors come wrapped: they
// match ErrInvalid for options that cannot be used, and ErrUnavailable while Redis cannot be reached.
func Open(option rueidis.ClientOption, o session.Options) (*session.Client, error) {
	if err := o.Validate(); err != nil {
		return nil, fail.Wrap("", err)
	}
	if option.ReplicaOnly || option.SendToReplicas != nil || len(option.Standalone.ReplicaAddress) > 0 {
		return nil, invalid("locks live on primaries: ReplicaOnly, SendToReplicas and ReplicaAddress cannot be used")
	}
	id := identity.NewID(o.Prefix)
	option = tuned(option, o, id)
	if o.Lazy {
		return openLazily(option, o, id)
	}
	return openNow(option, o, id)
}

// invalid is the error of an argument, as callers see it.
func invalid(format string, args ...any) error {
	return fail.Wrap("", fail.Invalid(format, args...))
}

func openNow(option rueidis.ClientOption, o session.Options, id string) (*session.Client, error) {
	connections := session.NewConnections()
	commands, strict, err := connect(connections.Track(option), o.Prefix)
	if err != nil {
		return nil, fail.Wrap("", fail.Unavailable(err))
	}
	o.DeclaredKeys = o.DeclaredKeys || strict
	if commands.Mode() != rueidis.ClientModeCluster {
		return ownClient(id, commands, commands, o, connections), nil
	}
	imitation, err := imitatesCluster(commands, o)
	if err != nil {
		commands.Close()
		return nil, err
	}
	if imitation {
		commands.Close()
		option.ForceSingleClient = true
		return openNow(option, o, id)
	}
	if o.WithoutPubSub {
		return ownClient(id, commands, commands, o, connections), nil
	}
	// Shard channels of one node share a connection. The hub closes that connection to end subscriptions, so it must
	// not be the connection of the commands.
	listening := session.NewConnections()
	option.DisableRetry = true // so that a lost subscription is known at once, not when it is back
	subscriptions, err := dial(listening.Track(option))
	if err != nil {
		commands.Close()
		return nil, fail.Wrap("", fail.Unavailable(err))
	}
	return ownClient(id, commands, subscriptions, o, connections, listening), nil
}

// ownClient returns a client that owns the two rueidis clients and their connections. Both may be one client. The
// connections of the subscriptions come last.
func ownClient(
	id string, commands, subscriptions rueidis.Client, o session.Options, connections ...*session.Connections,
) *session.Client {
	return session.New(id, commands, subscriptions, o, connections, func() {
		closed := make(chan struct{})
		go func() {
			defer close(closed)
			if subscriptions != commands {
				subscriptions.Close()
			}
			commands.Close()
		}()
		session.ClosedWithin(closed, session.CloseGrace) // rueidis waits for a silent server
		for _, owned := range connections {
			owned.End()
		}
		// rueidis waits for a dial as well, and a dialer of the caller may go on after the dial was given up.
		session.ClosedWithin(closed, session.CloseGrace)
	})
}

// Wrap returns a client on rueidis clients that stay the caller's. Errors come wrapped, and match ErrInvalid.
func Wrap(commands, subscriptions rueidis.Client, o session.Options) (*session.Client, error) {
	if err := o.Validate(); err != nil {
		return nil, fail.Wrap("", err)
	}
	if commands == nil || subscriptions == nil {
		return nil, invalid("a rueidis client is nil")
	}
	if o.Lazy {
		return nil, invalid("clients that are wrapped have connected already")
	}
	if hasSeveralPipes(commands) {
		return nil, invalid("the client for commands must have PipelineMultiplex -1, so that what is sent later runs later")
	}
	return session.New(identity.NewID(o.Prefix), commands, subscriptions, o, nil, func() {}), nil
}

// hasSeveralPipes reports whether a client sends commands to one node on several connections: then a command can
// overtake another. Only a cluster client does that. It chooses among the connections at random. If the server does
// not tell the ids of connections, hasSeveralPipes trusts the client.
func hasSeveralPipes(client rueidis.Client) bool {
	if client.Mode() != rueidis.ClientModeCluster {
		return false
	}
	ctx, cancel := context.WithTimeout(context.Background(), session.DefaultCommandTimeout)
	defer cancel()
	for _, node := range client.Nodes() {
		seen := map[int64]bool{}
		for range 16 {
			if id, err := node.Do(ctx, node.B().ClientId().Build()).AsInt64(); err == nil {
				seen[id] = true
			}
		}
		return len(seen) > 1 // all nodes have the same configuration
	}
	return false
}

// dial is rueidis.NewClient, but returns no client with an error. rueidis returns both if it was told that there is a
// single server.
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

// connect dials, and asks the server what package preflight asks.
func connect(option rueidis.ClientOption, prefix string) (client rueidis.Client, strict bool, err error) {
	client, err = dial(option)
	if err != nil {
		return nil, false, err
	}
	if strict, err = preflight.Ask(client, prefix); err != nil {
		client.Close()
		return nil, false, err
	}
	return client, strict, nil
}

// tuned sets what our client needs of rueidis. What the caller may choose, and has set, stays.
func tuned(option rueidis.ClientOption, o session.Options, id string) rueidis.ClientOption {
	// There is one connection for all commands: a command that is sent later runs later, so a cancel cannot overtake
	// its acquire (rule 2).
	option.PipelineMultiplex = -1
	option.DisableCache = true                                              // nothing is cached, and tracking would cost a round trip at each connection
	if option.ClientName == "" && !option.AlwaysRESP2 && !o.WithoutPubSub { // what proxies may not know
		option.ClientName = "latchkey:" + id
	}
	if option.ConnWriteTimeout == 0 {
		option.ConnWriteTimeout = max(o.CommandTimeout, time.Second) // then a silent server is given up
	}
	if option.Dialer.Timeout == 0 {
		// rueidis waits for a dial while it asks Sentinel.
		option.Dialer.Timeout = max(o.CommandTimeout, time.Second)
	}
	// With these a client needs some 230 KB of heap, and 980 KB with twice the buffers and the ring of rueidis. 1, 64
	// and 512 goroutines were as fast.
	if option.ReadBufferEachConn == 0 {
		option.ReadBufferEachConn = 1 << 15
	}
	if option.WriteBufferEachConn == 0 {
		option.WriteBufferEachConn = 1 << 15
	}
	if option.RingScaleEachConn == 0 {
		option.RingScaleEachConn = 7
	}
	if option.ClusterOption.ShardsRefreshInterval == 0 {
		// rueidis spreads the refreshes at this interval over up to a second more, and over half a minute in a large
		// cluster.
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

// imitatesCluster reports whether a server answers CLUSTER SLOTS without being a cluster, as embedded servers for
// tests do. For a cluster without sharded pub/sub it returns an error.
func imitatesCluster(client rueidis.Client, o session.Options) (bool, error) {
	ctx, cancel := context.WithTimeout(context.Background(), max(o.CommandTimeout, time.Second))
	defer cancel()
	if o.WithoutPubSub { // the client needs no sharded pub/sub, and perhaps may not ask for it
		cluster, err := isCluster(ctx, client)
		if reply, refused := rueidis.IsRedisErr(err); refused {
			return !strings.Contains(reply.Error(), "NOPERM"), nil
		}
		return err == nil && !cluster, nil
	}
	probe := client.B().Arbitrary("PUBSUB", "SHARDNUMSUB").Keys("latchkey_probe").Build()
	err := client.Do(ctx, probe).Error()
	if _, refused := rueidis.IsRedisErr(err); !refused || lua.Forbidden(err) { // a user who may not ask gets no answer
		return false, nil
	}
	if cluster, infoErr := isCluster(ctx, client); infoErr == nil && cluster {
		return false, fail.Wrap("", fmt.Errorf("a cluster must run Redis 7.0 or later, for sharded pub/sub: %w", err))
	}
	return true, nil
}

// isCluster asks a server whether it is a node of a cluster.
func isCluster(ctx context.Context, client rueidis.Client) (bool, error) {
	info, err := client.Do(ctx, client.B().Info().Section("cluster").Build()).ToString()
	return strings.Contains(info, "cluster_enabled:1"), err
}
