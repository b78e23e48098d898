package main

import (
	"github.com/urfave/cli/v3"

	"github.com/latchkey-go/latchkey"
)

// connection are the flags of all sub-commands that talk to Redis.
func connection() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{
			Name: "redis", Usage: "`URL` of a Redis, as redis://user:password@host:6379/0, rediss:// or unix://",
			Value: "redis://localhost:6379", Sources: cli.EnvVars("LATCHKEY_REDIS"),
		},
		&cli.StringFlag{
			Name: "prefix", Usage: "what stands before all names of the application (WithKeyPrefix)", Sources: cli.EnvVars("LATCHKEY_PREFIX"),
		},
	}
}

// open returns the client of a sub-command. label is what others see of it.
func open(c *cli.Command, label string, more ...latchkey.Option) (*latchkey.Client, error) {
	const most = 100 // bytes of a label
	if len(label) > most {
		label = label[:most]
	}
	options := append([]latchkey.Option{latchkey.WithKeyPrefix(c.String("prefix")), latchkey.WithLabel(label)}, more...)
	client, err := latchkey.Open(c.String("redis"), options...)
	if err != nil {
		return nil, failed(err)
	}
	return client, nil
}
