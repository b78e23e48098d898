package property_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/internal/test/redistest"
	"github.com/latchkey-go/latchkey/once"
	"github.com/latchkey-go/latchkey/rlock"
	"github.com/latchkey-go/latchkey/rueidisclient"
)

// done is the model of what is done once under a name.
type done struct {
	t       *testing.T
	random  *rand.Rand
	plain   rueidis.Client
	name    string
	clients [2]*latchkey.Client
	free    [2]*once.Once // without a limit
	limited [2]*once.Once // to two attempts
	story   []string

	is       bool
	attempts int
	failed   bool // the last one has said so
	result   string
	running  *background
	waiters  []*redistest.Attempt[struct{}]
	runs     int
}

// background is a Do whose function runs until it is told what to return.
type background struct {
	*redistest.Attempt[struct{}]
	returns chan error
	result  string
}

var errWork = errors.New("the work failed")

func (m *done) tell(format string, args ...any) {
	m.story = append(m.story, fmt.Sprintf(format, args...))
}

func (m *done) require(want, got error) {
	m.t.Helper()
	m.tell("   %v", got)
	if want == nil {
		require.NoError(m.t, got, strings.Join(m.story, "\n"))
	} else {
		require.ErrorIs(m.t, got, want, strings.Join(m.story, "\n"))
	}
}

// function returns one that ends with this error, and checks that it may run.
func (m *done) function(attempt int, result string, err error) func(context.Context, *once.Run) error {
	return func(_ context.Context, run *once.Run) error {
		m.runs++
		if attempt != run.Attempt() {
			return fmt.Errorf("it is attempt %d, not %d", run.Attempt(), attempt)
		}
		return errors.Join(run.SetResult([]byte(result)), err)
	}
}

// do is a Do or a TryDo while nobody runs, or a TryDo while somebody does.
func (m *done) do() {
	client, err := m.random.IntN(2), error(nil)
	if m.random.IntN(2) == 0 {
		err = errWork
	}
	o, limit := m.free[client], m.random.IntN(3) == 0
	if limit {
		o = m.limited[client]
	}
	try := m.running != nil || m.random.IntN(2) == 0
	do := o.Do
	if try {
		do = o.TryDo
	}
	m.tell("%d: try %t, limited %t, returns %v", client, try, limit, err)
	result := fmt.Sprint("result ", len(m.story))
	before := m.runs
	got := do(m.t.Context(), m.function(m.attempts+1, result, err))
	ran := false
	switch {
	case m.is && try:
		m.require(once.ErrDone, got)
	case m.is:
		m.require(nil, got)
	case m.failed && limit && m.attempts >= 2:
		m.require(once.ErrGivenUp, got)
	case m.running != nil:
		m.require(latchkey.ErrNotAcquired, got)
	case limit && m.attempts >= 2:
		m.require(once.ErrGivenUp, got)
	default:
		ran = true
		m.require(err, got)
		m.attempts++
		m.end(result, err)
	}
	require.Equal(m.t, ran, m.runs > before, strings.Join(m.story, "\n"))
	if !ran && (got != nil) {
		require.ErrorIs(m.t, got, latchkey.ErrNotRun)
	}
}

// end is what a run that counts leaves.
func (m *done) end(result string, err error) {
	m.failed = err != nil
	if err == nil {
		m.is, m.attempts, m.result = true, 0, result
	}
}

// begin begins a run in the background.
func (m *done) begin() {
	client, b := m.random.IntN(2), &background{returns: make(chan error, 1), result: fmt.Sprint("result ", len(m.story))}
	m.tell("%d: begins in the background", client)
	begun, attempt := make(chan struct{}), m.attempts+1
	b.Attempt = redistest.Begin(m.t, func(ctx context.Context) (struct{}, error) {
		return struct{}{}, m.free[client].Do(ctx, func(_ context.Context, run *once.Run) error {
			close(begun)
			if run.Attempt() != attempt {
				return fmt.Errorf("it is attempt %d, not %d", run.Attempt(), attempt)
			}
			select {
			case err := <-b.returns:
				return errors.Join(run.SetResult([]byte(b.result)), err)
			case <-time.After(long):
				return errors.New("it was not told to return")
			}
		})
	})
	select {
	case <-begun:
	case <-b.Ended:
		require.NoError(m.t, b.Err, strings.Join(m.story, "\n"))
	}
	m.running, m.failed = b, false
	m.attempts++
}

// await adds one who waits for the run in the background. Its function would succeed.
func (m *done) await() {
	client := m.random.IntN(2)
	m.tell("%d: waits", client)
	m.waiters = append(m.waiters, redistest.Begin(m.t, func(ctx context.Context) (struct{}, error) {
		return struct{}{}, m.free[client].Do(ctx, func(_ context.Context, run *once.Run) error { return run.SetResult([]byte("waiter")) })
	}))
}

// finish ends the run in the background, and all who wait for it.
func (m *done) finish() {
	err := error(nil)
	if m.random.IntN(2) == 0 {
		err = errWork
	}
	m.tell("the background ends with %v", err)
	m.running.returns <- err
	m.require(err, m.running.Outcome(m.t))
	m.end(m.running.result, err)
	m.running = nil
	for _, w := range m.waiters {
		m.require(nil, w.Outcome(m.t))
		if !m.is {
			m.end("waiter", nil)
		}
	}
	m.waiters = nil
}

// force takes the lock from the run in the background. When another begins it becomes stale, else it counts.
func (m *done) force() {
	l, err := rlock.New(m.clients[0], m.name)
	require.NoError(m.t, err)
	m.tell("the lock is taken away")
	held, err := l.ForceUnlock(m.t.Context())
	require.NoError(m.t, err)
	require.True(m.t, held)
	if m.random.IntN(2) == 0 {
		b := m.running
		m.begin()
		m.tell("the one before is stale")
		b.returns <- nil
		m.require(once.ErrSuperseded, b.Outcome(m.t))
		return
	}
	m.tell("nobody has it")
	m.running.returns <- nil
	m.require(nil, m.running.Outcome(m.t))
	m.end(m.running.result, nil)
	m.running = nil
}

func (m *done) look() {
	o := m.free[m.random.IntN(2)]
	is, err := o.Done(m.t.Context())
	m.require(nil, err)
	require.Equal(m.t, m.is, is, strings.Join(m.story, "\n"))
	result, err := o.Result(m.t.Context())
	if !m.is {
		m.require(once.ErrNotDone, err)
		return
	}
	m.require(nil, err)
	require.Equal(m.t, m.result, string(result), strings.Join(m.story, "\n"))
}

// forget is what the time to live does.
func (m *done) forget() {
	m.tell("it is forgotten")
	key := "latchkey_once:{" + m.name + "}"
	if strings.Contains(m.name, "{") {
		key = "latchkey_once:" + m.name
	}
	require.NoError(m.t, m.plain.Do(m.t.Context(), m.plain.B().Del().Key(key).Build()).Error())
	m.is, m.attempts, m.failed = false, 0, false
}

func (m *done) step() {
	switch n := m.random.IntN(20); {
	case n < 8:
		m.do()
	case n < 11 && m.running == nil && !m.is:
		m.begin()
	case n < 13 && m.running != nil && len(m.waiters) < 5:
		m.await()
	case n < 15 && m.running != nil:
		m.finish()
	case n < 16 && m.running != nil && len(m.waiters) == 0:
		m.force()
	case n < 17 && m.running == nil && m.is:
		m.forget()
	default:
		m.look()
	}
}

// Whatever two clients do with what is done once, each call returns what the documentation says.
func TestRandomOperationsOfOnce(t *testing.T) {
	seed := redistest.Seed(t)
	t.Logf("LATCHKEY_SEED=%d", seed)
	redistest.EachServed(t, func(t *testing.T, server *redistest.Server) {
		for n := range redistest.Rounds(10, 300) {
			random, plain := rand.New(rand.NewPCG(seed, uint64(n))), server.Client(t)
			require.NoError(t, plain.Do(t.Context(), plain.B().Flushall().Build()).Error())
			var clients [2]*latchkey.Client
			for i := range clients {
				c, err := rueidisclient.New(server.Option(), latchkey.WithLease(lease))
				require.NoError(t, err)
				defer c.Close()
				clients[i] = c
			}
			for _, name := range []string{"a", "{c}d"} {
				m := &done{t: t, random: random, plain: plain, name: name, clients: clients}
				for i, c := range clients {
					var err error
					m.free[i], err = once.New(c, name)
					require.NoError(t, err)
					m.limited[i], err = once.New(c, name, once.WithAttempts(2))
					require.NoError(t, err)
				}
				for range 150 {
					m.step()
				}
				if m.running != nil {
					m.finish()
				}
			}
			redistest.OnlyExpiring(t, plain)
			for _, c := range clients {
				c.Close()
			}
		}
	})
}
