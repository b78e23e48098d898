package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/internal/test/redistest/baseline"
	"github.com/latchkey-go/latchkey/multilock"
	"github.com/latchkey-go/latchkey/rlock"
)

// basketSize is how many locks are taken at once.
const basketSize = 10

// basket has a goroutine take ten locks, and give them back. Variants: "redisson" is the protocol of its
// multi-lock, one lock after the other; "rlock" the same with locks of ours.
func basket(j job) (func(context.Context, *sample) error, func(), error) {
	acquire, closed, err := basketOf(j)
	return sections(j, acquire, closed, err)
}

func basketOf(j job) (acquire func(context.Context) (Unlock, error), closed func(), err error) {
	var names []string
	for n := range basketSize {
		names = append(names, fmt.Sprint("basket:", n))
	}
	if j.Variant == "redisson" || j.Variant == "redisson, side by side" {
		m, err := baseline.NewMultiLock(j.Addr, names, lease, j.Variant != "redisson")
		if err != nil {
			return nil, nil, err
		}
		return func(ctx context.Context) (Unlock, error) {
			return func() error { return m.Unlock(context.Background()) }, m.Lock(ctx)
		}, m.Close, nil
	}
	c, err := openLatchkey(j.Addr, j.options...)
	if err != nil {
		return nil, nil, err
	}
	var locks []*latchkey.Lock
	for _, name := range names {
		l, err := rlock.New(c, name)
		if err != nil {
			return nil, nil, err
		}
		locks = append(locks, l)
	}
	if j.Variant == "rlock" {
		return func(ctx context.Context) (Unlock, error) { return oneByOne(ctx, locks) }, func() { _ = c.Close() }, nil
	}
	m, err := multilock.New(locks...)
	if err != nil {
		return nil, nil, err
	}
	return func(ctx context.Context) (Unlock, error) {
		hold, err := m.Lock(ctx)
		if err != nil {
			return nil, err
		}
		return func() error { return hold.Unlock(context.Background()) }, nil
	}, func() { _ = c.Close() }, nil
}

// oneByOne takes locks one after the other.
func oneByOne(ctx context.Context, locks []*latchkey.Lock) (Unlock, error) {
	holds := make([]*latchkey.Hold, 0, len(locks))
	unlock := func() (err error) {
		for _, h := range holds {
			err = errors.Join(err, h.Unlock(context.Background()))
		}
		return err
	}
	for _, l := range locks {
		h, err := l.Lock(ctx)
		if err != nil {
			return nil, errors.Join(err, unlock())
		}
		holds = append(holds, h)
	}
	return unlock, nil
}
