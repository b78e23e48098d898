package look

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/redis/rueidis"

	"github.com/latchkey-go/latchkey"
)

// Silence is how long a server may say nothing.
const Silence = 2 * time.Second

// answered calls f, which asks a server, with a context that ends when that has been silent for too long.
func answered(ctx context.Context, f func(context.Context) error) error {
	limited, cancel := context.WithTimeout(ctx, Silence)
	defer cancel()
	err := f(limited)
	// A timer of the connection may be first.
	late := limited.Err() != nil || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, os.ErrDeadlineExceeded)
	if err != nil && late && ctx.Err() == nil {
		return fmt.Errorf("%w: no answer for %v", latchkey.ErrUnavailable, Silence)
	}
	return err
}

// eachServer calls f with a client of each server that keys may be on.
func eachServer(r rueidis.Client, f func(address string, server rueidis.Client) error) error {
	for address, server := range r.Nodes() {
		if err := f(address, server); err != nil {
			return err
		}
	}
	return nil
}

// scan calls f with the keys that match a pattern, page by page. A key may come twice.
func scan(ctx context.Context, r rueidis.Client, pattern string, f func(keys []string) error) error {
	return scanAt(ctx, r, AtOnce, pattern, f)
}

// Pace waits between the parts of a long work: the last one took so long.
type Pace func(ctx context.Context, took time.Duration) error

// AtOnce is a pace without pauses.
func AtOnce(ctx context.Context, _ time.Duration) error { return ctx.Err() }

// scanAt is scan with pauses.
func scanAt(ctx context.Context, r rueidis.Client, pause Pace, pattern string, f func(keys []string) error) error {
	return eachServer(r, func(_ string, server rueidis.Client) error {
		for cursor := uint64(0); ; {
			var page rueidis.ScanEntry
			began := time.Now()
			err := answered(ctx, func(ctx context.Context) (err error) {
				page, err = server.Do(ctx, server.B().Scan().Cursor(cursor).Match(pattern).Count(1000).Build()).AsScanEntry()
				return err
			})
			if err != nil {
				return err
			}
			if err := f(page.Elements); err != nil {
				return err
			}
			if cursor = page.Cursor; cursor == 0 {
				return nil
			}
			if err := pause(ctx, time.Since(began)); err != nil {
				return err
			}
		}
	})
}
