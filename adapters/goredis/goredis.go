// Package latchkeygoredis makes the configuration of a latchkey client from the options of go-redis. So
// programs that use go-redis configure their connection once.
//
//	option, err := latchkeygoredis.ClientOption(options) // the *redis.UniversalOptions of the program
//	...
//	c, err := rueidisclient.New(option)
//
// The client has connections of its own to the same servers. It shares none with go-redis.
package latchkeygoredis

import (
	"cmp"
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
	"github.com/redis/rueidis"

	"github.com/latchkey-go/latchkey"
)

// ClientOption returns a configuration for rueidisclient.New. It reaches what redis.NewUniversalClient
// reaches with these options: one server, a cluster, or the master that sentinels name. Without addresses it
// reaches go-redis' default address. Other fields that are zero have latchkey's defaults: see
// rueidisclient.New. The options are not changed, and not kept.
//
// What cannot be done is refused, also a field that this version does not know. The error matches
// latchkey.ErrInvalid, and names all such fields without their values. nil is ErrInvalid too. Refused are
// reads from replicas, RESP2, timeouts that are switched off, OnConnect, PushNotificationProcessor,
// maintenance notifications that are demanded, a StreamingCredentialsProvider, and credentials providers with
// Sentinel.
//
// Ignored are sizes and times of pools, because the few connections stay open; retries and redirections,
// because the client repeats what is safe until a context ends; caching and pipelining.
//
// The longer one of ReadTimeout and WriteTimeout is how long the client waits for a silent server. A Dialer
// is used as by go-redis: also for sentinels, and for DialTimeout at most (1 s if that is zero). With a
// Dialer, TLSConfig is not used: the Dialer does TLS itself. The Dialer and a credentials provider are called
// at each new connection, from any goroutine.
func ClientOption(o *redis.UniversalOptions) (rueidis.ClientOption, error) {
	if o == nil {
		return rueidis.ClientOption{}, fmt.Errorf("latchkeygoredis: %w: the options are nil", latchkey.ErrInvalid)
	}
	made := rueidis.ClientOption{InitAddress: []string{"127.0.0.1:6379"}, ForceSingleClient: o.MasterName == "" && !isCluster(o)}
	if o.MasterName != "" {
		made.InitAddress = []string{"127.0.0.1:26379"}
	}
	var refused []string
	given := reflect.ValueOf(o).Elem()
	for i := range given.NumField() {
		if given.Field(i).IsZero() {
			continue
		}
		name := given.Type().Field(i).Name
		if r := ruleOf(name); r.set != nil && !r.set(o, &made) {
			refused = append(refused, name+": "+r.why)
		}
	}
	if refused != nil {
		return rueidis.ClientOption{}, fmt.Errorf("latchkeygoredis: %w: %s", latchkey.ErrInvalid, strings.Join(refused, "; "))
	}
	return made, nil
}

// isCluster is what go-redis goes by.
func isCluster(o *redis.UniversalOptions) bool {
	return o.IsClusterMode || len(o.Addrs) > 1 && o.MasterName == ""
}

// dial dials as rueidis does, and sockets as well.
func dial(ctx context.Context, address string, d *net.Dialer, config *tls.Config) (net.Conn, error) {
	if config != nil {
		return (&tls.Dialer{NetDialer: d, Config: config}).DialContext(ctx, network(address), address)
	}
	return d.DialContext(ctx, network(address), address)
}

func network(address string) string {
	if strings.HasPrefix(address, "/") {
		return "unix"
	}
	return "tcp"
}

// dialWith dials with a dialer of go-redis.
func dialWith(dialer func(ctx context.Context, network, addr string) (net.Conn, error)) func(context.Context, string, *net.Dialer, *tls.Config) (net.Conn, error) {
	return func(ctx context.Context, address string, d *net.Dialer, _ *tls.Config) (net.Conn, error) {
		if d.Timeout > 0 {
			var cancel context.CancelFunc
			ctx, cancel = context.WithTimeout(ctx, d.Timeout)
			defer cancel()
		}
		return dialer(ctx, network(address), address)
	}
}

// credentials has rueidis ask a provider, which is given as long as a dial. The second one goes first.
func credentials(plain func() (string, string), provider func(context.Context) (string, string, error), timeout time.Duration) func(rueidis.AuthCredentialsContext) (rueidis.AuthCredentials, error) {
	return func(rueidis.AuthCredentialsContext) (made rueidis.AuthCredentials, err error) {
		if provider == nil {
			made.Username, made.Password = plain()
			return made, nil
		}
		ctx, cancel := context.WithTimeout(context.Background(), cmp.Or(timeout, rueidis.DefaultDialTimeout))
		defer cancel()
		made.Username, made.Password, err = provider(ctx)
		return made, err
	}
}

// in is the configuration of go-redis, out that of rueidis.
type (
	in  = *redis.UniversalOptions
	out = *rueidis.ClientOption
)

// rule says what becomes of fields of go-redis that are not zero.
type rule struct {
	of  string                  // the fields of redis.UniversalOptions
	to  string                  // the fields of rueidis.ClientOption that they set, if any
	why string                  // they are ignored, or refused
	set func(o in, to out) bool // returns false to refuse; nil: they are ignored
}

// never refuses any value.
func never(in, out) bool { return false }

// ruleOf returns the rule of a field.
func ruleOf(name string) rule {
	for _, r := range rules {
		if slices.Contains(strings.Fields(r.of), name) {
			return r
		}
	}
	return rule{why: "it is not known to this version", set: never}
}

const noTimeout = "it must not be negative: a silent server has to be given up"

// rules are for all fields of redis.UniversalOptions.
var rules = []rule{
	{"Addrs", "InitAddress DialCtxFn", "an address is empty", func(o in, to out) bool {
		if len(o.Addrs) > 0 { // none are the default
			to.InitAddress = slices.Clone(o.Addrs)
		}
		if to.DialCtxFn == nil && slices.ContainsFunc(o.Addrs, func(address string) bool { return network(address) == "unix" }) {
			to.DialCtxFn = dial
		}
		return !slices.Contains(o.Addrs, "")
	}},
	{"IsClusterMode", "ForceSingleClient", "", func(_ in, to out) bool { to.ForceSingleClient = false; return true }},
	{"MasterName", "Sentinel.MasterSet ForceSingleClient", "", func(o in, to out) bool { to.Sentinel.MasterSet = o.MasterName; return true }},
	{"DB", "SelectDB", "it must not be negative, and a cluster has no other than 0", func(o in, to out) bool {
		to.SelectDB = o.DB
		return o.DB > 0 && !isCluster(o)
	}},
	{"ClientName", "ClientName Sentinel.ClientName", "", func(o in, to out) bool {
		to.ClientName, to.Sentinel.ClientName = o.ClientName, o.ClientName
		return true
	}},
	{"DisableIdentity DisableIndentity", "ClientSetInfo", "", func(_ in, to out) bool { to.ClientSetInfo = rueidis.DisableClientSetInfo; return true }},
	{"IdentitySuffix", "ClientSetInfo", "", func(o in, to out) bool {
		if !o.DisableIdentity && !o.DisableIndentity { //nolint:staticcheck // it is deprecated, and programs still set it
			to.ClientSetInfo = []string{rueidis.LibName + "(" + o.IdentitySuffix + ")", rueidis.LibVer}
		}
		return true
	}},
	{"Username", "Username", "", func(o in, to out) bool { to.Username = o.Username; return true }},
	{"Password", "Password", "", func(o in, to out) bool { to.Password = o.Password; return true }},
	{"SentinelUsername", "Sentinel.Username", "", func(o in, to out) bool { to.Sentinel.Username = o.SentinelUsername; return true }},
	{"SentinelPassword", "Sentinel.Password", "", func(o in, to out) bool { to.Sentinel.Password = o.SentinelPassword; return true }},
	{"CredentialsProvider CredentialsProviderContext", "AuthCredentialsFn", "rueidis would show these credentials to sentinels: use Username and Password", func(o in, to out) bool {
		to.AuthCredentialsFn = credentials(o.CredentialsProvider, o.CredentialsProviderContext, o.DialTimeout)
		return o.MasterName == ""
	}},
	{"StreamingCredentialsProvider", "", "open connections are not told of new credentials: use CredentialsProviderContext", never},
	{"TLSConfig", "TLSConfig Sentinel.TLSConfig", "", func(o in, to out) bool {
		to.TLSConfig, to.Sentinel.TLSConfig = o.TLSConfig, o.TLSConfig
		return true
	}},
	{"Dialer", "DialCtxFn", "", func(o in, to out) bool { to.DialCtxFn = dialWith(o.Dialer); return true }},
	{"DialTimeout", "Dialer.Timeout Sentinel.Dialer.Timeout", noTimeout, func(o in, to out) bool {
		to.Dialer.Timeout, to.Sentinel.Dialer.Timeout = o.DialTimeout, o.DialTimeout
		return o.DialTimeout > 0
	}},
	{"ReadTimeout", "ConnWriteTimeout", noTimeout, func(o in, to out) bool {
		to.ConnWriteTimeout = max(o.ReadTimeout, o.WriteTimeout)
		return o.ReadTimeout > 0
	}},
	{"WriteTimeout", "ConnWriteTimeout", noTimeout, func(o in, to out) bool {
		to.ConnWriteTimeout = max(o.ReadTimeout, o.WriteTimeout)
		return o.WriteTimeout > 0
	}},
	{"ReadBufferSize", "ReadBufferEachConn", "it must be 32 bytes at least", func(o in, to out) bool { to.ReadBufferEachConn = o.ReadBufferSize; return o.ReadBufferSize >= 32 }},
	{"WriteBufferSize", "WriteBufferEachConn", "it must be 32 bytes at least", func(o in, to out) bool { to.WriteBufferEachConn = o.WriteBufferSize; return o.WriteBufferSize >= 32 }},
	{"Protocol", "", "it must be 3", func(o in, _ out) bool { return o.Protocol < 2 || o.Protocol == 3 }},
	{"MaintNotificationsConfig", "", "maintenance notifications are not supported, so they cannot be demanded", func(o in, _ out) bool {
		return o.MaintNotificationsConfig.Mode != maintnotifications.ModeEnabled
	}},
	{"ReadOnly RouteByLatency RouteByLatencyTolerance RouteRandomly", "", "locks live on primaries", never},
	{"OnConnect PushNotificationProcessor", "", "it is for connections of go-redis", never},
	{"PoolFIFO PoolSize MaxConcurrentDials PoolTimeout MinIdleConns MaxIdleConns MaxActiveConns PipelineReadBufferSize PipelineWriteBufferSize PipelinePoolSize", "", "a few connections serve all", nil},
	{"ConnMaxIdleTime ConnMaxLifetime ConnMaxLifetimeJitter", "", "connections stay open", nil},
	{"MaxRetries MinRetryBackoff MaxRetryBackoff DialerRetries DialerRetryTimeout MaxRedirects FailingTimeoutSeconds", "", "what is safe to repeat is repeated until a context ends", nil},
	{"ContextTimeoutEnabled", "", "contexts are obeyed anyhow", nil},
	{"AutoPipelineOptions", "", "commands are sent together anyhow", nil},
	{"ClientSideCache ClientSideCacheConfig ClientSideCacheStrategy ClientSideCacheRefreshOnInvalidate ClientSideCacheCoalesceMisses ClientSideCacheInvalidationBatchWindow", "", "nothing is cached", nil},
	{"UnstableResp3", "", "go-redis ignores it, too", nil},
}
