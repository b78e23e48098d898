package property_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/internal/lock"
	"github.com/latchkey-go/latchkey/internal/test/redistest"
	"github.com/latchkey-go/latchkey/once"
	"github.com/latchkey-go/latchkey/rlock"
	"github.com/latchkey-go/latchkey/rueidisclient"
)

// shares is the model of what several clients share under a name: at most one call runs, all others wait, and
// who waits when it ends gets what it got.
type shares struct {
	t       *testing.T
	random  *rand.Rand
	plain   rueidis.Client
	open    func() *latchkey.Client
	name    string
	about   string
	mortal  bool          // clients die: that takes a lease
	trip    time.Duration // longer than one to the server
	clients []*latchkey.Client
	locks   []*latchkey.Lock // of each client
	story   []string
	done    tally

	running  *sharer
	waiting  []*sharer
	attempts int   // runs since the last outcome
	token    int64 // of the last run
	begins   chan *sharer
}

// sharer is one call of Share.
type sharer struct {
	*redistest.Attempt[[]byte]
	client int
	run    *once.Run       // once it runs
	held   context.Context // of that
	ends   chan ending
}

// ending is what a function is told to return.
type ending struct {
	value  []byte
	err    error
	panics bool
}

// errPanic is what a call returns here whose function panics.
var errPanic = errors.New("it panics")

// shareLease is that of all runs. On a real server nothing comes near it.
const shareLease = 15 * time.Second

func (m *shares) tell(format string, args ...any) {
	m.story = append(m.story, fmt.Sprintf(format, args...))
	what := strings.TrimPrefix(strings.TrimSpace(format), "%d: ")
	m.done[strings.TrimSuffix(what, " with %.20q, %v")]++
}

func (m *shares) told() string { return m.about + ":\n" + strings.Join(m.story, "\n") }

// joins adds a client.
func (m *shares) joins() {
	c := m.open()
	l, err := rlock.New(c, m.name)
	require.NoError(m.t, err)
	m.clients, m.locks = append(m.clients, c), append(m.locks, l)
}

// call calls Share. When nobody runs it does, else it waits.
func (m *shares) call() {
	s := &sharer{client: m.random.IntN(len(m.clients)), ends: make(chan ending, 1)}
	m.tell("%d: calls", s.client)
	c := m.clients[s.client]
	s.Attempt = redistest.Begin(m.t, func(ctx context.Context) (b []byte, err error) {
		defer func() {
			if recover() != nil {
				b, err = nil, errPanic
			}
		}()
		return once.Share(ctx, c, m.name, func(held context.Context, run *once.Run) ([]byte, error) {
			s.run, s.held = run, held
			m.begins <- s
			e := <-s.ends
			if e.panics {
				panic(errPanic)
			}
			return e.value, e.err
		})
	})
	m.t.Cleanup(func() { // before it is cancelled
		select {
		case s.ends <- ending{err: errors.New("the test is over")}:
		default:
		}
	})
	m.waiting = append(m.waiting, s)
	m.settle()
}

// settle waits for what must happen by itself: somebody of those who wait runs when nobody does, and the
// others stand in the queue or in the line of their process.
func (m *shares) settle() {
	m.t.Helper()
	if m.running == nil && len(m.waiting) > 0 {
		select {
		case s := <-m.begins:
			i := slices.Index(m.waiting, s)
			require.GreaterOrEqual(m.t, i, 0, m.told())
			m.waiting = slices.Delete(m.waiting, i, i+1)
			m.running = s
			m.attempts++
			m.tell("   %d: runs", s.client)
			require.Equal(m.t, m.attempts, s.run.Attempt(), m.told())
			require.Greater(m.t, s.run.Token(), m.token, m.told())
			require.Zero(m.t, s.run.Tick())
			require.ErrorIs(m.t, s.run.SetResult(nil), latchkey.ErrInvalid)
			m.token = s.run.Token()
		case <-time.After(shareLease + long):
			require.FailNow(m.t, "nobody runs", m.told())
		}
	}
	standing := -1
	for end := time.Now().Add(long); standing != len(m.waiting); {
		require.True(m.t, time.Now().Before(end), "%d of %d wait\n%s", standing, len(m.waiting), m.told())
		state, err := m.locks[0].Inspect(context.Background())
		require.NoError(m.t, err)
		standing = state.Waiting
		for _, l := range m.locks {
			standing += (*lock.Lock)(l).InLine()
		}
		<-time.After(200 * time.Microsecond)
	}
	require.Empty(m.t, m.begins, "two run\n%s", m.told())
	for _, w := range m.waiting {
		w.Waits(m.t)
	}
}

// recordOf is the key of a record beside a lock.
func recordOf(kind, name string) string {
	if strings.Contains(name, "{") {
		return kind + ":" + name
	}
	return kind + ":{" + name + "}"
}

// play plays a random scenario.
func (m *shares) play(steps int) {
	m.begins = make(chan *sharer, 100)
	for range 3 {
		m.joins()
	}
	for range steps {
		m.step()
	}
	if m.running != nil {
		m.ended(m.ending())
	}
	for _, c := range m.clients {
		require.NoError(m.t, c.Shutdown(m.t.Context()), m.told())
	}
	redistest.OnlyExpiring(m.t, m.plain)
}

// Whatever three clients do with what they share, each call returns what the documentation says.
// Rule 46.
func TestRandomOperationsOfShare(t *testing.T) {
	seed := redistest.Seed(t)
	t.Logf("LATCHKEY_SEED=%d", seed)
	scenario := func(t *testing.T, n int64, steps int, option func() rueidis.ClientOption, done tally) {
		plain, err := rueidis.NewClient(option())
		require.NoError(t, err)
		defer plain.Close()
		require.NoError(t, plain.Do(t.Context(), plain.B().Flushall().Build()).Error())
		m := &shares{
			t: t, random: rand.New(rand.NewPCG(seed, uint64(n))), plain: plain, name: []string{"a", "{c}d"}[n%2],
			about: fmt.Sprintf("LATCHKEY_SEED=%d, scenario %d", seed, n), done: done,
			open: func() *latchkey.Client {
				c, err := rueidisclient.New(option(), latchkey.WithLease(shareLease))
				require.NoError(t, err)
				t.Cleanup(func() { _ = c.Close() })
				require.NoError(t, c.Check(t.Context()))
				return c
			},
		}
		m.mortal, m.trip = strings.HasSuffix(t.Name(), "simulated"), 50*time.Millisecond
		if m.mortal {
			m.trip = time.Second // of its network
		}
		m.play(steps)
	}
	redistest.EachServed(t, func(t *testing.T, server *redistest.Server) {
		done := tally{}
		for n := range redistest.Rounds(6, 200) {
			scenario(t, n, 100, server.Option, done)
		}
		t.Log(done)
	})
	t.Run("simulated", func(t *testing.T) {
		done := tally{}
		for n := int64(0); n < redistest.Rounds(5, 100) || done["the client dies"] == 0; n++ {
			synctest.Test(t, func(t *testing.T) {
				network := redistest.NewNetwork(seed + uint64(n))
				t.Cleanup(network.Close)
				scenario(t, n, 100, func() rueidis.ClientOption { return network.Option(0) }, done)
			})
		}
		t.Log(done)
	})
}
