package lua_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey/internal/lua"
)

// greatest is the greatest number of a message: see maxToken.
const greatest = 1<<53 - 2

// written is a message as the scripts write it.
func written(m lua.Message) string {
	kind := string(rune(m.Kind))
	if m.Kind == lua.Grant {
		kind = map[lua.Family]string{lua.Locks: "g", lua.Leased: "s", lua.Plain: "c", lua.ReadWrite: "r"}[m.Family]
	}
	text := lua.Version + " " + kind + " " + lua.Number(m.Number, m.Secret) + " "
	switch m.Kind {
	case lua.Grant:
		others := 0
		if m.Others {
			others = 1
		}
		text += fmt.Sprintf("%d %d %d %d %d ", m.Token, m.Reserved, others, m.Now, m.Lease)
	case lua.Forced:
		text += fmt.Sprintf("%d ", m.Token)
	case lua.Ends:
		text += fmt.Sprintf("%d ", m.Lease)
	case lua.Attempt:
		text += m.Asker + " "
	}
	return text + m.Name
}

// A message is read or refused. One that is refused says nothing at all. One that is read has numbers that
// can be, and is the same when it is written and read again; no other version of it is read, and nothing of
// which the numbers are cut off.
func FuzzMessage(f *testing.F) {
	for text := range messages {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		m := lua.ParseMessage(text)
		if m.Kind == lua.Unknown {
			require.Equal(t, lua.Message{}, m, "it is refused, and says something")
			return
		}
		for _, n := range []int64{m.Token, m.Reserved, m.Now, m.Lease} {
			require.True(t, n >= 0 && n <= greatest, "%d in %+v", n, m)
		}
		require.Less(t, int64(m.Secret), int64(lua.Secrets))
		require.NotContains(t, m.Asker, " ")
		require.True(t, strings.HasSuffix(text, m.Name))
		again := written(m)
		require.Equal(t, m, lua.ParseMessage(again), again)
		require.Zero(t, lua.ParseMessage("2"+strings.TrimPrefix(text, lua.Version)))
		head := strings.TrimSuffix(again, " "+m.Name)
		for cut := range len(head) {
			shorter := lua.ParseMessage(head[:cut])
			require.True(t, shorter.Kind == lua.Unknown || shorter.Kind == lua.Ping, "%q is read as %+v", head[:cut], shorter)
		}
	})
}
