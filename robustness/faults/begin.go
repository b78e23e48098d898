package faults

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey/internal/test/redistest"
	"github.com/latchkey-go/latchkey/robustness/plan"
)

// one draws a server.
func (s *Scene) one(rng *rand.Rand) int { return rng.IntN(len(s.servers)) }

func (s *Scene) do(n int, words ...string) error {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	return s.Plain[n].Do(ctx, s.Plain[n].B().Arbitrary(words...).Build()).Error()
}

func nothing() {}

// nap sleeps for a while, or until the context ends.
func nap(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

func killWorker(s *Scene, rng *rand.Rand) func() {
	n := rng.IntN(s.plan.Workers)
	s.Crew.kill(n)
	return func() { s.Crew.Hire(s.t, n) }
}

func stopWorker(s *Scene, rng *rand.Rand) func() {
	n := rng.IntN(s.plan.Workers)
	stall := s.Crew.Words.Stall(n)
	before := stall.Load()
	s.Crew.signal(n, redistest.Stop)
	return func() {
		s.Crew.signal(n, redistest.Continue)
		<-time.After(50 * time.Millisecond)
		stall.Store(before) // that it was stopped is no stall of the machine, which would excuse the others
	}
}

// command sends a command to one of the servers. What it does it does at once.
func command(words ...string) func(s *Scene, rng *rand.Rand) func() {
	return func(s *Scene, rng *rand.Rand) func() {
		_ = s.do(s.one(rng), words...) // it may be away for another reason
		return nothing
	}
}

func killConnections(kind string) func(s *Scene, rng *rand.Rand) func() {
	return command("CLIENT", "KILL", "TYPE", kind, "SKIPME", "yes")
}

// judged sets what becomes of requests through one of the proxies.
func judged(s *Scene, rng *rand.Rand, verdict redistest.Verdict, oneIn uint32, deliver time.Duration) func() {
	p, number := s.proxies[s.one(rng)], atomic.Uint32{}
	number.Store(rng.Uint32N(oneIn))
	p.Judge(func(request string) redistest.Verdict {
		if strings.Contains(request, "EVAL") && number.Add(1)%oneIn == 0 {
			return verdict
		}
		return redistest.Pass
	})
	ctx, cancel := context.WithCancel(context.Background())
	var delivering sync.WaitGroup
	if deliver > 0 {
		delivering.Go(func() {
			for ctx.Err() == nil {
				nap(ctx, deliver)
				p.Deliver()
			}
		})
	}
	return func() {
		p.Judge(nil)
		cancel()
		delivering.Wait()
		p.Deliver()
	}
}

func loseReplies(s *Scene, rng *rand.Rand) func() {
	return judged(s, rng, redistest.LoseReply, 20, 0)
}

func lateCopies(s *Scene, rng *rand.Rand) func() {
	return judged(s, rng, redistest.Keep, 20, 150*time.Millisecond)
}

func slowNetwork(s *Scene, rng *rand.Rand) func() {
	return judged(s, rng, redistest.Delay, 3, 10*time.Millisecond)
}

func oneWayNetwork(s *Scene, rng *rand.Rand) func() {
	end := judged(s, rng, redistest.Hang, 50, 0)
	return func() {
		end()
		for _, p := range s.proxies {
			p.KillAll() // those that hang
		}
	}
}

func silentNetwork(s *Scene, rng *rand.Rand) func() {
	p := s.proxies[s.one(rng)]
	p.Silence(true)
	return func() {
		p.Silence(false)
		p.KillAll() // what was swallowed will not be sent again
	}
}

func cutNetwork(s *Scene, rng *rand.Rand) func() {
	s.proxies[s.one(rng)].KillAll()
	return nothing
}

func stopServer(s *Scene, rng *rand.Rand) func() {
	n := s.one(rng)
	s.servers[n].Stop(s.t)
	return func() { s.servers[n].Continue(s.t) }
}

func pauseClients(s *Scene, rng *rand.Rand) func() {
	n := s.one(rng)
	_ = s.do(n, "CLIENT", "PAUSE", "1000", "ALL") // it may be away for another reason
	return func() { _ = s.do(n, "CLIENT", "UNPAUSE") }
}

// refusal has the server answer with errors.
func refusal(code string) func(s *Scene, rng *rand.Rand) func() {
	return func(s *Scene, rng *rand.Rand) func() { return redistest.Refusals[code](s.t, s.servers[s.one(rng)]) }
}

func outOfMemory(s *Scene, rng *rand.Rand) func() {
	n := s.one(rng)
	_ = s.do(n, "CONFIG", "SET", "maxmemory", "1") // it may be away for another reason
	return func() {
		for s.do(n, "CONFIG", "SET", "maxmemory", "0") != nil {
			<-time.After(10 * time.Millisecond)
		}
	}
}

// starve has goroutines of the workers spin, which have one processor each.
func starve(s *Scene, _ *rand.Rand) func() {
	s.Crew.Words.Starve().Store(1)
	return func() { s.Crew.Words.Starve().Store(0) }
}

// taken draws a lock that may be taken away.
func (s *Scene) taken(rng *rand.Rand) plan.Object {
	all := slices.DeleteFunc(slices.Clone(s.plan.Objects), func(o plan.Object) bool { return !o.Taken || !o.Exclusive() })
	return all[rng.IntN(len(all))]
}

func deleteKey(s *Scene, rng *rand.Rand) func() {
	o := s.taken(rng)
	s.about = int64(o.Index)
	_ = s.do(0, "DEL", o.Key) // it may be away for another reason
	return nothing
}

// failover has a replica take over from its primary, which hands over all it has.
func failover(s *Scene, rng *rand.Rand) func() {
	for _, n := range rng.Perm(len(s.servers)) {
		if s.do(n, "CLUSTER", "FAILOVER") == nil { // otherwise it is a primary
			break
		}
	}
	return nothing
}

// ofRole draws a server that says it is a primary or a replica: master or slave.
func (s *Scene) ofRole(rng *rand.Rand, role string) (found *redistest.Server) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	for _, n := range rng.Perm(len(s.servers)) {
		reply, err := s.Plain[n].Do(ctx, s.Plain[n].B().Role().Build()).ToArray()
		if err != nil || len(reply) == 0 {
			continue
		}
		if is, _ := reply[0].ToString(); is == role {
			return s.servers[n]
		}
	}
	return nil
}

// killPrimary kills a primary, whose replica takes over.
func killPrimary(s *Scene, rng *rand.Rand) func() {
	if one := s.ofRole(rng, "master"); one != nil {
		one.Kill()
		return func() { one.Start(s.t) }
	}
	return nothing
}

func stopReplica(s *Scene, rng *rand.Rand) func() {
	if one := s.ofRole(rng, "slave"); one != nil {
		one.Stop(s.t)
		return func() { one.Continue(s.t) }
	}
	return nothing
}

func stopSentinel(s *Scene, rng *rand.Rand) func() {
	one := s.sentinels[rng.IntN(len(s.sentinels))]
	one.Stop(s.t)
	return func() { one.Continue(s.t) }
}

func killSentinel(s *Scene, rng *rand.Rand) func() {
	one := s.sentinels[rng.IntN(len(s.sentinels))]
	one.Kill()
	return func() { one.Start(s.t) }
}

// The user of the workers, where passwords change.
const rotating = "rotating"

func passwordOf(n int64) string { return fmt.Sprintf("password-%d", n) }

// setPassword gives the user of the workers its n-th password, and no other.
func (s *Scene) setPassword(n int64) error {
	return s.do(0, "ACL", "SETUSER", rotating, "on", "resetpass", ">"+passwordOf(n), "~*", "&*", "+@all")
}

// user makes the user of the workers, where there is one. Redis has forgotten it when it is started again.
func (s *Scene) user() {
	if s.plan.Has("credentials rotate") {
		made := func() bool { return s.setPassword(s.Crew.Words.Rotations().Load()) == nil } // once it is connected again
		require.Eventually(s.t, made, 10*time.Second, 5*time.Millisecond)
	}
}

// rotate changes the password, and ends all connections. The workers learn the new one in the end.
func rotate(s *Scene, _ *rand.Rand) func() {
	next := s.Crew.Words.Rotations().Load() + 1
	if s.setPassword(next) != nil { // it is away for another reason
		return nothing
	}
	_ = s.do(0, "CLIENT", "KILL", "USER", rotating) // there may be none
	return func() { s.Crew.Words.Rotations().Store(next) }
}

// replaceKey puts something else in the place of a lock that may be taken away.
func replaceKey(s *Scene, rng *rand.Rand) func() {
	o := s.taken(rng)
	s.about = int64(o.Index)
	_ = s.do(0, "SET", o.Key, "foreign") // it may be away for another reason
	return func() { _ = s.do(0, "DEL", o.Key) }
}

// endIdle has a proxy end connections on which nothing was sent for a while, as load balancers do.
func endIdle(s *Scene, rng *rand.Rand) func() {
	p, idle := s.proxies[s.one(rng)], time.Duration(20+rng.IntN(300))*time.Millisecond
	ctx, cancel := context.WithCancel(context.Background())
	var ending sync.WaitGroup
	ending.Go(func() {
		for ctx.Err() == nil {
			nap(ctx, 10*time.Millisecond)
			p.KillIdle(idle)
		}
	})
	return func() { cancel(); ending.Wait() }
}

func restart(s *Scene, rng *rand.Rand) func() {
	n := s.one(rng)
	s.servers[n].Kill()
	return func() {
		s.servers[n].Start(s.t)
		s.user()
	}
}

func restartEmpty(s *Scene, rng *rand.Rand) func() { return restart(s, rng) }

// jump sets the clock: by parts of a lease, by several leases, or by hours.
func jump(back bool) func(s *Scene, rng *rand.Rand) func() {
	return func(s *Scene, rng *rand.Rand) func() {
		by := []time.Duration{100 * time.Millisecond, time.Second, 20 * time.Second, 3 * time.Hour}[rng.IntN(4)]
		if back {
			by = -by
		}
		s.servers[0].Jump(s.t, by)
		return nothing
	}
}

// moveSlot moves the slot of an object, key by key.
func moveSlot(s *Scene, rng *rand.Rand) func() {
	o := s.plan.Objects[rng.IntN(len(s.plan.Objects))]
	m := s.cluster.Move(s.t, o.Key)
	return func() {
		for keys := m.Left(s.t); len(keys) > 0; keys = m.Left(s.t) {
			for _, key := range keys {
				m.Key(s.t, key)
			}
		}
		m.Assign(s.t)
	}
}
