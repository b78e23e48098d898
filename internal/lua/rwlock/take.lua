-- take: the first half of an acquire: takes the lock when it is free for this demand, and nobody waits. KEYS,
-- ARGV and replies: as in rwlock/acquire.lua.
-- include shared/attempt.lua
-- include rwlock/state.lua

local how, late = parse_mode(ARGV[6])
if late then return {-6, 0, micros()} end
local reads = is_read(ARGV[8])

-- Takes the lock, and returns the reply.
local function own_now()
  if moving then
    moving.need(KEYS[3])
    moving.need(KEYS[4])
  end
  if reads then return own_read(ARGV[1], ARGV[5], ARGV[5]) end
  local token, text = next_token(micros())
  own_write(ARGV[1], ARGV[5], text, 0, ARGV[5])
  return token
end

if not moving and fits(reads) and redis.call('EXISTS', KEYS[2]) == 0 then return own_now() end
