package core_test

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey/internal/core"
	"github.com/latchkey-go/latchkey/internal/fail"
	"github.com/latchkey-go/latchkey/internal/lua"
	"github.com/latchkey-go/latchkey/internal/session"
	"github.com/latchkey-go/latchkey/internal/test/locktest"
	"github.com/latchkey-go/latchkey/internal/test/redistest"
)

// What every script needs, and the user may not do, is the error of Open, and the reason of a client that
// connects later.
func TestOpenSaysWhatTheUserMayNot(t *testing.T) {
	redistest.Together(t)
	s := redistest.NewProcess(t)
	plain := s.Client(t)
	for command, says := range map[string]string{"eval": "EVAL", "evalsha": "EVALSHA", "time": "TIME"} {
		t.Run(command, func(t *testing.T) {
			do(t, plain, "ACL", "SETUSER", command, "on", ">secret", "~*", "&*", "+@all", "-"+command)
			option := s.Option()
			option.Username, option.Password = command, "secret"
			_, err := core.Open(option, session.DefaultOptions())
			says := fmt.Sprintf("the user may not send %s, see Tenants in docs/operations.md: NOPERM", says)
			require.ErrorContains(t, err, "latchkey: not permitted: "+says)
			require.NotErrorIs(t, err, fail.ErrUnavailable)

			var j locktest.Journal
			c, err := openLazily(t, option, j.Keep)
			require.NoError(t, err)
			require.Eventually(t, func() bool { return j.Says(says) == 1 }, long, 5*time.Millisecond)
			_, err = newLock(t, c, "a", true).TryLock(t.Context())
			require.ErrorContains(t, err, says)
			do(t, plain, "ACL", "SETUSER", command, "+"+command)
			require.NoError(t, lockLater(t, newLock(t, c, "a", true)).Granted(t).Unlock(t.Context()))
		})
	}
}

// Who gives the address of a Sentinel, and names no master, is told so.
func TestOpenSaysThatItIsASentinel(t *testing.T) {
	redistest.Together(t)
	redistest.Require(t)
	monitored := redistest.NewProcess(t)
	sentinel := redistest.NewConfigured(t, fmt.Sprintf("sentinel monitor primary 127.0.0.1 %d 1\n", monitored.Port(t)), "--sentinel")
	option := sentinel.Option()
	_, err := core.Open(option, session.DefaultOptions())
	require.ErrorContains(t, err, "a Sentinel answers, and no master is named: see master_set of a URL")
	require.ErrorIs(t, err, fail.ErrInvalid)
	require.Equal(t, 1, strings.Count(err.Error(), "invalid argument"))

	var j locktest.Journal
	c, err := openLazily(t, option, j.Keep)
	require.NoError(t, err)
	require.Eventually(t, func() bool { return j.Says("a Sentinel answers") == 1 }, long, 5*time.Millisecond)
	_, err = newLock(t, c, "a", true).TryLock(t.Context())
	require.ErrorContains(t, err, "a Sentinel answers")

	option.Sentinel.MasterSet = "primary"
	require.NotNil(t, open(t, option))
}

// Of a server that is too old, Open says so, and a client that connects later. Others are told apart by no
// version: they count in their own way.
func TestOpenSaysThatTheServerIsTooOld(t *testing.T) {
	redistest.Together(t)
	s := redistest.NewProcess(t)
	for version, refused := range map[string]bool{
		"6.0.16": true, "5.0.14": true, "6.2.0": false, "7.0.15": false, "10.0.0": false, "df-v1.25": false, "": false,
	} {
		t.Run(version, func(t *testing.T) {
			p := redistest.NewProxy(t, s)
			p.Forge("-NOSCRIPT none\r\n:0\r\n*2\r\n$1\r\n1\r\n$1\r\n1\r\n%1\r\n$7\r\nversion\r\n$" + fmt.Sprint(len(version), "\r\n", version, "\r\n"))
			p.Judge(func(request string) redistest.Verdict {
				if strings.Contains(request, "\r\nTIME\r\n") && strings.HasSuffix(request, "\r\nHELLO\r\n") {
					return redistest.ForgeReply
				}
				return redistest.Pass
			})
			c, err := core.Open(p.Option(), session.DefaultOptions())
			if !refused {
				require.NoError(t, err)
				closeNow(c)
				return
			}
			says := "the server says that it is version " + version + ": Redis 6.2 or later is needed, or Valkey"
			require.ErrorContains(t, err, "latchkey: invalid argument: "+says)
			require.ErrorIs(t, err, fail.ErrInvalid)
			require.NotErrorIs(t, err, fail.ErrUnavailable)

			var j locktest.Journal
			late, err := openLazily(t, p.Option(), j.Keep)
			require.NoError(t, err)
			require.Eventually(t, func() bool { return j.Says(says) == 1 }, long, 5*time.Millisecond)
			_, err = newLock(t, late, "a", true).TryLock(t.Context())
			require.ErrorContains(t, err, says)
		})
	}
}

// A client finds out by itself that a server refuses scripts with keys that their calls have not named.
func TestStrictServerIsKnown(t *testing.T) {
	redistest.Together(t)
	s := redistest.NewProcess(t)
	strict := redistest.NewStrict(t, s)
	for what, option := range map[string]func() rueidis.ClientOption{"strict": strict.Option, "another": s.Option} {
		t.Run(what, func(t *testing.T) {
			c := open(t, option())
			late, err := openLazily(t, option())
			require.NoError(t, err)
			for _, c := range []*session.Client{c, late} {
				require.NoError(t, lockLater(t, newLock(t, c, "a", true)).Granted(t).Unlock(t.Context()))
				require.Equal(t, what == "strict", c.Conn.Declares.Load())
			}
			require.LessOrEqual(t, len(strict.Refused()), 1, "the first request of the one that connects later")
		})
	}
}

// The question by which it finds out begins as all scripts do. Dragonfly would refuse it otherwise, and then
// be taken for such a server.
func TestQuestionTellsDragonfly(t *testing.T) {
	redistest.Together(t)
	p := redistest.NewProxy(t, redistest.NewProcess(t))
	var asked atomic.Pointer[string]
	p.Judge(func(request string) redistest.Verdict {
		if strings.Contains(request, "latchkey_probe_") {
			asked.Store(&request)
		}
		return redistest.Pass
	})
	open(t, p.Option())
	require.NotNil(t, asked.Load())
	require.Contains(t, *asked.Load(), "\n"+lua.TellsDragonfly)
}
