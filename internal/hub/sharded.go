package hub

import (
	"context"
	"sync"

	"github.com/redis/rueidis"
)

// Sharded subscribes to the shard channels of a cluster, on the connections that the client has to the nodes. The
// client knows which node has a channel, and follows the channel to another node. But each channel costs a goroutine,
// so Sharded listens to few channels without users. Set the exported fields before the first use.
type Sharded struct {
	// Client makes the connections.
	Client rueidis.Client
	// Close closes the connections. It is nil if the connections are the user's: then abandoned channels stay
	// subscribed.
	Close func()

	running sync.WaitGroup

	mu        sync.Mutex
	abandoned int // channels since the last Cut that was due
}

// Subscribe implements [Source].
func (s *Sharded) Subscribe(sub *Subscription) {
	ctx, stop := context.WithCancel(context.Background())
	sub.stop = stop
	s.running.Go(func() {
		defer stop()
		hooked := rueidis.WithOnSubscriptionHook(ctx, func(p rueidis.PubSubSubscription) {
			// This runs on the reader of the connection: nothing here may block.
			if p.Kind == "ssubscribe" {
				sub.Confirmed()
			}
		})
		command := s.Client.B().Ssubscribe().Channel(sub.Name()).Build()
		sub.Ended(s.Client.Receive(hooked, command, func(m rueidis.PubSubMessage) { sub.Heard(m.Message) }))
	})
}

// Drop implements [Source].
func (s *Sharded) Drop(sub *Subscription) { sub.stop() }

// Abandoned implements [Source].
func (s *Sharded) Abandoned(others int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.abandoned++
	if !tooMany(s.abandoned, others) {
		return false
	}
	s.abandoned = 0
	return true
}

// MaxIdle implements [Source].
func (s *Sharded) MaxIdle() int { return 100 }

// Cut implements [Source].
func (s *Sharded) Cut() {
	if s.Close != nil {
		s.Close()
	}
}

// Wait implements [Source].
func (s *Sharded) Wait() { s.running.Wait() }
