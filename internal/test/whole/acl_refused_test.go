package whole_test

import (
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/barrier"
	"github.com/latchkey-go/latchkey/countdown"
	"github.com/latchkey-go/latchkey/internal/test/locktest"
	"github.com/latchkey-go/latchkey/internal/test/redistest"
	"github.com/latchkey-go/latchkey/rlock"
	"github.com/latchkey-go/latchkey/rueidisclient"
)

// deaf are the servers of a user who may use no channel, as users are by default.
func deaf(t *testing.T) map[string]rueidis.ClientOption {
	options := map[string]rueidis.ClientOption{"standalone": redistest.NewProcess(t).Option()}
	cluster := redistest.NewCluster(t)
	options["cluster"] = cluster.Option()
	for name, option := range options {
		plain, err := rueidis.NewClient(option)
		require.NoError(t, err)
		t.Cleanup(plain.Close)
		for _, node := range plain.Nodes() {
			rule := strings.Fields("ACL SETUSER deaf on >secret ~* resetchannels +@all")
			require.NoError(t, node.Do(t.Context(), node.B().Arbitrary(rule...).Build()).Error())
		}
		option.Username, option.Password = "deaf", "secret"
		options[name] = option
	}
	return options
}

// A user who may use no channel is told so: by the log, by Check, and by the waits that are long because of
// it.
func TestUserWithoutChannels(t *testing.T) {
	for name, option := range deaf(t) {
		t.Run(name, func(t *testing.T) {
			var log locktest.Journal
			c, err := rueidisclient.New(option, latchkey.WithLogger(slog.New(slog.NewTextHandler(&log, nil))))
			require.NoError(t, err)
			defer c.Close()
			const hint = ", see Tenants in docs/operations.md, or WithoutPubSub: NOPERM"
			err = c.Check(context.Background()) // without an end
			require.ErrorContains(t, err, `latchkey: the user may not subscribe to "latchkey_inbox:`)
			require.ErrorContains(t, err, hint)
			locktest.ErrorSays(t, err)
			refused := func() []string { return log.Lines("the user may not subscribe\" channel=latchkey_inbox:") }
			require.Eventually(t, func() bool { return len(refused()) == 1 }, 20*time.Second, time.Millisecond)

			latch, err := countdown.New(c, "latch", countdown.WithCount(1))
			require.NoError(t, err)
			step, err := barrier.New(c, "step", 2)
			require.NoError(t, err)
			for name, wait := range map[string]func(context.Context) error{
				"redisson_countdownlatch__channel__": latch.Await,
				"latchkey_barrier:":                  func(ctx context.Context) error { _, err := step.Await(ctx); return err },
			} {
				ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
				ended := make(chan error, 1)
				go func() { ended <- wait(ctx) }()
				require.Eventually(t, func() bool { return len(log.Lines("channel="+name)) == 1 }, 20*time.Second, time.Millisecond)
				cancel()
				err := <-ended
				locktest.ErrorSays(t, err, context.Canceled)
				require.ErrorContains(t, err, `the user may not subscribe to "`+name)
				require.ErrorContains(t, err, hint)
			}
			l, err := rlock.New(c, "lock")
			require.NoError(t, err)
			h, err := l.Lock(t.Context())
			require.NoError(t, err)
			require.NoError(t, h.Unlock(t.Context()))
			require.Len(t, refused(), 1, "once, although it is tried again and again")
		})
	}
}

// A right that is given later is used, and one that is taken away is told.
func TestUserWithChannelsLater(t *testing.T) {
	s := redistest.NewProcess(t)
	plain := s.Client(t)
	rule := func(words string) {
		t.Helper()
		require.NoError(t, plain.Do(t.Context(), plain.B().Arbitrary(strings.Fields("ACL SETUSER user on >secret ~* +@all "+words)...).Build()).Error())
	}
	rule("resetchannels")
	option := s.Option()
	option.Username, option.Password = "user", "secret"
	var log locktest.Journal
	c, err := rueidisclient.New(option, latchkey.WithLogger(slog.New(slog.NewTextHandler(&log, nil))))
	require.NoError(t, err)
	defer c.Close()
	limited, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	require.ErrorContains(t, c.Check(limited), "NOPERM")
	rule("allchannels")
	require.Eventually(t, func() bool { return c.Check(context.Background()) == nil }, 20*time.Second, time.Millisecond)
	rule("-publish")
	require.ErrorContains(t, c.Check(t.Context()), "the user may not publish to ")
	rule("resetchannels")
	require.Eventually(t, func() bool { return len(log.Lines("the user may not subscribe")) == 2 }, 20*time.Second, time.Millisecond)
}

// A client that may not listen to the ear does not listen to the channel of releases either: there it would
// be taken for a waiter of Redisson, to which every other release is left.
func TestNoEarNoReleases(t *testing.T) {
	redistest.Together(t)
	s := redistest.NewProcess(t)
	require.NoError(t, s.Client(t).Do(t.Context(), s.Client(t).B().Arbitrary(
		"ACL", "SETUSER", "deaf", "on", ">pw", "~*", "+@all", "resetchannels", "&latchkey_inbox:*", "&redisson_*").Build()).Error())
	option := s.Option()
	option.Username, option.Password = "deaf", "pw"
	var log locktest.Journal
	locks := besideRedisson(t, option, logging(&log))
	hold, err := locks[0].Lock(t.Context())
	require.NoError(t, err)
	next := redistest.Begin(t, locks[1].Lock)
	require.Eventually(t, func() bool { return len(log.Lines("channel=latchkey_ear:")) == 1 }, 20*time.Second, time.Millisecond)
	n, err := s.Client(t).Do(t.Context(), s.Client(t).B().PubsubNumsub().Channel("redisson_lock__channel:{lock}").Build()).ToArray()
	require.NoError(t, err)
	listen, err := n[1].AsInt64()
	require.NoError(t, err)
	require.Zero(t, listen)
	require.NoError(t, hold.Unlock(t.Context()))
	require.NoError(t, next.Granted(t).Unlock(t.Context()))
}
