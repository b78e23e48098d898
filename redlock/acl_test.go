package redlock_test

import (
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/internal/test/redistest"
	"github.com/latchkey-go/latchkey/redlock"
	"github.com/latchkey-go/latchkey/rueidisclient"
)

// tenants are clients that may do on each server what the rule of docs/operations.md says, and more.
func tenants(t testing.TB, servers []*redistest.Server, more ...string) []*latchkey.Client {
	t.Helper()
	return users(t, servers, "shop", more)
}

// users are clients of a user whose rule is in docs/operations.md.
func users(t testing.TB, servers []*redistest.Server, user string, more []string, opts ...latchkey.Option) (all []*latchkey.Client) {
	t.Helper()
	text, err := os.ReadFile("../docs/operations.md")
	require.NoError(t, err)
	found := regexp.MustCompile(`(?m)^(ACL SETUSER ` + user + ` .*)$`).FindSubmatch(text)
	require.NotNil(t, found)
	for _, s := range servers {
		plain := s.Client(t)
		require.NoError(t, plain.Do(t.Context(), plain.B().Arbitrary(append(strings.Fields(string(found[1])), more...)...).Build()).Error())
		o := s.Option()
		o.Username, o.Password = user, "secret"
		c, err := rueidisclient.New(o, append(opts, latchkey.WithKeyPrefix("shop:"))...)
		require.NoError(t, err)
		t.Cleanup(func() { _ = c.Close() })
		all = append(all, c)
	}
	return all
}

// The access rule of docs/operations.md is enough: who waits hears of a release. With +info it is enough for
// WithUptime.
func TestAccess(t *testing.T) {
	redistest.Together(t)
	servers := five(t, process)
	h := take(t, lockOf(t, tenants(t, servers)))
	next := later(t, lockOf(t, tenants(t, servers)))
	for _, s := range servers {
		listening(t, s, "shop:a", 1)
	}
	unlock(t, h)
	unlock(t, next.Granted(t))
	for _, c := range plains(t, servers) {
		refused, err := c.Do(t.Context(), c.B().Arbitrary("ACL", "LOG").Build()).ToArray()
		require.NoError(t, err)
		for _, r := range refused {
			entry, err := r.AsStrMap()
			require.NoError(t, err)
			require.Equal(t, "info", entry["object"], "a release may be announced")
		}
	}
	careful, err := redlock.New(tenants(t, servers), "b", redlock.WithUptime(time.Second))
	require.NoError(t, err)
	_, err = careful.TryLock(t.Context())
	require.ErrorContains(t, err, "can't run this command")
	careful, err = redlock.New(tenants(t, servers, "+info"), "b", redlock.WithUptime(time.Second))
	require.NoError(t, err)
	unlock(t, take(t, careful))
}

// Without the channel nothing is announced, and no more is lost than that.
func TestAccessWithoutTheChannel(t *testing.T) {
	servers := five(t, process)
	l := lockOf(t, tenants(t, servers, "resetchannels", "&latchkey_inbox:shop_*"))
	h := take(t, l)
	next := later(t, lockOf(t, tenants(t, servers, "resetchannels", "&latchkey_inbox:shop_*")))
	<-time.After(300 * time.Millisecond)
	unlock(t, h)
	unlock(t, next.Granted(t))
}

// A user who may use no channel takes turns with one who may.
func TestAccessWithoutChannels(t *testing.T) {
	redistest.Together(t)
	servers := five(t, process)
	plain := plains(t, servers)
	polls, hears := lockOf(t, users(t, servers, "poller", nil, latchkey.WithoutPubSub())), lockOf(t, tenants(t, servers))
	for _, turn := range []struct{ holder, waiter *redlock.Lock }{{polls, hears}, {hears, polls}} {
		h := take(t, turn.holder)
		before := scripts(t, plain)
		next := later(t, turn.waiter)
		require.Eventually(t, func() bool { return scripts(t, plain) >= before+3 }, long, 5*time.Millisecond, "a majority refuses it")
		unlock(t, h)
		unlock(t, next.Granted(t))
	}
	clean(t, plain, long)
}
