package main

import (
	"context"
	"errors"
	"math"
	"time"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/barrier"
	"github.com/latchkey-go/latchkey/countdown"
	"github.com/latchkey-go/latchkey/internal/test/redistest/baseline"
)

// pairs is something that is taken and given back so many times, on one key that nobody else uses.
type pairs struct {
	name    string
	open    opening
	cluster bool // its server is a cluster of one
}

// opening connects. It returns what does so many pairs, any number of times, and what ends it all.
type opening func(addr string) (run func(n int) error, closed func(), err error)

// patient are options for a slow server: nothing is renewed or repeated while it is counted.
var patient = []latchkey.Option{latchkey.WithLease(time.Minute), latchkey.WithCommandTimeout(30 * time.Second)}

// patiently is patient, and options of one pair.
func patiently(more []latchkey.Option) []latchkey.Option {
	return append(patient[:len(patient):len(patient)], more...)
}

// allPairs are those whose instructions are counted, in the order of the table. The floor is first.
func allPairs() []pairs {
	return []pairs{
		{name: "floor", open: alone(openFloor)},
		{name: "rlock", open: alone(ours(newRlock))},
		{name: "fairlock", open: alone(ours(newFairlock))},
		{name: "rlock with WithRedisson", open: alone(ours(newRlock, latchkey.WithRedisson()))},
		{name: "rlock with WithDeclaredKeys", open: alone(ours(newRlock, latchkey.WithDeclaredKeys()))},
		{name: "rlock between two clients", open: inTurn(newRlock)},
		{name: "fairlock between two clients", open: inTurn(newFairlock)},
		{name: "spinlock", open: alone(ours(newSpinlock, latchkey.WithoutPubSub()))},
		{name: "attempt at a spinlock that is held", open: refused(ours(newSpinlock, latchkey.WithoutPubSub()))},
		{name: "attempt at a redislock that is held", open: refused(openRedislock)},
		{name: "rwlock, write", open: again(writing())},
		{name: "rwlock, write, with WithDeclaredKeys", open: again(writing(latchkey.WithDeclaredKeys()))},
		{name: "rwlock, read", open: again(reading())},
		{name: "rwlock, read, with WithDeclaredKeys", open: again(reading(latchkey.WithDeclaredKeys()))},
		{name: "permit of a semaphore", open: again(ofJob(permitsOf, "leased"))},
		{name: "permit of a semaphore with WithDeclaredKeys", open: again(ofJob(permitsOf, "leased", latchkey.WithDeclaredKeys()))},
		{name: "permit of a counting semaphore", open: again(ofJob(permitsOf, "counting"))},
		{name: "CountDown of a latch", open: again(countingDown)},
		{name: "Await of a barrier of one party", open: again(arriving)},
		{name: "multilock of ten", open: again(ofJob(basketOf, "multilock"))},
		{name: "redislock", open: alone(openRedislock)},
		{name: "rueidislock", open: alone(openRueidislock)},
		{name: "Redisson's protocol of RLock", open: again(redisson)},
		{name: "floor in a cluster", open: alone(openFloor), cluster: true},
		{name: "rlock in a cluster", open: alone(ours(newRlock)), cluster: true},
		{name: "fairlock in a cluster", open: alone(ours(newFairlock)), cluster: true},
		{name: "rlock with WithRedisson in a cluster", open: alone(ours(newRlock, latchkey.WithRedisson())), cluster: true},
		{name: "rlock between two clients in a cluster", open: inTurn(newRlock), cluster: true},
		{name: "rwlock, write, in a cluster", open: again(writing()), cluster: true},
		{name: "rwlock, read, in a cluster", open: again(reading()), cluster: true},
		{name: "permit of a semaphore in a cluster", open: again(ofJob(permitsOf, "leased")), cluster: true},
		{name: "permit of a counting semaphore in a cluster", open: again(ofJob(permitsOf, "counting")), cluster: true},
		{name: "CountDown of a latch in a cluster", open: again(countingDown), cluster: true},
		{name: "Await of a barrier of one party in a cluster", open: again(arriving), cluster: true},
		{name: "redislock in a cluster", open: alone(openRedislock), cluster: true},
	}
}

// taking opens something that can be taken, and given back.
type taking func(addr string) (acquire func(context.Context) (Unlock, error), closed func(), err error)

// again takes and gives back, one after the other.
func again(open taking) opening {
	return func(addr string) (run func(n int) error, closed func(), err error) {
		acquire, closed, err := open(addr)
		return func(n int) error {
			for range n {
				release, err := acquire(context.Background())
				if err != nil {
					return err
				}
				if err := release(); err != nil {
					return err
				}
			}
			return nil
		}, closed, err
	}
}

// trier is a contender that can try once.
type trier interface {
	// Try reports whether it has the lock.
	Try(ctx context.Context, key string) (bool, error)
}

// refused is a lock that another client holds, and that is tried.
func refused(open func(addr string) (Contender, error)) opening {
	return func(addr string) (run func(n int) error, closed func(), err error) {
		var both [2]Contender
		for i := range both {
			if both[i], err = open(addr); err != nil {
				return nil, nil, err
			}
		}
		unlock, err := both[0].Lock(context.Background(), "pair")
		return func(n int) error {
				for range n {
					if held, err := both[1].(trier).Try(context.Background(), "pair"); held || err != nil {
						return errors.Join(errors.New("a lock that is held was taken, or an attempt failed"), err)
					}
				}
				return nil
			}, func() {
				_ = unlock() // the server ends with it
				for _, c := range both {
					c.Close()
				}
			}, err
	}
}

// ours are locks of a new client of ours.
func ours(of newLock, more ...latchkey.Option) func(addr string) (Contender, error) {
	return func(addr string) (Contender, error) { return openKeyed(addr, of, patiently(more)...) }
}

// alone is a lock that one goroutine takes.
func alone(open func(addr string) (Contender, error)) opening {
	return again(func(addr string) (func(context.Context) (Unlock, error), func(), error) {
		c, err := open(addr)
		if err != nil {
			return nil, nil, err
		}
		return func(ctx context.Context) (Unlock, error) { return c.Lock(ctx, "pair") }, c.Close, nil
	})
}

// inTurn has two clients hand a lock to each other. Nobody unlocks before the other is queued, so the queue
// grants every hold but the first, however slow the server is.
func inTurn(of newLock) opening {
	return func(addr string) (run func(n int) error, closed func(), err error) {
		queued := make(chan struct{}, 1)
		tell := latchkey.WithObserver(latchkey.Observer{Queued: func(latchkey.Event) {
			select {
			case queued <- struct{}{}:
			default: // it had to be queued again, and that was not heard yet
			}
		}})
		var clients [2]*latchkey.Client
		var locks [2]*latchkey.Lock
		closed = func() {
			for _, c := range clients {
				if c != nil {
					c.Close()
				}
			}
		}
		for i := range locks {
			clients[i], err = openLatchkey(addr, patiently([]latchkey.Option{tell})...)
			if err == nil {
				locks[i], err = of(clients[i], "pair")
			}
			if err != nil {
				closed()
				return nil, nil, err
			}
		}
		return func(n int) error { return handOn(locks, queued, n) }, closed, nil
	}
}

// handOn takes n holds in turn. Whoever has to wait says so in queued.
func handOn(locks [2]*latchkey.Lock, queued <-chan struct{}, n int) error {
	hold, err := locks[0].Lock(context.Background())
	if err != nil {
		return err
	}
	for turn := 1; turn < n; turn++ {
		next := make(chan error, 1)
		var granted *latchkey.Hold
		go func() {
			var err error
			granted, err = locks[turn%2].Lock(context.Background())
			next <- err
		}()
		select {
		case <-queued:
		case err := <-next:
			return errors.Join(errors.New("a lock that is held was granted, or failed"), err, hold.Unlock(context.Background()))
		}
		if err := hold.Unlock(context.Background()); err != nil {
			return err
		}
		if err := <-next; err != nil {
			return err
		}
		hold = granted
	}
	return hold.Unlock(context.Background())
}

// ofJob is one of the variants that the scenarios run.
func ofJob(open func(job) (func(context.Context) (Unlock, error), func(), error), variant string, more ...latchkey.Option) taking {
	return func(addr string) (func(context.Context) (Unlock, error), func(), error) {
		return open(job{Addr: addr, Variant: variant, options: patiently(more)})
	}
}

func halvesOn(addr string, more []latchkey.Option) (halves, error) {
	return halvesOf(job{Addr: addr, Variant: "rwlock", options: patiently(more)})
}

func writing(more ...latchkey.Option) taking {
	return func(addr string) (func(context.Context) (Unlock, error), func(), error) {
		h, err := halvesOn(addr, more)
		return func(ctx context.Context) (Unlock, error) { return h.write(ctx, 1) }, h.closed, err
	}
}

func reading(more ...latchkey.Option) taking {
	return func(addr string) (func(context.Context) (Unlock, error), func(), error) {
		h, err := halvesOn(addr, more)
		return func(ctx context.Context) (Unlock, error) { return h.read(ctx, 1) }, h.closed, err
	}
}

func nothing() error { return nil }

// countingDown has a latch that does not open.
func countingDown(addr string) (acquire func(context.Context) (Unlock, error), closed func(), err error) {
	c, err := openLatchkey(addr, patient...)
	if err != nil {
		return nil, nil, err
	}
	l, err := countdown.New(c, "pair")
	if err != nil {
		return nil, nil, err
	}
	if _, err := l.TrySetCount(context.Background(), math.MaxInt32); err != nil {
		return nil, nil, err
	}
	return func(ctx context.Context) (Unlock, error) {
		_, err := l.CountDown(ctx)
		return nothing, err
	}, func() { _ = c.Close() }, nil
}

// arriving has a barrier that every arrival opens.
func arriving(addr string) (acquire func(context.Context) (Unlock, error), closed func(), err error) {
	c, err := openLatchkey(addr, patient...)
	if err != nil {
		return nil, nil, err
	}
	b, err := barrier.New(c, "pair", 1)
	if err != nil {
		return nil, nil, err
	}
	return func(ctx context.Context) (Unlock, error) {
		_, err := b.Await(ctx)
		return nothing, err
	}, func() { _ = c.Close() }, nil
}

// redisson has one lock of its multi-lock, which takes it as RLock does.
func redisson(addr string) (acquire func(context.Context) (Unlock, error), closed func(), err error) {
	m, err := baseline.NewMultiLock(addr, []string{"pair"}, time.Minute, false)
	if err != nil {
		return nil, nil, err
	}
	return func(ctx context.Context) (Unlock, error) {
		return func() error { return m.Unlock(context.Background()) }, m.Lock(ctx)
	}, m.Close, nil
}
