package identity

import (
	"context"
	"os"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
)

// The record of a client is found with its id and any key that it has used, whatever its prefix is.
func TestKeyBeside(t *testing.T) {
	for _, prefix := range []string{"", "shop:", "{shop}:", "a=b:", "größe/", "\xff", strings.Repeat("x", 100)} {
		id := NewID(prefix)
		for _, name := range []string{"n", "{n}", "a=b", "größe", prefix + "n"} {
			require.Equal(t, Key(prefix, id), KeyBeside(prefix+name, id), "%q %q", prefix, name)
		}
		require.NotEqual(t, id, NewID(prefix))
		same, ok := ClientOf(prefix, Key(prefix, id))
		require.True(t, ok, prefix)
		require.Equal(t, id, same)
		for _, other := range []string{"", "shop:", "sho", "{shop}:", "warehouse:"} {
			if other != prefix {
				_, ok := ClientOf(other, Key(prefix, id))
				require.False(t, ok, "%q %q", other, prefix)
			}
		}
	}
	require.Equal(t, "latchkey_client:{shop:shop_=ABCDEFGHIJKLMNOP}", KeyBeside("shop:orders", "shop_=ABCDEFGHIJKLMNOP"))
	require.Equal(t, "latchkey_client:{shop}:_shop__=ABCDEFGHIJKLMNOP", KeyBeside("{shop}:orders", "_shop__=ABCDEFGHIJKLMNOP"))
	for _, id := range []string{"", "=", "c4a1f1d0-3b9a-4b4e-9d6d-0d5ae2bb8a11", "shop_=short", "shop_=abcdefghijklmnop", "warehouse_=ABCDEFGHIJKLMNOP"} {
		require.Empty(t, KeyBeside("shop:orders", id), id)
	}
}

// An unknown client has words as well.
func TestUnknownParty(t *testing.T) {
	require.Equal(t, "an unknown client", Party{}.String())
	require.Equal(t, "client ABC", Party{Client: "ABC"}.String())
}

// What a client tells is read as it was written.
func TestRecord(t *testing.T) {
	r := New("", time.UnixMilli(1_700_000_000_123))
	require.Equal(t, r.Program, r.Label)
	require.Equal(t, os.Getpid(), r.PID)
	r = New("orders in <zone> \"a\"", time.UnixMilli(1_700_000_000_123))
	r.Tenures = []Tenure{{Number: "1234567890", Since: 1_700_000_001_000, Holds: true, Note: "größe\n"}, {Number: "2234567890", Since: 5}}
	again, ok := Parse(r.String())
	require.True(t, ok)
	require.Equal(t, r, again)

	who := PartyOf("shop_=ABCDEFGHIJKLMNOP:1234567890:write", r)
	require.Equal(t, "shop_=ABCDEFGHIJKLMNOP", who.Client)
	require.Equal(t, "größe\n", who.Note)
	require.Equal(t, time.UnixMilli(1_700_000_001_000), who.Since)
	require.Equal(t, time.UnixMilli(1_700_000_000_123), who.Opened)
	unknown := PartyOf("shop_=ABCDEFGHIJKLMNOP:3234567890", r)
	require.Equal(t, r.Host, unknown.Host)
	require.Zero(t, unknown.Since)
	require.Equal(t, Party{Client: "uuid"}, PartyOf("uuid:7", Record{}))
}

// What others wrote under such a key is read within bounds, or not at all.
func FuzzParse(f *testing.F) {
	f.Add(New("label", time.Now()).String())
	f.Add(`{"label":"` + strings.Repeat("ü", MaxLabel) + `","tenures":[{"n":"1","note":"` + strings.Repeat("x", 2*MaxNote) + `"}]}`)
	f.Add(`{"tenures":[` + strings.Repeat(`{"n":"1"},`, MaxTenures) + `{}]}`)
	f.Add("[]")
	f.Fuzz(func(t *testing.T, text string) {
		r, ok := Parse(text)
		if !ok {
			require.Equal(t, Record{}, r)
			return
		}
		require.LessOrEqual(t, len(r.Tenures), MaxTenures)
		for _, s := range []string{r.Host, r.Program, r.Label, r.Version} {
			require.LessOrEqual(t, len(s), MaxLabel)
		}
		for _, told := range r.Tenures {
			require.LessOrEqual(t, len(told.Note), MaxNote)
		}
	})
}

// A long note is told in part, and in whole characters.
func TestNote(t *testing.T) {
	require.Empty(t, NoteOf(t.Context()))
	require.Empty(t, NoteOf(nil)) //nolint:staticcheck // it may be unknown
	require.Equal(t, "order 42", NoteOf(WithNote(context.Background(), "order 42")))
	long := NoteOf(WithNote(t.Context(), strings.Repeat("ü€", MaxNote)))
	require.True(t, utf8.ValidString(long))
	require.InDelta(t, MaxNote, len(long), 3)
	inner := WithNote(WithNote(t.Context(), "outer"), "inner")
	require.Equal(t, "inner", NoteOf(inner))
}
