package main

import (
	"context"
	"sync"

	"github.com/latchkey-go/latchkey/internal/test/redistest/baseline"
)

// redissonLock is the protocol of Redisson's RLock, written plainly. Each acquisition is by a thread of its
// own.
type redissonLock struct {
	addr string

	mu     sync.Mutex
	locks  map[string]*baseline.RLock
	thread int
}

func openRedisson(addr string) (Contender, error) {
	return &redissonLock{addr: addr, locks: map[string]*baseline.RLock{}}, nil
}

func (r *redissonLock) Lock(ctx context.Context, key string) (Unlock, error) {
	l, thread, err := r.of(key)
	if err != nil {
		return nil, err
	}
	return func() error { return l.Unlock(context.Background(), thread) }, l.Lock(ctx, thread)
}

func (r *redissonLock) of(key string) (l *baseline.RLock, thread int, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.thread++
	if r.locks[key] == nil {
		if l, err = baseline.NewRLock(r.addr, key, lease); err != nil {
			return nil, 0, err
		}
		r.locks[key] = l
	}
	return r.locks[key], r.thread, nil
}

func (r *redissonLock) Close() {
	for _, l := range r.locks {
		l.Close()
	}
}
