// Package rueidisclient opens clients of latchkey with a configuration of rueidis, or on your own rueidis clients: for
// TLS files, for a password of Sentinel, and for connections that your program has already. [latchkey.Open] is enough
// for most programs.
//
//	option, err := rueidisclient.ParseURL("redis://sentinel:26379?master_set=main")
//	...
//	option.Sentinel.Password = password
//	c, err := rueidisclient.New(option)
package rueidisclient

import (
	"github.com/redis/rueidis"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/internal/address"
	"github.com/latchkey-go/latchkey/internal/core"
)

// ParseURL returns the configuration that [latchkey.Open] makes of a URL. It is rueidis.ParseURL, and also refuses
// unknown parameters, and values with which no connection can be made: with [latchkey.ErrInvalid]. The text never has
// a user or a password.
func ParseURL(url string) (rueidis.ClientOption, error) { return address.Parse(url) }

// New opens a client with a rueidis configuration. The client owns the rueidis clients that it makes: two for a
// cluster, else one. New dials, as [latchkey.Open] does. It returns [latchkey.ErrInvalid] for a configuration that
// cannot be used, for example one that reads from replicas.
//
// New sets DisableCache, and PipelineMultiplex to one connection for all commands. It also sets these fields if they
// are zero:
//   - ConnWriteTimeout, Dialer.Timeout and Sentinel.Dialer.Timeout: to 1 s, or to the command timeout if that is longer
//   - the buffer sizes: to 32 KiB; RingScaleEachConn: to 7
//   - Sentinel.TopologyRefreshInterval: to 0.5 s
//   - ClusterOption.ShardsRefreshInterval: to 0.1 s
//
// The client gives up a silent server after about three seconds. If your failover is faster, set ConnWriteTimeout,
// Dialer.Timeout and Dialer.KeepAlive to less.
func New(option rueidis.ClientOption, opts ...latchkey.Option) (*latchkey.Client, error) {
	c, err := core.Open(option, core.Options(opts))
	return (*latchkey.Client)(c.Handle()), err
}

// Wrap opens a client on your rueidis clients, which may be the same one. Close leaves them open. A nil client is
// [latchkey.ErrInvalid].
//
// For a cluster, commands must have PipelineMultiplex -1, so that a command that is sent later runs later. Wrap asks
// one node whether this is a cluster, and returns ErrInvalid if the setting is missing. subscriptions should be
// another client there, with DisableRetry: then a lost subscription is noticed at once. It stays subscribed to all
// channels that the client has waited on, until you close it.
//
// The client cannot dial for you. If the name of your server leads to another server, and the one before lives on as a
// replica, calls wait, or return [latchkey.ErrUnavailable] with READONLY, until your rueidis client dials again.
// ConnWriteTimeout of commands bounds how long the client waits for a silent server.
func Wrap(commands, subscriptions rueidis.Client, opts ...latchkey.Option) (*latchkey.Client, error) {
	c, err := core.Wrap(commands, subscriptions, core.Options(opts))
	return (*latchkey.Client)(c.Handle()), err
}
