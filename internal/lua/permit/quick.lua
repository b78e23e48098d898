-- quick: serves a single request of leased permits without a transaction, when nobody waits. Most requests
-- end here; permit/trade.lua does the rest. KEYS, ARGV and replies: as there. Each function returns nil, and
-- has done nothing, when there is more to it.
-- include shared/token.lua
-- include shared/attempt.lua
-- include permit/holder.lua

local function quick_take(owner, lease, n)
  local free = n and redis.call('GET', KEYS[1])
  if not free or #free > 11 or not string.find(free, '^%d+$')
    or tonumber(free) < tonumber(n) then return nil end
  local now, prefix = micros(), base(owner)
  local token, text = next_token(now)
  -- Only an owner that has none takes permits: a late copy must not take a second time.
  if redis.call('HSETNX', KEYS[7], prefix, n .. ':' .. text .. ':0:' .. lease .. ':' .. owner) == 0 then
    return nil
  end
  local permits = {}
  append_permits(permits, prefix, 0, tonumber(n), decimal(math.floor(now / 1000) + 1 + lease))
  local added = redis.pcall('ZADD', KEYS[6], unpack(permits))
  if type(added) ~= 'number' then -- foreign data under that name
    redis.call('HDEL', KEYS[7], prefix)
    error(added.err)
  end
  redis.call('PEXPIRE', KEYS[7], HOLDERS_KEPT)
  local ttl = redis.call('PTTL', KEYS[1])
  if ttl > 0 then redis.call('PEXPIRE', KEYS[6], ttl) end -- Redisson gave the semaphore this time to live
  redis.call('DECRBY', KEYS[1], added)
  return token
end

local function quick_give(owner)
  local prefix = base(owner)
  local n = parse_holder(redis.call('HGET', KEYS[7], prefix))
  local free = n and redis.call('GET', KEYS[1])
  if not free or #free > 11 or not string.find(free, '^-?%d+$') then return nil end
  local permits = {}
  append_permits(permits, prefix, 0, n)
  redis.call('HDEL', KEYS[7], prefix) -- Redis never refuses it for lack of memory, nor what follows
  free = redis.call('INCRBY', KEYS[1], redis.call('ZREM', KEYS[6], unpack(permits)))
  if free > 0 then redis.call(ARGV[3], KEYS[4], free) end
  return 1
end

if not moving and #ARGV == 11 and ARGV[6] == '' and redis.call('EXISTS', KEYS[2]) == 0 then
  local reply
  if ARGV[7] == 'take' then
    local _, late = parse_mode(ARGV[10])
    reply = not late and quick_take(ARGV[8], tonumber(ARGV[9]), string.match(ARGV[11], '^%d+$'))
  elseif ARGV[7] == 'give' and ARGV[9] == '' and ARGV[10] == '0' then
    reply = quick_give(ARGV[8])
  end
  if reply then return {reply} end
end
