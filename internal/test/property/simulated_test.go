package property_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/fairlock"
	"github.com/latchkey-go/latchkey/internal/test/redistest"
	"github.com/latchkey-go/latchkey/rlock"
	"github.com/latchkey-go/latchkey/rueidisclient"
	"github.com/latchkey-go/latchkey/rwlock"
	"github.com/latchkey-go/latchkey/semaphore"
)

// simulation is clients, a network and the embedded server in one synctest bubble. Time passes when nobody
// has anything to do: so leases and pauses take none.
type simulation struct {
	*redistest.Network
	t    *testing.T
	seed uint64

	mu     sync.Mutex
	inside map[*visit]bool
	tokens map[string]int64 // the greatest of those who excluded others

	entered, attempts, refused, lost, cuts, commands int // attempts: that got what they wanted
}

// visit is a hold, from when its call returned until it is given back.
type visit struct {
	tenancy
	at      string // a name
	readers bool
	attempt bool // it did not wait
	permits int
}

type tenancy interface {
	Held() bool
	Token() int64
}

// way is one of the ways to hold something.
type way struct {
	visit
	take func(ctx context.Context) (tenancy, func(context.Context) error, error)
}

// pooled is how many permits there are. The other numbers are of clients, of goroutines of each, and of their
// calls.
const pooled, simulated, users, calls = 3, 3, 5, 20

// Whatever they do together, nobody holds what excludes another one that holds, tokens grow, everybody gets a
// turn, and nothing is left behind.
func TestSimulated(t *testing.T) {
	seed := redistest.Seed(t)
	t.Logf("LATCHKEY_SEED=%d", seed)
	began, passed, total := time.Now(), time.Duration(0), simulation{}
	runs := redistest.Longer(1, 60) // the embedded server needs seconds for each
	for n := range runs {
		synctest.Test(t, func(t *testing.T) {
			s := simulation{
				t: t, seed: seed + uint64(n), inside: map[*visit]bool{}, tokens: map[string]int64{},
				Network: redistest.NewNetwork(seed + uint64(n)),
			}
			start := time.Now()
			s.run()
			passed += time.Since(start)
			total.entered, total.attempts, total.refused = total.entered+s.entered, total.attempts+s.attempts, total.refused+s.refused
			total.lost, total.cuts, total.commands = total.lost+s.lost, total.cuts+s.cuts, total.commands+s.commands
			require.False(t, t.Failed(), "LATCHKEY_SEED=%d, run %d", seed, n)
		})
	}
	require.Positive(t, total.attempts)
	took := time.Since(began)
	t.Logf("%d runs, %d holds (%d by attempts, %d lost), %d refusals, %d cuts, %d commands; %v in %v: %.0f s and %.0f holds per second",
		runs, total.entered, total.attempts, total.lost, total.refused, total.cuts, total.commands, passed.Round(time.Second), took.Round(time.Millisecond),
		passed.Seconds()/took.Seconds(), float64(total.entered)/took.Seconds())
}

// What is on its way when a network ends is waited for.
func TestNetworkEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := redistest.NewNetwork(0)
		link, err := n.Dial(0)
		require.NoError(t, err)
		_, err = link.Write([]byte("*1\r\n$4\r\nPING\r\n"))
		require.NoError(t, err)
		n.Close()
	})
}

// Nothing is done for who holds and who waits but renewals, probes and questions: an hour is over in a
// second.
func TestSimulatedHour(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := redistest.NewNetwork(0)
		defer n.Close()
		var locks []*latchkey.Lock
		for client := range 2 {
			c, err := rueidisclient.New(n.Option(client), latchkey.WithLease(time.Minute))
			require.NoError(t, err)
			defer c.Close()
			l, err := rlock.New(c, "a")
			require.NoError(t, err)
			locks = append(locks, l)
		}
		hold, err := locks[0].Lock(t.Context())
		require.NoError(t, err)
		next := redistest.Begin(t, locks[1].Lock)
		time.Sleep(time.Hour)
		require.True(t, hold.Held())
		require.NoError(t, hold.Unlock(t.Context()))
		after := next.Granted(t)
		require.Greater(t, after.Token(), hold.Token())
		require.NoError(t, after.Unlock(t.Context()))
		t.Logf("%d commands", n.Server.CommandCount())
	})
}

func (s *simulation) run() {
	defer s.Close()
	var clients []*latchkey.Client
	for n := range simulated {
		c, err := rueidisclient.New(s.Option(n), latchkey.WithLease(time.Duration(n+1)*time.Second))
		require.NoError(s.t, err)
		defer c.Close()
		clients = append(clients, c)
	}
	var running sync.WaitGroup
	for n, c := range clients {
		ways := s.ways(c)
		for g := range users {
			random := rand.New(rand.NewPCG(s.seed, uint64(1_000_000+n*users+g)))
			running.Go(func() {
				for range calls {
					time.Sleep(time.Duration(random.Int64N(int64(3 * time.Millisecond))))
					s.use(ways[random.IntN(len(ways))], random)
				}
			})
		}
	}
	ended, stopped := make(chan struct{}), make(chan struct{})
	go s.breaks(ended, stopped)
	running.Wait()
	close(ended)
	<-stopped
	s.isOver(clients)
}

// isOver requires that nothing is left behind, once the leases of what was lost are over as well.
func (s *simulation) isOver(clients []*latchkey.Client) {
	time.Sleep(simulated * time.Second) // the longest of them
	p, err := semaphore.New(clients[0], "permits")
	require.NoError(s.t, err)
	all, err := p.TryAcquire(s.t.Context(), pooled)
	require.NoError(s.t, err, "somebody has permits, or waits for them")
	require.NoError(s.t, all.Release(s.t.Context()))
	for _, c := range clients {
		require.NoError(s.t, c.Shutdown(s.t.Context()))
	}
	s.commands = s.Server.CommandCount()
	for _, key := range s.Server.Keys() {
		if key != "permits" { // their number stays
			require.Positive(s.t, s.Server.TTL(key), key)
		}
	}
	for _, key := range []string{"line", "lingers", "fair", "both", "{permits}:timeout"} {
		require.False(s.t, s.Server.Exists(key), key)
	}
}

// breaks cuts connections, from time to time.
func (s *simulation) breaks(ended, stopped chan struct{}) {
	defer close(stopped)
	random := rand.New(rand.NewPCG(s.seed, 2_000_000))
	for {
		select {
		case <-ended:
			return
		case <-time.After(time.Duration(random.Int64N(int64(500 * time.Millisecond)))):
			s.cuts++
			all := random.IntN(2) == 0
			s.Cut(random.IntN(simulated), func() bool { return all || random.IntN(2) == 0 })
		}
	}
}

// ways are those of a client.
func (s *simulation) ways(c *latchkey.Client) (all []way) {
	lock := func(l *latchkey.Lock, err error, v visit) {
		require.NoError(s.t, err)
		for n, take := range []func(context.Context) (*latchkey.Hold, error){l.Lock, l.TryLock} {
			v.attempt = n == 1
			all = append(all, way{v, func(ctx context.Context) (tenancy, func(context.Context) error, error) {
				h, err := take(ctx)
				return h, h.Unlock, err
			}})
		}
	}
	line, err := rlock.New(c, "line")
	lock(line, err, visit{at: "line"})
	lingers, err := rlock.New(c, "lingers", rlock.WithLinger(50*time.Millisecond))
	lock(lingers, err, visit{at: "lingers"})
	fair, err := fairlock.New(c, "fair")
	lock(fair, err, visit{at: "fair"})
	both, err := rwlock.New(c, "both")
	lock(both.Read(), err, visit{at: "both", readers: true})
	lock(both.Write(), err, visit{at: "both"})
	pool, err := semaphore.New(c, "permits", semaphore.WithCapacity(pooled))
	require.NoError(s.t, err)
	for n := 1; n <= pooled; n++ {
		all = append(all, way{visit{at: "permits", permits: n}, func(ctx context.Context) (tenancy, func(context.Context) error, error) {
			p, err := pool.Acquire(ctx, n)
			return p, p.Release, err
		}})
	}
	return all
}

// use holds something once, and gives it back.
func (s *simulation) use(w way, random *rand.Rand) {
	patience := 5 * time.Minute
	if random.IntN(10) == 0 { // some give up
		patience = time.Duration(random.Int64N(int64(5 * time.Millisecond)))
	}
	ctx, cancel := context.WithTimeout(s.t.Context(), patience)
	h, release, err := w.take(ctx)
	cancel()
	if err != nil {
		require.True(s.t, patience < time.Second || !errors.Is(err, context.DeadlineExceeded), "%s: forgotten: %v", w.at, err)
		s.mu.Lock()
		s.refused++
		s.mu.Unlock()
		return
	}
	v := w.visit
	v.tenancy = h
	defer s.leave(&v, release) // also when the test fails
	s.enter(&v)
	stay := time.Duration(random.Int64N(int64(5 * time.Millisecond)))
	if random.IntN(30) == 0 {
		stay = time.Duration(random.Int64N(int64(4 * time.Second)))
	}
	time.Sleep(stay)
}

func (s *simulation) leave(v *visit, release func(context.Context) error) {
	s.mu.Lock()
	delete(s.inside, v)
	s.mu.Unlock()
	if err := release(context.Background()); err != nil {
		s.mu.Lock()
		s.lost++
		s.mu.Unlock()
	}
}

// enter judges whether it may hold beside all that others trust.
func (s *simulation) enter(v *visit) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.entered++
	if v.attempt {
		s.attempts++
	}
	taken := v.permits
	for o := range s.inside {
		if o.at != v.at || !o.Held() {
			continue
		}
		taken += o.permits
		together := v.readers && o.readers || v.permits > 0
		require.True(s.t, together || !v.Held(), "two hold %s, with tokens %d and %d", v.at, o.Token(), v.Token())
	}
	require.True(s.t, taken <= pooled || !v.Held(), "%d hold of %s", taken, v.at)
	if last := s.tokens[v.at]; v.permits == 0 && v.Held() {
		require.True(s.t, v.Token() > last || v.readers && v.Token() == last, "%s: token %d after %d", v.at, v.Token(), last)
	}
	if v.permits == 0 && !v.readers {
		s.tokens[v.at] = max(s.tokens[v.at], v.Token())
	}
	s.inside[v] = true
}
