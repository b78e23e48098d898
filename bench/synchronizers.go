package main

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/latchkey-go/latchkey/countdown"
	"github.com/latchkey-go/latchkey/internal/test/redistest/baseline"
	"github.com/latchkey-go/latchkey/semaphore"
)

const permitCount = 16

// permits has goroutines take one of 16 permits each.
func permits(j job) (func(context.Context, *sample) error, func(), error) {
	acquire, closed, err := permitsOf(j)
	return sections(j, acquire, closed, err)
}

// sections has goroutines acquire something and give it back.
func sections(
	j job, acquire func(context.Context) (Unlock, error), closed func(), err error,
) (func(context.Context, *sample) error, func(), error) {
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
		s, err := baseline.NewSemaphore(j.Addr, "theirs", permitCount)
		if err != nil {
			return nil, nil, err
		}
		return func(ctx context.Context) (Unlock, error) {
			return func() error { return s.Release(context.Background()) }, s.Acquire(ctx)
		}, s.Close, nil
	}
	c, err := openLatchkey(j.Addr, j.options...)
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
		}, func() { _ = c.Close() }, nil
	}
	opts := []semaphore.Option{semaphore.WithCapacity(permitCount)}
	if j.Variant == "leased with budget" {
		opts = append(opts, semaphore.WithBudget(300, 50*time.Millisecond))
	}
	s, err := semaphore.New(c, "permits", opts...)
	if err != nil {
		return nil, nil, err
	}
	return func(ctx context.Context) (Unlock, error) {
		p, err := s.Acquire(ctx, 1)
		if err != nil {
			return nil, err
		}
		return func() error { return p.Release(context.Background()) }, nil
	}, func() { _ = c.Close() }, nil
}

// latch is what a round of one needs.
type latch interface {
	Set(ctx context.Context) error
	CountDown(ctx context.Context) error
	Await(ctx context.Context) error
	Close()
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
			if err := l.Set(context.Background()); err != nil {
				return err
			}
			var wg sync.WaitGroup
			var failed error
			var opened time.Time
			ends := make([]time.Time, j.Goroutines)
			for g := range j.Goroutines {
				wg.Go(func() {
					if err := l.Await(context.Background()); err != nil {
						mu.Lock()
						failed = err
						mu.Unlock()
					}
					ends[g] = time.Now()
				})
			}
			opened = time.Now()
			if err := l.CountDown(context.Background()); err != nil {
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
	return run, l.Close, nil
}

func latchOf(j job) (latch, error) {
	if j.Variant == "redisson" {
		return baseline.NewLatch(j.Addr, "theirs")
	}
	c, err := openLatchkey(j.Addr)
	if err != nil {
		return nil, err
	}
	l, err := countdown.New(c, "ours", countdown.WithTTL(time.Minute))
	return ourLatch{l, func() { _ = c.Close() }}, err
}

type ourLatch struct {
	latch  *countdown.Latch
	closed func()
}

func (l ourLatch) Set(ctx context.Context) error {
	_, err := l.latch.Rearm(ctx, 1)
	return err
}

func (l ourLatch) CountDown(ctx context.Context) error {
	_, err := l.latch.CountDown(ctx)
	return err
}

func (l ourLatch) Await(ctx context.Context) error { return l.latch.Await(ctx) }

func (l ourLatch) Close() { l.closed() }
