package baseline

import (
	"context"
	"strconv"
	"sync/atomic"

	"github.com/redis/rueidis"
)

// Semaphore is Redisson's RSemaphore: every message makes all who wait try again. Its methods are safe for
// concurrent use.
type Semaphore struct {
	news  *news
	name  string
	tries atomic.Int64
}

var (
	take = rueidis.NewLuaScript(`local value = redis.call('get', KEYS[1])
if value ~= false and tonumber(value) >= tonumber(ARGV[1]) then redis.call('decrby', KEYS[1], ARGV[1]) return 1 end
return 0`)
	give = rueidis.NewLuaScript(`local value = redis.call('incrby', KEYS[1], ARGV[1])
redis.call('publish', KEYS[2], value) return 1`)
)

// NewSemaphore sets the semaphore of a name to so many permits.
func NewSemaphore(addr, name string, permits int) (*Semaphore, error) {
	s := &Semaphore{name: name}
	var err error
	if s.news, err = listen(addr, s.channel()); err != nil {
		return nil, err
	}
	c := s.news.commands
	if err := c.Do(context.Background(), c.B().Set().Key(name).Value(strconv.Itoa(permits)).Build()).Error(); err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

func (s *Semaphore) channel() string { return "redisson_sc:{" + s.name + "}" }

// Acquire waits for a permit until ctx ends.
func (s *Semaphore) Acquire(ctx context.Context) error {
	return s.news.awaiting(ctx, func() (bool, error) {
		s.tries.Add(1)
		taken, err := take.Exec(ctx, s.news.commands, []string{s.name}, []string{"1"}).AsInt64()
		return taken == 1, err
	})
}

// Release gives a permit back.
func (s *Semaphore) Release(ctx context.Context) error {
	return give.Exec(ctx, s.news.commands, []string{s.name, s.channel()}, []string{"1"}).Error()
}

// Tries is how many commands all calls of Acquire have sent.
func (s *Semaphore) Tries() int64 { return s.tries.Load() }

// Close is called when nobody uses the semaphore any more.
func (s *Semaphore) Close() { s.news.close() }
