package latchkeytest_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/once"
	"github.com/latchkey-go/latchkey/rlock"
	"github.com/latchkey-go/latchkey/semaphore"
)

// The program that is tested here with the kit alone: it sends the reports of accounts. Each is written under
// the lock of its account, two at most are sent at the same time, and the accounts are loaded once.
type reports struct {
	client *latchkey.Client
	sends  *semaphore.Semaphore
	load   *once.Once
	paper  *paper
}

// paper is where reports go. It refuses tokens that are too old for what is written.
type paper struct {
	mu      sync.Mutex
	tokens  map[string]int64
	written []string
}

var errStale = errors.New("a later one has written")

func (p *paper) write(about, text string, token int64) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if token < p.tokens[about] {
		return errStale
	}
	p.tokens[about], p.written = token, append(p.written, text)
	return nil
}

func (p *paper) has(text string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Contains(p.written, text)
}

func newReports(c *latchkey.Client, p *paper) (*reports, error) {
	sends, err := semaphore.New(c, "sends", semaphore.WithCapacity(2))
	if err != nil {
		return nil, err
	}
	load, err := once.New(c, "load")
	return &reports{client: c, sends: sends, load: load, paper: p}, err
}

// Load loads the accounts, in one process.
func (r *reports) Load(ctx context.Context) error {
	return r.load.Do(ctx, func(context.Context, *once.Run) error { return r.paper.write("load", "loaded", 0) })
}

// Write writes the report of an account in steps, and stops when it is no longer alone.
func (r *reports) Write(ctx context.Context, account int, steps func(step int, hold *latchkey.Hold)) error {
	lock, err := rlock.New(r.client, fmt.Sprint("account:", account))
	if err != nil {
		return err
	}
	return lock.Do(ctx, func(ctx context.Context, hold *latchkey.Hold) error {
		for step := range 2 {
			steps(step, hold)
			if err := ctx.Err(); err != nil {
				return context.Cause(ctx)
			}
			if err := r.paper.write(lock.Name(), fmt.Sprintf("%d:%d", account, step), hold.Token()); err != nil {
				return err
			}
		}
		return nil
	})
}

var errBusy = errors.New("two are being sent")

// Send sends something, unless two are being sent for longer than patience.
func (r *reports) Send(ctx context.Context, patience time.Duration, send func()) error {
	permits, err := r.sends.TryAcquireFor(ctx, 1, patience)
	if errors.Is(err, latchkey.ErrNotAcquired) {
		return errBusy
	}
	if err != nil {
		return err
	}
	send()
	return permits.Release(ctx)
}
