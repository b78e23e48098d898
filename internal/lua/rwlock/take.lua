-- take: the first half of an acquire: takes the lock when it is free for this demand, and nobody waits. Keys,
-- ARGV and replies: as in rwlock/acquire.lua.
-- include shared/attempt.lua
-- include rwlock/state.lua

local how, late = parse_mode(ARGV[4])
if late then return {-6, 0, micros()} end
local reads = is_read(ARGV[6])

-- Takes the lock, and returns the reply.
local function own_now()
  if moving then
    moving.need(TOKEN)
    moving.need(STATE)
  end
  if reads then return own_read(ARGV[1], ARGV[3], ARGV[3]) end
  local token, text = next_token(micros())
  own_write(ARGV[1], ARGV[3], text, 0, ARGV[3])
  return token
end

if not moving and fits(reads) and redis.call('EXISTS', QUEUE) == 0 then return own_now() end
