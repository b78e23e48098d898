package latchkey_test

import (
	"context"
	"errors"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/barrier"
	"github.com/latchkey-go/latchkey/countdown"
	"github.com/latchkey-go/latchkey/fairlock"
	"github.com/latchkey-go/latchkey/fence"
	"github.com/latchkey-go/latchkey/internal/redistest"
	"github.com/latchkey-go/latchkey/internal/session"
	"github.com/latchkey-go/latchkey/leader"
	"github.com/latchkey-go/latchkey/once"
	"github.com/latchkey-go/latchkey/rlock"
	"github.com/latchkey-go/latchkey/rwlock"
	"github.com/latchkey-go/latchkey/semaphore"
)

// tenants makes users by the access rule of docs/operations.md.
type tenants struct {
	server *redistest.Server
	rule   string
	more   string // what is appended for names with braces of their own
}

func newTenants(t *testing.T) *tenants {
	text, err := os.ReadFile("docs/operations.md")
	require.NoError(t, err)
	rule := regexp.MustCompile(`(?m)^(ACL SETUSER shop .*)$`).FindSubmatch(text)
	require.NotNil(t, rule)
	more := regexp.MustCompile("(?m)^- `([^`]*)`, in place, for names that have braces of their own").FindSubmatch(text)
	require.NotNil(t, more)
	return &tenants{redistest.NewProcess(t), string(rule[1]), string(more[1])}
}

// option makes the tenant with that name and prefix, and returns how it connects.
func (a *tenants) option(t *testing.T, name string) rueidis.ClientOption {
	plain := a.server.Client(t)
	rule := strings.Fields(strings.ReplaceAll(a.rule+" "+a.more, "shop", name))
	require.NoError(t, plain.Do(t.Context(), plain.B().Arbitrary(rule...).Build()).Error())
	o := a.server.Option()
	o.Username, o.Password = name, "secret"
	return o
}

// keepsOut has a tenant try all keys and all channels that there are. All belong to others.
func (a *tenants) keepsOut(t *testing.T, name string) {
	t.Helper()
	plain := a.server.Client(t)
	intruder, err := rueidis.NewClient(a.option(t, name))
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
	require.NotEmpty(t, keys)
	for _, key := range keys {
		require.ErrorContains(t, intruder.Do(t.Context(), intruder.B().Del().Key(key).Build()).Error(), "NOPERM", key)
	}
}

// The access rule of docs/operations.md is all that a tenant needs, and keeps others out: also one whose
// prefix the tenant's begins with.
func TestACLKeepsTenantsApart(t *testing.T) {
	for _, braces := range []string{"", "{tag}"} {
		for name, intruder := range map[string]string{"mine": "other", "mine_2": "mine"} {
			t.Run(name+braces, func(t *testing.T) {
				a := newTenants(t)
				option := a.option(t, name)
				clients := make([]*latchkey.Client, 2)
				for i := range clients {
					c, err := latchkey.New(option, latchkey.WithKeyPrefix(name+":"))
					require.NoError(t, err)
					defer c.Close()
					clients[i] = c
				}
				for _, what := range everyPrimitive(t, braces) {
					ended := make(chan error, 2)
					for _, c := range clients {
						use := what(c)
						go func() { ended <- use(t.Context()) }()
					}
					require.NoError(t, <-ended)
					require.NoError(t, <-ended)
				}
				a.keepsOut(t, intruder)
			})
		}
	}
}

// everyPrimitive returns what uses one each, with names that end as given. Two clients use it together.
func everyPrimitive(t *testing.T, end string) []func(c *latchkey.Client) func(context.Context) error {
	return []func(c *latchkey.Client) func(context.Context) error{
		func(c *latchkey.Client) func(context.Context) error {
			l, err := rlock.New(c, "lock"+end)
			require.NoError(t, err)
			return func(ctx context.Context) error {
				return l.Do(ctx, func(context.Context, *latchkey.Hold) error { return nil })
			}
		},
		func(c *latchkey.Client) func(context.Context) error {
			l, err := rwlock.New(c, "halves"+end)
			require.NoError(t, err)
			nothing := func(context.Context, *latchkey.Hold) error { return nil }
			return func(ctx context.Context) error {
				return errors.Join(l.Read().Do(ctx, nothing), l.Write().Do(ctx, nothing))
			}
		},
		func(c *latchkey.Client) func(context.Context) error {
			l, err := fairlock.New(c, "fair"+end)
			require.NoError(t, err)
			return func(ctx context.Context) error {
				return l.Do(ctx, func(context.Context, *latchkey.Hold) error { return nil })
			}
		},
		func(c *latchkey.Client) func(context.Context) error {
			l, err := semaphore.New(c, "permits"+end, semaphore.WithCapacity(1))
			require.NoError(t, err)
			return func(ctx context.Context) error {
				return l.Do(ctx, 1, func(context.Context, *semaphore.Permits) error { return nil })
			}
		},
		func(c *latchkey.Client) func(context.Context) error {
			s, err := semaphore.NewCounting(c, "counting"+end, semaphore.WithCapacity(1))
			require.NoError(t, err)
			return func(ctx context.Context) error {
				if err := s.Acquire(ctx, 1); err != nil {
					return err
				}
				return s.Release(ctx, 1)
			}
		},
		func(c *latchkey.Client) func(context.Context) error {
			l, err := countdown.New(c, "latch"+end, countdown.WithCount(2))
			require.NoError(t, err)
			return func(ctx context.Context) error {
				if _, err := l.CountDown(ctx); err != nil {
					return err
				}
				return l.Await(ctx)
			}
		},
		func(c *latchkey.Client) func(context.Context) error {
			o, err := once.New(c, "once"+end)
			require.NoError(t, err)
			return func(ctx context.Context) error {
				return o.Do(ctx, func(context.Context, *once.Run) error { return nil })
			}
		},
		func(c *latchkey.Client) func(context.Context) error {
			return func(ctx context.Context) error {
				_, err := once.Share(ctx, c, "share"+end, func(context.Context, *once.Run) ([]byte, error) { return nil, nil })
				return err
			}
		},
		func(c *latchkey.Client) func(context.Context) error {
			ran := make(chan struct{}, 100)
			j, err := once.Every(c, "every"+end, 20*time.Millisecond, func(context.Context, *once.Run) error {
				ran <- struct{}{}
				return nil
			})
			require.NoError(t, err)
			return func(ctx context.Context) error {
				ctx, cancel := context.WithCancel(ctx)
				go func() {
					select {
					case <-ran:
					case <-time.After(time.Second): // the other one has run all of them
					}
					cancel()
				}()
				if err := j.Run(ctx); !errors.Is(err, context.Canceled) {
					return err
				}
				return nil
			}
		},
		func(c *latchkey.Client) func(context.Context) error {
			b, err := barrier.New(c, "barrier"+end, 2)
			require.NoError(t, err)
			return func(ctx context.Context) error { _, err := b.Await(ctx); return err }
		},
		func(c *latchkey.Client) func(context.Context) error {
			l, err := leader.New(c, "leader"+end)
			require.NoError(t, err)
			prefix := (*session.Handle)(c).Client().Options.Prefix
			return func(ctx context.Context) error {
				for _, err := range l.Watch(ctx) {
					if err != nil {
						return err
					}
					break
				}
				done := errors.New("done")
				err := l.Run(ctx, func(ctx context.Context, _ leader.Term) error {
					_, err := l.Leader(ctx)
					return errors.Join(done, err)
				})
				if !errors.Is(err, done) {
					return err
				}
				lock, err := rlock.New(c, "lock"+end)
				if err != nil {
					return err
				}
				return lock.Do(ctx, func(ctx context.Context, h *latchkey.Hold) error {
					_, err := fence.Eval(ctx, h, `return redis.call("GET", KEYS[1])`, []string{prefix + "data" + end})
					return errors.Join(err, fence.Set(ctx, h, prefix+"data"+end, "x"))
				})
			}
		},
	}
}
