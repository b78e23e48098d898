-- leased: permits that have a holder and a lease, in the layout of Redisson's RPermitExpirableSemaphore. One of the two stores
-- of semaphores.
--
-- KEYS  1 available  STRING free permits; negative after a shrink below what is held; absent: not initialised
--       2 queue, 3 token, 4 channel: see take.lua
--       5 done       prefix of what remembers repeated commands
--       6 timeouts   ZSET   permit (16 raw bytes) -> ms since the epoch when its lease ends; Redisson's own may never end
--       7 holders    HASH   the first 14 bytes of an owner's permits -> see parse_holder; with a time to live
-- include extend.lua

local KIND = 's' -- of grant messages
local NEVER = 922337203685477

local function acknowledge() end -- owners are remembered for as long as they hold

-- The token of an owner and how many permits it has, with its whole lease from now on; nil when it has none.
local function owned(client, number, lease, now)
  return extend(KEYS[6], KEYS[7], client, number, lease, now)
end

-- Gives free permits to an owner that has none, and returns its token.
local function take(client, number, n, lease, now, short)
  local token, text = next_token(now)
  local prefix = base(client, number)
  redis.call('HSET', KEYS[7], prefix, n .. ':' .. text .. ':' .. (short and 1 or 0) .. ':' .. client .. ':' .. number)
  local added = redis.pcall('ZADD', KEYS[6], permits(prefix, 0, n, decimal(math.ceil(now / 1000) + lease)))
  if type(added) ~= 'number' then -- foreign data under a companion's name
    redis.call('HDEL', KEYS[7], prefix)
    error(added.err)
  end
  redis.call('PEXPIRE', KEYS[7], HOLDERS_KEPT)
  local ttl = redis.call('PTTL', KEYS[1])
  if ttl > 0 then redis.call('PEXPIRE', KEYS[6], ttl) end -- it is Redisson that gave it one
  redis.call('DECRBY', KEYS[1], added)
  return token, text
end

-- Takes from an owner all but some of its permits, and returns how many these were; nil when it has none.
local function disown(client, number, keep)
  local prefix = base(client, number)
  local n, token, short = parse_holder(redis.call('HGET', KEYS[7], prefix))
  if not n then return nil end
  if keep >= n then return 0 end -- a late copy of a partial release
  if keep > 0 then
    redis.call('HSET', KEYS[7], prefix, keep .. ':' .. token .. ':' .. short .. ':' .. client .. ':' .. number)
  else
    redis.call('HDEL', KEYS[7], prefix)
  end
  return redis.call('ZREM', KEYS[6], permits(prefix, keep, n))
end

-- Takes back permits whose lease is over, a thousand at most, and returns how many. unresponsive is called for each client that
-- never renewed what it was granted by message.
local function reclaim(now, unresponsive)
  local dead = redis.call('ZRANGEBYSCORE', KEYS[6], 0, decimal(math.floor(now / 1000)), 'LIMIT', 0, 1000)
  if #dead == 0 then return 0 end
  redis.call('ZREM', KEYS[6], unpack(dead))
  local seen = {}
  for _, permit in ipairs(dead) do
    local prefix = string.sub(permit, 1, 14)
    if not seen[prefix] then
      seen[prefix] = true
      local _, _, short, client = parse_holder(redis.call('HGET', KEYS[7], prefix))
      if client then redis.call('HDEL', KEYS[7], prefix) end
      if short == '1' then unresponsive(client) end
    end
  end
  return #dead
end

-- ms until the first lease ends; -1: never.
local function first_end(now)
  local score = tonumber(redis.call('ZRANGE', KEYS[6], 0, 0, 'WITHSCORES')[2])
  if not score or score >= NEVER then return -1 end
  return math.max(0, score - math.floor(now / 1000))
end

-- How many permits there are, held or free.
local function capacity(available) return available + redis.call('ZCARD', KEYS[6]) end
