package main

import (
	"context"
	"fmt"

	"github.com/alicebob/miniredis/v2"
	"github.com/urfave/cli/v3"
)

func serveCommand() *cli.Command {
	return &cli.Command{
		Name: "serve", Usage: "serve as a Redis in memory, to try things where there is none",
		Description: `Serves at --listen until it is interrupted, and keeps nothing. It is for your first programs, and not for production: it has no
password, no persistence and no replicas.`,
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "listen", Usage: "`HOST:PORT` at which it serves; port 0 is a free one", Value: "127.0.0.1:6379"},
		},
		Action: serve,
	}
}

func serve(ctx context.Context, c *cli.Command) error {
	if c.Args().Len() > 0 {
		return usage(c)
	}
	server, err := embedded(c.String("listen"))
	if err != nil {
		return exit(statusUsage, "--listen: %w", err)
	}
	defer server.Close()
	if _, err := fmt.Fprintf(c.Root().Writer, "redis://%s\n", server.Addr()); err != nil {
		return err
	}
	<-ctx.Done()
	return nil
}

// embedded starts a server in this process.
func embedded(address string) (*miniredis.Miniredis, error) {
	server := miniredis.NewMiniRedis()
	server.ClockTTL(true) // leases must end
	return server, server.StartAddr(address)
}
