// Command deploy is a service that does one thing at a time in the whole fleet, and ends in good order.
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/rlock"
)

func main() {
	if err := run(context.Background()); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context) (err error) {
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	c, err := latchkey.Open(os.Getenv("REDIS_URL"), latchkey.WithLazyConnect(), latchkey.WithLabel(os.Getenv("POD")))
	if err != nil {
		return err
	}
	defer func() {
		within, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		defer cancel()
		err = errors.Join(err, c.Shutdown(within))
	}()
	http.HandleFunc("/ready", func(w http.ResponseWriter, r *http.Request) {
		within, cancel := context.WithTimeout(r.Context(), time.Second)
		defer cancel()
		if err := c.Check(within); err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
		}
	})
	server := &http.Server{Addr: os.Getenv("LISTEN"), ReadHeaderTimeout: time.Second}
	both, ctx := errgroup.WithContext(ctx)
	stopped := context.AfterFunc(ctx, func() { _ = server.Close() })
	defer stopped()
	both.Go(func() error {
		if err := server.ListenAndServe(); !errors.Is(err, http.ErrServerClosed) {
			return err
		}
		return nil
	})
	both.Go(func() error { return work(ctx, c) })
	return both.Wait()
}

// work does one thing after the other, until ctx ends.
func work(ctx context.Context, c *latchkey.Client) error {
	lock, err := rlock.New(c, "import")
	if err != nil {
		return err
	}
	for ctx.Err() == nil {
		err := lock.Do(ctx, func(ctx context.Context, hold *latchkey.Hold) error {
			fmt.Println("imports, with token", hold.Token())
			select {
			case <-ctx.Done(): // SIGTERM, or the lock was lost
			case <-time.After(time.Second):
			}
			return nil
		})
		if err != nil && ctx.Err() == nil {
			log.Println(err) // ErrLost: it may not have been alone
		}
	}
	return nil
}
