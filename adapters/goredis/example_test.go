package latchkeygoredis_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/latchkey-go/latchkey"
	latchkeygoredis "github.com/latchkey-go/latchkey/adapters/goredis"
	"github.com/latchkey-go/latchkey/rlock"
	"github.com/latchkey-go/latchkey/rueidisclient"
)

// A program that has a client of go-redis, and takes locks on the same server.
func Example() {
	options := &redis.UniversalOptions{
		Addrs:    []string{strings.TrimPrefix(os.Getenv("REDIS_URL"), "redis://")}, // as localhost:6379
		PoolSize: 20,
	}
	data := redis.NewUniversalClient(options)
	defer data.Close()

	option, err := latchkeygoredis.ClientOption(options)
	if err != nil {
		log.Panic(err) // names the fields that locks cannot do with
	}
	c, err := rueidisclient.New(option)
	if err != nil {
		log.Panic(err)
	}
	defer c.Close()
	err = rlock.Do(context.Background(), c, "orders:42", func(ctx context.Context, hold *latchkey.Hold) error {
		return data.Set(ctx, "paid:42", hold.Token() > 0, 0).Err()
	})
	fmt.Println(err, data.Get(context.Background(), "paid:42").Val())
	// Output: <nil> 1
}
