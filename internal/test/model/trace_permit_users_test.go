package model

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"time"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/internal/lua"
	"github.com/latchkey-go/latchkey/semaphore"
)

// poolSize is how many permits there are of a name, unless somebody changes it.
const poolSize = 4

func isPool(name string) bool { return traceNames[name] == lua.Leased || traceNames[name] == lua.Plain }

// trader takes permits of a name and gives them back. Each of its functions returns when ctx ends.
type trader struct {
	acquire, try func(ctx context.Context, n int) (giveBack func(), err error)
	drain        func(ctx context.Context) (giveBack func(), err error)
	set          func(ctx context.Context, n int)
	inspect      func(ctx context.Context)
	remove       func(ctx context.Context)
}

// tradeForEver is a goroutine that uses a semaphore.
func tradeForEver(c *latchkey.Client, name string) {
	x, err := newTrader(c, name)
	if err != nil {
		fmt.Println("error", err)
		os.Exit(1)
	}
	for {
		if time.Now().UnixMilli()/400%3 == 0 { // at times few come, and at times nobody waits
			time.Sleep(rand.N(40 * time.Millisecond))
		}
		x.use()
	}
}

func newTrader(c *latchkey.Client, name string) (*trader, error) {
	if traceNames[name] == lua.Plain {
		return counting(c, name)
	}
	options := []semaphore.Option{semaphore.WithCapacity(poolSize)}
	switch name {
	case "budgeted":
		options = append(options, semaphore.WithBudget(5, 20*time.Millisecond))
	case "passes":
		options = append(options, semaphore.WithOvertaking())
	case "waits":
		options = append(options, semaphore.WithWaitForCapacity())
	}
	s, err := semaphore.New(c, name, options...)
	back := func(p *semaphore.Permits, err error) (func(), error) {
		return func() {
			if n := p.Count(); n > 1 && rand.N(3) == 0 {
				_ = p.ReleaseN(context.Background(), rand.N(n)) // what it returns says nothing about the scripts
			}
			_ = p.Release(context.Background())
		}, err
	}
	return &trader{
		acquire: func(ctx context.Context, n int) (func(), error) { return back(s.Acquire(ctx, n)) },
		try:     func(ctx context.Context, n int) (func(), error) { return back(s.TryAcquire(ctx, n)) },
		drain:   func(ctx context.Context) (func(), error) { return back(s.Drain(ctx)) },
		set:     func(ctx context.Context, n int) { _ = s.SetCapacity(ctx, n) },
		inspect: func(ctx context.Context) { _, _ = s.Inspect(ctx) },
		remove:  func(ctx context.Context) { _, _ = s.Delete(ctx) },
	}, err
}

// counting uses plain permits. Those of a process that is killed are lost, until somebody sets their number.
func counting(c *latchkey.Client, name string) (*trader, error) {
	s, err := semaphore.NewCounting(c, name, semaphore.WithCapacity(poolSize))
	back := func(n int, err error) (func(), error) {
		return func() { _ = s.Release(context.Background(), n) }, err
	}
	return &trader{
		acquire: func(ctx context.Context, n int) (func(), error) { return back(n, s.Acquire(ctx, n)) },
		try:     func(ctx context.Context, n int) (func(), error) { return back(n, s.TryAcquire(ctx, n)) },
		drain:   func(ctx context.Context) (func(), error) { n, err := s.Drain(ctx); return back(max(n, 1), err) },
		set: func(ctx context.Context, n int) {
			if _, err := s.Drain(ctx); err == nil {
				_, _ = s.AddPermits(ctx, n)
			}
		},
		inspect: func(ctx context.Context) { _, _ = s.Waiting(ctx) },
		remove:  func(ctx context.Context) { _, _ = s.Delete(ctx) },
	}, err
}

// use takes permits once, in one of the ways that there are.
func (x *trader) use() {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	n := 1
	if rand.N(3) == 0 {
		n = 1 + rand.N(poolSize)
	}
	var giveBack func()
	var err error
	switch way := rand.N(400); {
	case way < 2:
		x.inspect(ctx)
		return
	case way == 2:
		x.remove(ctx)
		return
	case way < 8:
		x.set(ctx, poolSize-2+rand.N(3)) // at times fewer than somebody waits for
		return
	case way < 12:
		giveBack, err = x.drain(ctx)
	case way < 50:
		short, end := context.WithTimeout(ctx, rand.N(5*time.Millisecond))
		defer end()
		giveBack, err = x.acquire(short, n)
	case way < 100:
		giveBack, err = x.try(ctx, n)
	default:
		giveBack, err = x.acquire(ctx, n)
	}
	if err != nil {
		return
	}
	if rand.N(4) == 0 {
		time.Sleep(rand.N(3 * time.Millisecond))
	}
	giveBack()
}
