package redlock_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/internal/redistest"
	"github.com/latchkey-go/latchkey/internal/redistest/shared"
	"github.com/latchkey-go/latchkey/redlock"
)

const (
	processes    = 4
	names        = 4 // locks, each of which every process wants
	historyLease = 500 * time.Millisecond
)

// worker is a process of its own: it locks and unlocks over the servers of these addresses until all
// processes together have done that so many times, and writes down what it may trust.
func worker(args []string) {
	check := func(err error) {
		if err != nil {
			fmt.Println("error", err)
			os.Exit(1)
		}
	}
	h, err := openHistory(args[1])
	check(err)
	counts, err := shared.Open(args[2], 64)
	check(err)
	done := counts.Word(0)
	goal, err := strconv.ParseInt(args[3], 10, 64)
	check(err)
	var all []*latchkey.Client
	for _, addr := range strings.Split(args[0], ",") {
		option := rueidis.ClientOption{InitAddress: []string{addr}, ForceSingleClient: true}
		c, err := latchkey.New(option, latchkey.WithLazyConnect(), latchkey.WithLease(historyLease))
		check(err)
		all = append(all, c)
	}
	var wg sync.WaitGroup
	for n := range names {
		name := fmt.Sprint("a", n)
		if len(args) > 4 { // a broken lock: each process has one of its own
			name += args[4]
		}
		l, err := redlock.New(all, name, redlock.WithUptime(time.Second))
		check(err)
		wg.Go(func() {
			for done.Load() < goal {
				ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
				hold, err := l.Lock(ctx)
				cancel()
				if err != nil {
					fmt.Println("error", err)
					continue
				}
				s := h.begin(hold, int64(n))
				if rand.N(4) == 0 {
					<-time.After(rand.N(2 * time.Millisecond))
				}
				if rand.N(200) == 0 { // one that takes all servers, and is renewed
					<-time.After(rand.N(800 * time.Millisecond))
				}
				h.finish(s, hold)
				done.Add(1)
				err = hold.Unlock(context.Background())
				if err != nil && !errors.Is(err, latchkey.ErrLost) && !errors.Is(err, latchkey.ErrUnknownOutcome) {
					fmt.Println("error", err)
				}
				<-time.After(rand.N(time.Millisecond)) // others have their turn
			}
		})
	}
	wg.Wait()
	for _, c := range all {
		c.Close()
	}
	fmt.Println("finished")
}

// troubles are what servers go through.
type troubles struct {
	killed, stopped, paused, cut int
	workers                      int // killed
}

// trouble has one server or two go through something, and returns when they are well again: those that were
// restarted empty have been up for as long as the workers want them to be.
func (v *troubles) trouble(t *testing.T, servers []*redistest.Server, plain []rueidis.Client) {
	order := rand.Perm(len(servers))[:1+rand.N(2)]
	what := rand.N(4)
	for _, i := range order {
		switch what {
		case 0:
			v.killed++
			servers[i].Kill()
		case 1:
			v.stopped++
			servers[i].Stop(t)
		case 2:
			v.paused++
			require.NoError(t, plain[i].Do(t.Context(), plain[i].B().Arbitrary("CLIENT", "PAUSE", fmt.Sprint(50+rand.N(800)), "ALL").Build()).Error())
		case 3:
			v.cut++
			require.NoError(t, plain[i].Do(t.Context(), plain[i].B().Arbitrary("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes").Build()).Error())
		}
	}
	<-time.After(rand.N(900 * time.Millisecond)) // shorter and longer than a lease
	for _, i := range order {
		if what == 0 {
			servers[i].Start(t)
		}
		servers[i].Continue(t)
	}
	if what == 0 {
		<-time.After(2 * time.Second)
	}
}

// runHistory has processes lock the same names over five servers so many times, while servers and
// processes are in trouble. It returns the histories, when the process of which was killed, and what was
// done.
func runHistory(t *testing.T, goal int64, broken bool) (paths []string, killed map[string]time.Time, v troubles) {
	t.Helper()
	servers := five(t, process)
	plain, dir := plains(t, servers), t.TempDir()
	var addrs []string
	for _, s := range servers {
		addrs = append(addrs, s.Addr)
	}
	counter := filepath.Join(dir, "counter")
	counts, err := shared.Open(counter, 64)
	require.NoError(t, err)
	done := counts.Word(0)
	workers, at := make([]*redistest.Worker, processes), make([]string, processes)
	start := func(i int) {
		at[i] = filepath.Join(dir, fmt.Sprint(len(paths)))
		paths = append(paths, at[i])
		words := fmt.Sprintf("%s %s %s %d", strings.Join(addrs, ","), at[i], counter, goal)
		if broken {
			words += fmt.Sprint(" ", i%2)
		}
		workers[i] = redistest.StartWorker(t, words)
	}
	for i := range workers {
		start(i)
	}
	killed = map[string]time.Time{}
	last := time.Now()
	for done.Load() < goal {
		if !broken {
			v.trouble(t, servers, plain)
		}
		if time.Since(last) > 3*time.Second {
			last = time.Now()
			i := rand.N(processes)
			killed[at[i]] = time.Now()
			workers[i].Kill()
			v.workers++
			start(i)
		}
		<-time.After(rand.N(200 * time.Millisecond))
	}
	for _, w := range workers {
		w.Next(t, "finished") // and nothing before it: no error, and nobody was forgotten
	}
	clean := func() bool {
		keys, err := left(plain)
		return err == nil && len(keys) == 0
	}
	require.Eventually(t, clean, long, 10*time.Millisecond)
	return paths, killed, v
}

// Several processes share locks over five servers, of which one or two at a time are killed and come back
// empty, are stopped, paused, and lose their connections. Judged from what the processes wrote down, no two
// ever held one lock, and the tokens have their order.
// Rules 36, 38.
func TestHistory(t *testing.T) {
	redistest.Require(t)
	goal, began := redistest.Rounds(3_000, 100_000), time.Now()
	paths, killed, troubles := runHistory(t, goal, false)
	v := judgeFiles(t, paths, killed)
	t.Logf("%+v in %v, %+v", v, time.Since(began).Round(time.Second), troubles)
	require.Zero(t, v.overlaps, "exclusion")
	require.Zero(t, v.disorder, "order of tokens")
	require.GreaterOrEqual(t, int64(v.sections), goal*9/10)
}

// The check above fails when processes do not exclude each other: here every other one has other locks.
func TestHistoryOfABrokenLock(t *testing.T) {
	redistest.Require(t)
	paths, killed, _ := runHistory(t, 500, true)
	v := judgeFiles(t, paths, killed)
	require.Positive(t, v.overlaps)
	require.Positive(t, v.disorder)
}
