package main

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"sync"
	"time"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/rlock"
	"github.com/latchkey-go/latchkey/rueidisclient"
)

// mode is what a worker process does.
type mode string

const (
	unlocked mode = "unlocked" // sell until the stock looks empty, without a lock
	locked   mode = "locked"   // the same, with the lock
	single   mode = "single"   // wait for the lock, sell one item, and end
	stuck    mode = "stuck"    // take the lock, and hang in the middle of a sale until told to go on
)

// lease is short, so that the demonstration is.
const lease = 1500 * time.Millisecond

// think is how long a sale takes between its read and its write.
const think = time.Millisecond

// event is what a worker reports, one JSON object a line.
type event struct {
	Event string `json:"event"` // ready, sold, inside, wrote, refused, end, error
	Token int64  `json:"token,omitempty"`
	Held  bool   `json:"held,omitempty"` // what Hold.Held says at that moment
	Error string `json:"error,omitempty"`
	Until int64  `json:"until,omitempty"` // when a stall ended, in ms since 1970
	MS    int64  `json:"ms,omitempty"`    // how long it was
}

// stalled is the event that says that the worker stood still.
const stalled = "stalled"

// work is a worker process. It reads its standard input: a line tells it to begin or to go on, and its end to
// stop.
func work(ctx context.Context, url, prefix string, m mode) error {
	reports := json.NewEncoder(os.Stdout)
	var mu sync.Mutex
	report := func(e event) {
		mu.Lock()
		defer mu.Unlock()
		_ = reports.Encode(e) // when no process listens any more, the standard input ends, too
	}
	testify(ctx, func(s stall) { report(event{Event: stalled, Until: s.end.UnixMilli(), MS: s.length.Milliseconds()}) })
	if err := sell(ctx, url, prefix, m, report); err != nil && ctx.Err() == nil {
		report(event{Event: "error", Error: err.Error()})
		return err
	}
	report(event{Event: "end"})
	return nil
}

func sell(ctx context.Context, url, prefix string, m mode, report func(event)) error {
	option, err := parse(url)
	if err != nil {
		return err
	}
	client, err := rueidisclient.New(option, latchkey.WithKeyPrefix(prefix), latchkey.WithLease(lease))
	if err != nil {
		return err
	}
	defer client.Close()
	lock, err := rlock.New(client, "lock")
	if err != nil {
		return err
	}
	s, err := openStock(option, prefix)
	if err != nil {
		return err
	}
	defer s.close()
	orders := listen(ctx)
	report(event{Event: "ready"})
	if err := orders.next(ctx); err != nil {
		return err
	}
	for {
		var hold *latchkey.Hold
		if m != unlocked {
			if hold, err = lock.Lock(ctx); err != nil {
				return err
			}
		}
		more, err := sale(ctx, s, m, hold, orders, report)
		if hold != nil {
			if unlockErr := hold.Unlock(ctx); !errors.Is(unlockErr, latchkey.ErrLost) { // the stuck one has lost it
				err = errors.Join(err, unlockErr)
			}
		}
		if err != nil || !more || m == single || m == stuck {
			return err
		}
	}
}

// sale is read, decide, write.
func sale(ctx context.Context, s *stock, m mode, hold *latchkey.Hold, orders *orders, report func(event)) (more bool, err error) {
	left, err := s.read(ctx)
	if err != nil || left <= 0 {
		return false, err
	}
	token, state := int64(0), func() bool { return false }
	if hold != nil {
		token, state = hold.Token(), hold.Held
	}
	if m == stuck || m == single {
		report(event{Event: "inside", Token: token, Held: state()})
	}
	if m == stuck {
		if err := orders.next(ctx); err != nil {
			return false, err
		}
	}
	time.Sleep(think)
	written, err := s.write(ctx, left-1, token)
	switch {
	case err != nil:
		return false, err
	case written:
		report(event{Event: "sold", Token: token, Held: state()})
	default:
		report(event{Event: "refused", Token: token, Held: state()})
	}
	return true, nil
}

// orders are the lines of the standard input. When it ends, so does the process: the process that started it
// is gone.
type orders struct{ lines chan struct{} }

func listen(context.Context) *orders {
	o := &orders{lines: make(chan struct{}, 16)}
	go func() {
		buffer := make([]byte, 1)
		for {
			if _, err := io.ReadFull(os.Stdin, buffer); err != nil {
				os.Exit(0)
			}
			o.lines <- struct{}{}
		}
	}()
	return o
}

func (o *orders) next(ctx context.Context) error {
	select {
	case <-o.lines:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
