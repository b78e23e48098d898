package hub

import (
	"context"
	"sync"

	"github.com/redis/rueidis"
)

// Sharded subscribes to the shard channels of a cluster, on the connections that the client has to its nodes.
// The client knows which node has a channel, and follows it; but each channel costs it a goroutine, so few are
// listened to that nobody uses.
type Sharded struct {
	Client rueidis.Client
	Close  func() // ends the connections; nil: they are somebody else's, and what was left stays until they end

	running sync.WaitGroup

	mu   sync.Mutex
	left int
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

// Left is of [Source].
func (s *Sharded) Left(others int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.left++
	if !tooMany(s.left, others) {
		return false
	}
	s.left = 0
	return true
}

// Idle is of [Source].
func (s *Sharded) Idle() int { return 100 }

// Cut is of [Source].
func (s *Sharded) Cut() {
	if s.Close != nil {
		s.Close()
	}
}

// Wait is of [Source].
func (s *Sharded) Wait() { s.running.Wait() }
