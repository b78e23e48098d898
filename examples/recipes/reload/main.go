// A fleet reloads its configuration at SIGHUP, one process after the other: the others serve meanwhile.
package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"os/signal"
	"syscall"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/fairlock"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx)
	stop()
	if err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context) error {
	c, err := latchkey.Open(os.Getenv("REDIS_URL"))
	if err != nil {
		return err
	}
	defer c.Close()
	turn, err := fairlock.New(c, "reload") // in the order in which they were told
	if err != nil {
		return err
	}
	told := make(chan os.Signal, 1)
	signal.Notify(told, syscall.SIGHUP)
	fmt.Println("serves")
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-told:
			if err := turn.Do(ctx, reload); err != nil {
				log.Println("goes on with the old configuration:", err)
			}
		}
	}
}

func reload(context.Context, *latchkey.Hold) error {
	fmt.Println("reloaded")
	return nil
}
