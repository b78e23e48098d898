// Package baseline is what benchmarks compare with: a plain client, a message from one process to another,
// and Redisson's protocols, written plainly. The module bench uses it in a program, so it needs no test.
package baseline

import (
	"context"
	"fmt"
	"sync"

	"github.com/redis/rueidis"
)

// Client returns a client with one connection for all commands, as latchkey's.
func Client(addr string) (rueidis.Client, error) {
	return rueidis.NewClient(rueidis.ClientOption{
		InitAddress: []string{addr}, ForceSingleClient: true, DisableCache: true, PipelineMultiplex: -1,
		ReadBufferEachConn: 1 << 16, WriteBufferEachConn: 1 << 16,
	})
}

// Clients returns one for commands and one for a subscription, as latchkey has them.
func Clients(addr string) (commands, subscriptions rueidis.Client, err error) {
	if commands, err = Client(addr); err != nil {
		return nil, nil, err
	}
	if subscriptions, err = Client(addr); err != nil {
		commands.Close()
		return nil, nil, err
	}
	return commands, subscriptions, nil
}

// Subscribe returns once a channel is subscribed to, and calls f with each of its messages until stop. f must
// not block.
func Subscribe(c rueidis.Client, channel string, f func(string)) (stop func(), err error) {
	ctx, cancel := context.WithCancel(context.Background())
	confirmed := make(chan struct{})
	var once sync.Once
	ended := make(chan struct{})
	var failed error
	go func() {
		defer close(ended)
		hooked := rueidis.WithOnSubscriptionHook(ctx, func(rueidis.PubSubSubscription) { once.Do(func() { close(confirmed) }) })
		failed = c.Receive(hooked, c.B().Subscribe().Channel(channel).Build(), func(m rueidis.PubSubMessage) { f(m.Message) })
	}()
	select {
	case <-confirmed:
		return func() { cancel(); <-ended }, nil
	case <-ended:
		cancel()
		return nil, fmt.Errorf("subscription: %w", failed)
	}
}
