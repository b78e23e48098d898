package main

import (
	"context"
	"os"
	"strconv"

	"github.com/urfave/cli/v3"
)

// guardCommand is what a command's guard runs: see supervise.
func guardCommand() *cli.Command {
	return &cli.Command{
		Name: "guard", Hidden: true,
		Flags: []cli.Flag{&cli.DurationFlag{Name: "grace"}},
		Action: func(_ context.Context, c *cli.Command) error {
			stand(os.Stdin, c.Duration("grace"))
			return nil
		},
	}
}

// startCommand is what becomes a command: see waiting.
func startCommand() *cli.Command {
	return &cli.Command{
		Name: "start", Hidden: true,
		Action: func(_ context.Context, c *cli.Command) error {
			ready, err := strconv.Atoi(c.Args().First())
			if _, words := divided(); err == nil && len(words) > 1 {
				return become(ready, words[0], words[1:])
			}
			return usage(c)
		},
	}
}
