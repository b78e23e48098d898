package main

import (
	"context"
	"fmt"
	"time"

	"github.com/latchkey-go/latchkey/internal/redistest/baseline"
)

// pingpong is the floor of a hand-off: two processes send each other a message by turns.
func pingpong(j job) (func(context.Context, *sample) error, func(), error) {
	commands, subscriptions, err := baseline.Clients(j.Addr)
	if err != nil {
		return nil, nil, err
	}
	mine, theirs := fmt.Sprint("bench-ping-", j.Process), fmt.Sprint("bench-ping-", 3-j.Process)
	heard := make(chan struct{}, 1)
	stop, err := baseline.Subscribe(subscriptions, mine, func(string) {
		select {
		case heard <- struct{}{}:
		default:
		}
	})
	if err != nil {
		return nil, nil, err
	}
	send := func() error {
		return commands.Do(context.Background(), commands.B().Publish().Channel(theirs).Message("x").Build()).Error()
	}
	run := func(ctx context.Context, s *sample) error {
		h := histogram()
		if j.Process == 1 {
			if err := send(); err != nil {
				return err
			}
		}
		sent := time.Now()
		for ctx.Err() == nil {
			select {
			case <-heard:
				if j.measured.Load() {
					record(h, time.Since(sent)/2)
					s.Done++
				}
				sent = time.Now()
				if err := send(); err != nil {
					return err
				}
			case <-ctx.Done():
			}
		}
		s.Handoffs, s.Waits = h.Export(), h.Export()
		return nil
	}
	return run, func() { stop(); subscriptions.Close(); commands.Close() }, nil
}
