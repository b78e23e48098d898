package main

import (
	"context"
	"strings"

	"github.com/redis/rueidis"
	"github.com/urfave/cli/v3"
)

// kind is what a name is in Redis.
type kind string

// The kinds, as they are printed.
const (
	kindFree      kind = "nothing"
	kindLock      kind = "a lock"
	kindReadWrite kind = "a read-write lock"
	kindSemaphore kind = "a semaphore"
	kindLatch     kind = "a latch"
	kindBarrier   kind = "a barrier"
	kindOther     kind = "something else"
)

// kindOf finds out what a name is by its keys. A lock that nobody holds is nothing.
func kindOf(ctx context.Context, c *cli.Command, name string) (kind, error) {
	option, err := rueidis.ParseURL(c.String("redis"))
	if err != nil {
		return "", cli.Exit(err, statusUsage)
	}
	option.DisableCache = true
	r, err := rueidis.NewClient(option)
	if err != nil {
		return "", cli.Exit(err, statusAway)
	}
	defer r.Close()
	key := c.String("prefix") + name
	beside := func(companion string) string {
		if strings.Contains(key, "{") {
			return companion + ":" + key
		}
		return companion + ":{" + key + "}"
	}
	is, err := r.Do(ctx, r.B().Type().Key(key).Build()).ToString()
	if err != nil {
		return "", cli.Exit(err, statusAway)
	}
	there := func(command rueidis.Completed) bool {
		n, err := r.Do(ctx, command).AsInt64()
		return err == nil && n == 1
	}
	switch is {
	case "none":
		return kindFree, nil
	case "hash":
		switch {
		case there(r.B().Hexists().Key(key).Field("mode").Build()):
			return kindReadWrite, nil
		case there(r.B().Hexists().Key(key).Field("barrier").Build()):
			return kindBarrier, nil
		}
		return kindLock, nil
	case "string":
		if there(r.B().Exists().Key(beside("latchkey_latch")).Build()) {
			return kindLatch, nil
		}
		return kindSemaphore, nil
	}
	return kindOther, nil
}
