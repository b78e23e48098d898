package core

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/redis/rueidis"

	"github.com/latchkey-go/latchkey/internal/session"
)

// Open dials and returns a client that owns its two rueidis clients.
func Open(option rueidis.ClientOption, o session.Options) (*session.Client, error) {
	if err := o.Validate(); err != nil {
		return nil, session.Wrap("", err)
	}
	if option.ReplicaOnly || option.SendToReplicas != nil || len(option.Standalone.ReplicaAddress) > 0 {
		return nil, session.Wrap("", session.Invalid("locks live on primaries: ReplicaOnly, SendToReplicas and ReplicaAddress cannot be used"))
	}
	if o.Lazy {
		return openLazily(option, o)
	}
	option = tuned(option, o)
	ours := session.NewConnections()
	commands, err := dial(ours.Track(option))
	if err != nil {
		return nil, session.Wrap("", session.Unavailable(err))
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
	subscriptions, owned := commands, []*session.Connections{ours}
	if commands.Mode() == rueidis.ClientModeCluster {
		// Shard channels of one node share a connection, which must not be that of the commands: it is ended with
		// them.
		listening := session.NewConnections()
		option.DisableRetry = true // so that a lost subscription is known at once, not when it is back
		if subscriptions, err = dial(listening.Track(option)); err != nil {
			commands.Close()
			return nil, session.Wrap("", session.Unavailable(err))
		}
		owned = append(owned, listening)
	}
	return ownClient(commands, subscriptions, o, owned...), nil
}

// ownClient returns a client that owns the two rueidis clients, which may be one, and their connections:
// those of the subscriptions come last.
func ownClient(commands, subscriptions rueidis.Client, o session.Options, owned ...*session.Connections) *session.Client {
	return session.New(commands, subscriptions, o, owned, func() {
		closed := make(chan struct{})
		go func() {
			defer close(closed)
			if subscriptions != commands {
				subscriptions.Close()
			}
			commands.Close()
		}()
		session.ClosedWithin(closed, session.CloseGrace) // a silent server is waited for
		for _, o := range owned {
			o.End()
		}
		session.ClosedWithin(closed, session.CloseGrace) // a dialer of the caller's may not heed that it is given up
	})
}

// Wrap returns a client on rueidis clients that stay the caller's.
func Wrap(commands, subscriptions rueidis.Client, o session.Options) (*session.Client, error) {
	if err := o.Validate(); err != nil {
		return nil, session.Wrap("", err)
	}
	if commands == nil || subscriptions == nil {
		return nil, session.Wrap("", session.Invalid("a rueidis client is nil"))
	}
	if o.Lazy {
		return nil, session.Wrap("", session.Invalid("clients that are wrapped have connected already"))
	}
	if severalPipes(commands) {
		return nil, session.Wrap("", session.Invalid("the client for commands must have PipelineMultiplex -1, so that what is sent later runs later"))
	}
	return session.New(commands, subscriptions, o, nil, func() {}), nil
}

// severalPipes reports whether a client sends commands to one node on several connections, between which they
// overtake each other. Only a cluster client does; it chooses among them at random. Where the server does not
// tell, it is trusted.
func severalPipes(client rueidis.Client) bool {
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

// dial is rueidis.NewClient, which returns a client also with an error when it was told that there is a
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

// tuned sets what the client needs of rueidis and leaves what the caller set.
func tuned(option rueidis.ClientOption, o session.Options) rueidis.ClientOption {
	// One connection for all commands: what is sent later runs later, so that a cancel cannot overtake its
	// acquire.
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

// onlyLooksLikeACluster tells a server that answers CLUSTER SLOTS without being a cluster (embedded ones for
// tests do) from a cluster, and refuses a cluster without sharded pub/sub.
func onlyLooksLikeACluster(client rueidis.Client, o session.Options) (bool, error) {
	ctx, cancel := context.WithTimeout(context.Background(), max(o.CommandTimeout, time.Second))
	defer cancel()
	probe := client.B().Arbitrary("PUBSUB", "SHARDNUMSUB").Keys("latchkey_probe").Build()
	err := client.Do(ctx, probe).Error()
	if _, refused := rueidis.IsRedisErr(err); !refused {
		return false, nil
	}
	info, infoErr := client.Do(ctx, client.B().Info().Section("cluster").Build()).ToString()
	if infoErr == nil && strings.Contains(info, "cluster_enabled:1") {
		return false, session.Wrap("", fmt.Errorf("a cluster must run Redis 7.0 or later, for sharded pub/sub: %w", err))
	}
	return true, nil
}
