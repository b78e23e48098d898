package core_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey/internal/core"
	"github.com/latchkey-go/latchkey/internal/fail"
	"github.com/latchkey-go/latchkey/internal/locktest"
	"github.com/latchkey-go/latchkey/internal/redistest"
	"github.com/latchkey-go/latchkey/internal/session"
)

// What every script needs, and the user may not do, is the error of Open, and the reason of a client that
// connects later.
func TestOpenSaysWhatTheUserMayNot(t *testing.T) {
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
			require.Eventually(t, func() bool { return j.Says(says) == 1 }, long, time.Millisecond)
			_, err = newLock(t, c, "a", true).TryLock(t.Context())
			require.ErrorContains(t, err, says)
			do(t, plain, "ACL", "SETUSER", command, "+"+command)
			require.NoError(t, lockLater(t, newLock(t, c, "a", true)).Granted(t).Unlock(t.Context()))
		})
	}
}

// Who gives the address of a Sentinel, and names no master, is told so.
func TestOpenSaysThatItIsASentinel(t *testing.T) {
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
	require.Eventually(t, func() bool { return j.Says("a Sentinel answers") == 1 }, long, time.Millisecond)
	_, err = newLock(t, c, "a", true).TryLock(t.Context())
	require.ErrorContains(t, err, "a Sentinel answers")

	option.Sentinel.MasterSet = "primary"
	require.NotNil(t, open(t, option))
}
