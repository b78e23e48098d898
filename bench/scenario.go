package main

import (
	"slices"
	"time"
)

// scenario is one kind of work that contenders do.
type scenario struct {
	Name       string
	Title      string
	Kind       string
	Contenders []string // in the order of the table; the others are compared with the floor among them
	Processes  int
	Goroutines int // in each
	Keys       int
	Section    time.Duration
	Long       time.Duration // of every other process instead of Section; 0: all have the same
	Alternate  bool          // a process asks again only when the other has the lock
	Turns      bool          // a process asks only when the other has unlocked: nobody ever waits
	Ramp       time.Duration // at least, before a round is measured; twice the round at most
	Least      time.Duration // that a round takes, up to three times the run's; 0: the run's
	Rounds     int           // 0: the run's
	Variants   bool          // the contenders are variants of the kind
	WriteEvery int           // one section in so many writes, of those that read and write; 0: none
	Series     string        // scenarios of one series are shown as one
	X          int           // and are told apart by this
	Commands   []string      // that are counted, as scripts are
	Servers    int           // that share no data, and are given as one address; 0: one
	Cluster    bool          // they are one cluster
}

var everybody = []string{"floor", "rlock", "fairlock", "rueidislock", "redislock", "redsync", "etcd"}

var lockers = everybody[1:]

// lingering has a lock beside them that stays with its process.
func lingering(names []string) []string {
	return slices.Insert(slices.Clone(names), slices.Index(names, "rlock")+1, "rlock lingering")
}

// pipelining has the libraries on go-redis beside them with its pipelining.
func pipelining(names []string) []string {
	return append(slices.Clone(names), "redislock pipelining", "redsync pipelining")
}

// withRedisson has the protocol of its RLock beside the other libraries.
func withRedisson(names []string) []string {
	return slices.Insert(slices.Clone(names), slices.Index(names, "rueidislock"), "redisson")
}

// scenarios are all of them, those of the table in the design first.
func scenarios() []scenario {
	all := []scenario{
		{Name: "uncontended", Title: "one goroutine, one key", Kind: "locks", Contenders: withRealRedisson(lingering(everybody)), Processes: 1, Goroutines: 1, Keys: 1},
		{Name: "keys", Title: "64 goroutines on 64 keys", Kind: "locks", Contenders: withRealRedisson(pipelining(lingering(everybody))), Processes: 1, Goroutines: 64, Keys: 64},
		{Name: "one process", Title: "64 goroutines of one process on one key", Kind: "locks", Contenders: withRealRedisson(append([]string{"x/sync semaphore"}, lockers...)), Processes: 1, Goroutines: 64, Keys: 1},
		{Name: "fleet", Title: "8 processes of 8 goroutines on one key, no work inside", Kind: "locks", Contenders: withRealRedisson(withRedisson(lockers)), Processes: 8, Goroutines: 8, Keys: 1},
		{
			Name: "fleet 1 ms", Title: "8 processes of 8 goroutines on one key, 1 ms of work inside", Kind: "locks", Contenders: withRealRedisson(withRedisson(lockers)),
			Processes: 8, Goroutines: 8, Keys: 1, Section: time.Millisecond, Least: 3 * time.Second,
		},
		{
			Name: "fleet unequal", Title: "8 processes of 8 goroutines on one key, four with 1 ms of work inside and four with 10 ms", Kind: "locks",
			Contenders: withRedisson(lockers), Processes: 8, Goroutines: 8, Keys: 1, Section: time.Millisecond, Long: 10 * time.Millisecond, Least: 3 * time.Second,
		},
		{
			Name: "hand-off", Title: "hand-off: from Unlock to Lock in another process", Kind: "locks", Contenders: lingering(append([]string{"ping-pong", "ping-pong with pauses"}, lockers...)),
			Processes: 2, Goroutines: 1, Keys: 1, Section: time.Millisecond, Alternate: true,
		},
		{
			Name: "turns", Title: "two processes by turns: each asks when the other has unlocked", Kind: "locks",
			Contenders: lingering([]string{"floor", "rlock", "rueidislock", "redislock", "redsync"}), Processes: 2, Goroutines: 1, Keys: 1, Turns: true,
		},
		{Name: "idle", Title: "1000 idle waiters", Kind: "idle", Contenders: lockers, Processes: 1, Goroutines: 1000, Least: 4 * time.Second, Rounds: 1},
	}
	all = append(all, onNodes()...)
	for _, waiters := range []int{1, 10, 100, 1000, 10_000} {
		all = append(all, scenario{
			Name: "waiters", Series: "waiters", X: waiters, Title: "commands per acquisition, by waiting goroutines of one process", Kind: "locks",
			Contenders: slices.DeleteFunc(slices.Clone(lockers), func(name string) bool { return name == "etcd" }),
			Processes:  1, Goroutines: waiters + 1, Keys: 1, Section: 100 * time.Microsecond, Rounds: 1,
			Ramp: time.Duration(min(waiters, 2000)) * time.Millisecond, Least: 2 * time.Second,
		})
	}
	for _, processes := range []int{1, 4, 16, 64} {
		all = append(all, scenario{
			Name: "processes", Series: "processes", X: processes, Title: "commands per acquisition, by waiting processes", Kind: "locks",
			Contenders: slices.DeleteFunc(slices.Clone(lockers), func(name string) bool { return name == "etcd" }),
			Processes:  processes + 1, Goroutines: 1, Keys: 1, Section: 100 * time.Microsecond, Rounds: 1,
		})
	}
	for _, processes := range []int{1, 8, 64} {
		all = append(all, scenario{
			Name: "spin", Series: "spin", X: processes, Title: "polling, by waiting processes, 0.1 ms of work inside", Kind: "locks",
			Contenders: []string{"spinlock", "redislock, as often"},
			Processes:  processes + 1, Goroutines: 1, Keys: 1, Section: 100 * time.Microsecond, Least: 2 * time.Second,
		})
	}
	all = append(all, scenario{
		Name: "held", Title: "100,000 locks held by one client", Kind: "held", Contenders: []string{"rlock", "fairlock", "rueidislock"},
		Processes: 1, Goroutines: 1, Keys: 100_000, Least: 15 * time.Second, Rounds: 1,
	})
	for _, section := range []time.Duration{0, time.Millisecond} {
		name, title := "semaphore", "64 goroutines share 16 permits, no work inside"
		if section > 0 {
			name, title = "semaphore 1 ms", "64 goroutines share 16 permits, 1 ms of work inside"
		}
		all = append(all, scenario{
			Name: name, Title: title, Kind: "permits", Variants: true,
			Contenders: []string{"redisson", "leased", "leased with budget", "counting"}, Processes: 1, Goroutines: 64, Section: section,
		})
	}
	all = append(all, scenario{
		Name: "latch", Title: "a latch with 64 waiters, opened again and again", Kind: "rounds", Variants: true, Contenders: []string{"redisson", "countdown"},
		Processes: 1, Goroutines: 64, Commands: []string{"get"},
	})
	all = append(all,
		scenario{
			Name: "readers", Title: "64 goroutines of one process that read together, no work inside", Kind: "readwrite", Variants: true,
			Contenders: []string{"redisson", "rwlock"}, Processes: 1, Goroutines: 64,
		},
		scenario{
			Name: "readers 1 ms", Title: "8 processes of 8 goroutines that read together, 1 ms of work inside", Kind: "readwrite", Variants: true,
			Contenders: []string{"redisson", "rwlock"}, Processes: 8, Goroutines: 8, Section: time.Millisecond,
		},
	)
	for _, section := range []time.Duration{0, time.Millisecond} {
		name, title := "read-write", "8 processes of 8 goroutines, one section in ten writes, no work inside"
		if section > 0 {
			name, title = "read-write 1 ms", "8 processes of 8 goroutines, one section in ten writes, 1 ms of work inside"
		}
		all = append(all, scenario{
			Name: name, Title: title, Kind: "readwrite", Variants: true, Contenders: []string{"redisson", "rlock", "rwlock"},
			Processes: 8, Goroutines: 8, Section: section, WriteEvery: 10, Least: 3 * time.Second,
		})
	}
	all = append(all, scenario{
		Name: "basket", Title: "ten free locks at once, one goroutine", Kind: "basket", Variants: true,
		Contenders: []string{"redisson", "redisson, side by side", "rlock", "multilock"}, Processes: 1, Goroutines: 1,
	})
	all = append(all, overSeveral()...)
	for _, size := range [][2]int{{1, 1}, {5, 1}, {5, 5}} {
		all = append(all, scenario{
			Name: "market", Series: "market", X: 10*size[0] + size[1], Title: "the market of Redis in Action: listers and buyers", Kind: "market",
			Variants: true, Contenders: []string{"no lock", "watch", "market lock", "item lock"},
			Processes: size[0] + size[1], Goroutines: size[0], Least: 2 * time.Second,
		})
	}
	return all
}
