package whole_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/barrier"
	"github.com/latchkey-go/latchkey/countdown"
	"github.com/latchkey-go/latchkey/internal/test/locktest"
	"github.com/latchkey-go/latchkey/internal/test/redistest"
	"github.com/latchkey-go/latchkey/leader"
	"github.com/latchkey-go/latchkey/redlock"
	"github.com/latchkey-go/latchkey/rlock"
	"github.com/latchkey-go/latchkey/rwlock"
	"github.com/latchkey-go/latchkey/semaphore"
)

// Each user who may publish can say that something was released. However often that is said, a waiter asks a hundred
// times a second, and hears of a true one soon.
func TestReleasesThatAreNone(t *testing.T) {
	lock := func(l *latchkey.Lock, err error) taking {
		require.NoError(t, err)
		return keepsLock(l)
	}
	for kind, c := range map[string]struct {
		channel string
		take    func(c []*latchkey.Client) taking
	}{
		"lock": {"redisson_lock__channel:{a}", func(c []*latchkey.Client) taking {
			return lock(rlock.New(c[0], "a"))
		}},
		"write": {"redisson_rwlock:{a}", func(c []*latchkey.Client) taking {
			l, err := rwlock.New(c[0], "a")
			require.NoError(t, err)
			return lock(l.Write(), nil)
		}},
		"permits": {"redisson_sc:{a}", func(c []*latchkey.Client) taking {
			s, err := semaphore.New(c[0], "a", semaphore.WithCapacity(1))
			require.NoError(t, err)
			return keepsPermit(s)
		}},
		"redlock": {"redisson_lock__channel:{a}", func(c []*latchkey.Client) taking {
			return lock(redlock.New(c, "a"))
		}},
	} {
		t.Run(kind, func(t *testing.T) {
			redistest.Virtual(t, func(t *testing.T, s *redistest.Server) {
				servers := []*redistest.Server{s, s.Beside(t), s.Beside(t)}
				open := func() (clients []*latchkey.Client) {
					for _, s := range servers {
						clients = append(clients, locktest.ClientOf(t, s, latchkey.WithRedisson()))
					}
					return clients
				}
				free, err := c.take(open())(t.Context())
				require.NoError(t, err)
				next := redistest.Begin(t, c.take(open()))
				time.Sleep(3 * time.Second)
				next.Waits(t)
				plain := s.Client(t)
				say := func() {
					for range 2000 {
						require.NoError(t, plain.Do(t.Context(), plain.B().Publish().Channel(c.channel).Message("0").Build()).Error())
						time.Sleep(time.Millisecond / 2)
					}
				}
				say() // what is not believed any more
				before := int64(0)
				for _, s := range servers {
					before -= s.Scripts(t)
				}
				began := time.Now()
				say()
				for _, s := range servers {
					before += s.Scripts(t)
				}
				perSecond := float64(before) / time.Since(began).Seconds()
				t.Logf("%.0f scripts a second", perSecond)
				require.LessOrEqual(t, perSecond, map[bool]float64{false: 120, true: 300}[kind == "redlock"])
				freed := time.Now()
				require.NoError(t, free(t.Context()))
				require.NoError(t, next.Granted(t)(t.Context()))
				require.Less(t, next.At.Sub(freed), 100*time.Millisecond)
			})
		})
	}
}

// The same of what wakes those who wait for a latch, at a barrier, or for another leader.
func TestNewsThatIsNone(t *testing.T) {
	for channel, texts := range map[string][]string{
		"redisson_countdownlatch__channel__{a}": {"0", "1", "x", "new 1"}, "latchkey_barrier:{a}": {"0", "x", "1 o 5"}, "latchkey_leader:{a}": {"x", "1"},
	} {
		for _, text := range texts {
			t.Run(channel+text, func(t *testing.T) {
				redistest.Virtual(t, func(t *testing.T, s *redistest.Server) {
					c := locktest.ClientOf(t, s)
					l, err := countdown.New(c, "a", countdown.WithCount(1))
					require.NoError(t, err)
					b, err := barrier.New(c, "a", 2)
					require.NoError(t, err)
					lead, err := leader.New(c, "a")
					require.NoError(t, err)
					waits := redistest.Begin(t, func(ctx context.Context) (struct{}, error) {
						switch channel[9] {
						case 'b':
							_, err := b.Await(ctx)
							return struct{}{}, err
						case 'l':
							for range lead.Watch(ctx) {
							}
							return struct{}{}, ctx.Err()
						}
						return struct{}{}, l.Await(ctx)
					})
					time.Sleep(3 * time.Second)
					plain := s.Client(t)
					before, began := s.Scripts(t), time.Now()
					for range 2000 {
						require.NoError(t, plain.Do(t.Context(), plain.B().Publish().Channel(channel).Message(text).Build()).Error())
						time.Sleep(time.Millisecond / 2)
					}
					perSecond := float64(s.Scripts(t)-before) / time.Since(began).Seconds()
					t.Logf("%.0f scripts a second", perSecond)
					require.LessOrEqual(t, perSecond, 140.0)
					waits.Waits(t)
					changed := time.Now()
					switch channel[9] {
					case 'b':
						_, err = b.Await(t.Context())
					case 'l':
						return
					default:
						_, err = l.CountDown(t.Context())
					}
					require.NoError(t, err)
					require.NoError(t, waits.Outcome(t))
					require.Less(t, waits.At.Sub(changed), 100*time.Millisecond)
				})
			})
		}
	}
}
