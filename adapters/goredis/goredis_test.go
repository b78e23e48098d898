package latchkeygoredis_test

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"reflect"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/auth"
	"github.com/redis/go-redis/v9/maintnotifications"
	"github.com/redis/go-redis/v9/push"
	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	latchkeygoredis "github.com/latchkey-go/latchkey/adapters/goredis"
	"github.com/latchkey-go/latchkey/internal/test/redistest"
	"github.com/latchkey-go/latchkey/rlock"
	"github.com/latchkey-go/latchkey/rueidisclient"
)

// options is the type whose fields are mapped.
var options = reflect.TypeFor[redis.UniversalOptions]()

func TestEachFieldHasOneRule(t *testing.T) {
	rules, twice := latchkeygoredis.Rules()
	require.Empty(t, twice)
	for i := range options.NumField() {
		require.Contains(t, rules, options.Field(i).Name, "a field of go-redis that this package does not know")
		delete(rules, options.Field(i).Name)
	}
	require.Empty(t, rules, "fields that go-redis does not have")
}

// special are the values of fields of which not any value will do.
var special = map[string]any{
	"Protocol": 2,
	"Addrs":    []string{"/run/redis.sock"},
	"StreamingCredentialsProvider": struct {
		auth.StreamingCredentialsProvider
	}{},
	"PushNotificationProcessor": struct{ push.NotificationProcessor }{},
	"ClientSideCache":           struct{ redis.Cache }{},
	"MaintNotificationsConfig":  &maintnotifications.Config{Mode: maintnotifications.ModeEnabled},
}

// value is one for a field that is not zero.
func value(t *testing.T, field reflect.StructField) reflect.Value {
	t.Helper()
	if v, ok := special[field.Name]; ok {
		return reflect.ValueOf(v)
	}
	v := reflect.New(field.Type).Elem()
	switch field.Type.Kind() {
	case reflect.String:
		v.SetString("some")
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int64:
		v.SetInt(1 << 40) // as a duration 18 minutes
	case reflect.Pointer:
		v.Set(reflect.New(field.Type.Elem()))
	case reflect.Func:
		v.Set(reflect.MakeFunc(field.Type, func([]reflect.Value) []reflect.Value { panic("called") }))
	default:
		t.Fatalf("no value for a field of type %s", field.Type)
	}
	return v
}

// at returns what is at a path as Sentinel.Username.
func at(t *testing.T, o rueidis.ClientOption, path string) reflect.Value {
	t.Helper()
	v := reflect.ValueOf(o)
	for name := range strings.SplitSeq(path, ".") {
		v = v.FieldByName(name)
		require.True(t, v.IsValid(), "rueidis has no %s", path)
	}
	return v
}

// same compares values; functions are the same if both are nil.
func same(a, b any) bool { return reflect.DeepEqual(a, b) }

func TestEachFieldDoesWhatItsRuleSays(t *testing.T) {
	base, err := latchkeygoredis.ClientOption(&redis.UniversalOptions{})
	require.NoError(t, err)
	rules, _ := latchkeygoredis.Rules()
	for i := range options.NumField() {
		field := options.Field(i)
		t.Run(field.Name, func(t *testing.T) {
			o := &redis.UniversalOptions{}
			reflect.ValueOf(o).Elem().Field(i).Set(value(t, field))
			made, err := latchkeygoredis.ClientOption(o)
			switch rule := rules[field.Name]; {
			case rule.Ignored:
				require.NoError(t, err)
				require.NotEmpty(t, rule.Why)
				require.Empty(t, rule.To)
				require.True(t, same(base, made), "an ignored field changes something")
			case len(rule.To) == 0:
				require.ErrorIs(t, err, latchkey.ErrInvalid)
				require.ErrorContains(t, err, field.Name+": "+rule.Why)
				require.NotEmpty(t, rule.Why)
				require.Zero(t, made)
			default:
				require.NoError(t, err)
				for _, path := range rule.To {
					require.False(t, same(at(t, base, path).Interface(), at(t, made, path).Interface()), "%s stays what it is", path)
					set(&made, path, at(t, base, path)) // to see that nothing else has changed
				}
				if field.Name == "MasterName" { // has another default
					made.InitAddress = base.InitAddress
				}
				require.True(t, same(base, made), "%s changes more than %s", field.Name, rule.To)
			}
		})
	}
}

// set sets what is at a path.
func set(o *rueidis.ClientOption, path string, to reflect.Value) {
	v := reflect.ValueOf(o).Elem()
	for name := range strings.SplitSeq(path, ".") {
		v = v.FieldByName(name)
	}
	v.Set(to)
}

func TestValues(t *testing.T) {
	config := &tls.Config{MinVersion: tls.VersionTLS13}
	made, err := latchkeygoredis.ClientOption(&redis.UniversalOptions{
		Addrs: []string{"a:1", "b:2"}, MasterName: "main", DB: 3, ClientName: "shop",
		Username: "user", Password: "secret", SentinelUsername: "watcher", SentinelPassword: "other",
		DialTimeout: time.Second, ReadTimeout: 2 * time.Second, WriteTimeout: 3 * time.Second,
		ReadBufferSize: 1024, WriteBufferSize: 2048, TLSConfig: config, IdentitySuffix: "shop", Protocol: 3,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeAuto},
	})
	require.NoError(t, err)
	require.Equal(t, rueidis.ClientOption{
		InitAddress: []string{"a:1", "b:2"}, SelectDB: 3, ClientName: "shop", Username: "user", Password: "secret",
		Dialer: net.Dialer{Timeout: time.Second}, ConnWriteTimeout: 3 * time.Second,
		ReadBufferEachConn: 1024, WriteBufferEachConn: 2048, TLSConfig: config,
		ClientSetInfo: []string{"rueidis(shop)", rueidis.LibVer},
		Sentinel: rueidis.SentinelOption{
			MasterSet: "main", Username: "watcher", Password: "other", ClientName: "shop",
			TLSConfig: config, Dialer: net.Dialer{Timeout: time.Second},
		},
	}, made)
}

func TestKindOfServer(t *testing.T) {
	for name, test := range map[string]struct {
		given  redis.UniversalOptions
		single bool
		first  string
	}{
		"nothing":              {redis.UniversalOptions{}, true, "127.0.0.1:6379"},
		"one address":          {redis.UniversalOptions{Addrs: []string{"a:1"}}, true, "a:1"},
		"a cluster":            {redis.UniversalOptions{Addrs: []string{"a:1", "b:2"}}, false, "a:1"},
		"one of a cluster":     {redis.UniversalOptions{Addrs: []string{"a:1"}, IsClusterMode: true}, false, "a:1"},
		"Sentinel":             {redis.UniversalOptions{Addrs: []string{"a:1", "b:2"}, MasterName: "main"}, false, "a:1"},
		"Sentinel by default":  {redis.UniversalOptions{MasterName: "main"}, false, "127.0.0.1:26379"},
		"Sentinel, as cluster": {redis.UniversalOptions{MasterName: "main", IsClusterMode: true}, false, "127.0.0.1:26379"},
	} {
		t.Run(name, func(t *testing.T) {
			made, err := latchkeygoredis.ClientOption(&test.given)
			require.NoError(t, err)
			require.Equal(t, test.single, made.ForceSingleClient)
			require.Equal(t, test.first, made.InitAddress[0])
			require.Equal(t, test.given.MasterName, made.Sentinel.MasterSet)
		})
	}
}

func TestRefusedValues(t *testing.T) {
	for text, given := range map[string]*redis.UniversalOptions{
		"nil":                         nil,
		"Addrs":                       {Addrs: []string{"a:1", ""}},
		"DB":                          {DB: -1},
		"DB: it":                      {DB: 1, Addrs: []string{"a:1", "b:1"}},
		"DB: it must":                 {DB: 1, IsClusterMode: true},
		"Protocol":                    {Protocol: 4},
		"DialTimeout":                 {DialTimeout: -1},
		"ReadTimeout":                 {ReadTimeout: -1, WriteTimeout: time.Second},
		"WriteTimeout":                {ReadTimeout: time.Second, WriteTimeout: -2},
		"ReadBufferSize":              {ReadBufferSize: 31},
		"WriteBufferSize":             {WriteBufferSize: -1},
		"CredentialsProvider":         {MasterName: "main", CredentialsProvider: func() (string, string) { return "", "" }},
		"CredentialsProviderContext":  {MasterName: "main", CredentialsProviderContext: func(context.Context) (string, string, error) { return "", "", nil }},
		"OnConnect: it is for":        {OnConnect: func(context.Context, *redis.Conn) error { return nil }, Password: "secret"},
		"Protocol: it must be 3; Rea": {ReadOnly: true, Protocol: 2, Password: "secret"}, // all of them
	} {
		made, err := latchkeygoredis.ClientOption(given)
		require.ErrorIs(t, err, latchkey.ErrInvalid)
		require.ErrorContains(t, err, text)
		require.NotContains(t, err.Error(), "secret")
		require.NotContains(t, err.Error(), "\n")
		require.Zero(t, made)
	}
}

// locks takes a lock as these options say, and calls f meanwhile.
func locks(t *testing.T, o *redis.UniversalOptions, f func()) error {
	t.Helper()
	option, err := latchkeygoredis.ClientOption(o)
	require.NoError(t, err)
	c, err := rueidisclient.New(option)
	if err != nil {
		return err
	}
	defer c.Close()
	return rlock.Do(t.Context(), c, "orders:42", func(context.Context, *latchkey.Hold) error {
		f()
		return nil
	})
}

// protected is a server on which user alice has a password; go-redis can do with it as well.
func protected(t *testing.T) (s *redistest.Server, admin rueidis.Client) {
	t.Helper()
	s = redistest.NewProcess(t)
	admin = s.Client(t)
	require.NoError(t, admin.Do(t.Context(), admin.B().Arbitrary("ACL", "SETUSER", "alice", "on", ">secret", "~*", "&*", "+@all").Build()).Error())
	return s, admin
}

func TestLock(t *testing.T) {
	s, admin := protected(t)
	o := &redis.UniversalOptions{
		Addrs: []string{s.Addr}, Username: "alice", Password: "secret", DB: 3, ClientName: "shop", IdentitySuffix: "till",
		DialTimeout: 5 * time.Second, ReadTimeout: 5 * time.Second, PoolSize: 7,
	}
	theirs := redis.NewUniversalClient(o)
	defer theirs.Close()
	require.NoError(t, locks(t, o, func() {
		list, err := admin.Do(t.Context(), admin.B().ClientList().Build()).ToString()
		require.NoError(t, err)
		require.Regexp(t, `name=shop .*db=3 .*user=alice .*`, list)
		n, err := theirs.Exists(t.Context(), "orders:42").Result() // in the database of go-redis
		require.NoError(t, err)
		require.EqualValues(t, 1, n)
	}))
	o.Password = "wrong"
	err := locks(t, o, func() {})
	require.Error(t, err)
	require.NotErrorIs(t, err, latchkey.ErrInvalid)
	require.ErrorContains(t, err, "WRONGPASS")
}

func TestCredentialsProviders(t *testing.T) {
	s, _ := protected(t)
	var asked atomic.Int64
	plain := func() (string, string) { asked.Add(1); return "alice", "secret" }
	o := &redis.UniversalOptions{Addrs: []string{s.Addr}, CredentialsProvider: plain, Username: "nobody", Password: "wrong"}
	require.NoError(t, locks(t, o, func() {}))
	require.Positive(t, asked.Load())

	o.CredentialsProvider = func() (string, string) { return "nobody", "wrong" } // the other one goes first
	o.CredentialsProviderContext = func(ctx context.Context) (string, string, error) {
		_, bounded := ctx.Deadline()
		require.True(t, bounded)
		return "alice", "secret", nil
	}
	require.NoError(t, locks(t, o, func() {}))

	away := errors.New("the vault is away")
	o.CredentialsProviderContext = func(context.Context) (string, string, error) { return "", "", away }
	require.ErrorIs(t, locks(t, o, func() {}), away)
}

func TestDialer(t *testing.T) {
	s := redistest.New(t)
	var dialled atomic.Int64
	o := &redis.UniversalOptions{Addrs: []string{"elsewhere:1"}, DialTimeout: 5 * time.Second, TLSConfig: &tls.Config{MinVersion: tls.VersionTLS13}}
	o.Dialer = func(ctx context.Context, network, address string) (net.Conn, error) { // without TLS, as go-redis has it
		dialled.Add(1)
		if _, bounded := ctx.Deadline(); !bounded || network != "tcp" || address != "elsewhere:1" {
			return nil, errors.New("dialled otherwise than by go-redis: " + network + " " + address)
		}
		return (&net.Dialer{}).DialContext(ctx, network, s.Addr)
	}
	require.NoError(t, locks(t, o, func() {}))
	require.Positive(t, dialled.Load())
}

func TestSocket(t *testing.T) {
	path := t.TempDir() + "/redis.sock"
	redistest.NewProcess(t, "--unixsocket", path)
	o := &redis.UniversalOptions{Addrs: []string{path}}
	theirs := redis.NewUniversalClient(o)
	defer theirs.Close()
	require.NoError(t, locks(t, o, func() {
		require.EqualValues(t, 1, theirs.Exists(t.Context(), "orders:42").Val())
	}))
}

func TestClusterOfRedis(t *testing.T) {
	cluster := redistest.NewCluster(t)
	o := &redis.UniversalOptions{Addrs: cluster.Option().InitAddress[:1], IsClusterMode: true}
	theirs := redis.NewUniversalClient(o)
	defer theirs.Close()
	require.NoError(t, locks(t, o, func() {
		require.EqualValues(t, 1, theirs.Exists(t.Context(), "orders:42").Val())
	}))
}
