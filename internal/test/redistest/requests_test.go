package redistest_test

import (
	"context"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey/internal/lua"
	"github.com/latchkey-go/latchkey/internal/test/redistest"
	"github.com/latchkey-go/latchkey/rueidisclient"
	"github.com/latchkey-go/latchkey/rwlock"
)

// What a client sends is told by the name of its script, as a text and as a digest, also when a request has
// several.
func TestScriptsAreKnownByName(t *testing.T) {
	s := redistest.New(t)
	p := redistest.NewProxy(t, s)
	c, err := rueidisclient.New(p.Option())
	require.NoError(t, err)
	t.Cleanup(func() { _ = c.Close() })
	require.NoError(t, c.Check(t.Context()))
	l, err := rwlock.New(c, "a")
	require.NoError(t, err)
	var mu sync.Mutex
	var sent []string
	p.Judge(func(request string) redistest.Verdict {
		mu.Lock()
		defer mu.Unlock()
		for kind, is := range map[string]func(string) bool{
			"acquire": redistest.IsAcquire, "again": redistest.IsAgain, "release": redistest.IsRelease, "renewal": redistest.IsRenewal,
			"downgrade": func(request string) bool { return redistest.Runs(request, "rwlock/downgrade") },
		} {
			if is(request) {
				sent = append(sent, kind)
			}
		}
		return redistest.Pass
	})
	for range 2 { // as a text at first
		h, err := l.Write().Lock(t.Context())
		require.NoError(t, err)
		require.NoError(t, rwlock.Downgrade(context.Background(), h))
		require.NoError(t, h.Unlock(t.Context()))
	}
	mu.Lock()
	defer mu.Unlock()
	require.Subset(t, sent, []string{"acquire", "downgrade", "release"})
	require.NotContains(t, sent, "again")

	keys, err := lua.NewKeys(lua.Locks, "a", false)
	require.NoError(t, err)
	text := lua.Texts(keys)["renew"]
	one := "*3\r\n$7\r\nEVALSHA\r\n$40\r\n" + lua.SHA(lua.Texts(keys)["offer"]) + "\r\n$1\r\n0\r\n"
	require.True(t, redistest.Runs(one, "lock/offer"))
	require.True(t, redistest.IsAcquire(one))
	require.False(t, redistest.IsRelease(one))
	two := one + "*3\r\n$4\r\nEVAL\r\n$" + strconv.Itoa(len(text)) + "\r\n" + text + "\r\n$1\r\n0\r\n"
	require.True(t, redistest.IsRenewal(two))
	require.True(t, redistest.Runs(two, "lock/offer"))
	require.False(t, redistest.IsRenewal(strings.Replace(two, text, text[1:]+" ", 1)), "a text that is not ours")
}
