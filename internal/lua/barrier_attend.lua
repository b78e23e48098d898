-- barrier_attend: renew the lease of a client's arrivals, and read the state. It also finds arrivals that Redis has lost. Safe to
-- repeat.
--
-- KEYS  as in barrier.lua
-- ARGV  1 client id, 2 lease in ms, 3 channel, 4 publish verb
--       5 generation in which the client has arrivals, 6 how many at least: 0 to read only
-- Reply state as of barrier.lua
-- include barrier.lua

local generation, count = tonumber(ARGV[5]), tonumber(ARGV[6])
if count > 0 and barrier.generation < generation then
  -- A restart or a failover lost it. Of generations up to that one nothing is known any more.
  barrier.bad, barrier.generation = '', math.max(generation, clock())
  barrier.first = barrier.generation + 1
  advance()
  expired = true
elseif count > 0 and barrier.generation == generation and is_waiting() then
  if tonumber(redis.call('HGET', KEYS[1], 'c:' .. ARGV[1]) or '0') < count then
    break_generation('s')
    expired = true
  else
    redis.call('PEXPIRE', KEYS[1], KEPT)
    redis.call('ZADD', KEYS[2], 'XX', decimal(now + ARGV[2] + 1), ARGV[1])
    redis.call('PEXPIRE', KEYS[2], KEPT)
    ends = tonumber(redis.call('ZRANGE', KEYS[2], 0, 0, 'WITHSCORES')[2]) - now
  end
end
if expired then tell() end
return round()
