package perrequest

import (
	"context"
	"net/http"
	"time"

	"github.com/latchkey-go/latchkey"
)

func shared(ctx context.Context, c *latchkey.Client) http.HandlerFunc {
	return func(http.ResponseWriter, *http.Request) { _ = order(ctx, c) }
}

func begins(ctx context.Context, address string) error {
	c, err := latchkey.Open(address)
	if err != nil {
		return err
	}
	defer c.Close()
	return http.ListenAndServe("localhost:8080", shared(ctx, c))
}

// untilItIsThere is a loop that opens one.
func untilItIsThere(ctx context.Context, address string) (*latchkey.Client, error) {
	for {
		c, err := latchkey.Open(address)
		if err == nil || ctx.Err() != nil {
			return c, err
		}
		<-time.After(time.Second)
	}
}

func ofEachServer(ctx context.Context, addresses []string) error {
	for _, address := range addresses {
		c, err := latchkey.Open(address)
		if err != nil {
			return err
		}
		defer c.Close()
		if err := c.Check(ctx); err != nil {
			return err
		}
	}
	return nil
}
