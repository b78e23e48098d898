package capacity

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/fairlock"
	"github.com/latchkey-go/latchkey/internal/test/redistest"
	"github.com/latchkey-go/latchkey/rlock"
	"github.com/latchkey-go/latchkey/rwlock"
	"github.com/latchkey-go/latchkey/semaphore"
)

// pause is how long a worker rests after each grant, or works under a lock.
const pause = 5 * time.Millisecond

// free are workers that take what nobody else wants, and give it back.
func free(t *testing.T, clients []*latchkey.Client, each int, kind string) (workers []worker) {
	t.Helper()
	for i, c := range clients {
		for j := range each {
			name := fmt.Sprint(kind, ":", i, ":", j)
			var pair func(ctx context.Context) error
			switch kind {
			case "lock":
				l, err := rlock.New(c, name)
				require.NoError(t, err)
				pair = func(ctx context.Context) error { return l.Do(ctx, nothing) }
			case "read":
				l, err := rwlock.New(c, name)
				require.NoError(t, err)
				pair = func(ctx context.Context) error { return l.Read().Do(ctx, nothing) }
			case "permit":
				s, err := semaphore.New(c, "permit", semaphore.WithCapacity(1000))
				require.NoError(t, err)
				pair = func(ctx context.Context) error {
					return s.Do(ctx, 1, func(context.Context, *semaphore.Permits) error { return nil })
				}
			}
			workers = append(workers, func(ctx context.Context) error {
				time.Sleep(pause) // the load
				return pair(context.WithoutCancel(ctx))
			})
		}
	}
	return workers
}

func nothing(context.Context, *latchkey.Hold) error { return nil }

// contended are two workers a name, of two clients, that work under its lock: each release hands it on.
func contended(t *testing.T, clients []*latchkey.Client, names []string, works time.Duration) (workers []worker) {
	t.Helper()
	for i, name := range names {
		for j := range 2 {
			l, err := fairlock.New(clients[(2*i+j)%len(clients)], name)
			require.NoError(t, err)
			workers = append(workers, func(ctx context.Context) error {
				return l.Do(ctx, func(context.Context, *latchkey.Hold) error {
					time.Sleep(works) // the load
					return nil
				})
			})
		}
	}
	return workers
}

func names(prefix string, n int) (all []string) {
	for i := range n {
		all = append(all, fmt.Sprint(prefix, i))
	}
	return all
}

// How long one server works for a grant, a waiter, a hold and a client, and what memory each takes.
func TestOneServer(t *testing.T) {
	measured(t)
	for _, deployment := range []string{"standalone", "cluster of one"} {
		t.Run(deployment, func(t *testing.T) {
			var option rueidis.ClientOption
			var server *redistest.Server
			if deployment == "standalone" {
				server = redistest.NewProcess(t)
				option = server.Option()
			} else {
				cluster := redistest.NewClusterOf(t, 1)
				server, option = cluster.Nodes[0], cluster.Option()
			}
			nodes := nodesOf(t, server)
			clients := open(t, option, 8)
			for _, kind := range []string{"lock", "read", "permit"} {
				did, grants := under(t, nodes, free(t, clients, 8, kind))
				say(t, "%s | a free %s, taken and given back | %.0f µs | %.0f a second were taken", deployment, kind, per(did[0].time, grants), float64(grants)/spell.Seconds())
			}
			did, grants := under(t, nodes, contended(t, clients, names("handed:", 16), pause))
			say(t, "%s | a lock that is handed on | %.0f µs | %.0f a second were handed on", deployment, per(did[0].time, grants), float64(grants)/spell.Seconds())
			resting(t, deployment, nodes, option)
		})
	}
}

// resting measures what costs something although nothing happens.
func resting(t *testing.T, deployment string, nodes []*node, option rueidis.ClientOption) {
	t.Helper()
	const many, holds, waits = 100, 50, 20 // clients, holds of each, waits of each
	memory := func() float64 { return nodes[0].info(t, "memory", "used_memory") }
	still := func(what string, n int, before float64) { // beside all that was there before
		bytes := (memory() - before) / float64(n)
		did := during(t, nodes, func() { time.Sleep(spell) })[0] // the measured span
		nodes[0].idle = work{nodes[0].idle.time + did.time, nodes[0].idle.commands + did.commands}
		say(t, "%s | %s | %.1f µs a second | %.0f B | %d of them", deployment, what, per(did.time, int64(n))/spell.Seconds(), bytes, n)
	}
	before := memory()
	clients := open(t, option, many)
	still("a client that does nothing", many, before)

	before = memory()
	var taken []*latchkey.Hold
	for i, c := range clients {
		for j := range holds {
			l, err := rlock.New(c, fmt.Sprint("held:", i, ":", j))
			require.NoError(t, err)
			hold, err := l.Lock(t.Context())
			require.NoError(t, err)
			taken = append(taken, hold)
		}
	}
	still("a hold with a lease of 10 s, which its client renews", many*holds, before)

	l, err := rlock.New(clients[0], "wanted")
	require.NoError(t, err)
	held, err := l.Lock(t.Context())
	require.NoError(t, err)
	before = memory()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var waiting []*redistest.Attempt[*latchkey.Hold]
	for _, c := range clients {
		for range waits {
			l, err := fairlock.New(c, "wanted")
			require.NoError(t, err)
			waiting = append(waiting, redistest.Begin(t, func(context.Context) (*latchkey.Hold, error) { return l.Lock(ctx) }))
		}
	}
	require.Eventually(t, func() bool {
		state, err := l.Inspect(t.Context())
		return err == nil && state.Waiting == many*waits
	}, time.Minute, 20*time.Millisecond)
	still("a waiter", many*waits, before)
	cancel()
	for _, w := range waiting {
		<-w.Ended
	}
	for _, hold := range append(taken, held) {
		require.NoError(t, hold.Unlock(t.Context()))
	}
}

// What clients that do nothing cost a cluster, and each of its shards. Each asks a few nodes for the
// topology, however many there are.
func TestClientsOfACluster(t *testing.T) {
	measured(t)
	const many = 50
	for _, shards := range []int{3, 6} {
		t.Run(fmt.Sprint(shards), func(t *testing.T) {
			cluster := redistest.NewClusterOf(t, shards)
			nodes := nodesOf(t, cluster.Nodes...)
			open(t, cluster.Option(), many)
			var all, most time.Duration
			for _, did := range during(t, nodes, func() { time.Sleep(spell) }) { // the measured span
				all, most = all+did.time, max(most, did.time)
			}
			say(t, "cluster of %d | a client that does nothing | %.0f µs a second in all | %.0f µs on the busiest shard",
				shards, per(all, many)/spell.Seconds(), per(most, many)/spell.Seconds())
		})
	}
}

// A shard of a cluster of three or of six does for the grants of its names what a server does that stands
// alone: that is the rule of thumb of docs/capacity.md. It is compared by the commands. How long those take
// differs from run to run: servers that share two processors work longer for a grant the more of them there
// are. So as many stand alone, beside each other, as the cluster has.
func TestShards(t *testing.T) {
	measured(t)
	const perShard, clients, works = 12, 4, 40 * time.Millisecond
	for _, shards := range []int{3, 6} {
		t.Run(fmt.Sprint(shards), func(t *testing.T) {
			did, grants := alone(t, shards, clients, names("orders:", perShard), works)
			var cost work
			for _, d := range did {
				cost.time += d.time / time.Duration(grants)
				cost.commands += d.commands / float64(grants)
			}
			say(t, "%d servers that stand alone | %.0f grants a second | %v and %.1f commands each", shards, float64(grants)/spell.Seconds(), cost.time, cost.commands)

			cluster := redistest.NewClusterOf(t, shards)
			opened := open(t, cluster.Option(), clients*shards)
			nodes := nodesOf(t, cluster.Nodes...)
			all := names("orders:", perShard*shards)
			mine := make([]int, shards) // how many names each has
			for _, name := range all {
				slot, err := nodes[0].plain.Do(t.Context(), nodes[0].plain.B().ClusterKeyslot().Key(name).Build()).AsInt64()
				require.NoError(t, err)
				mine[slot*int64(shards)/16384]++
			}
			did, grants = under(t, nodes, contended(t, opened, all, works))
			for i, d := range did {
				share := float64(grants) * float64(mine[i]) / float64(len(all))
				busy := time.Duration(float64(cost.time) * share)
				say(t, "cluster of %d | shard %d has %d of %d names | %.0f commands, predicted %.0f, %+.0f %% | worked %v, predicted %v, %+.0f %%",
					shards, i, mine[i], len(all), d.commands, cost.commands*share, (d.commands/cost.commands/share-1)*100,
					d.time, busy, (d.time.Seconds()/busy.Seconds()-1)*100)
				require.InEpsilon(t, cost.commands*share, d.commands, 0.2)
			}
		})
	}
}

// alone is as many clusters of one, each with these names and clients of its own.
func alone(t *testing.T, servers, clients int, all []string, works time.Duration) ([]work, int64) {
	t.Helper()
	var running []*redistest.Server
	var workers []worker
	for range servers {
		cluster := redistest.NewClusterOf(t, 1)
		running = append(running, cluster.Nodes...)
		workers = append(workers, contended(t, open(t, cluster.Option(), clients), all, works)...)
	}
	defer func() {
		for _, s := range running {
			s.Kill()
		}
	}()
	return under(t, nodesOf(t, running...), workers)
}
