package main

import (
	"context"
	"time"

	"github.com/bsm/redislock"
	"github.com/go-redsync/redsync/v4"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	"github.com/redis/go-redis/v9"
)

// pipeliner is a go-redis client whose commands that are ready together go together. What is not named here
// is not sent so.
type pipeliner struct {
	redis.UniversalClient
	pipe *redis.AutoPipeliner
}

// openPipelining opens a client. The pipeliner does not wait for further commands: a lock that is alone is
// not slower.
func openPipelining(addr string) (pipeliner, error) {
	c := redis.NewClient(&redis.Options{Addr: addr})
	pipe, err := c.AutoPipeline()
	if err != nil {
		_ = c.Close() // that it failed is said
		return pipeliner{}, err
	}
	return pipeliner{c, pipe}, nil
}

func (p pipeliner) Get(ctx context.Context, key string) *redis.StringCmd { return p.pipe.Get(ctx, key) }

func (p pipeliner) Set(ctx context.Context, key string, value any, d time.Duration) *redis.StatusCmd {
	return p.pipe.Set(ctx, key, value, d)
}

func (p pipeliner) SetNX(ctx context.Context, key string, value any, d time.Duration) *redis.BoolCmd {
	return p.pipe.SetNX(ctx, key, value, d)
}

func (p pipeliner) EvalSha(ctx context.Context, sha string, keys []string, args ...any) *redis.Cmd {
	return p.pipe.EvalSha(ctx, sha, keys, args...)
}

func openPipeliningRedislock(addr string) (Contender, error) {
	p, err := openPipelining(addr)
	if err != nil {
		return nil, err
	}
	return bsmLock{p, redislock.New(p), 16 * time.Millisecond, 512 * time.Millisecond}, nil
}

func openPipeliningRedsync(addr string) (Contender, error) {
	p, err := openPipelining(addr)
	if err != nil {
		return nil, err
	}
	return redSync{[]redis.UniversalClient{p}, redsync.New(goredis.NewPool(p)), nil}, nil
}
