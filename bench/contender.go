package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
)

// Unlock ends a hold.
type Unlock func() error

// Contender is a lock of some library, on one client of its own.
type Contender interface {
	// Lock waits for the lock of a key, until ctx ends.
	Lock(ctx context.Context, key string) (Unlock, error)
	Close()
}

// lease is that of every contender: as long as rueidislock's default, so that nobody renews more often.
const lease = 5 * time.Second

// library is one of those that are compared.
type library struct {
	name     string
	open     func(addr string) (Contender, error)
	commands []string // that it sends outside of scripts
	ours     bool
	floor    bool // it locks nothing: what the same commands cost at least
	local    bool // it locks in one process alone, without Redis: what the same hand-over costs at least
	etcd     bool // addr is etcd's
	several  bool // it needs several servers
}

// libraries are all of them, in the order of the tables.
var libraries = []library{
	{name: "floor", open: openFloor, floor: true},
	{name: "x/sync semaphore", open: openWeighted, local: true},
	{name: "rlock", open: openRlock, ours: true},
	{name: "rlock lingering", open: openLingering, ours: true},
	{name: "fairlock", open: openFairlock, ours: true},
	{name: "spinlock", open: openSpinlock, ours: true},
	{name: "redisson", open: openRedisson},
	{name: realRedisson, open: noClient},
	{name: "rueidislock", open: openRueidislock},
	{name: "redislock", open: openRedislock},
	{name: "redislock, as often", open: openFrequentRedislock},
	{name: "redislock pipelining", open: openPipeliningRedislock},
	{name: "redsync pipelining", open: openPipeliningRedsync, commands: []string{"set"}},
	{name: "redsync", open: openRedsync, commands: []string{"set"}},
	{name: "redsync, as often", open: openFrequentRedsync, commands: []string{"set"}},
	{name: "floor of five", open: openFloorOfSeveral, commands: []string{"set", "del"}, floor: true, several: true},
	{name: "redlock", open: openRedlock, ours: true, several: true},
	{name: "etcd", open: openEtcd, etcd: true},
}

// noClient is of a contender that is no client here: see [javaRound].
func noClient(string) (Contender, error) { return nil, errors.New("it is a process of its own") }

func libraryOf(name string) (library, error) {
	i := slices.IndexFunc(libraries, func(l library) bool { return l.name == name })
	if i < 0 {
		return library{}, fmt.Errorf("unknown contender %q", name)
	}
	return libraries[i], nil
}
