package faults

import (
	"context"
	"math/rand/v2"
	"sync"

	"github.com/redis/rueidis"
)

// Listening is the fault that has processes of Redisson listen. Its clients take turns with those.
const Listening = "Redisson listens"

// listen listens for releases of some names as waiters of Redisson do, which never come: they might as well
// be stopped. So some releases leave what they released free, for nobody.
func listen(s *Scene, rng *rand.Rand) func() {
	n := s.one(rng)
	ctx, cancel := context.WithCancel(context.Background())
	var g sync.WaitGroup
	for range 3 {
		key := s.plan.Objects[rng.IntN(len(s.plan.Objects))].Key
		for _, channel := range []string{"redisson_lock__channel", "redisson_rwlock", "redisson_sc"} {
			command := s.Plain[n].B().Subscribe().Channel(channel + ":{" + key + "}").Build()
			g.Go(func() { _ = s.Plain[n].Receive(ctx, command, func(rueidis.PubSubMessage) {}) }) // until the end, or it is away
		}
	}
	return func() {
		cancel()
		g.Wait()
	}
}
