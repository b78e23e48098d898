package main

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/bsm/redislock"
	"github.com/go-redsync/redsync/v4"
	redsyncredis "github.com/go-redsync/redsync/v4/redis"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	"github.com/redis/go-redis/v9"
	"github.com/redis/rueidis"
	"github.com/redis/rueidis/rueidislock"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"
)

// rueidis' own lock: waiters are woken by the invalidations of client-side caching.
type rueidisLock struct{ rueidislock.Locker }

func openRueidislock(addr string) (Contender, error) {
	l, err := rueidislock.NewLocker(rueidislock.LockerOption{
		ClientOption: rueidis.ClientOption{InitAddress: []string{addr}, ForceSingleClient: true},
		KeyMajority:  1, NoLoopTracking: true, KeyValidity: lease,
		// The locker gives up a command after this time, and tries the next key. Here is no next key: the
		// caller waits for an invalidation instead. None comes if nobody else has the lock, and the caller
		// waits for ever. The default is 20 ms, which a first command exceeds on a busy machine.
		TryNextAfter: lease,
	})
	if err != nil {
		return nil, err
	}
	return rueidisLock{l}, nil
}

func (l rueidisLock) Lock(ctx context.Context, key string) (Unlock, error) {
	_, cancel, err := l.WithContext(ctx, key)
	if err != nil {
		return nil, err
	}
	return func() error { cancel(); return nil }, nil
}

// bsm/redislock: waiters poll, with pauses that double from the first to the last. It renews nothing by
// itself.
type bsmLock struct {
	client      redis.UniversalClient
	locks       *redislock.Client
	first, last time.Duration
}

func openRedislock(addr string) (Contender, error) {
	addr, cluster := strings.CutPrefix(addr, ofCluster)
	addr, nodes := strings.CutPrefix(addr, ofNodes)
	c := redis.NewUniversalClient(&redis.UniversalOptions{Addrs: []string{addr}, IsClusterMode: cluster || nodes})
	return bsmLock{c, redislock.New(c), 16 * time.Millisecond, 512 * time.Millisecond}, nil
}

// openFrequentRedislock has pauses of up to those of a spinlock.
func openFrequentRedislock(addr string) (Contender, error) {
	c := redis.NewClient(&redis.Options{Addr: addr})
	return bsmLock{c, redislock.New(c), time.Millisecond, 128 * time.Millisecond}, nil
}

func (l bsmLock) Try(ctx context.Context, key string) (bool, error) {
	_, err := l.locks.Obtain(ctx, key, lease, nil)
	if errors.Is(err, redislock.ErrNotObtained) {
		return false, nil
	}
	return err == nil, err
}

func (l bsmLock) Lock(ctx context.Context, key string) (Unlock, error) {
	for { // without a deadline of its own it would end after the lease
		held, err := l.locks.Obtain(ctx, key, lease, &redislock.Options{RetryStrategy: redislock.ExponentialBackoff(l.first, l.last)})
		switch {
		case err == nil:
			return func() error { return held.Release(context.Background()) }, nil
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case !errors.Is(err, redislock.ErrNotObtained) && !errors.Is(err, context.DeadlineExceeded):
			return nil, err
		}
	}
}

func (l bsmLock) Close() { _ = l.client.Close() }

// redsync: waiters poll, with pauses of 50 to 250 ms, its default. One server, as for the others, or several.
// It renews nothing by itself.
type redSync struct {
	clients []redis.UniversalClient
	sync    *redsync.Redsync
	pauses  []redsync.Option // others than the usual ones
}

func openRedsync(addr string) (Contender, error) { return redsyncWith(addr) }

// openFrequentRedsync has pauses of 1 to 3 ms.
func openFrequentRedsync(addr string) (Contender, error) {
	return redsyncWith(addr, redsync.WithRetryDelayFunc(func(int) time.Duration {
		return time.Millisecond + rand.N(2*time.Millisecond)
	}))
}

func redsyncWith(addr string, pauses ...redsync.Option) (Contender, error) {
	var clients []redis.UniversalClient
	var pools []redsyncredis.Pool
	for _, a := range addresses(addr) {
		a, nodes := strings.CutPrefix(a, ofNodes)
		c := redis.NewUniversalClient(&redis.UniversalOptions{Addrs: []string{a}, IsClusterMode: nodes})
		clients, pools = append(clients, c), append(pools, goredis.NewPool(c))
	}
	return redSync{clients, redsync.New(pools...), pauses}, nil
}

func (l redSync) Lock(ctx context.Context, key string) (Unlock, error) {
	m := l.sync.NewMutex(key, append([]redsync.Option{redsync.WithExpiry(lease), redsync.WithTries(math.MaxInt32)}, l.pauses...)...)
	if err := m.LockContext(ctx); err != nil {
		return nil, err
	}
	return func() error {
		_, err := m.UnlockContext(context.Background())
		return err
	}, nil
}

func (l redSync) Close() {
	for _, c := range l.clients {
		_ = c.Close() // nothing is held any more
	}
}

// etcd's concurrency package: a queue of keys, each waiting for the one before it to go.
type etcdLock struct{ client *clientv3.Client }

func openEtcd(addr string) (Contender, error) {
	c, err := clientv3.New(clientv3.Config{Endpoints: []string{addr}, DialTimeout: 5 * time.Second})
	if err != nil {
		return nil, err
	}
	return &etcdLock{client: c}, nil
}

func (l *etcdLock) Lock(ctx context.Context, key string) (Unlock, error) {
	// A session of its own for each: goroutines that share one all hold.
	s, err := concurrency.NewSession(l.client, concurrency.WithTTL(int(lease.Seconds())))
	if err != nil {
		return nil, err
	}
	m := concurrency.NewMutex(s, "/bench/"+key)
	if err := m.Lock(ctx); err != nil {
		_ = s.Close() // which also leaves the queue
		return nil, err
	}
	return func() error {
		err := m.Unlock(context.Background())
		_ = s.Close() // nothing is held any more
		return err
	}, nil
}

func (l *etcdLock) Close() { _ = l.client.Close() }
