package property_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/internal/test/redistest"
	"github.com/latchkey-go/latchkey/once"
	"github.com/latchkey-go/latchkey/rueidisclient"
)

// jobs is a job of several clients, whose server's clock is set at will. Nothing happens by itself: a period
// has hours, and who takes part looks once, and then sleeps by the clock of its own process.
type jobs struct {
	timetable

	t       *testing.T
	random  *rand.Rand
	plain   rueidis.Client
	open    func() *latchkey.Client
	now     func() time.Time        // of the server
	jump    func(d time.Duration)   // sets its clock
	elapses bool                    // times to live get no longer when that is set back
	asks    func(start func()) bool // calls start, and waits for the first script that comes then
	name    string
	about   string
	options []once.JobOption
	clients []*latchkey.Client
	story   []string
	done    tally

	back   bool // the clock is set back by ten minutes
	all    []*joiner
	dead   []*joiner
	holder *joiner   // who has the lock, by Redis; nil: nobody, or who died
	free   time.Time // when the lock is free, by the server
	token  int64
	begins chan *joiner
}

// joiner is a call of Run.
type joiner struct {
	*redistest.Attempt[struct{}]
	client int
	run    *once.Run // nil: it sleeps
	held   context.Context
	ends   chan error
	lost   chan bool // as it returned: its context had ended
	stale  bool      // another run has begun
}

// The times of a job. A jump is of slots, and each slot is seen six minutes after its begin: so the seconds
// that a test takes, and a jitter of four minutes, change nothing.
const (
	jobPeriod, jobLease = 10 * time.Hour, 3 * time.Hour
	jobSlot, jobPhase   = 30 * time.Minute, 6 * time.Minute
	jobJitter           = 4 * time.Minute
)

func (m *jobs) tell(format string, args ...any) {
	m.story = append(m.story, m.now().Format("02 15:04 ")+fmt.Sprintf(format, args...))
	what := strings.TrimPrefix(strings.TrimSpace(format), "%d: ")
	what, _, _ = strings.Cut(what, " %")
	m.done[what]++
}

func (m *jobs) told() string { return m.about + ":\n" + strings.Join(m.story, "\n") }

// locked reports whether somebody who asks now finds the lock taken.
func (m *jobs) locked() bool { return m.now().Before(m.free) }

// start has a client take part. It runs what is due, unless the lock is taken.
func (m *jobs) start() {
	p := &joiner{client: m.random.IntN(len(m.clients)), ends: make(chan error, 1), lost: make(chan bool, 10)}
	m.tell("%d: takes part", p.client)
	job, err := once.Every(m.clients[p.client], m.name, jobPeriod, func(held context.Context, run *once.Run) error {
		p.run, p.held = run, held
		m.begins <- p
		err := <-p.ends
		p.lost <- held.Err() != nil
		return err
	}, m.options...)
	require.NoError(m.t, err)
	asked := m.asks(func() {
		p.Attempt = redistest.Begin(m.t, func(ctx context.Context) (struct{}, error) { return struct{}{}, job.Run(ctx) })
	})
	require.True(m.t, asked, m.told())
	m.t.Cleanup(func() { // before it is cancelled
		select {
		case p.ends <- errWork:
		default:
		}
	})
	m.all = append(m.all, p)
	if !m.goesOn(p) {
		m.settled()
	}
}

// goesOn is a look of a process: it reports whether that runs, and sees it do so.
func (m *jobs) goesOn(p *joiner) bool {
	m.t.Helper()
	if m.locked() {
		m.look(m.now())
		return false
	}
	before := m.tick
	runs := m.begin(m.now())
	if runs || !before.IsZero() { // a run that is given up is stale as well
		for _, other := range m.all {
			other.stale = other.stale || other != p && other.run != nil
		}
	}
	if !runs {
		return false
	}
	select {
	case by := <-m.begins:
		require.Same(m.t, p, by, m.told())
	case <-time.After(long):
		fields, err := m.plain.Do(context.Background(), m.plain.B().Hgetall().Key(recordOf("latchkey_every", m.name)).Build()).AsStrMap()
		left, _ := m.plain.Do(context.Background(), m.plain.B().Pttl().Key(m.name).Build()).AsInt64()
		require.FailNow(m.t, "it does not run", "%v of %d: %v %v %v\n%s", m.tick, p.client, fields, err, left, m.told())
	}
	m.tell("   %d: runs %s", p.client, p.run.Tick().Format("02 15:04"))
	require.Equal(m.t, m.tick, p.run.Tick(), m.told())
	require.Equal(m.t, m.attempt, p.run.Attempt(), m.told())
	require.Greater(m.t, p.run.Token(), m.token, m.told())
	m.token = p.run.Token()
	m.holder, m.free, p.stale = p, m.now().Add(jobLease), false
	m.recorded()
	return true
}

// recorded waits until Redis has what the model has.
func (m *jobs) recorded() {
	m.t.Helper()
	m.forget(m.now())
	want, got := m.record(m.now()), ""
	for end := time.Now().Add(long); want != got; <-time.After(200 * time.Microsecond) {
		require.True(m.t, time.Now().Before(end), "want %s, got %s\n%s", want, got, m.told())
		fields, err := m.plain.Do(context.Background(), m.plain.B().Hgetall().Key(recordOf("latchkey_every", m.name)).Build()).AsStrMap()
		require.NoError(m.t, err)
		got = "last " + fields["last"]
		if fields["row"] != "" {
			got += " row " + fields["row"]
		}
		if fields["tick"] != "" {
			got += " tick " + fields["tick"] + " attempt " + fields["attempt"]
		}
	}
	require.Empty(m.t, m.begins, "more run\n%s", m.told())
}

// settled waits until Redis has what the model has, and the lock is free if it is to be.
func (m *jobs) settled() {
	m.t.Helper()
	m.recorded()
	for end := time.Now().Add(long); !m.locked(); <-time.After(200 * time.Microsecond) {
		require.True(m.t, time.Now().Before(end), "the lock is held\n%s", m.told())
		n, err := m.plain.Do(context.Background(), m.plain.B().Exists().Key(m.name).Build()).AsInt64()
		require.NoError(m.t, err)
		if n == 0 {
			m.free = time.Time{} // also when the clock is set back
			return
		}
	}
}

// play plays a random scenario.
func (m *jobs) play(steps int) {
	m.begins = make(chan *joiner, 100)
	m.period, m.grace = jobPeriod, jobLease+time.Second
	m.options = []once.JobOption{once.WithMissed(m.missed), once.WithLease(jobLease)}
	if m.limit = 1 + m.random.IntN(3); m.limit != 2 { // the default
		m.options = append(m.options, once.WithDeaths(m.limit))
	}
	if m.random.IntN(2) == 0 {
		m.options = append(m.options, once.WithJitter(jobJitter))
	}
	m.about += fmt.Sprintf(": missed %d, limit %d", m.missed, m.limit)
	for range 3 {
		m.clients = append(m.clients, m.open())
	}
	m.jump(m.floor(m.now()).Add(jobPhase).Sub(m.now()))
	for range steps {
		m.step()
	}
	for len(m.all) > 0 {
		m.cancel(m.all[0])
	}
	for _, p := range m.dead { // it goes on, and finds that it has died
		p.ends <- errWork
		require.ErrorIs(m.t, p.Outcome(m.t), latchkey.ErrClosed, m.told())
	}
	m.recorded()
	redistest.OnlyExpiring(m.t, m.plain)
	for _, c := range m.clients {
		c.Close()
	}
}

func everyScenario(t *testing.T, seed uint64, n int64, option func() rueidis.ClientOption, m *jobs) {
	plain, err := rueidis.NewClient(option())
	require.NoError(t, err)
	t.Cleanup(plain.Close)
	require.NoError(t, plain.Do(t.Context(), plain.B().Flushall().Build()).Error())
	m.missed = []once.Missed{once.Skip, once.RunOnce, once.RunAll}[n%3]
	m.t, m.plain, m.random = t, plain, rand.New(rand.NewPCG(seed, uint64(n)))
	m.name, m.about = []string{"a", "{c}d"}[n%2], "LATCHKEY_SEED="+strconv.FormatUint(seed, 10)+", scenario "+strconv.FormatInt(n, 10)
	m.open = func() *latchkey.Client {
		c, err := rueidisclient.New(option(), latchkey.WithLease(jobLease))
		require.NoError(t, err)
		t.Cleanup(func() { _ = c.Close() })
		require.NoError(t, c.Check(t.Context()))
		return c
	}
	m.play(100)
}

// Whatever three clients do with a job, and the server's clock with its ticks: a tick is run once, at its
// turn, and again only when its run has not ended.
// Rule 47.
func TestRandomOperationsOfEvery(t *testing.T) {
	seed := redistest.Seed(t)
	t.Logf("LATCHKEY_SEED=%d", seed)
	t.Run("redis", func(t *testing.T) {
		server, passed, done := redistest.NewJumping(t), time.Duration(0), tally{}
		stats := server.Client(t)
		for n := range redistest.Rounds(12, 300) {
			m := &jobs{
				done: done, now: func() time.Time { return time.Now().Add(passed) },
				jump: func(d time.Duration) { passed += d; server.Jump(t, d) },
			}
			m.asks = func(start func()) bool {
				before := redistest.Scripts(t, stats)
				start()
				for end := time.Now().Add(long); redistest.Scripts(t, stats) == before; <-time.After(200 * time.Microsecond) {
					if time.Now().After(end) {
						return false
					}
				}
				return true
			}
			everyScenario(t, seed, n, server.Option, m)
		}
		t.Log(done)
	})
	t.Run("embedded", func(t *testing.T) {
		done := tally{}
		for n := range redistest.Rounds(24, 200) {
			synctest.Test(t, func(t *testing.T) {
				network := redistest.NewNetwork(seed + uint64(n))
				t.Cleanup(network.Close)
				now := time.Now()
				m := &jobs{
					done: done, elapses: true, now: func() time.Time { return now },
					jump: func(d time.Duration) { now = now.Add(d); network.Server.SetTime(now) },
					asks: func(start func()) bool { start(); time.Sleep(200 * time.Millisecond); return true }, // a scenario takes less than a pause after deaths
				}
				everyScenario(t, seed, n, func() rueidis.ClientOption { return network.Option(0) }, m)
			})
		}
		t.Log(done)
	})
}
