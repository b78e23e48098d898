-- quick: what most requests of leased permits come to when nobody waits, without a transaction: trade.lua does the rest. Each
-- function returns nil, and has done nothing, when there is more to it.
-- include holder.lua

local function quick_take(owner, lease, n)
  local free = n and redis.call('GET', KEYS[1])
  if not free or #free > 11 or not string.find(free, '^%d+$') or tonumber(free) < tonumber(n) then return nil end
  local now, prefix = micros(), base(owner)
  local token, text = next_token(now)
  -- Only for an owner that has none: a late copy must not take a second time.
  if redis.call('HSETNX', KEYS[7], prefix, n .. ':' .. text .. ':0:' .. lease .. ':' .. owner) == 0 then return nil end
  local permits = {}
  append_permits(permits, prefix, 0, tonumber(n), decimal(math.floor(now / 1000) + 1 + lease))
  local added = redis.pcall('ZADD', KEYS[6], unpack(permits))
  if type(added) ~= 'number' then -- foreign data under that name
    redis.call('HDEL', KEYS[7], prefix)
    error(added.err)
  end
  redis.call('PEXPIRE', KEYS[7], HOLDERS_KEPT)
  local ttl = redis.call('PTTL', KEYS[1])
  if ttl > 0 then redis.call('PEXPIRE', KEYS[6], ttl) end -- it is Redisson that gave it one
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
  redis.call('HDEL', KEYS[7], prefix) -- not refused when memory is short, nor is what follows
  free = redis.call('INCRBY', KEYS[1], redis.call('ZREM', KEYS[6], unpack(permits)))
  if free > 0 then redis.call(ARGV[3], KEYS[4], free) end
  return 1
end
