-- quick: serves a single request of leased permits without a transaction, when nobody waits. Most requests
-- end here; permit/trade.lua does the rest. Keys, ARGV and replies: as there. Each function returns nil, and
-- has done nothing, when there is more to it.
-- keys QUEUE TOKEN CHANNEL TIMEOUTS HOLDERS
-- include shared/token.lua
-- include shared/attempt.lua
-- include permit/holder.lua

local function quick_take(owner, lease, n)
  local free = n and redis.call('GET', NAME)
  if not free or #free > 11 or not string.find(free, '^%d+$')
    or tonumber(free) < tonumber(n) then return nil end
  local now, prefix = micros(), base(owner)
  local token, text = next_token(now)
  -- Only an owner that has none takes permits: a late copy must not take a second time.
  if redis.call('HSETNX', HOLDERS, prefix, n .. ':' .. text .. ':0:' .. lease .. ':' .. owner) == 0 then
    return nil
  end
  local permits = {}
  append_permits(permits, prefix, 0, tonumber(n), decimal(math.floor(now / 1000) + 1 + lease))
  local added = redis.pcall('ZADD', TIMEOUTS, unpack(permits))
  if type(added) ~= 'number' then -- foreign data under that name
    redis.call('HDEL', HOLDERS, prefix)
    error(added.err)
  end
  redis.call('PEXPIRE', HOLDERS, HOLDERS_KEPT)
  local ttl = redis.call('PTTL', NAME)
  if ttl > 0 then redis.call('PEXPIRE', TIMEOUTS, ttl) end -- Redisson gave the semaphore this time to live
  redis.call('DECRBY', NAME, added)
  return token
end

local function quick_give(owner)
  local prefix = base(owner)
  local n = parse_holder(redis.call('HGET', HOLDERS, prefix))
  local free = n and redis.call('GET', NAME)
  if not free or #free > 11 or not string.find(free, '^-?%d+$') then return nil end
  local permits = {}
  append_permits(permits, prefix, 0, n)
  redis.call('HDEL', HOLDERS, prefix) -- Redis never refuses it for lack of memory, nor what follows
  free = redis.call('INCRBY', NAME, redis.call('ZREM', TIMEOUTS, unpack(permits)))
  if free > 0 then redis.call(VERB, CHANNEL, free) end
  return 1
end

if not moving and #ARGV == 9 and ARGV[4] == '' and redis.call('EXISTS', QUEUE) == 0 then
  local reply
  if ARGV[5] == 'take' then
    local _, late = parse_mode(ARGV[8])
    reply = not late and quick_take(ARGV[6], tonumber(ARGV[7]), string.match(ARGV[9], '^%d+$'))
  elseif ARGV[5] == 'give' and ARGV[7] == '' and ARGV[8] == '0' then
    reply = quick_give(ARGV[6])
  end
  if reply then return {reply} end
end
