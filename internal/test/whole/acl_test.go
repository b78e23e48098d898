package whole_test

import (
	"context"
	"errors"
	"os"
	"regexp"
	"slices"
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
	"github.com/latchkey-go/latchkey/internal/session"
	"github.com/latchkey-go/latchkey/internal/test/redistest"
	"github.com/latchkey-go/latchkey/leader"
	"github.com/latchkey-go/latchkey/once"
	"github.com/latchkey-go/latchkey/rlock"
	"github.com/latchkey-go/latchkey/rueidisclient"
	"github.com/latchkey-go/latchkey/rwlock"
	"github.com/latchkey-go/latchkey/semaphore"
)

// tenants makes users by the access rules of docs/operations.md.
type tenants struct {
	nodes []*redistest.Server
	rules []string
}

func newTenants(t *testing.T, nodes ...*redistest.Server) *tenants {
	text, err := os.ReadFile("../../../docs/operations.md")
	require.NoError(t, err)
	rules := regexp.MustCompile(`(?m)^ACL SETUSER shop .*$`).FindAllString(string(text), -1)
	require.Len(t, rules, 3, "for all, for clusters, and for names with braces of their own")
	require.Contains(t, rules[1], "+ssubscribe")
	if len(nodes) == 1 {
		rules = slices.Delete(rules, 1, 2)
	}
	return &tenants{nodes, rules}
}

// option makes the tenant with that name and prefix, and returns how it connects.
func (a *tenants) option(t *testing.T, name string) rueidis.ClientOption {
	for _, node := range a.nodes {
		plain := node.Client(t)
		for _, rule := range a.rules {
			words := strings.Fields(strings.ReplaceAll(rule, "shop", name))
			require.NoError(t, plain.Do(t.Context(), plain.B().Arbitrary(words...).Build()).Error())
		}
	}
	o := a.nodes[0].Option()
	o.ForceSingleClient = len(a.nodes) == 1
	o.Username, o.Password = name, "secret"
	return o
}

// keepsOut has a tenant try all keys and all channels that there are. All belong to others.
func (a *tenants) keepsOut(t *testing.T, name string) {
	t.Helper()
	option := a.option(t, name)
	option.ForceSingleClient = true // of a cluster each node by itself
	channels, keys := 0, 0
	for _, node := range a.nodes {
		plain := node.Client(t)
		option.InitAddress = []string{node.Addr}
		intruder, err := rueidis.NewClient(option)
		require.NoError(t, err)
		defer intruder.Close()
		lists := map[string]string{"CHANNELS": "PUBLISH"}
		if len(a.nodes) > 1 {
			lists["SHARDCHANNELS"] = "SPUBLISH"
		}
		for list, publish := range lists {
			names, err := plain.Do(t.Context(), plain.B().Arbitrary("PUBSUB", list).Build()).AsStrSlice()
			require.NoError(t, err)
			for _, channel := range names {
				err := intruder.Do(t.Context(), intruder.B().Arbitrary(publish, channel, "1 p 1").Build()).Error()
				require.ErrorContains(t, err, "NOPERM", channel)
			}
			channels += len(names)
		}
		names, err := plain.Do(t.Context(), plain.B().Keys().Pattern("*").Build()).AsStrSlice()
		require.NoError(t, err)
		names = append(names, "latchkey_queue:third:{"+name+":lock}", "latchkey_queue:third:"+name+":{lock}") // of names that quote the tenant
		for _, key := range names {
			require.ErrorContains(t, intruder.Do(t.Context(), intruder.B().Arbitrary("DEL", key).Build()).Error(), "NOPERM", key)
		}
		for _, all := range []string{"SCAN 0", "KEYS *", "SCRIPT FLUSH", "FLUSHDB", "CLIENT LIST", "CLIENT TRACKING on bcast", "CONFIG GET *"} {
			command := intruder.B().Arbitrary(strings.Fields(all)...).Build()
			require.ErrorContains(t, intruder.Do(t.Context(), command).Error(), "NOPERM", all)
		}
		keys += len(names)
	}
	require.GreaterOrEqual(t, channels, 3, "two inboxes, and the barrier's")
	require.Positive(t, keys)
}

// The access rule of docs/operations.md is all that a tenant needs, and keeps others out: also one whose
// prefix the tenant's begins with.
func TestACLKeepsTenantsApart(t *testing.T) {
	for _, braces := range []string{"", "{tag}"} {
		for name, intruder := range map[string]string{"mine": "other", "mine_2": "mine"} {
			t.Run(name+braces, func(t *testing.T) {
				a := newTenants(t, redistest.NewProcess(t))
				a.useEverything(t, name, braces)
				a.keepsOut(t, intruder)
			})
		}
	}
}

// besideRedisson is one lock of two clients that take turns with Redisson.
func besideRedisson(t *testing.T, option rueidis.ClientOption, opts ...latchkey.Option) (locks []*latchkey.Lock) {
	t.Helper()
	for range 2 {
		c, err := rueidisclient.New(option, append([]latchkey.Option{latchkey.WithRedisson()}, opts...)...)
		require.NoError(t, err)
		t.Cleanup(func() { _ = c.Close() })
		l, err := rlock.New(c, "lock")
		require.NoError(t, err)
		locks = append(locks, l)
	}
	return locks
}

// The rule is enough for clients that take turns with Redisson, which listen to its channel and to one of
// ours.
func TestACLBesideRedisson(t *testing.T) {
	s := redistest.NewProcess(t)
	a := newTenants(t, s)
	locks := besideRedisson(t, a.option(t, "mine"), latchkey.WithKeyPrefix("mine:"))
	hold, err := locks[0].Lock(t.Context())
	require.NoError(t, err)
	ended := make(chan error)
	go func() {
		ended <- locks[1].Do(t.Context(), func(context.Context, *latchkey.Hold) error { return nil })
	}()
	for _, channel := range []string{"latchkey_ear:{mine:lock}", "redisson_lock__channel:{mine:lock}"} {
		awaitListeners(t, s.Client(t), channel, 1)
	}
	a.keepsOut(t, "other")
	require.NoError(t, hold.Unlock(t.Context()))
	require.NoError(t, <-ended)
}

// The rule in a cluster, where each client has an inbox in a slot of its own, and each lock its own channel.
// The fenced key is in the slot of its lock, for which the names have braces.
func TestACLInACluster(t *testing.T) {
	redistest.Together(t)
	for name, intruder := range map[string]string{"mine": "other", "mine_2": "mine"} {
		t.Run(name, func(t *testing.T) {
			a := newTenants(t, redistest.NewCluster(t).Nodes...)
			a.useEverything(t, name, "{tag}")
			a.keepsOut(t, intruder)
		})
	}
}

// useEverything has two clients of a tenant use every primitive together.
func (a *tenants) useEverything(t *testing.T, name, braces string) {
	t.Helper()
	option := a.option(t, name)
	clients := make([]*latchkey.Client, 2)
	for i := range clients {
		c, err := rueidisclient.New(option, latchkey.WithKeyPrefix(name+":"))
		require.NoError(t, err)
		t.Cleanup(func() { _ = c.Close() })
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		require.NoError(t, c.Check(ctx))
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
	requireKnown(t, clients, "lock"+braces)
	a.refused(t)
}

// refused checks that no server has refused a command, but the one that warns of a policy that evicts, and the one
// by which rueidis tells its version, which Redis 6.2 calls by its first word.
func (a *tenants) refused(t *testing.T) {
	t.Helper()
	for _, node := range a.nodes {
		plain := node.Client(t)
		log, err := plain.Do(t.Context(), plain.B().Arbitrary("ACL", "LOG").Build()).ToArray()
		require.NoError(t, err)
		for _, r := range log {
			entry, err := r.AsStrMap()
			require.NoError(t, err)
			require.Contains(t, []string{"info", "client|setinfo", "client"}, entry["object"], entry)
		}
	}
}

// requireKnown checks that one client finds out who the other is.
func requireKnown(t *testing.T, clients []*latchkey.Client, name string) {
	t.Helper()
	locks := make([]*latchkey.Lock, len(clients))
	for i, c := range clients {
		var err error
		locks[i], err = rlock.New(c, name)
		require.NoError(t, err)
	}
	hold, err := locks[0].Lock(t.Context())
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		state, err := locks[1].Inspect(t.Context())
		return err == nil && state.Holder.PID == os.Getpid()
	}, 20*time.Second, 10*time.Millisecond)
	require.NoError(t, hold.Unlock(t.Context()))
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
