-- take: the first half of an acquire: takes the lock when it is free for this demand, and nobody waits. Keys,
-- ARGV and replies: as in rwlock/acquire.lua. The short ways make no functions, as each costs as much as a
-- command. They do what own_write and own_read of rwlock/state.lua do; where there is more to it, nothing is
-- done, and the script goes on.
-- keys QUEUE TOKEN STATE LEASES

-- redisson -- moves
-- redisson -- include shared/keptback.lua
local reads = ARGV[5] and string.sub(ARGV[5], -1) == 's'
-- That one of both is missing says that the slot is at rest: see shared/moves.lua.
local there = not moving and (SLOTS and redis.pcall or redis.call)('EXISTS', NAME, QUEUE)
-- redisson if kept_back or there == 1 and reads then there = nil end
if there == 0 then
  -- inline shared/fresh.lua
  -- The state first: foreign data in its place must not leave a writer that nobody knows of.
  local field, writer = 't' .. token .. '/' .. ARGV[3], reads and '' or ARGV[1]
  local made = redis.call('HSET', STATE, 'token', field, 'short', '', 'writer', writer)
  -- It is kept as long as TOKEN, and as the lease.
  if made == 3 or not newest or #ARGV[3] > 6 then
    redis.call('PEXPIRE', STATE, (last or #ARGV[3] > 6) and '86400000' or '3600000')
  end
  if reads then
    redis.call('SET', LEASES .. ARGV[1] .. ':rwlock_timeout:1', ARGV[3], 'PX', ARGV[3])
    redis.call('HSET', NAME, 'mode', 'read', ARGV[1], '1')
  else
    redis.call('HSET', NAME, 'mode', 'write', ARGV[1] .. ':write', '1')
  end
  redis.call('PEXPIRE', NAME, ARGV[3])
  return token
end
-- When others read and one of both keys is there, nobody waits. A deadline needs the clock.
if reads and #ARGV[4] <= 9 and there == 1 and redis.call('HGET', NAME, 'mode') == 'read' then
  -- The token of those who read already, when it is known and no writer is at large: see read_token.
  local state = redis.call('HMGET', STATE, 'token', 'writer')
  local token, reserved, longest = string.match(state[1] or '', '^t(%d+)%+?(%d*)/(%d+)$')
  if token and (state[2] or '') == '' and #token == 16 and token .. ' ' >= ARGV[2]
    and #reserved <= 4 and #longest <= 10 and tonumber(longest) >= tonumber(ARGV[3]) then
    if reserved ~= '' then token = string.format('%.0f', token + reserved) end
    redis.call('SET', LEASES .. ARGV[1] .. ':rwlock_timeout:1', ARGV[3], 'PX', ARGV[3])
    redis.call('HSET', NAME, 'mode', 'read', ARGV[1], '1')
    local left = redis.call('PTTL', NAME)
    if left >= 0 and left < tonumber(ARGV[3]) then redis.call('PEXPIRE', NAME, ARGV[3]) end
    return token
  end
end

-- moves
-- include rwlock/ask.lua
-- include shared/attempt.lua
-- include rwlock/state.lua

local how, late = parse_mode(ARGV[4])
if late then return {REPLY_LATE, 0, clock()} end

-- Takes the lock, and returns the reply.
local function own_now()
  if moving then
    moving.need(TOKEN)
    moving.need(STATE)
  end
  if reads then return own_read(ARGV[1], ARGV[3], ARGV[3]) end
  local token = next_token(clock())
  own_write(ARGV[1], ARGV[3], token, 0, ARGV[3])
  return token
end

if not moving and fits(reads) and redis.call('EXISTS', QUEUE) == 0 then return own_now() end
