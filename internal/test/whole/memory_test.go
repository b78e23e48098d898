package whole_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/barrier"
	"github.com/latchkey-go/latchkey/countdown"
	"github.com/latchkey-go/latchkey/fence"
	"github.com/latchkey-go/latchkey/internal/test/redistest"
	"github.com/latchkey-go/latchkey/leader"
	"github.com/latchkey-go/latchkey/once"
	"github.com/latchkey-go/latchkey/rlock"
	"github.com/latchkey-go/latchkey/rwlock"
	"github.com/latchkey-go/latchkey/semaphore"
)

// What a name that has been used leaves in Redis takes as much memory as docs/operations.md says.
func TestMeasuredMemoryOfNames(t *testing.T) {
	text, err := os.ReadFile("../../../docs/operations.md")
	require.NoError(t, err)
	for what, use := range map[string]func(ctx context.Context, c *latchkey.Client, name string) error{
		"lock": func(ctx context.Context, c *latchkey.Client, name string) error {
			l, err := rlock.New(c, name)
			require.NoError(t, err)
			return l.Do(ctx, func(context.Context, *latchkey.Hold) error { return nil })
		},
		"read-write lock": func(ctx context.Context, c *latchkey.Client, name string) error {
			l, err := rwlock.New(c, name)
			require.NoError(t, err)
			nothing := func(context.Context, *latchkey.Hold) error { return nil }
			return errors.Join(l.Write().Do(ctx, nothing), l.Read().Do(ctx, nothing))
		},
		"semaphore with leases": func(ctx context.Context, c *latchkey.Client, name string) error {
			s, err := semaphore.New(c, name, semaphore.WithCapacity(8))
			require.NoError(t, err)
			return s.Do(ctx, 1, func(context.Context, *semaphore.Permits) error { return nil })
		},
		"plain semaphore": func(ctx context.Context, c *latchkey.Client, name string) error {
			s, err := semaphore.NewCounting(c, name, semaphore.WithCapacity(8))
			require.NoError(t, err)
			if err := s.Acquire(ctx, 1); err != nil {
				return err
			}
			return s.Release(ctx, 1)
		},
		"latch": func(ctx context.Context, c *latchkey.Client, name string) error {
			l, err := countdown.New(c, name, countdown.WithCount(1))
			require.NoError(t, err)
			_, err = l.CountDown(ctx)
			return err
		},
		"`Once`": func(ctx context.Context, c *latchkey.Client, name string) error {
			o, err := once.New(c, name)
			require.NoError(t, err)
			return o.Do(ctx, func(context.Context, *once.Run) error { return nil })
		},
		"`Share`": func(ctx context.Context, c *latchkey.Client, name string) error {
			_, err := once.Share(ctx, c, name, func(context.Context, *once.Run) ([]byte, error) { return nil, nil })
			return err
		},
		"job": func(ctx context.Context, c *latchkey.Client, name string) error {
			ctx, cancel := context.WithCancel(ctx)
			defer cancel()
			j, err := once.Every(c, name, 10*time.Millisecond, func(context.Context, *once.Run) error { cancel(); return nil })
			require.NoError(t, err)
			if err := j.Run(ctx); !errors.Is(err, context.Canceled) {
				return err
			}
			return nil
		},
		"barrier": func(ctx context.Context, c *latchkey.Client, name string) error {
			b, err := barrier.New(c, name, 1)
			require.NoError(t, err)
			if _, err := b.Await(ctx); err != nil {
				return err
			}
			return b.Leave(ctx)
		},
		"leader": func(ctx context.Context, c *latchkey.Client, name string) error {
			l, err := leader.New(c, name)
			require.NoError(t, err)
			done := errors.New("done")
			if err := l.Run(ctx, func(context.Context, leader.Term) error { return done }); !errors.Is(err, done) {
				return err
			}
			return nil
		},
		"fenced key": func(ctx context.Context, c *latchkey.Client, name string) error {
			l, err := rlock.New(c, "lock of all")
			require.NoError(t, err)
			return l.Do(ctx, func(ctx context.Context, h *latchkey.Hold) error {
				_, err := fence.Eval(ctx, h, "return 1", []string{name})
				return err
			})
		},
	} {
		t.Run(what, func(t *testing.T) {
			s := redistest.NewProcess(t)
			plain := s.Client(t)
			c, err := latchkey.Open(s.URL())
			require.NoError(t, err)
			defer c.Close()
			const names = 12_500
			for i := range 100 { // the scripts, and the buffers of the connections
				require.NoError(t, use(t.Context(), c, fmt.Sprintf("before:%06d", i)))
			}
			before := usedMemory(t, plain)
			var group errgroup.Group
			group.SetLimit(64)
			for i := range names {
				group.Go(func() error { return use(t.Context(), c, fmt.Sprintf("orders:%06d", i)) })
			}
			require.NoError(t, group.Wait())
			perName := func() int { return (usedMemory(t, plain) - before) / names }
			found := regexp.MustCompile(`(?m)^\| a ` + what + ` \| (\d+) B \| (\d+) B`).FindSubmatch(text)
			require.NotNil(t, found, what)
			for i, when := range []string{"at first", "later"} {
				if when == "later" {
					require.NoError(t, plain.Do(t.Context(), plain.B().Eval().Script(forgetSoon).Numkeys(0).Build()).Error())
				}
				said, err := strconv.Atoi(string(found[i+1]))
				require.NoError(t, err)
				measured := 0
				require.Eventually(t, func() bool { // Redis moves its keys to another table bit by bit, and has both until then
					measured = perName()
					return measured < said+said/5
				}, 20*time.Second, 50*time.Millisecond, "of %s %s it is more than %d B and a fifth", what, when, said)
				require.Greater(t, measured, said/2, "servers differ, but not by so much")
				t.Logf("%d B for each %s, %s", measured, what, when)
			}
		})
	}
}

// forgetSoon deletes what Redis keeps for ten minutes at most.
const forgetSoon = `
for _, key in ipairs(redis.call('KEYS', '*')) do
  local left = redis.call('PTTL', key)
  if left >= 0 and left <= 600000 then redis.call('DEL', key) end
end
return 1`

func usedMemory(t *testing.T, plain rueidis.Client) int {
	t.Helper()
	info, err := plain.Do(t.Context(), plain.B().Info().Section("memory").Build()).ToString()
	require.NoError(t, err)
	_, rest, found := strings.Cut(info, "used_memory:")
	require.True(t, found)
	number, _, _ := strings.Cut(rest, "\r")
	used, err := strconv.Atoi(number)
	require.NoError(t, err)
	return used
}
