package grant_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey/internal/lua"
	"github.com/latchkey-go/latchkey/internal/test/redistest"
)

// A reply to an acquire with a number that no script says is an error, and nothing of it is believed: the
// name is as it was, for this client and for all others.
func TestAbsurdReplies(t *testing.T) {
	redistest.Together(t)
	const absurd = "9223372036854775807"
	for name, reply := range map[string]string{
		"token":     ":" + absurd + "\r\n",
		"none":      ":0\r\n",
		"negative":  ":-7\r\n",
		"text":      "$19\r\n" + absurd + "\r\n",
		"reserved":  "*4\r\n:0\r\n:1700000000000000\r\n:" + absurd + "\r\n:0\r\n",
		"together":  "*4\r\n:0\r\n:9007199254740990\r\n:5000\r\n:0\r\n",
		"clock":     "*3\r\n:-1\r\n:1000\r\n:" + absurd + "\r\n",
		"sequence":  "*3\r\n:" + absurd + "\r\n:1000\r\n:1700000000000000\r\n",
		"a minimum": "*3\r\n:-9223372036854775808\r\n:1000\r\n:1700000000000000\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			s := redistest.New(t)
			p := redistest.NewProxy(t, s)
			mine, other := newLock(t, open(t, p.Option()), "a", true), newLock(t, open(t, s.Option()), "a", true)
			first := mustLock(t, mine)
			require.NoError(t, first.Unlock(t.Context()))
			p.Forge(reply)
			judge, forged := redistest.Once(redistest.Forge, redistest.IsAcquire)
			p.Judge(judge)
			h, err := mine.TryLock(t.Context())
			require.ErrorIs(t, err, lua.ErrReply)
			require.Nil(t, h)
			require.EqualValues(t, 1, forged.Load())
			again := mustLock(t, mine)
			require.Greater(t, again.Token(), first.Token())
			require.Less(t, again.Token(), first.Token()+60_000_000, "it is as it was")
			require.NoError(t, again.Unlock(t.Context()))
			next := mustLock(t, other)
			require.Less(t, next.Token(), first.Token()+60_000_000)
			require.NoError(t, next.Unlock(t.Context()))
		})
	}
}

// The server did what it was asked for, and its reply cannot be believed: what the acquire took is given
// back.
func TestAbsurdReplyOfAnAcquireThatRan(t *testing.T) {
	redistest.Together(t)
	for name, delegate := range kinds {
		t.Run(name, func(t *testing.T) {
			s := redistest.New(t)
			p := redistest.NewProxy(t, s)
			mine, other := newLock(t, open(t, p.Option()), "a", delegate), newLock(t, open(t, s.Option()), "a", delegate)
			require.NoError(t, mustLock(t, mine).Unlock(t.Context()))
			p.Forge("$19\r\n9223372036854775807\r\n")
			judge, forged := redistest.Once(redistest.ForgeReply, redistest.IsAcquire)
			p.Judge(judge)
			_, err := mine.Lock(t.Context())
			require.ErrorIs(t, err, lua.ErrReply)
			require.EqualValues(t, 1, forged.Load())
			require.Eventually(t, func() bool {
				state, err := other.Inspect(context.Background())
				return err == nil && state.Holder.Owner == ""
			}, 5*time.Second, time.Millisecond, "half a lease")
			require.NoError(t, mustLock(t, other).Unlock(t.Context()))
		})
	}
}
