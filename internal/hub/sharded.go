package hub

import (
	"context"
	"sync"

	"github.com/redis/rueidis"
)

// Sharded subscribes to the shard channels of a cluster, on the connections that the client has to its nodes.
// The client knows which node has a channel, and follows it. But each channel costs it a goroutine, so it
// listens to few channels without users. The exported fields are set before it is used.
type Sharded struct {
	// Client makes the connections.
	Client rueidis.Client
	// Close closes them. It is nil when they are the user's: then abandoned channels stay subscribed.
	Close func()

	running sync.WaitGroup

	mu        sync.Mutex
	abandoned int // channels since the last Cut that was due
}

// Subscribe is of [Source].
func (s *Sharded) Subscribe(sub *Subscription) {
	ctx, stop := context.WithCancel(context.Background())
	sub.stop = stop
	s.running.Go(func() {
		defer stop()
		hooked := rueidis.WithOnSubscriptionHook(ctx, func(p rueidis.PubSubSubscription) {
			// Runs on the connection's reader: nothing here may block.
			if p.Kind == "ssubscribe" {
				sub.Confirmed()
			}
		})
		command := s.Client.B().Ssubscribe().Channel(sub.Name()).Build()
		sub.Ended(s.Client.Receive(hooked, command, func(m rueidis.PubSubMessage) { sub.Heard(m.Message) }))
	})
}

// Drop is of [Source].
func (s *Sharded) Drop(sub *Subscription) { sub.stop() }

// Abandoned is of [Source].
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

// MaxIdle is of [Source].
func (s *Sharded) MaxIdle() int { return 100 }

// Cut is of [Source].
func (s *Sharded) Cut() {
	if s.Close != nil {
		s.Close()
	}
}

// Wait is of [Source].
func (s *Sharded) Wait() { s.running.Wait() }
