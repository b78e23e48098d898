package whole_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/barrier"
	"github.com/latchkey-go/latchkey/countdown"
	"github.com/latchkey-go/latchkey/fairlock"
	"github.com/latchkey-go/latchkey/internal/test/redistest"
	"github.com/latchkey-go/latchkey/rlock"
	"github.com/latchkey-go/latchkey/rwlock"
	"github.com/latchkey-go/latchkey/semaphore"
)

// idlers are how many goroutines wait when it is measured what each costs.
const idlers = 1000

// longestToSleep is how long it may take until all that have begun sleep. It is counted twice, and a worker
// has a minute.
const longestToSleep = 25 * time.Second

// wait is what one of them does, until its context ends.
type wait func(ctx context.Context) error

// idle is one way to wait for something that a name stands for.
type idle struct {
	own  bool                                                             // each goroutine waits for a name of its own
	take func(ctx context.Context, c *latchkey.Client, name string) error // by whom they wait for; nil: nobody need take it
	wait func(c *latchkey.Client, name string) (wait, error)
}

// name is what one of the goroutines waits for.
func (w idle) name(i int) string {
	if w.own {
		return fmt.Sprintf("idle%d", i)
	}
	return "idle"
}

// maker makes a lock of a name.
type maker func(*latchkey.Client, string) (*latchkey.Lock, error)

func plainly[O any](of func(*latchkey.Client, string, ...O) (*latchkey.Lock, error)) maker {
	return func(c *latchkey.Client, name string) (*latchkey.Lock, error) { return of(c, name) }
}

func half(of func(*rwlock.Lock) *latchkey.Lock) maker {
	return func(c *latchkey.Client, name string) (*latchkey.Lock, error) {
		l, err := rwlock.New(c, name)
		if err != nil {
			return nil, err
		}
		return of(l), nil
	}
}

// idleLock is a wait for a lock that others have taken, in one way.
func idleLock(own bool, theirs, ours maker, way func(context.Context, *latchkey.Lock) error) idle {
	return idle{
		own: own,
		take: func(ctx context.Context, c *latchkey.Client, name string) error {
			l, err := theirs(c, name)
			if err != nil {
				return err
			}
			_, err = l.Lock(ctx)
			return err
		},
		wait: func(c *latchkey.Client, name string) (wait, error) {
			l, err := ours(c, name)
			return func(ctx context.Context) error { return way(ctx, l) }, err
		},
	}
}

// idlePermits is a wait for so many permits while others have them all.
func idlePermits(acquireOf func(c *latchkey.Client, name string) (wait, error)) idle {
	return idle{
		take: func(ctx context.Context, c *latchkey.Client, name string) error {
			acquire, err := acquireOf(c, name)
			if err != nil {
				return err
			}
			return acquire(ctx)
		},
		wait: acquireOf,
	}
}

func leased(n int) func(*latchkey.Client, string) (wait, error) {
	return func(c *latchkey.Client, name string) (wait, error) {
		s, err := semaphore.New(c, name, semaphore.WithCapacity(n))
		return func(ctx context.Context) error { _, err := s.Acquire(ctx, n); return err }, err
	}
}

func plainPermit(c *latchkey.Client, name string) (wait, error) {
	s, err := semaphore.NewCounting(c, name, semaphore.WithCapacity(1))
	return func(ctx context.Context) error { return s.Acquire(ctx, 1) }, err
}

var idles = func() map[string]idle {
	lock := func(ctx context.Context, l *latchkey.Lock) error { _, err := l.Lock(ctx); return err }
	do := func(ctx context.Context, l *latchkey.Lock) error {
		return l.Do(ctx, func(context.Context, *latchkey.Hold) error { return nil })
	}
	tryFor := func(ctx context.Context, l *latchkey.Lock) error { _, err := l.TryLockFor(ctx, time.Hour); return err }
	reentrant, fair := plainly(rlock.New), plainly(fairlock.New)
	read, write := half((*rwlock.Lock).Read), half((*rwlock.Lock).Write)
	return map[string]idle{
		"rlock-in-line":       idleLock(false, reentrant, reentrant, lock),
		"rlock-delegate":      idleLock(true, reentrant, reentrant, lock),
		"rlock-delegate-Do":   idleLock(true, reentrant, reentrant, do),
		"fairlock":            idleLock(false, fair, fair, lock),
		"fairlock-Do":         idleLock(false, fair, fair, do),
		"fairlock-TryLockFor": idleLock(false, fair, fair, tryFor),
		"reader-in-line":      idleLock(false, write, read, lock),
		"reader-delegate":     idleLock(true, write, read, lock),
		"writer-in-line":      idleLock(false, write, write, lock),
		"writer-delegate":     idleLock(true, write, write, lock),
		"semaphore-in-line":   idlePermits(leased(1)),
		"semaphore-queued":    idlePermits(leased(2)),
		"plain-semaphore":     idlePermits(plainPermit),
		"latch": {wait: func(c *latchkey.Client, name string) (wait, error) {
			l, err := countdown.New(c, name, countdown.WithCount(1))
			return l.Await, err
		}},
		"barrier": {wait: func(c *latchkey.Client, name string) (wait, error) {
			b, err := barrier.New(c, name, 2*idlers)
			return func(ctx context.Context) error { _, err := b.Await(ctx); return err }, err
		}},
	}
}()

// A goroutine that waits has a stack of 4 KB, however much it needed to send its command: Go halves a stack
// when it collects garbage, if less than a quarter is used. And it has little beside. Each way to wait is
// measured in a process of its own. The race detector makes frames larger.
func TestMeasuredIdleWaiters(t *testing.T) {
	for what, way := range idles {
		t.Run(what, func(t *testing.T) {
			s := redistest.NewProcess(t)
			other, err := latchkey.Open(s.URL())
			require.NoError(t, err)
			defer other.Close()
			for i := range idlers {
				if way.take != nil && (i == 0 || way.own) {
					require.NoError(t, way.take(t.Context(), other, way.name(i)))
				}
			}
			said, err := redistest.RunWorker(t, "idle "+s.URL()+" "+what)
			require.NoError(t, err, said)
			var stack, heap int
			_, err = fmt.Sscanf(said, "idle %d %d", &stack, &heap)
			require.NoError(t, err, said)
			t.Logf("%d B for each that waits: %d of stack, %d of heap", stack+heap, stack, heap)
			most := 5 << 10
			if redistest.Raced() {
				most *= 2
			}
			require.Less(t, stack, most, "what it has on its stack as it sleeps must be less than a quarter of 8 KB")
			require.Less(t, heap, 4<<10)
		})
	}
}

// idleWorker prints how much stack and heap each goroutine has that waits in one way.
func idleWorker(url, what string) {
	c, err := latchkey.Open(url)
	if err != nil {
		panic(err)
	}
	way := idles[what]
	waits := make([]wait, idlers)
	for i := range waits {
		if waits[i], err = way.wait(c, way.name(i)); err != nil {
			panic(err)
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	var all sync.WaitGroup
	begin := func(n int) { // the first make buffers and goroutines of the client, which are not theirs
		for _, w := range waits[:n] {
			all.Go(func() {
				if err := w(ctx); !errors.Is(err, context.Canceled) {
					panic(fmt.Sprint("it did not wait: ", err))
				}
			})
		}
		waits = waits[n:]
		for began := time.Now(); asleep() < idlers-len(waits); time.Sleep(5 * time.Millisecond) {
			if time.Since(began) > longestToSleep {
				panic(fmt.Sprintf("%d wait, and after %v only %d of them sleep", idlers-len(waits), longestToSleep, asleep()))
			}
		}
	}
	const first = idlers / 10
	begin(first)
	before := inUse()
	begin(idlers - first)
	after := inUse()
	n := int64(idlers - first)
	fmt.Println("idle", (int64(after.StackInuse)-int64(before.StackInuse))/n, (int64(after.HeapAlloc)-int64(before.HeapAlloc))/n)
	cancel()
	all.Wait()
	c.Close()
}

// inUse is what memory is used for when all garbage is gone: the least of some looks, because now and then a
// goroutine asks for one of those that sleep. On a busy machine many do so at a time.
func inUse() (least runtime.MemStats) {
	for look := range 20 {
		for range 3 { // finalizers leave garbage
			runtime.GC()
		}
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		if look == 0 || m.StackInuse+m.HeapAlloc < least.StackInuse+least.HeapAlloc {
			least = m
		}
		<-time.After(20 * time.Millisecond)
	}
	return least
}

// asleep is how many goroutines wait for what only another process may do.
func asleep() (n int) {
	text := make([]byte, 1<<20)
	for {
		if size := runtime.Stack(text, true); size < len(text) {
			text = text[:size]
			break
		}
		text = make([]byte, 2*len(text))
	}
	for goroutine := range strings.SplitSeq(string(text), "\n\n") {
		for _, sleeps := range []string{"wait.(*Waiters).sleep", "grant.(*Queue).enterLine", "broadcast.(*Watch).Next"} {
			if strings.Contains(goroutine, sleeps) {
				n++
				break
			}
		}
	}
	return n
}
