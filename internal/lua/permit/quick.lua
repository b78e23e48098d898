-- quick: serves a single request of leased permits without a transaction, when nobody waits. Most requests
-- end here; permit/trade.lua does the rest. It makes no functions, as each costs as much as a command. Where
-- there is more to it, nothing is done, and the script goes on.
--
-- Keys, replies, and ARGV of many requests: as in permit/trade.lua. A single request has fewer arguments.
-- ARGV  1 owner id, 2 floor: as there
--       take   3 lease, 4 demand
--              5 mode; first when it is missing
--              6 longest queue; 100000 when it is missing
--       give   no more: the id is not queued, and the owner keeps nothing
-- keys QUEUE

-- Where there are slots, that one of both keys is missing says that the slot is at rest: see shared/moves.lua.
local owner = #ARGV < 9 and not moving
  and (SLOTS and redis.pcall('EXISTS', NAME, QUEUE) == 1 or not SLOTS and redis.call('EXISTS', QUEUE) == 0) and ARGV[1]
local free = owner and redis.call('GET', NAME)
-- redisson -- inline permit/listen.lua
if free and #free <= 11 then
  -- inline keys TIMEOUTS HOLDERS
  local prefix
  -- inline permit/prefix.lua
  local demand, now = ARGV[4], nil
  if not demand then
    local known = free == '0' or string.find(free, '^-?[1-9]%d*$')
    local held = known and redis.call('HGET', HOLDERS, prefix) or ''
    local n, a, b, c, d = string.match(held, '^([1-9]%d?%d?):()%d+():[01]:()%d+():[^:]+:%d+$')
    if n and b - a <= 16 and d - c <= 10 then
      redis.call('HDEL', HOLDERS, prefix) -- Redis never refuses it for lack of memory, nor what follows
      local gone
      if n == '1' then
        gone = redis.call('ZREM', TIMEOUTS, prefix .. '\0\0')
      else
        -- inline permit/holder.lua
        local permits = {}
        append_permits(permits, prefix, 0, tonumber(n))
        gone = redis.call('ZREM', TIMEOUTS, unpack(permits))
      end
      free = gone == 1 and redis.call('INCR', NAME) or redis.call('INCRBY', NAME, gone)
      if free > 0 then
        -- inline keys CHANNEL
        redis.pcall(VERB, CHANNEL, free)
      end
      return {1}
    end
  elseif string.find(free, '^[1-9]%d*$')
    and (demand == '1' or #demand <= 3 and string.find(demand, '^[1-9]%d*$') and free - demand >= 0) then
    -- inline shared/now.lua
    if not ARGV[5] or #ARGV[5] <= 5 or now <= string.sub(ARGV[5], 5) then
      -- inline keys TOKEN
      local floor = ARGV[2]
      local last = redis.call('SET', TOKEN, now, 'KEEPTTL', 'GET')
      -- inline shared/newest.lua
      local token = now
      if not newest then
        -- inline shared/behind.lua
        token = token_after(now, last, floor, 0)
      end
      -- Only an owner that has none takes permits: a late copy must not take a second time.
      local holder = demand .. ':' .. token .. ':0:' .. ARGV[3] .. ':' .. owner
      if redis.call('HSETNX', HOLDERS, prefix, holder) == 1 then
        local score = string.format('%d', string.sub(now, 1, 13) + 1 + ARGV[3])
        local added
        if demand == '1' then
          added = redis.pcall('ZADD', TIMEOUTS, score, prefix .. '\0\0')
        else
          -- inline permit/holder.lua
          local permits = {}
          append_permits(permits, prefix, 0, tonumber(demand), score)
          added = redis.pcall('ZADD', TIMEOUTS, unpack(permits))
        end
        if type(added) ~= 'number' then -- foreign data under that name
          redis.call('HDEL', HOLDERS, prefix)
          error(added.err)
        end
        redis.call('PEXPIRE', HOLDERS, '172800000') -- two days, as in permit/holder.lua
        local ttl = redis.call('PTTL', NAME)
        if ttl > 0 and ttl < 43200000 then -- as write of permit/leased.lua
          -- inline keys DONE
          if redis.call('EXISTS', DONE .. ':stated') == 0 then redis.call('PEXPIRE', TIMEOUTS, ttl) end
        end
        if added == 1 then redis.call('DECR', NAME) else redis.call('DECRBY', NAME, added) end
        return {token}
      end
    end
  end
end

-- moves

-- As many requests have them: see permit/trade.lua.
local ARGV = #ARGV >= 9 and ARGV or ARGV[3]
  and {ARGV[1], ARGV[2], ARGV[6] or '100000', '', 'take', ARGV[1], ARGV[3], ARGV[5] or 'first', ARGV[4]}
  or {ARGV[1], ARGV[2], '0', '', 'give', ARGV[1], '', '0', ''}
