package baseline

import (
	"context"
	"errors"
	"time"

	"github.com/redis/rueidis"
)

// ErrNotOwner says that a thread unlocked what it does not hold.
var ErrNotOwner = errors.New("not locked by this thread")

// RWLock is Redisson's RReadWriteLock in one process. It is unfair: readers join others that read, whoever
// waits. Its methods are safe for concurrent use. A hold belongs to a thread, which a number names. There is
// no watchdog: a lease lasts as long as it was given.
type RWLock struct {
	party
}

// How long Redisson remembers what came of an unlock, with its defaults.
const unlockKept = "18000" // ms

// The scripts, in the order of section 5 of the wire format: KEYS 1 is the lock.
var (
	// KEYS 2 what the names of the thread's companions begin with. ARGV 1 lease in ms, 2 thread, 3 its field as
	// the writer. Reply: nil, or the time to live of the lock.
	readLock = rueidis.NewLuaScript(`local mode = redis.call('hget', KEYS[1], 'mode')
if mode == false then
  redis.call('hset', KEYS[1], 'mode', 'read')
  redis.call('hset', KEYS[1], ARGV[2], 1)
  redis.call('set', KEYS[2] .. ':1', 1)
  redis.call('pexpire', KEYS[2] .. ':1', ARGV[1])
  redis.call('pexpire', KEYS[1], ARGV[1])
  return nil
end
if mode == 'read' or mode == 'write' and redis.call('hexists', KEYS[1], ARGV[3]) == 1 then
  local ind = redis.call('hincrby', KEYS[1], ARGV[2], 1)
  local key = KEYS[2] .. ':' .. ind
  redis.call('set', key, 1)
  redis.call('pexpire', key, ARGV[1])
  local remaining = redis.call('pttl', KEYS[1])
  redis.call('pexpire', KEYS[1], math.max(remaining, ARGV[1]))
  return nil
end
return redis.call('pttl', KEYS[1])`)

	// ARGV 1 lease in ms, 2 thread's field as the writer.
	writeLock = rueidis.NewLuaScript(`local mode = redis.call('hget', KEYS[1], 'mode')
if mode == false then
  redis.call('hset', KEYS[1], 'mode', 'write')
  redis.call('hset', KEYS[1], ARGV[2], 1)
  redis.call('pexpire', KEYS[1], ARGV[1])
  return nil
end
if mode == 'write' and redis.call('hexists', KEYS[1], ARGV[2]) == 1 then
  redis.call('hincrby', KEYS[1], ARGV[2], 1)
  redis.call('pexpire', KEYS[1], redis.call('pttl', KEYS[1]) + ARGV[1])
  return nil
end
return redis.call('pttl', KEYS[1])`)

	// KEYS 2 channel, 3 what the thread's companions begin with, 4 what all companions begin with, 5 what came
	// of this unlock. ARGV 1 message, 2 thread, 3 publish verb, 4 how long to remember that.
	readUnlock = rueidis.NewLuaScript(`local val = redis.call('get', KEYS[5])
if val ~= false then return tonumber(val) end
local mode = redis.call('hget', KEYS[1], 'mode')
if mode == false then
  redis.call(ARGV[3], KEYS[2], ARGV[1])
  redis.call('set', KEYS[5], 1, 'px', ARGV[4])
  return nil
end
if redis.call('hexists', KEYS[1], ARGV[2]) == 0 then return nil end
local counter = redis.call('hincrby', KEYS[1], ARGV[2], -1)
if counter == 0 then redis.call('hdel', KEYS[1], ARGV[2]) end
redis.call('del', KEYS[3] .. ':' .. (counter + 1))
if redis.call('hlen', KEYS[1]) > 1 then
  local maxRemainTime = -3
  local keys = redis.call('hkeys', KEYS[1])
  for n, key in ipairs(keys) do
    counter = tonumber(redis.call('hget', KEYS[1], key))
    if type(counter) == 'number' then
      for i = counter, 1, -1 do
        local remainTime = redis.call('pttl', KEYS[4] .. ':' .. key .. ':rwlock_timeout:' .. i)
        maxRemainTime = math.max(remainTime, maxRemainTime)
      end
    end
  end
  if maxRemainTime > 0 then
    redis.call('pexpire', KEYS[1], maxRemainTime)
    redis.call('set', KEYS[5], 0, 'px', ARGV[4])
    return 0
  end
  if mode == 'write' then
    redis.call('set', KEYS[5], 0, 'px', ARGV[4])
    return 0
  end
end
redis.call('del', KEYS[1])
redis.call(ARGV[3], KEYS[2], ARGV[1])
redis.call('set', KEYS[5], 1, 'px', ARGV[4])
return 1`)

	// KEYS 2 channel, 3 what came of this unlock. ARGV 1 message, 2 lease in ms, 3 thread's field as the writer,
	// 4 publish verb, 5 how long to remember what came of it.
	writeUnlock = rueidis.NewLuaScript(`local val = redis.call('get', KEYS[3])
if val ~= false then return tonumber(val) end
local mode = redis.call('hget', KEYS[1], 'mode')
if mode == false then
  redis.call(ARGV[4], KEYS[2], ARGV[1])
  redis.call('set', KEYS[3], 1, 'px', ARGV[5])
  return nil
end
if mode == 'write' then
  if redis.call('hexists', KEYS[1], ARGV[3]) == 0 then return nil end
  local counter = redis.call('hincrby', KEYS[1], ARGV[3], -1)
  if counter > 0 then
    redis.call('pexpire', KEYS[1], ARGV[2])
    redis.call('set', KEYS[3], 0, 'px', ARGV[5])
    return 0
  end
  redis.call('hdel', KEYS[1], ARGV[3])
  if redis.call('hlen', KEYS[1]) == 1 then
    redis.call('del', KEYS[1])
    redis.call(ARGV[4], KEYS[2], ARGV[1])
  else
    redis.call('hset', KEYS[1], 'mode', 'read')
  end
  redis.call('set', KEYS[3], 1, 'px', ARGV[5])
  return 1
end
return nil`)
)

// NewRWLock returns the read-write lock of a name as a process of its own has it.
func NewRWLock(addr, name string, lease time.Duration) (*RWLock, error) {
	l := &RWLock{}
	if err := l.join(addr, "redisson_rwlock:", name, lease); err != nil {
		return nil, err
	}
	return l, nil
}

func (l *RWLock) timeouts(t int) string { return l.braced() + ":" + l.Owner(t) + ":rwlock_timeout" }
func (l *RWLock) writer(t int) string   { return l.Owner(t) + ":write" }

// TryRead has a thread read, if that is possible at once. A thread may read and write several times.
func (l *RWLock) TryRead(ctx context.Context, thread int) (bool, error) {
	acquired, _, err := l.read(ctx, thread)
	return acquired, err
}

// TryWrite is TryRead for the writer.
func (l *RWLock) TryWrite(ctx context.Context, thread int) (bool, error) {
	acquired, _, err := l.write(ctx, thread)
	return acquired, err
}

// Read waits until the thread reads, or ctx ends.
func (l *RWLock) Read(ctx context.Context, thread int) error { return l.await(ctx, thread, l.read) }

// Write is Read for the writer.
func (l *RWLock) Write(ctx context.Context, thread int) error { return l.await(ctx, thread, l.write) }

func (l *RWLock) read(ctx context.Context, thread int) (acquired bool, left time.Duration, err error) {
	return attempted(readLock.Exec(ctx, l.commands, []string{l.name, l.timeouts(thread)},
		[]string{l.milliseconds(), l.Owner(thread), l.writer(thread)}))
}

func (l *RWLock) write(ctx context.Context, thread int) (acquired bool, left time.Duration, err error) {
	return attempted(writeLock.Exec(ctx, l.commands, []string{l.name}, []string{l.milliseconds(), l.writer(thread)}))
}

// UnlockRead ends one read hold of a thread.
func (l *RWLock) UnlockRead(ctx context.Context, thread int) error {
	latch := l.unlocking()
	return l.unlocked(ctx, latch, readUnlock.Exec(ctx, l.commands,
		[]string{l.name, l.channel, l.timeouts(thread), l.braced(), latch},
		[]string{"0", l.Owner(thread), "PUBLISH", unlockKept}))
}

// UnlockWrite ends one write hold of a thread. If the thread reads as well, it goes on reading.
func (l *RWLock) UnlockWrite(ctx context.Context, thread int) error {
	latch := l.unlocking()
	return l.unlocked(ctx, latch, writeUnlock.Exec(ctx, l.commands,
		[]string{l.name, l.channel, latch},
		[]string{"1", l.milliseconds(), l.writer(thread), "PUBLISH", unlockKept}))
}
