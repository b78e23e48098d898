// A value that comes out of a Do, and what its errors say.
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/rlock"
)

func main() {
	if err := run(context.Background()); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context) error {
	c, err := latchkey.Open(os.Getenv("REDIS_URL"))
	if err != nil {
		return err
	}
	defer c.Close()
	balance, err := withdraw(ctx, c, "alice", 30)
	if err != nil {
		return err
	}
	fmt.Println("alice has", balance)
	return nil
}

var balances = map[string]int{"alice": 100} // in a database, which refuses older tokens

func withdraw(ctx context.Context, c *latchkey.Client, account string, amount int) (int, error) {
	lock, err := rlock.New(c, "account:"+account)
	if err != nil {
		return 0, err
	}
	left := 0
	err = lock.Do(ctx, func(context.Context, *latchkey.Hold) error {
		if balances[account] < amount {
			return fmt.Errorf("%s has %d", account, balances[account])
		}
		balances[account] -= amount
		left = balances[account]
		return nil
	})
	switch {
	case errors.Is(err, latchkey.ErrNotRun):
		return 0, fmt.Errorf("nothing was done, try again: %w", err)
	case errors.Is(err, latchkey.ErrLost):
		return 0, fmt.Errorf("the lock was lost: it may have been done, and not alone: %w", err)
	}
	return left, err
}
