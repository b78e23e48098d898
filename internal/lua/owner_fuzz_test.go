package lua_test

import (
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey/internal/lua"
)

// numberOf reads what stands behind the client in an owner id, as it comes with a message.
func numberOf(text string) (n uint64, secret uint32, ok bool) {
	m := lua.ParseMessage("1 a " + text + " name")
	return m.Number, m.Secret, m.Kind == lua.Ask && m.Name == "name"
}

// An owner id has a client, a number and a secret, which are read as they were written: no two ids are read
// as the same. Of an id that somebody else wrote the client is what stands before the first colon, and its
// number is refused, or is the one that it says.
func FuzzOwner(f *testing.F) {
	for _, claim := range entries {
		client, number, _ := strings.Cut(claim.Owner, ":")
		n, err := strconv.ParseUint(number, 10, 64)
		require.NoError(f, err)
		f.Add(client, n, uint32(n), claim.Owner)
	}
	for text, m := range messages {
		f.Add("a", m.Number, m.Secret, text)
	}
	for _, text := range absurd {
		f.Add(text, uint64(1<<63), uint32(lua.Secrets-1), text)
	}
	f.Fuzz(func(t *testing.T, client string, n uint64, secret uint32, text string) {
		secret %= lua.Secrets
		id := lua.OwnerWith(client, n, secret)
		require.Equal(t, client+":"+lua.Number(n, secret), id)
		require.Equal(t, client+":"+strconv.FormatUint(n, 10), lua.Owner(client, n))
		require.True(t, strings.HasPrefix(id, lua.ClientOf(id)))
		if !strings.Contains(client, ":") {
			require.Equal(t, client, lua.ClientOf(id))
		}
		gotN, gotSecret, ok := numberOf(lua.Number(n, secret))
		require.True(t, ok, id)
		require.Equal(t, n, gotN, id)
		require.Equal(t, secret, gotSecret, id)

		whose, rest, found := strings.Cut(text, ":")
		require.Equal(t, whose, lua.ClientOf(text))
		if !found {
			rest = text
		}
		n, secret, ok = numberOf(rest)
		digits := strings.Trim(rest, "0123456789") == "" && rest != ""
		if !ok {
			require.True(t, !digits || len(strings.TrimLeft(rest, "0")) >= len("18446744073709551616")+len("123456789"), "%q is refused", rest)
			return
		}
		require.True(t, digits, "%q is read", rest)
		written := lua.Number(n, secret)
		if len(rest) < len("1123456789") { // no room for a secret
			written = strconv.FormatUint(n, 10)
			require.Zero(t, secret)
		}
		require.Equal(t, strings.TrimLeft(rest, "0"), strings.TrimLeft(written, "0"))
	})
}
