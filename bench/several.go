package main

import (
	"context"
	"strings"
	"time"

	"github.com/redis/rueidis"
	"golang.org/x/sync/errgroup"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/internal/test/redistest/baseline"
	"github.com/latchkey-go/latchkey/redlock"
)

// addresses are those of one server, or of several that share no data, with commas between.
func addresses(addr string) []string { return strings.Split(addr, ",") }

// overSeveral are the scenarios of locks over five servers.
func overSeveral() []scenario {
	return []scenario{
		{
			Name: "redlock", Title: "one goroutine, one key on five servers", Kind: "locks", Servers: 5,
			Contenders: []string{"floor of five", "redlock", "redsync"}, Processes: 1, Goroutines: 1, Keys: 1,
		},
		{
			Name: "redlock fleet", Title: "8 processes on one key on five servers", Kind: "locks", Servers: 5,
			Contenders: []string{"redlock", "redsync", "redsync, as often"}, Processes: 8, Goroutines: 1, Keys: 1,
		},
		{
			Name: "redlock fleet 1 ms", Title: "8 processes on one key on five servers, 1 ms of work inside", Kind: "locks", Servers: 5,
			Contenders: []string{"redlock", "redsync", "redsync, as often"}, Processes: 8, Goroutines: 1, Keys: 1, Section: time.Millisecond, Least: 3 * time.Second,
		},
	}
}

// group starts more servers, so that there are n. What is asked of the first one is asked of all.
func (s *server) group(n int) (all *server, stop func(), err error) {
	all = &server{addr: s.addr, client: s.client}
	stop = func() {
		for _, other := range all.others {
			other.stop()
		}
	}
	for range n - 1 {
		other, err := startServer("")
		if err != nil {
			stop()
			return nil, nil, err
		}
		all.others = append(all.others, other)
		all.addr += "," + other.addr
	}
	return all, stop, nil
}

// redLock is ours over several servers.
type redLock struct {
	keyed
	clients []*latchkey.Client
}

func openRedlock(addr string) (Contender, error) {
	l := &redLock{}
	for _, a := range addresses(addr) {
		c, err := openLatchkey(a)
		if err != nil {
			l.Close()
			return nil, err
		}
		l.clients = append(l.clients, c)
	}
	l.make = func(_ *latchkey.Client, key string) (*latchkey.Lock, error) { return redlock.New(l.clients, key) }
	return l, nil
}

func (l *redLock) Close() {
	for _, c := range l.clients {
		c.Close()
	}
}

// floorOfSeveral sets and deletes a key on all servers side by side, which locks nothing.
type floorOfSeveral []rueidis.Client

func openFloorOfSeveral(addr string) (Contender, error) {
	var f floorOfSeveral
	for _, a := range addresses(addr) {
		c, err := baseline.Client(a)
		if err != nil {
			f.Close()
			return nil, err
		}
		f = append(f, c)
	}
	return f, nil
}

func (f floorOfSeveral) Lock(ctx context.Context, key string) (Unlock, error) {
	err := f.each(func(c rueidis.Client) error {
		err := c.Do(ctx, c.B().Set().Key(key).Value("x").Nx().PxMilliseconds(lease.Milliseconds()).Build()).Error()
		if rueidis.IsRedisNil(err) {
			return nil
		}
		return err
	})
	return func() error {
		return f.each(func(c rueidis.Client) error { return c.Do(context.Background(), c.B().Del().Key(key).Build()).Error() })
	}, err
}

func (f floorOfSeveral) each(do func(rueidis.Client) error) error {
	var g errgroup.Group
	for _, c := range f {
		g.Go(func() error { return do(c) })
	}
	return g.Wait()
}

func (f floorOfSeveral) Close() {
	for _, c := range f {
		c.Close()
	}
}
