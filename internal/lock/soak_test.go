package lock_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey/internal/grant"
	"github.com/latchkey-go/latchkey/internal/identity"
	"github.com/latchkey-go/latchkey/internal/lock"
	"github.com/latchkey-go/latchkey/internal/session"
	"github.com/latchkey-go/latchkey/internal/terms"
	"github.com/latchkey-go/latchkey/internal/test/locktest"
	"github.com/latchkey-go/latchkey/internal/test/redistest"
	"github.com/latchkey-go/latchkey/internal/test/redistest/shared"
)

// witness is memory that all workers of a run share, outside Redis. A worker writes to it only while it
// trusts its hold.
type witness struct {
	inside     *atomic.Int64 // who is: process id << 24 | number of the visit; 0: nobody
	visits     *atomic.Int64
	last       *atomic.Int64 // highest token that went inside
	lastPID    *atomic.Int64
	grants     *atomic.Int64 // times somebody went inside
	handoffs   *atomic.Int64 // times it was another process than before
	overlaps   *atomic.Int64 // violations of exclusion
	disorder   *atomic.Int64 // tokens that did not grow
	inversions *atomic.Int64 // acknowledged sequences that were overtaken
	queuedLast *atomic.Int64 // highest sequence that went inside
	lost       *atomic.Int64 // holds that ended by loss
	longest    *atomic.Int64 // longest wait, ns
	lingered   *atomic.Int64 // times a lock that was unlocked was seen to linger
}

func openWitness(path string) (*witness, error) {
	memory, err := shared.Open(path, 4096)
	if err != nil {
		return nil, err
	}
	n := -1
	word := func() *atomic.Int64 {
		n++
		return memory.Word(n)
	}
	return &witness{
		word(), word(), word(), word(), word(), word(), word(), word(), word(), word(), word(), word(), word(),
	}, nil
}

// visit goes inside with a hold and comes out again. What it writes is judged by the next visitor and by the
// test.
func (w *witness) visit(h *grant.Hold, fifo bool) {
	token, pid := h.Token(), int64(os.Getpid())
	me := pid<<24 | w.visits.Add(1)&(1<<24-1)
	if other := w.inside.Swap(me); other != 0 {
		// Somebody is inside. If his process was killed there, his lease has ended; otherwise two are.
		if redistest.Alive(int(other>>24)) && h.Held() {
			w.overlaps.Add(1)
		}
	}
	if last := w.last.Load(); token <= last && h.Held() {
		w.disorder.Add(1)
	}
	w.last.Store(token)
	if s := h.Sequence(); fifo && s > 0 {
		if s < w.queuedLast.Load() {
			w.inversions.Add(1)
		}
		w.queuedLast.Store(s)
	}
	w.grants.Add(1)
	if w.lastPID.Swap(pid) != pid {
		w.handoffs.Add(1)
	}
	if h.Held() && w.inside.Load() != me { // still trusted, so nobody can have come in
		w.overlaps.Add(1)
	}
	w.inside.CompareAndSwap(me, 0)
}

// handoff is the worker of the soak: goroutines that lock, go inside, and unlock, until they are killed.
func handoff(c *session.Client, kind string, args []string) {
	w, err := openWitness(args[0])
	locktest.Check(err)
	delegate, lingers := kind != "fairlock", kind == "lingering"
	var set []terms.Option
	if lingers {
		set = append(set, terms.WithLinger(time.Second))
	}
	l, err := lock.New(c, "a", delegate, locktest.Options(set...))
	locktest.Check(err)
	var wg sync.WaitGroup
	stop, err := time.Parse(time.RFC3339Nano, args[1])
	locktest.Check(err)
	for range 4 {
		wg.Go(func() {
			for time.Now().Before(stop) {
				take := l.Lock
				few := lingers && time.Now().UnixMilli()/500%2 == 0 // every other half second few come, and some only try
				if few {
					<-time.After(rand.N(200 * time.Millisecond))
					if rand.N(2) == 0 {
						take = l.TryLock
					}
				}
				began := time.Now()
				ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
				if rand.N(50) == 0 { // some give up
					ctx, cancel = context.WithTimeout(context.Background(), rand.N(10*time.Millisecond))
				}
				h, err := take(ctx)
				cancel()
				if err != nil {
					if time.Since(began) > 20*time.Second {
						fmt.Println("error forgotten:", err)
					}
					continue
				}
				for waited := int64(time.Since(began)); ; {
					longest := w.longest.Load()
					if waited <= longest || w.longest.CompareAndSwap(longest, waited) {
						break
					}
				}
				w.visit(h, !delegate)
				if err := h.Unlock(context.Background()); err != nil {
					w.lost.Add(1)
				}
				if few || lingers && rand.N(20) == 0 {
					if s, err := l.Inspect(context.Background()); err == nil && s.Holder.Mine && s.Holder.Mode == identity.Lingers {
						w.lingered.Add(1)
					}
				}
			}
		})
	}
	wg.Wait()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	locktest.Check(c.Shutdown(ctx))
	fmt.Println("finished")
}

// 8 processes hand one lock around, which lingers or does not, while connections are killed every second and
// a process every five. The short form runs with the tests, the long one with `make soak`.
func TestSoak(t *testing.T) {
	for _, kind := range []string{"rlock", "fairlock", "lingering"} {
		t.Run(kind, func(t *testing.T) {
			duration := time.Duration(redistest.Longer(6, 75)) * time.Second
			s := redistest.NewProcess(t, "--maxclients", "1000")
			plain := s.Client(t)
			path := filepath.Join(t.TempDir(), "witness")
			w, err := openWitness(path)
			require.NoError(t, err)
			began := time.Now()
			stop := began.Add(duration)
			mode := fmt.Sprintf("handoff %s %s %s %s", s.Addr, kind, path, stop.Format(time.RFC3339Nano))
			workers := make([]*redistest.Worker, 8)
			for i := range workers {
				workers[i] = redistest.StartWorker(t, mode, "LATCHKEY_TEST_LEASE=1s")
			}
			kills := 0
			ticker := time.NewTicker(time.Second)
			defer ticker.Stop()
			for n := 1; time.Until(stop) > time.Second; n++ {
				<-ticker.C
				kind := []string{"pubsub", "normal"}[n%2]
				killed, err := do(t, plain, "CLIENT", "KILL", "TYPE", kind, "SKIPME", "yes").AsInt64()
				require.NoError(t, err)
				if killed > 0 {
					kills++
				}
				if n%5 == 0 {
					i := slices.IndexFunc(workers, func(p *redistest.Worker) bool { return int64(p.PID()) == w.lastPID.Load() })
					i = max(i, 0) // most likely the holder, or who has just been it
					workers[i].Kill()
					workers[i] = redistest.StartWorker(t, mode, "LATCHKEY_TEST_LEASE=1s")
					kills++
				}
			}
			for _, p := range workers {
				p.Next(t, "finished") // no waiter is left behind
			}
			t.Logf("%s in %v: %d grants, %d between processes, %d kills, %d holds lost, %d seen to linger, longest wait %v",
				kind, time.Since(began).Round(time.Second), w.grants.Load(), w.handoffs.Load(), kills, w.lost.Load(), w.lingered.Load(),
				time.Duration(w.longest.Load()).Round(time.Millisecond))
			require.Zero(t, w.overlaps.Load(), "exclusion")
			require.Zero(t, w.disorder.Load(), "token order")
			require.Zero(t, w.inversions.Load(), "acknowledged enqueues are granted in order")
			require.Equal(t, kind == "lingering", w.lingered.Load() > 0)
			require.Greater(t, w.handoffs.Load(), int64(20)*int64(duration/time.Second), "it shows nothing")
			if os.Getenv("LATCHKEY_SOAK") != "" {
				require.GreaterOrEqual(t, kills, 50) // how many hand-offs there are depends on the machine: the log has them
			}
			clean(t, plain)
		})
	}
}
