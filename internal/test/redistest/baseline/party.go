package baseline

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/redis/rueidis"
)

// party is one process of those that share one of Redisson's locks.
type party struct {
	commands, subscriptions rueidis.Client

	name, id string
	lease    time.Duration
	waiters  waiters
	stop     func()
	done     sync.WaitGroup // commands that nobody waits for

	channel string
}

// join fills in the party, which is closed when that fails.
func (p *party) join(addr, channel, name string, lease time.Duration) error {
	p.name, p.id, p.lease, p.stop = name, random(), lease, func() {}
	p.channel = channel + p.braced()
	var err error
	if p.commands, p.subscriptions, err = Clients(addr); err != nil {
		return err
	}
	stop, err := Subscribe(p.subscriptions, p.channel, p.waiters.wake)
	if err != nil {
		p.Close()
		return err
	}
	p.stop = stop
	return nil
}

func random() string {
	id := make([]byte, 16)
	_, _ = rand.Read(id) // it does not fail
	return hex.EncodeToString(id)
}

// braced is how the name stands in the names of companions.
func (p *party) braced() string {
	if strings.Contains(p.name, "{") {
		return p.name
	}
	return "{" + p.name + "}"
}

func (p *party) unlocking() string    { return "redisson_unlock_latch:" + p.braced() + ":" + random() }
func (p *party) milliseconds() string { return strconv.FormatInt(p.lease.Milliseconds(), 10) }

// Owner is the id of a thread in Redis.
func (p *party) Owner(thread int) string { return p.id + ":" + strconv.Itoa(thread) }

func attempted(reply rueidis.RedisResult) (acquired bool, left time.Duration, err error) {
	ms, err := reply.AsInt64()
	if rueidis.IsRedisNil(err) {
		return true, 0, nil
	}
	return false, time.Duration(ms) * time.Millisecond, err
}

func (p *party) unlocked(ctx context.Context, latch string, reply rueidis.RedisResult) error {
	err := reply.Error()
	if rueidis.IsRedisNil(err) {
		return ErrNotOwner
	}
	if err == nil {
		p.done.Go(func() {
			_ = p.commands.Do(context.WithoutCancel(ctx), p.commands.B().Del().Key(latch).Build()).Error() // it expires
		})
	}
	return err
}

type attempt func(ctx context.Context, thread int) (acquired bool, left time.Duration, err error)

// await tries, and tries again after a message, or when a lease may have ended.
func (p *party) await(ctx context.Context, thread int, try attempt) error {
	if acquired, _, err := try(ctx, thread); acquired || err != nil {
		return err
	}
	p.waiters.enter()
	defer p.waiters.exit()
	for {
		acquired, left, err := try(ctx, thread)
		if acquired || err != nil {
			return err
		}
		if err := p.waiters.wait(ctx, left); err != nil {
			return err
		}
	}
}

// Close is called when nobody uses the lock any more.
func (p *party) Close() {
	p.stop()
	p.done.Wait()
	p.subscriptions.Close()
	p.commands.Close()
}
