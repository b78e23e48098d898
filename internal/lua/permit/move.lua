-- move: give what an owner has of leased permits to another owner id, as lock/move.lua.
--
-- Keys  as in permit/trade.lua and permit/leased.lua
-- ARGV  as in lock/move.lua
-- Reply {0, token, permits, 0}  the other id holds the permits
--       otherwise as in lock/move.lua
-- keys QUEUE TIMEOUTS HOLDERS
-- include shared/attempt.lua
-- include shared/inbox.lua
-- include shared/pace.lua
-- include permit/holder.lua

local _, late = parse_mode(ARGV[4])
local now = clock()
if late then return {REPLY_LATE, 0, now} end
if moving then
  moving.need(TIMEOUTS)
  moving.need(HOLDERS)
end
local ms = math.floor(now / 1000)

-- How many permits an owner holds, with which token; nil when it holds none, or its lease is over.
local function held_by(id)
  local prefix = base(id)
  local n, token, _, owner = parse_holder(redis.call('HGET', HOLDERS, prefix))
  if not n or owner ~= id then return nil end
  local ends = redis.call('ZSCORE', TIMEOUTS, prefix .. '\0\0')
  if not ends or (tonumber(ends) or math.huge) <= ms then return nil end
  return n, token
end

local n, token = held_by(ARGV[1])
local moves = not n
if moves then
  n, token = held_by(ARGV[5])
  token = ARGV[6] or token
end
if not n then return {REPLY_GONE, 0, now} end
local to, from, permits = base(ARGV[1]), base(ARGV[5]), {}
append_permits(permits, to, 0, n, string.format('%.0f', ms + 1 + ARGV[3]))
redis.call('ZADD', TIMEOUTS, unpack(permits)) -- what is new stands before what is old goes
redis.call('HSET', HOLDERS, to, n .. ':' .. token .. ':0:' .. ARGV[3] .. ':' .. ARGV[1])
redis.call('PEXPIRE', HOLDERS, HOLDERS_KEPT)
if moves then
  permits = {}
  append_permits(permits, from, 0, n)
  redis.call('HDEL', HOLDERS, from)
  redis.call('ZREM', TIMEOUTS, unpack(permits))
end
note_lease(ARGV[3]) -- also those of its own client, which gets no answer as a waiter
return {0, tonumber(token), n, 0}
