package main

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/rueidis"

	"github.com/latchkey-go/latchkey/countdown"
	"github.com/latchkey-go/latchkey/semaphore"
)

// Redisson's protocols, written plainly: whoever does not find what it wants waits for a message, and looks again.

// news wakes all who wait for a message of a channel.
type news struct {
	mu   sync.Mutex
	next chan struct{} // closed by the next message
	stop func()
}

func listen(c rueidis.Client, channel string) (*news, error) {
	n := &news{next: make(chan struct{})}
	var err error
	n.stop, err = subscribe(c, channel, func(string) {
		n.mu.Lock()
		defer n.mu.Unlock()
		close(n.next)
		n.next = make(chan struct{})
	})
	return n, err
}

func (n *news) after() <-chan struct{} {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.next
}

// awaiting looks until it is done, after every message.
func (n *news) awaiting(ctx context.Context, look func() (bool, error)) error {
	for {
		after := n.after()
		if done, err := look(); done || err != nil {
			return err
		}
		select {
		case <-after:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// two returns a client for commands and one for a subscription.
func two(addr string) (commands, subscriptions rueidis.Client, err error) {
	if commands, err = plain(addr); err == nil {
		subscriptions, err = plain(addr)
	}
	return commands, subscriptions, err
}

const permitCount = 16

// permits has goroutines take one of 16 permits each.
func permits(j job) (func(context.Context, *sample) error, func(), error) {
	acquire, closed, err := permitsOf(j)
	if err != nil {
		return nil, nil, err
	}
	run := func(ctx context.Context, s *sample) error {
		var done atomic.Int64
		var wg sync.WaitGroup
		var mu sync.Mutex
		all := histogram()
		var failed error
		for range j.Goroutines {
			wg.Go(func() {
				mine, longest := histogram(), time.Duration(0)
				for ctx.Err() == nil {
					asked := time.Now()
					release, err := acquire(ctx)
					counts := j.measured.Load()
					if counts || err != nil {
						longest = max(longest, time.Since(asked))
					}
					if err == nil {
						if counts {
							record(mine, time.Since(asked))
							done.Add(1)
						}
						if j.Section > 0 {
							<-time.After(j.Section)
						}
						err = release()
					}
					if err != nil && ctx.Err() == nil {
						mu.Lock()
						failed = err
						mu.Unlock()
						return
					}
				}
				mu.Lock()
				defer mu.Unlock()
				all.Merge(mine)
				s.Longest = max(s.Longest, longest)
			})
		}
		wg.Wait()
		s.Done, s.Waits = done.Load(), all.Export()
		return failed
	}
	return run, closed, nil
}

func permitsOf(j job) (acquire func(context.Context) (Unlock, error), closed func(), err error) {
	if j.Variant == "redisson" {
		c, sub, err := two(j.Addr)
		if err != nil {
			return nil, nil, err
		}
		n, err := listen(sub, "redisson_sc:{theirs}")
		if err != nil {
			return nil, nil, err
		}
		take := rueidis.NewLuaScript(`local value = redis.call('get', KEYS[1])
if value ~= false and tonumber(value) >= tonumber(ARGV[1]) then redis.call('decrby', KEYS[1], ARGV[1]) return 1 end
return 0`)
		give := rueidis.NewLuaScript(`local value = redis.call('incrby', KEYS[1], ARGV[1]) redis.call('publish', KEYS[2], value) return 1`)
		if err := c.Do(context.Background(), c.B().Set().Key("theirs").Value("16").Build()).Error(); err != nil {
			return nil, nil, err
		}
		return func(ctx context.Context) (Unlock, error) {
			err := n.awaiting(ctx, func() (bool, error) {
				taken, err := take.Exec(ctx, c, []string{"theirs"}, []string{"1"}).AsInt64()
				return taken == 1, err
			})
			return func() error {
				return give.Exec(context.Background(), c, []string{"theirs", "redisson_sc:{theirs}"}, []string{"1"}).Error()
			}, err
		}, func() { n.stop(); sub.Close(); c.Close() }, nil
	}
	c, err := openLatchkey(j.Addr)
	if err != nil {
		return nil, nil, err
	}
	if j.Variant == "counting" {
		s, err := semaphore.NewCounting(c, "counting", semaphore.WithCapacity(permitCount))
		if err != nil {
			return nil, nil, err
		}
		return func(ctx context.Context) (Unlock, error) {
			return func() error { return s.Release(context.Background(), 1) }, s.Acquire(ctx, 1)
		}, c.Close, nil
	}
	s, err := semaphore.New(c, "permits", semaphore.WithCapacity(permitCount))
	if err != nil {
		return nil, nil, err
	}
	return func(ctx context.Context) (Unlock, error) {
		p, err := s.Acquire(ctx, 1)
		if err != nil {
			return nil, err
		}
		return func() error { return p.Release(context.Background()) }, nil
	}, c.Close, nil
}

// latch is what a round of one needs.
type latch interface {
	set(ctx context.Context) error
	countDown(ctx context.Context) error
	await(ctx context.Context) error
	close()
}

// rounds shuts a latch, has goroutines wait for it, and opens it, again and again.
func rounds(j job) (func(context.Context, *sample) error, func(), error) {
	l, err := latchOf(j)
	if err != nil {
		return nil, nil, err
	}
	run := func(ctx context.Context, s *sample) error {
		delays := histogram()
		var mu sync.Mutex
		for ctx.Err() == nil {
			if err := l.set(context.Background()); err != nil {
				return err
			}
			var wg sync.WaitGroup
			var failed error
			var opened time.Time
			ends := make([]time.Time, j.Goroutines)
			for g := range j.Goroutines {
				wg.Go(func() {
					if err := l.await(context.Background()); err != nil {
						mu.Lock()
						failed = err
						mu.Unlock()
					}
					ends[g] = time.Now()
				})
			}
			opened = time.Now()
			if err := l.countDown(context.Background()); err != nil {
				return err
			}
			wg.Wait()
			if failed != nil {
				return failed
			}
			if !j.measured.Load() {
				continue
			}
			for _, end := range ends {
				record(delays, end.Sub(opened))
				s.Longest = max(s.Longest, end.Sub(opened))
			}
			s.Done++
		}
		s.Waits = delays.Export()
		return nil
	}
	return run, l.close, nil
}

func latchOf(j job) (latch, error) {
	if j.Variant == "redisson" {
		c, sub, err := two(j.Addr)
		if err != nil {
			return nil, err
		}
		n, err := listen(sub, "redisson_countdownlatch__channel__{theirs}")
		return &plainLatch{
			client: c, subscriptions: sub, news: n,
			arm: rueidis.NewLuaScript(`if redis.call('exists', KEYS[1]) == 0 then redis.call('set', KEYS[1], ARGV[2])
redis.call('publish', KEYS[2], ARGV[1]) return 1 else return 0 end`),
			down: rueidis.NewLuaScript(`local v = redis.call('decr', KEYS[1]) if v <= 0 then redis.call('del', KEYS[1]) end
if v == 0 then redis.call('publish', KEYS[2], ARGV[1]) end return v`),
		}, err
	}
	c, err := openLatchkey(j.Addr)
	if err != nil {
		return nil, err
	}
	l, err := countdown.New(c, "ours", countdown.WithTTL(time.Minute))
	return ourLatch{l, c.Close}, err
}

type ourLatch struct {
	latch  *countdown.Latch
	closed func()
}

func (l ourLatch) set(ctx context.Context) error {
	_, err := l.latch.Rearm(ctx, 1)
	return err
}

func (l ourLatch) countDown(ctx context.Context) error {
	_, err := l.latch.CountDown(ctx)
	return err
}

func (l ourLatch) await(ctx context.Context) error { return l.latch.Await(ctx) }

func (l ourLatch) close() { l.closed() }

type plainLatch struct {
	client, subscriptions rueidis.Client
	news                  *news
	arm, down             *rueidis.Lua
}

var plainLatchKeys = []string{"theirs", "redisson_countdownlatch__channel__{theirs}"}

func (l *plainLatch) set(ctx context.Context) error {
	return l.arm.Exec(ctx, l.client, plainLatchKeys, []string{"1", "1"}).Error()
}

func (l *plainLatch) countDown(ctx context.Context) error {
	return l.down.Exec(ctx, l.client, plainLatchKeys, []string{"0"}).Error()
}

func (l *plainLatch) await(ctx context.Context) error {
	return l.news.awaiting(ctx, func() (bool, error) {
		err := l.client.Do(ctx, l.client.B().Get().Key("theirs").Build()).Error()
		if rueidis.IsRedisNil(err) {
			return true, nil
		}
		return false, err
	})
}

func (l *plainLatch) close() { l.news.stop(); l.subscriptions.Close(); l.client.Close() }
