package baseline

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/redis/rueidis"
)

// MultiLock is several locks at once, written plainly after Redisson's RedissonMultiLock: each is taken by
// the script of RLock, and given back by that. It is for locks that are free.
type MultiLock struct {
	client     rueidis.Client
	names      []string
	lease      string
	owner      string
	sideBySide bool
}

// NewMultiLock returns the locks of these names. sideBySide: their scripts are sent together, else one after
// the other.
func NewMultiLock(addr string, names []string, lease time.Duration, sideBySide bool) (*MultiLock, error) {
	c, err := Client(addr)
	if err != nil {
		return nil, err
	}
	return &MultiLock{c, names, strconv.FormatInt(lease.Milliseconds(), 10), random() + ":1", sideBySide}, nil
}

var (
	takeOne = rueidis.NewLuaScript(`
if redis.call('exists', KEYS[1]) == 0 or redis.call('hexists', KEYS[1], ARGV[2]) == 1 then
  redis.call('hincrby', KEYS[1], ARGV[2], 1)
  redis.call('pexpire', KEYS[1], ARGV[1])
  return nil
end
return redis.call('pttl', KEYS[1])`)

	giveOne = rueidis.NewLuaScript(`
local val = redis.call('get', KEYS[3])
if val ~= false then return tonumber(val) end
if redis.call('hexists', KEYS[1], ARGV[3]) == 0 then return nil end
local counter = redis.call('hincrby', KEYS[1], ARGV[3], -1)
if counter > 0 then
  redis.call('pexpire', KEYS[1], ARGV[2])
  redis.call('set', KEYS[3], 0, 'px', ARGV[5])
  return 0
end
redis.call('del', KEYS[1])
redis.call(ARGV[4], KEYS[2], ARGV[1])
redis.call('set', KEYS[3], 1, 'px', ARGV[5])
return 1`)

	errTaken = errors.New("somebody else has it")
)

// Lock takes all, or fails when one is taken.
func (m *MultiLock) Lock(ctx context.Context) error {
	return m.each(ctx, takeOne, func(name string) rueidis.LuaExec {
		return rueidis.LuaExec{Keys: []string{name}, Args: []string{m.lease, m.owner}}
	}, func(r rueidis.RedisResult) error {
		if err := r.Error(); !rueidis.IsRedisNil(err) {
			return errors.Join(errTaken, err)
		}
		return nil
	})
}

// Unlock gives all back. As Redisson's, it deletes the latch of each unlock after that.
func (m *MultiLock) Unlock(ctx context.Context) error {
	var latches []string
	err := m.each(ctx, giveOne, func(name string) rueidis.LuaExec {
		latch := "redisson_unlock_latch:{" + name + "}:" + random()
		latches = append(latches, latch)
		return rueidis.LuaExec{
			Keys: []string{name, "redisson_lock__channel:{" + name + "}", latch},
			Args: []string{"0", m.lease, m.owner, "PUBLISH", unlockKept},
		}
	}, func(r rueidis.RedisResult) error { return r.Error() })
	if err != nil {
		return err
	}
	commands := make(rueidis.Commands, len(latches))
	for i, latch := range latches {
		commands[i] = m.client.B().Del().Key(latch).Build()
		if !m.sideBySide {
			if err := m.client.Do(ctx, commands[i]).Error(); err != nil {
				return err
			}
		}
	}
	if m.sideBySide {
		for _, r := range m.client.DoMulti(ctx, commands...) {
			if err := r.Error(); err != nil {
				return err
			}
		}
	}
	return nil
}

// each runs a script for each lock.
func (m *MultiLock) each(
	ctx context.Context, script *rueidis.Lua, call func(name string) rueidis.LuaExec, check func(rueidis.RedisResult) error,
) error {
	calls := make([]rueidis.LuaExec, len(m.names))
	for i, name := range m.names {
		calls[i] = call(name)
		if !m.sideBySide {
			if err := check(script.Exec(ctx, m.client, calls[i].Keys, calls[i].Args)); err != nil {
				return err
			}
		}
	}
	if !m.sideBySide {
		return nil
	}
	for _, r := range script.ExecMulti(ctx, m.client, calls...) {
		if err := check(r); err != nil {
			return err
		}
	}
	return nil
}

// Close ends the client.
func (m *MultiLock) Close() { m.client.Close() }
