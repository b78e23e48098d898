package baseline

import (
	"context"

	"github.com/redis/rueidis"
)

// Latch is Redisson's RCountDownLatch. Its methods are safe for concurrent use.
type Latch struct {
	news *news
	name string
}

var (
	arm = rueidis.NewLuaScript(`if redis.call('exists', KEYS[1]) == 0 then redis.call('set', KEYS[1], ARGV[2])
redis.call('publish', KEYS[2], ARGV[1]) return 1 else return 0 end`)
	down = rueidis.NewLuaScript(`local v = redis.call('decr', KEYS[1]) if v <= 0 then redis.call('del', KEYS[1]) end
if v == 0 then redis.call('publish', KEYS[2], ARGV[1]) end return v`)
)

// NewLatch returns the latch of a name, which is not set.
func NewLatch(addr, name string) (*Latch, error) {
	l := &Latch{name: name}
	var err error
	l.news, err = listen(addr, l.keys()[1])
	if err != nil {
		return nil, err
	}
	return l, nil
}

func (l *Latch) keys() []string {
	return []string{l.name, "redisson_countdownlatch__channel__{" + l.name + "}"}
}

// Set shuts the latch until it is counted down once.
func (l *Latch) Set(ctx context.Context) error {
	return arm.Exec(ctx, l.news.commands, l.keys(), []string{"1", "1"}).Error()
}

// CountDown counts down by one.
func (l *Latch) CountDown(ctx context.Context) error {
	return down.Exec(ctx, l.news.commands, l.keys(), []string{"0"}).Error()
}

// Await waits until the latch is open, or ctx ends.
func (l *Latch) Await(ctx context.Context) error {
	return l.news.awaiting(ctx, func() (bool, error) {
		err := l.news.commands.Do(ctx, l.news.commands.B().Get().Key(l.name).Build()).Error()
		if rueidis.IsRedisNil(err) {
			return true, nil
		}
		return false, err
	})
}

// Close is called when nobody uses the latch any more.
func (l *Latch) Close() { l.news.close() }
