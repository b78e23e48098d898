// Command outside is a program of somebody else, which gets latchkey by its version.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/alicebob/miniredis/v2"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/rlock"
)

func main() {
	if err := run(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// run takes a lock, which another client does not get meanwhile.
func run(ctx context.Context) error {
	server, err := miniredis.Run()
	if err != nil {
		return err
	}
	defer server.Close()
	one, err := latchkey.Open("redis://" + server.Addr())
	if err != nil {
		return err
	}
	defer one.Close()
	another, err := latchkey.Open("redis://" + server.Addr())
	if err != nil {
		return err
	}
	defer another.Close()
	lock, err := rlock.New(one, "orders:42")
	if err != nil {
		return err
	}
	same, err := rlock.New(another, "orders:42")
	if err != nil {
		return err
	}
	return lock.Do(ctx, func(ctx context.Context, hold *latchkey.Hold) error {
		if err := same.TryDo(ctx, charge); !errors.Is(err, latchkey.ErrNotAcquired) {
			return fmt.Errorf("another one has the lock as well: %w", err)
		}
		fmt.Println("held with token", hold.Token())
		return charge(ctx, hold)
	})
}

// charge needs the lock.
func charge(ctx context.Context, _ *latchkey.Hold) error { return context.Cause(ctx) }
