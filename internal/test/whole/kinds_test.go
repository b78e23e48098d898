package whole_test

import (
	"context"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/fairlock"
	"github.com/latchkey-go/latchkey/fence"
	"github.com/latchkey-go/latchkey/internal/test/locktest"
	"github.com/latchkey-go/latchkey/internal/test/redistest"
	"github.com/latchkey-go/latchkey/redlock"
	"github.com/latchkey-go/latchkey/rlock"
	"github.com/latchkey-go/latchkey/rwlock"
	"github.com/latchkey-go/latchkey/spinlock"
)

// pair is a lock of a kind, and one of another client that it excludes.
type pair struct {
	lock, other *latchkey.Lock
	queues      bool // a waiter has a place in the queue of Redis
}

// pairs make them, by the columns of the table in docs/primitives/locks.md.
var pairs = map[string]func(t *testing.T, opts ...latchkey.LockOption) (pair, error){
	"`rlock`":        pairOf(rlock.New, true),
	"`fairlock`":     pairOf(fairlock.New, true),
	"`spinlock`":     pairOf(spinlock.New, false),
	"`rwlock` read":  halves((*rwlock.Lock).Read),
	"`rwlock` write": halves((*rwlock.Lock).Write),
	"`redlock`": func(t *testing.T, opts ...latchkey.LockOption) (p pair, err error) {
		var clients [2][]*latchkey.Client
		for range 3 {
			s := redistest.New(t)
			for side := range clients {
				clients[side] = append(clients[side], locktest.ClientOf(t, s))
			}
		}
		if p.lock, err = redlock.New(clients[0], "a", opts...); err == nil {
			p.other, err = redlock.New(clients[1], "a", opts...)
		}
		return p, err
	},
}

func pairOf(create func(*latchkey.Client, string, ...latchkey.LockOption) (*latchkey.Lock, error), queues bool) func(*testing.T, ...latchkey.LockOption) (pair, error) {
	return func(t *testing.T, opts ...latchkey.LockOption) (p pair, err error) {
		clients := locktest.Clients(t, redistest.New(t), 2)
		p.queues = queues
		if p.lock, err = create(clients[0], "a", opts...); err == nil {
			p.other, err = create(clients[1], "a", opts...)
		}
		return p, err
	}
}

func halves(half func(*rwlock.Lock) *latchkey.Lock) func(*testing.T, ...latchkey.LockOption) (pair, error) {
	return func(t *testing.T, opts ...latchkey.LockOption) (pair, error) {
		clients := locktest.Clients(t, redistest.New(t), 2)
		mine, err := rwlock.New(clients[0], "a", opts...)
		if err != nil {
			return pair{}, err
		}
		other, err := rwlock.New(clients[1], "a", opts...)
		return pair{half(mine), other.Write(), true}, err
	}
}

// allowed reports that err is none. It has to be ErrInvalid otherwise.
func allowed(t *testing.T, err error) bool {
	t.Helper()
	if err != nil {
		require.ErrorIs(t, err, latchkey.ErrInvalid)
	}
	return err == nil
}

func held(t *testing.T, l *latchkey.Lock) *latchkey.Hold {
	t.Helper()
	h, err := l.Lock(t.Context())
	require.NoError(t, err)
	t.Cleanup(func() { _ = h.Unlock(context.Background()) }) // it may be over
	return h
}

// has are the rows of the table: whether the kind of a pair has it.
var has = map[string]func(t *testing.T, p pair) bool{
	"`Sequence` of a hold that waited in the queue": func(t *testing.T, p pair) bool {
		holds := held(t, p.other)
		waits := redistest.Begin(t, func(ctx context.Context) (*latchkey.Hold, error) { return p.lock.Lock(ctx) })
		if p.queues {
			locktest.Waiting(t, p.other, 1)
		}
		require.NoError(t, holds.Unlock(t.Context()))
		h := waits.Granted(t)
		defer func() { require.NoError(t, h.Unlock(t.Context())) }()
		return h.Sequence() > 0
	},
	"`Wanted` closes when another process waits": func(t *testing.T, p pair) bool {
		h := held(t, p.lock)
		wanted := h.Wanted()
		waits := redistest.Begin(t, func(ctx context.Context) (*latchkey.Hold, error) { return p.other.Lock(ctx) })
		<-wanted
		require.NoError(t, h.Unlock(t.Context()))
		require.NoError(t, waits.Granted(t).Unlock(t.Context()))
		return true
	},
	"`Detach`, `Attach`": func(t *testing.T, p pair) bool {
		text, err := held(t, p.lock).Detach(t.Context())
		if !allowed(t, err) {
			return false
		}
		h, err := p.lock.Attach(t.Context(), text)
		require.NoError(t, err)
		require.NoError(t, h.Unlock(t.Context()))
		return true
	},
	"`rwlock.Downgrade`": func(t *testing.T, p pair) bool { return allowed(t, rwlock.Downgrade(t.Context(), held(t, p.lock))) },
	"`fence.Set`, `fence.Eval`": func(t *testing.T, p pair) bool {
		h := held(t, p.lock)
		set := allowed(t, fence.Set(t.Context(), h, "{a}:key", "value"))
		_, err := fence.Eval(t.Context(), h, "return 1", []string{"{a}:key"})
		require.Equal(t, set, allowed(t, err))
		return set
	},
}

// options are the rows of options: whether a kind takes one.
var options = map[string]latchkey.LockOption{
	"`WithMinHold`": latchkey.WithMinHold(time.Millisecond), "`WithDeadlockCheck`": latchkey.WithDeadlockCheck(),
}

// What docs/primitives/locks.md says in a table that each kind of lock has, it has, and nothing else of that.
func TestWhatKindsHave(t *testing.T) {
	redistest.Together(t)
	page, err := os.ReadFile("../../../docs/primitives/locks.md")
	require.NoError(t, err)
	_, after, found := strings.Cut(string(page), "## What each kind has\n\n")
	require.True(t, found)
	table, _, _ := strings.Cut(after, "\n\n")
	var cells [][]string
	for line := range strings.Lines(table) {
		var row []string
		for cell := range strings.SplitSeq(strings.Trim(strings.TrimSpace(line), "|"), "|") {
			row = append(row, strings.TrimSpace(cell))
		}
		cells = append(cells, row)
	}
	kinds, rows := cells[0][1:], cells[2:]
	require.Len(t, kinds, len(pairs))
	require.Len(t, rows, len(has)+len(options))
	for _, row := range rows {
		for i, said := range row[1:] {
			t.Run(row[0]+"/"+kinds[i], func(t *testing.T) {
				redistest.Together(t)
				if option, ok := options[row[0]]; ok {
					_, err := pairs[kinds[i]](t, option)
					require.Equal(t, said == "yes", allowed(t, err))
					return
				}
				p, err := pairs[kinds[i]](t)
				require.NoError(t, err)
				require.Contains(t, has, row[0])
				require.Equal(t, map[bool]string{true: "yes", false: "no"}[has[row[0]](t, p)], said)
			})
		}
	}
}
