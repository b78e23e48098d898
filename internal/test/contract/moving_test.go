package contract_test

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/countdown"
	"github.com/latchkey-go/latchkey/fairlock"
	"github.com/latchkey-go/latchkey/internal/test/redistest"
	"github.com/latchkey-go/latchkey/rueidisclient"
	"github.com/latchkey-go/latchkey/semaphore"
)

// A slot moves in the middle of everything: two clients use every primitive while it is open with all keys at
// its old primary, while one key after the other moves, while all have moved and it is not assigned, and
// after that. What cannot be done for a while waits; no error comes out, nothing is forgotten, and no key is
// made on one side that is on the other.
// Rule 26.
func TestSlotMovesInTheMiddleOfEverything(t *testing.T) {
	for what, opts := range map[string][]latchkey.Option{"latchkey": nil, "beside Redisson": {latchkey.WithRedisson()}} {
		t.Run(what, func(t *testing.T) { slotMoves(t, opts...) })
	}
}

func slotMoves(t *testing.T, opts ...latchkey.Option) {
	redistest.Together(t)
	cluster := redistest.NewCluster(t)
	s := on(t, cluster.Nodes...)
	const tag = ":{moving}"
	crowds := map[string]*crowd{}
	var workers []worker
	names := []string{"rlock", "fairlock", "lingering", "rwlock", "semaphore", "passing", "counting", "latch", "barrier"}
	for _, name := range names {
		most := map[string]int64{"rlock": 1, "fairlock": 1, "lingering": 1, "rwlock": 100, "semaphore": 3, "passing": 3, "counting": 3}[name]
		crowds[name] = &crowd{most: max(most, 1000)}
		if most > 0 {
			crowds[name].most = most
		}
	}
	var clients []*latchkey.Client
	for range 2 {
		c, err := rueidisclient.New(cluster.Option(), append(opts, latchkey.WithLease(10*time.Second))...)
		require.NoError(t, err)
		clients = append(clients, c)
		for n := range 2 {
			workers = append(workers,
				readersAndWriters(t, c, "rwlock"+tag, n == 1, crowds["rwlock"]),
				locks(t, "rlock", c, "rlock"+tag, crowds["rlock"]),
				locks(t, "fairlock", c, "fairlock"+tag, crowds["fairlock"]),
				locks(t, "lingering", c, "lingering"+tag, crowds["lingering"]),
				permits(t, c, "semaphore"+tag, crowds["semaphore"]),
				permits(t, c, "passing"+tag, crowds["passing"], semaphore.WithBudget(32, 5*time.Millisecond)),
				counting(t, c, "counting"+tag, crowds["counting"]),
			)
		}
		workers = append(workers, latches(t, c, "latch"+tag, crowds["latch"]), barriers(t, c, "barrier"+tag, crowds["barrier"]))
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	stop := make(chan struct{})
	var running sync.WaitGroup
	for _, w := range workers {
		running.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				if err := w(ctx); err != nil {
					if ctx.Err() == nil {
						assert.NoError(t, err)
					}
					return
				}
			}
		})
	}
	progress := func(phase string, pause time.Duration) {
		before := map[string]int64{}
		for _, name := range names {
			before[name] = crowds[name].rounds.Load()
		}
		time.Sleep(pause)
		text := ""
		for _, name := range names {
			text += fmt.Sprintf("  %s %d", name, crowds[name].rounds.Load()-before[name])
		}
		t.Logf("%-34s%s", phase, text)
	}
	all := func() {
		t.Helper()
		before := map[string]int64{}
		for _, name := range names {
			before[name] = crowds[name].rounds.Load()
		}
		for _, name := range names {
			require.Eventually(t, func() bool { return crowds[name].rounds.Load() > before[name]+3 }, 30*time.Second, 5*time.Millisecond, name)
		}
	}
	all()
	progress("before", 500*time.Millisecond)
	for round := range 3 {
		held := hold(t, clients, fmt.Sprint(round)+tag)
		m := cluster.Move(t, "x"+tag)
		progress("open, all keys at the old primary", 2*brief)
		held.check(round == 0)
		for keys := m.Left(t); len(keys) > 0; keys = m.Left(t) {
			// Name by name, on all servers: while the two keys of a lease are on two nodes it cannot be renewed.
			slices.SortFunc(keys, func(a, b string) int {
				return cmp.Or(strings.Compare(nameOf(a, tag), nameOf(b, tag)), strings.Compare(a, b))
			})
			m.Key(t, keys[0])
			if !strings.HasPrefix(keys[0], "latchkey_done:") { // of those there are many
				progress(keys[0], time.Duration(round*100)*time.Millisecond)
			}
		}
		all() // also before it is assigned
		progress("all moved, not assigned", 2*brief)
		held.check(round == 1)
		require.Empty(t, m.Left(t))
		m.Assign(t)
		progress("assigned", brief)
		held.check(round == 2)
		all()
	}
	close(stop)
	time.AfterFunc(5*time.Second, cancel) // a party may be left without the other
	running.Wait()
	few := []string{}
	for round := range 3 {
		few = append(few, fmt.Sprintf("few:%d%s", round, tag))
	}
	tidy(t, clients[0], "counting"+tag, "latch"+tag, map[string]int{"semaphore" + tag: 3, "passing" + tag: 3, few[0]: 2, few[1]: 2, few[2]: 2})
	for _, c := range clients {
		c.Close()
	}
	s.Clean(t, true)
}

// nameOf returns the name that a key belongs to: "few:1" of "latchkey_holders:few:1:{moving}".
func nameOf(key, tag string) string {
	before, _, _ := strings.Cut(key, tag)
	for _, of := range []string{"latchkey_", "redisson_"} {
		if strings.HasPrefix(before, of) {
			_, before, _ = strings.Cut(before, ":")
		}
	}
	return before
}

// tidy checks that all permits are back, and deletes what stays by itself.
func tidy(t *testing.T, c *latchkey.Client, counting, latch string, permits map[string]int) {
	t.Helper()
	for name, n := range permits {
		sem, err := semaphore.New(c, name)
		require.NoError(t, err)
		free, err := sem.Available(t.Context())
		require.NoError(t, err)
		require.Equal(t, n, free, name)
		_, err = sem.Delete(t.Context())
		require.NoError(t, err)
	}
	count, err := semaphore.NewCounting(c, counting)
	require.NoError(t, err)
	free, err := count.Available(t.Context())
	require.NoError(t, err)
	require.Equal(t, 3, free, counting)
	_, err = count.Delete(t.Context())
	require.NoError(t, err)
	l, err := countdown.New(c, latch)
	require.NoError(t, err)
	_, err = l.Delete(t.Context())
	require.NoError(t, err)
}

// brief is the lease of those who hold for longer than it while the slot is moving.
const brief = 1500 * time.Millisecond

// holders hold a lock and permits of their own.
type holders struct {
	t       *testing.T
	lock    *latchkey.Hold
	permits *semaphore.Permits
	other   *fairlock.Lock
	few     *semaphore.Semaphore
}

func hold(t *testing.T, clients []*latchkey.Client, name string) *holders {
	t.Helper()
	h := &holders{t: t}
	l, err := fairlock.New(clients[0], "held:"+name, latchkey.WithLease(brief))
	require.NoError(t, err)
	h.lock, err = l.Lock(t.Context())
	require.NoError(t, err)
	h.other, err = fairlock.New(clients[1], "held:"+name, latchkey.WithLease(brief))
	require.NoError(t, err)
	few, err := semaphore.New(clients[0], "few:"+name, semaphore.WithCapacity(2), semaphore.WithLease(brief))
	require.NoError(t, err)
	h.permits, err = few.Acquire(t.Context(), 2)
	require.NoError(t, err)
	h.few, err = semaphore.New(clients[1], "few:"+name, semaphore.WithLease(brief))
	require.NoError(t, err)
	return h
}

// check has others try, and at the end lets go: what is held was held all the time, and says so.
func (h *holders) check(end bool) {
	h.t.Helper()
	if h.lock == nil {
		return
	}
	_, err := h.other.TryLock(h.t.Context())
	require.ErrorIs(h.t, err, latchkey.ErrNotAcquired)
	_, err = h.few.TryAcquire(h.t.Context(), 1)
	require.ErrorIs(h.t, err, latchkey.ErrNotAcquired)
	require.NoError(h.t, h.lock.Err())
	require.NoError(h.t, h.permits.Err())
	if !end {
		return
	}
	require.NoError(h.t, h.lock.Unlock(h.t.Context()))
	require.NoError(h.t, h.permits.Release(h.t.Context()))
	h.lock = nil
}

// Who cannot see the queue makes no other one on the new side, which would stop the move.
// Rule 26.
func TestQueueOfAMovingSlotIsMadeOnce(t *testing.T) {
	cluster := redistest.NewCluster(t)
	var locks []*fairlock.Lock
	for range 3 {
		c, err := rueidisclient.New(cluster.Option())
		require.NoError(t, err)
		t.Cleanup(func() { _ = c.Close() })
		l, err := fairlock.New(c, "one")
		require.NoError(t, err)
		locks = append(locks, l)
	}
	h, err := locks[0].Lock(t.Context())
	require.NoError(t, err)
	granted := make(chan error, 1)
	go func() {
		granted <- locks[1].Do(t.Context(), func(context.Context, *latchkey.Hold) error { return nil })
	}()
	require.Eventually(t, func() bool {
		s, err := locks[0].Inspect(t.Context())
		return err == nil && s.Waiting == 1
	}, 10*time.Second, 5*time.Millisecond)
	m := cluster.Move(t, "one")
	m.Key(t, "one")
	m.Key(t, "redisson_lock_token:{one}")
	_, err = locks[2].TryLockFor(t.Context(), 300*time.Millisecond)
	require.ErrorIs(t, err, latchkey.ErrNotAcquired)
	require.NoError(t, h.Err())
	m.Key(t, "latchkey_queue:{one}")
	m.Assign(t)
	require.NoError(t, h.Unlock(t.Context()))
	select {
	case err := <-granted:
		require.NoError(t, err)
	case <-time.After(10 * time.Second):
		require.FailNow(t, "the waiter was forgotten")
	}
}

// Holders whose keys are on both sides of a move cannot be renewed, and are lost. That takes nothing from
// others in the slot.
// Rule 26.
func TestStuckHolderIsLostAlone(t *testing.T) {
	cluster := redistest.NewCluster(t)
	c, err := rueidisclient.New(cluster.Option())
	require.NoError(t, err)
	t.Cleanup(func() { _ = c.Close() })
	var held []*semaphore.Permits
	for _, name := range []string{"whole:{x}", "stuck:{x}"} {
		s, err := semaphore.New(c, name, semaphore.WithCapacity(1), semaphore.WithLease(brief))
		require.NoError(t, err)
		p, err := s.Acquire(t.Context(), 1)
		require.NoError(t, err)
		held = append(held, p)
	}
	m := cluster.Move(t, "x:{x}")
	m.Key(t, "latchkey_holders:stuck:{x}")
	require.Eventually(t, func() bool { return held[1].Err() != nil }, 10*time.Second, 10*time.Millisecond)
	time.Sleep(brief)
	require.NoError(t, held[0].Err())
	require.NoError(t, held[0].Release(t.Context()))
}
