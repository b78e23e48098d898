//go:build unix

package redisson

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/fairlock"
	"github.com/latchkey-go/latchkey/internal/test/redistest"
	"github.com/latchkey-go/latchkey/internal/test/redistest/redisson"
	"github.com/latchkey-go/latchkey/rlock"
	"github.com/latchkey-go/latchkey/rueidisclient"
	"github.com/latchkey-go/latchkey/rwlock"
	"github.com/latchkey-go/latchkey/semaphore"
)

// plan is a run of either side: threads that take one thing in turn, and write that down. The zero values of
// limit and work are none.
type plan struct {
	kind, name string
	threads    int
	clients    int
	work       time.Duration
	lasts      time.Duration
	limit      int // of holds
}

func (p plan) text(id, file string) string {
	text := fmt.Sprintf("run %s %s %s %d %d %d %s", id, p.kind, p.name, p.threads, p.work.Microseconds(), p.lasts.Milliseconds(), file)
	if p.limit > 0 {
		text += " " + strconv.Itoa(p.limit)
	}
	return text
}

// ours starts a run of our side in a process of its own, which says running and done.
func ours(t testing.TB, p plan, file string, addrs ...string) *redistest.Worker {
	t.Helper()
	w := redistest.StartWorker(t, strings.Join(append([]string{
		p.kind, p.name, strconv.Itoa(p.threads), strconv.Itoa(p.clients), p.work.String(), p.lasts.String(), strconv.Itoa(p.limit), file,
	}, addrs...), " "))
	return w
}

// serve is the worker of ours.
func serve(words []string) {
	p := plan{kind: words[0], name: words[1]}
	p.threads, _ = strconv.Atoi(words[2])
	p.clients, _ = strconv.Atoi(words[3])
	p.work, _ = time.ParseDuration(words[4])
	p.lasts, _ = time.ParseDuration(words[5])
	p.limit, _ = strconv.Atoi(words[6])
	if err := p.run(words[7], words[8:]); err != nil {
		fmt.Println("error", err)
		os.Exit(1)
	}
}

// lease is that of both sides: so long nobody has what a killed process held.
const lease = 3 * time.Second

// taker takes the thing once, and returns its token, whether others may have it too, and how to give it back.
type taker func(ctx context.Context, random *rand.Rand) (token int64, shared bool, release func(context.Context) error, err error)

func (p plan) run(file string, addrs []string) error {
	var takers []taker
	for range max(p.clients, 1) {
		c, err := rueidisclient.New(rueidis.ClientOption{InitAddress: addrs, ShuffleInit: true}, latchkey.WithRedisson(), latchkey.WithLease(lease))
		if err != nil {
			return err
		}
		defer c.Close()
		take, err := p.taker(c)
		if err != nil {
			return err
		}
		takers = append(takers, take)
	}
	capacity := 2_000_000 / p.threads
	if p.limit > 0 {
		capacity = min(capacity, p.limit+1000)
	}
	w, err := newWriter(file, p.threads, capacity)
	if err != nil {
		return err
	}
	fmt.Println("running")
	var g sync.WaitGroup
	var made atomic.Int64
	errs := make(chan error, p.threads)
	until := time.Now().Add(p.lasts)
	for thread := range p.threads {
		g.Go(func() {
			random := rand.New(rand.NewPCG(uint64(thread), 1))
			for p.limit == 0 && time.Now().Before(until) || p.limit > 0 && made.Add(1) <= int64(p.limit) {
				if err := p.hold(takers[thread%len(takers)], w.begin(thread), random); err != nil {
					errs <- err
					return
				}
			}
		})
	}
	g.Wait()
	close(errs)
	if err := <-errs; err != nil {
		return err
	}
	fmt.Println("done")
	return nil
}

// hold makes one record.
func (p plan) hold(take taker, r []int64, random *rand.Rand) error {
	if r == nil {
		return fmt.Errorf("no room for another hold")
	}
	ctx := context.Background()
	token, shared, release, err := take(ctx, random)
	if err != nil {
		return err
	}
	r[3] = token
	if shared {
		r[4] = 1
	}
	atomic.StoreInt64(&r[1], int64(redisson.Monotonic()))
	if p.work > 0 {
		time.Sleep(p.work)
	}
	atomic.StoreInt64(&r[2], int64(redisson.Monotonic()))
	if err := release(ctx); err != nil {
		return err
	}
	atomic.StoreInt64(&r[5], int64(redisson.Monotonic()))
	return nil
}

func (p plan) taker(c *latchkey.Client) (taker, error) {
	alone := func(l *latchkey.Lock, err error) (taker, error) {
		return func(ctx context.Context, _ *rand.Rand) (int64, bool, func(context.Context) error, error) {
			h, err := l.Lock(ctx)
			if err != nil {
				return 0, false, nil, err
			}
			return h.Token(), false, h.Unlock, nil
		}, err
	}
	percent, mixed := strings.CutPrefix(p.kind, "rw:")
	switch {
	case p.kind == "lock", p.kind == "fenced", p.kind == "spin":
		return alone(rlock.New(c, p.name))
	case p.kind == "fair":
		return alone(fairlock.New(c, p.name))
	case mixed, p.kind == "read", p.kind == "write":
		reads := 100
		if mixed {
			reads, _ = strconv.Atoi(percent)
		} else if p.kind == "write" {
			reads = 0
		}
		l, err := rwlock.New(c, p.name)
		if err != nil {
			return nil, err
		}
		return func(ctx context.Context, random *rand.Rand) (int64, bool, func(context.Context) error, error) {
			half, shared := l.Write(), reads == 100 || reads > 0 && random.IntN(100) < reads
			if shared {
				half = l.Read()
			}
			h, err := half.Lock(ctx)
			if err != nil {
				return 0, false, nil, err
			}
			return h.Token(), shared, h.Unlock, nil
		}, nil
	case p.kind == "permits":
		s, err := semaphore.New(c, p.name)
		return func(ctx context.Context, _ *rand.Rand) (int64, bool, func(context.Context) error, error) {
			h, err := s.Acquire(ctx, 1)
			if err != nil {
				return 0, false, nil, err
			}
			return 0, false, h.Release, nil
		}, err
	case p.kind == "counting":
		s, err := semaphore.NewCounting(c, p.name)
		return func(ctx context.Context, _ *rand.Rand) (int64, bool, func(context.Context) error, error) {
			return 0, false, func(ctx context.Context) error { return s.Release(ctx, 1) }, s.Acquire(ctx, 1)
		}, err
	}
	return nil, fmt.Errorf("no kind %s", p.kind)
}
