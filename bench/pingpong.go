package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/latchkey-go/latchkey/internal/test/redistest/baseline"
)

// pingpong is the floor of a hand-off: two processes send each other a message by turns. With pauses each
// waits for as long as it would hold a lock, in which the machine goes to sleep as it does then.
func pingpong(j job) (func(context.Context, *sample) error, func(), error) {
	commands, subscriptions, err := baseline.Clients(j.Addr)
	if err != nil {
		return nil, nil, err
	}
	mine, theirs := fmt.Sprint("bench-ping-", j.Process), fmt.Sprint("bench-ping-", 3-j.Process)
	heard := make(chan time.Duration, 1)
	stop, err := baseline.Subscribe(subscriptions, mine, func(sent string) {
		at, _ := strconv.ParseInt(sent, 10, 64)
		select {
		case heard <- time.Since(time.Unix(0, at)):
		default:
		}
	})
	if err != nil {
		return nil, nil, err
	}
	pauses := strings.HasSuffix(j.Contender, "pauses")
	send := func() error {
		now := strconv.FormatInt(time.Now().UnixNano(), 10)
		return commands.Do(context.Background(), commands.B().Publish().Channel(theirs).Message(now).Build()).Error()
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
			case took := <-heard:
				if pauses {
					<-time.After(j.Section)
				} else {
					took = time.Since(sent) / 2
				}
				if j.measured.Load() {
					record(h, took)
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
