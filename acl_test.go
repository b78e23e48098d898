package latchkey_test

import (
	"context"
	"errors"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/barrier"
	"github.com/latchkey-go/latchkey/countdown"
	"github.com/latchkey-go/latchkey/fairlock"
	"github.com/latchkey-go/latchkey/internal/redistest"
	"github.com/latchkey-go/latchkey/rlock"
	"github.com/latchkey-go/latchkey/rwlock"
	"github.com/latchkey-go/latchkey/semaphore"
)

// The access rule of docs/operations.md is all that a tenant needs, and keeps others out.
func TestACLKeepsTenantsApart(t *testing.T) {
	text, err := os.ReadFile("docs/operations.md")
	require.NoError(t, err)
	found := regexp.MustCompile(`(?m)^(ACL SETUSER shop .*)$`).FindSubmatch(text)
	require.NotNil(t, found)
	s := redistest.NewProcess(t)
	plain := s.Client(t)
	tenant := func(name string) rueidis.ClientOption {
		rule := strings.Fields(strings.ReplaceAll(string(found[1]), "shop", name))
		require.NoError(t, plain.Do(t.Context(), plain.B().Arbitrary(rule...).Build()).Error())
		o := s.Option()
		o.Username, o.Password = name, "secret"
		return o
	}
	option := tenant("mine")
	clients := make([]*latchkey.Client, 2)
	for i := range clients {
		c, err := latchkey.New(option, latchkey.WithKeyPrefix("mine:"))
		require.NoError(t, err)
		defer c.Close()
		clients[i] = c
	}
	for _, what := range []func(c *latchkey.Client) func(context.Context) error{
		func(c *latchkey.Client) func(context.Context) error {
			l, err := rlock.New(c, "lock")
			require.NoError(t, err)
			return func(ctx context.Context) error {
				return l.Do(ctx, func(context.Context, *latchkey.Hold) error { return nil })
			}
		},
		func(c *latchkey.Client) func(context.Context) error {
			l, err := rwlock.New(c, "halves")
			require.NoError(t, err)
			nothing := func(context.Context, *latchkey.Hold) error { return nil }
			return func(ctx context.Context) error {
				return errors.Join(l.Read().Do(ctx, nothing), l.Write().Do(ctx, nothing))
			}
		},
		func(c *latchkey.Client) func(context.Context) error {
			l, err := fairlock.New(c, "fair")
			require.NoError(t, err)
			return func(ctx context.Context) error {
				return l.Do(ctx, func(context.Context, *latchkey.Hold) error { return nil })
			}
		},
		func(c *latchkey.Client) func(context.Context) error {
			l, err := semaphore.New(c, "permits", semaphore.WithCapacity(1))
			require.NoError(t, err)
			return func(ctx context.Context) error {
				return l.Do(ctx, 1, func(context.Context, *semaphore.Permits) error { return nil })
			}
		},
		func(c *latchkey.Client) func(context.Context) error {
			s, err := semaphore.NewCounting(c, "counting", semaphore.WithCapacity(1))
			require.NoError(t, err)
			return func(ctx context.Context) error {
				if err := s.Acquire(ctx, 1); err != nil {
					return err
				}
				return s.Release(ctx, 1)
			}
		},
		func(c *latchkey.Client) func(context.Context) error {
			l, err := countdown.New(c, "latch", countdown.WithCount(2))
			require.NoError(t, err)
			return func(ctx context.Context) error {
				if _, err := l.CountDown(ctx); err != nil {
					return err
				}
				return l.Await(ctx)
			}
		},
		func(c *latchkey.Client) func(context.Context) error {
			b, err := barrier.New(c, "barrier", 2)
			require.NoError(t, err)
			return func(ctx context.Context) error { _, err := b.Await(ctx); return err }
		},
	} {
		ended := make(chan error, 2)
		for _, c := range clients {
			use := what(c)
			go func() { ended <- use(t.Context()) }()
		}
		require.NoError(t, <-ended)
		require.NoError(t, <-ended)
	}
	intruder, err := rueidis.NewClient(tenant("other"))
	require.NoError(t, err)
	defer intruder.Close()
	channels, err := plain.Do(t.Context(), plain.B().PubsubChannels().Build()).AsStrSlice()
	require.NoError(t, err)
	require.GreaterOrEqual(t, len(channels), 3, "two inboxes, and the barrier's")
	for _, channel := range channels {
		err := intruder.Do(t.Context(), intruder.B().Publish().Channel(channel).Message("1 p 1").Build()).Error()
		require.ErrorContains(t, err, "NOPERM", channel)
	}
	keys, err := plain.Do(t.Context(), plain.B().Keys().Pattern("*").Build()).AsStrSlice()
	require.NoError(t, err)
	for _, key := range keys {
		require.ErrorContains(t, intruder.Do(t.Context(), intruder.B().Del().Key(key).Build()).Error(), "NOPERM", key)
	}
}
