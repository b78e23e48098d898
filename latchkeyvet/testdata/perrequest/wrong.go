package perrequest

import (
	"context"
	"net/http"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/rlock"
)

func handler(address string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		ctx := r.Context()
		c, err := latchkey.Open(address) // want `this opens a client for each request: open one when the process begins, and share it`
		if err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
			return
		}
		defer c.Close()
		_ = order(ctx, c)
	}
}

type server struct{ address string }

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c, err := latchkey.Open(s.address) // want `for each request`
	if err == nil {
		defer c.Close()
	}
}

func order(ctx context.Context, c *latchkey.Client) error {
	return rlock.Do(ctx, c, "orders", func(ctx context.Context, hold *latchkey.Hold) error {
		other, err := latchkey.Open("redis://localhost:6379") // want `this opens a client for each run`
		if err != nil {
			return err
		}
		defer other.Close()
		return rlock.Do(ctx, other, "stock", func(context.Context, *latchkey.Hold) error { return nil })
	})
}

func rounds(ctx context.Context, c *latchkey.Client, address string, names []string) error {
	for _, name := range names {
		c, err := latchkey.Open(address) // want `this opens a client for each round`
		if err != nil {
			return err
		}
		err = rlock.Do(ctx, c, name, func(context.Context, *latchkey.Hold) error { return nil })
		c.Close()
		if err != nil {
			return err
		}
	}
	return nil
}
