package main

import (
	"context"
	"errors"
	"strings"
	"sync"
	"time"

	"github.com/redis/rueidis"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/fairlock"
	"github.com/latchkey-go/latchkey/internal/test/redistest/baseline"
	"github.com/latchkey-go/latchkey/rlock"
	"github.com/latchkey-go/latchkey/rueidisclient"
	"github.com/latchkey-go/latchkey/spinlock"
)

// newLock makes the lock of a key.
type newLock func(c *latchkey.Client, key string) (*latchkey.Lock, error)

// keyed makes a lock for each key, once.
type keyed struct {
	client *latchkey.Client
	make   newLock
	locks  sync.Map
}

func (k *keyed) of(key string) (*latchkey.Lock, error) {
	l, ok := k.locks.Load(key)
	if !ok {
		made, err := k.make(k.client, key)
		if err != nil {
			return nil, err
		}
		l, _ = k.locks.LoadOrStore(key, made)
	}
	return l.(*latchkey.Lock), nil
}

func (k *keyed) Lock(ctx context.Context, key string) (Unlock, error) {
	l, err := k.of(key)
	if err != nil {
		return nil, err
	}
	hold, err := l.Lock(ctx)
	if err != nil {
		return nil, err
	}
	return func() error { return hold.Unlock(context.Background()) }, nil
}

func (k *keyed) Try(ctx context.Context, key string) (bool, error) {
	l, err := k.of(key)
	if err != nil {
		return false, err
	}
	hold, err := l.TryLock(ctx)
	switch {
	case err == nil:
		return true, hold.Unlock(context.Background()) // the caller expects none
	case errors.Is(err, latchkey.ErrNotAcquired):
		return false, nil
	}
	return false, err
}

func (k *keyed) Close() { k.client.Close() }

// ofCluster stands before the address of a cluster of one.
const ofCluster = "cluster:"

func openLatchkey(addr string, opts ...latchkey.Option) (*latchkey.Client, error) {
	opts = append([]latchkey.Option{latchkey.WithLease(lease)}, opts...)
	addr, cluster := strings.CutPrefix(addr, ofCluster)
	addr, nodes := strings.CutPrefix(addr, ofNodes)
	return rueidisclient.New(rueidis.ClientOption{InitAddress: []string{addr}, ForceSingleClient: !cluster && !nodes}, opts...)
}

func newRlock(c *latchkey.Client, key string) (*latchkey.Lock, error) { return rlock.New(c, key) }

// newLingering makes a lock that stays with its process for longer than anybody pauses.
func newLingering(c *latchkey.Client, key string) (*latchkey.Lock, error) {
	return rlock.New(c, key, rlock.WithLinger(time.Second))
}

func newFairlock(c *latchkey.Client, key string) (*latchkey.Lock, error) { return fairlock.New(c, key) }

func newSpinlock(c *latchkey.Client, key string) (*latchkey.Lock, error) { return spinlock.New(c, key) }

func openRlock(addr string) (Contender, error) { return openKeyed(addr, newRlock) }

func openLingering(addr string) (Contender, error) { return openKeyed(addr, newLingering) }

func openFairlock(addr string) (Contender, error) { return openKeyed(addr, newFairlock) }

func openSpinlock(addr string) (Contender, error) {
	return openKeyed(addr, newSpinlock, latchkey.WithoutPubSub())
}

func openKeyed(addr string, of newLock, opts ...latchkey.Option) (Contender, error) {
	c, err := openLatchkey(addr, opts...)
	if err != nil {
		return nil, err
	}
	return &keyed{client: c, make: of}, nil
}

// floor is two scripts that do nothing.
type floor struct {
	client  rueidis.Client
	nothing *rueidis.Lua
}

func openFloor(addr string) (Contender, error) {
	open := baseline.Client
	addr = strings.TrimPrefix(addr, ofCluster) // of one: it has all keys
	if of, several := strings.CutPrefix(addr, ofNodes); several {
		addr, open = of, openNodes
	}
	c, err := open(addr)
	if err != nil {
		return nil, err
	}
	return &floor{c, rueidis.NewLuaScript("return 1")}, nil
}

func (f *floor) Lock(ctx context.Context, key string) (Unlock, error) {
	if err := f.nothing.Exec(ctx, f.client, []string{key}, nil).Error(); err != nil {
		return nil, err
	}
	return func() error { return f.nothing.Exec(context.Background(), f.client, []string{key}, nil).Error() }, nil
}

func (f *floor) Close() { f.client.Close() }
