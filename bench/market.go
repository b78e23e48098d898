package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"time"

	"github.com/redis/rueidis"

	"github.com/latchkey-go/latchkey/internal/test/redistest/baseline"
	"github.com/latchkey-go/latchkey/rlock"
)

// The market of "Redis in Action" (Josiah L. Carlson, chapter 6): sellers list items, buyers buy them.
//
//	inventory:<user>  SET   items that a user has
//	users:<user>      HASH  funds
//	market:           ZSET  <item>.<seller> -> price
//
// Variants: "watch" is the optimistic transaction of section 4.4; "market lock" has one lock for all, as in
// section 6.2.3; "item lock" one for each item; "no lock" sends the same commands without any, and sells what
// is gone. All commands and locks have the same context, which can be cancelled, as in a server: rueidis is
// faster without.
const marketKey = "market:"

// market is one lister or buyer: the first listers are Goroutines processes, the others buy.
func market(j job) (func(context.Context, *sample) error, func(), error) {
	c, err := baseline.Client(j.Addr)
	if err != nil {
		return nil, nil, err
	}
	ours, err := openLatchkey(j.Addr)
	if err != nil {
		return nil, nil, err
	}
	m := &trader{client: c, name: strconv.Itoa(j.Process), variant: j.Variant}
	m.lock = func(ctx context.Context, item string) (Unlock, error) {
		name := "lock:market"
		switch j.Variant {
		case "item lock":
			name = "lock:" + item
		case "market lock":
		default:
			return func() error { return nil }, nil
		}
		l, err := rlock.New(ours, name)
		if err != nil {
			return nil, err
		}
		hold, err := l.Lock(ctx)
		if err != nil {
			return nil, err
		}
		return func() error { return hold.Unlock(context.Background()) }, nil
	}
	lists := j.Process <= j.Goroutines
	if !lists {
		if err := c.Do(context.Background(), c.B().Hset().Key("users:"+m.name).FieldValue().FieldValue("funds", "1000000000").Build()).Error(); err != nil {
			return nil, nil, err
		}
	}
	run := func(ctx context.Context, s *sample) error {
		waits := histogram()
		s.Extra = map[string]float64{}
		wanted := time.Now()
		for n := 0; ctx.Err() == nil; n++ {
			counts := &sample{Extra: map[string]float64{}}
			if j.measured.Load() {
				counts = s
			}
			if lists {
				if err := m.list(ctx, fmt.Sprintf("item%s-%d", m.name, n), counts); untilEnd(ctx, err) != nil {
					return err
				}
				continue
			}
			bought, offered, err := m.buy(ctx, counts)
			if untilEnd(ctx, err) != nil {
				return err
			}
			if bought {
				counts.Extra["bought"]++
				if counts == s {
					record(waits, time.Since(wanted))
				}
			}
			if bought || !offered { // else it goes on wanting: an item was gone
				wanted = time.Now()
			}
		}
		s.Done = int64(s.Extra["listed"] + s.Extra["bought"])
		s.Waits = waits.Export()
		return nil
	}
	return run, func() { ours.Close(); c.Close() }, nil
}

type trader struct {
	client  rueidis.Client
	name    string
	variant string
	lock    func(ctx context.Context, item string) (Unlock, error)
}

var errRetry = errors.New("a watched key has changed")

// transact runs f on a connection of its own, with what is watched, as often as that changes meanwhile.
func (m *trader) transact(ctx context.Context, s *sample, retries string, keys []string, f func(rueidis.DedicatedClient) error) error {
	for {
		err := m.client.Dedicated(func(d rueidis.DedicatedClient) error {
			if m.variant == "watch" {
				if err := d.Do(ctx, d.B().Watch().Key(keys...).Build()).Error(); err != nil {
					return err
				}
			}
			return f(d)
		})
		if !errors.Is(err, errRetry) || ctx.Err() != nil {
			return err
		}
		s.Extra[retries]++
	}
}

// transaction sends a transaction, and returns the replies to its commands.
func transaction(ctx context.Context, d rueidis.DedicatedClient, commands ...rueidis.Completed) ([]rueidis.RedisMessage, error) {
	all := append([]rueidis.Completed{d.B().Multi().Build()}, commands...)
	all = append(all, d.B().Exec().Build())
	results := d.DoMulti(ctx, all...)
	replies, err := results[len(results)-1].ToArray()
	if rueidis.IsRedisNil(err) {
		return nil, errRetry
	}
	return replies, err
}

// list puts an item that the seller has on the market.
func (m *trader) list(ctx context.Context, item string, s *sample) error {
	inventory := "inventory:" + m.name
	if err := m.client.Do(ctx, m.client.B().Sadd().Key(inventory).Member(item).Build()).Error(); err != nil {
		return err
	}
	listing := item + "." + m.name
	unlock, err := m.lock(ctx, listing)
	if err != nil {
		return err
	}
	err = m.transact(ctx, s, "listing retries", []string{inventory}, func(d rueidis.DedicatedClient) error {
		has, err := d.Do(ctx, d.B().Sismember().Key(inventory).Member(item).Build()).AsBool()
		if err != nil || !has {
			return errors.Join(err, d.Do(ctx, d.B().Unwatch().Build()).Error())
		}
		_, err = transaction(ctx, d,
			d.B().Zadd().Key(marketKey).ScoreMember().ScoreMember(float64(1+rand.N(100)), listing).Build(),
			d.B().Srem().Key(inventory).Member(item).Build())
		if err == nil {
			s.Extra["listed"]++
		}
		return err
	})
	return errors.Join(err, unlock())
}

// buy buys one of the items that are listed, if any are offered.
func (m *trader) buy(ctx context.Context, s *sample) (bought, offered bool, err error) {
	listings, err := m.client.Do(ctx, m.client.B().Zrange().Key(marketKey).Min("0").Max("19").Build()).AsStrSlice()
	if err != nil || len(listings) == 0 {
		return false, false, err
	}
	listing := listings[rand.N(len(listings))]
	unlock, err := m.lock(ctx, listing)
	if err != nil {
		return false, true, err
	}
	var seller string
	for i := len(listing) - 1; i >= 0; i-- {
		if listing[i] == '.' {
			seller = listing[i+1:]
			break
		}
	}
	err = m.transact(ctx, s, "purchase retries", []string{marketKey, "users:" + m.name}, func(d rueidis.DedicatedClient) error {
		replies := d.DoMulti(ctx,
			d.B().Zscore().Key(marketKey).Member(listing).Build(), d.B().Hget().Key("users:"+m.name).Field("funds").Build())
		price, err := replies[0].AsFloat64()
		if rueidis.IsRedisNil(err) { // sold meanwhile
			s.Extra["gone"]++
			return d.Do(ctx, d.B().Unwatch().Build()).Error()
		}
		funds, err2 := replies[1].AsFloat64()
		if err := errors.Join(err, err2); err != nil || funds < price {
			return err
		}
		done, err := transaction(ctx, d,
			d.B().Hincrby().Key("users:"+seller).Field("funds").Increment(int64(price)).Build(),
			d.B().Hincrby().Key("users:"+m.name).Field("funds").Increment(-int64(price)).Build(),
			d.B().Sadd().Key("inventory:"+m.name).Member(listing).Build(),
			d.B().Zrem().Key(marketKey).Member(listing).Build())
		if err != nil {
			return err
		}
		removed, err := done[3].AsInt64()
		if removed == 0 {
			s.Extra["bought what was gone"]++
		}
		bought = err == nil && removed > 0
		return err
	})
	return bought, true, errors.Join(err, unlock())
}

// untilEnd hides the errors of what the end of the round has interrupted.
func untilEnd(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil //nolint:nilerr // it is the end
	}
	return err
}
