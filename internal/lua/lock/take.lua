-- take: the first half of an acquire: takes the lock when nobody owns it and nobody waits. It defines mode
-- for lock/contend.lua. KEYS, ARGV and replies: as in lock/acquire.lua.
-- include shared/token.lua
-- include shared/attempt.lua

local mode, late = parse_mode(ARGV[6])
if late then return {-6, 0, micros()} end

-- An owner that may linger says so, and how many tokens it has: lock/contend.lua does that.
local lingers = string.find(ARGV[8], 'l', 1, true)
if not lingers and not moving and redis.call('EXISTS', KEYS[1], KEYS[2]) == 0 then
  local token, text = next_token(micros())
  redis.call('HSET', KEYS[1], ARGV[1], '1', 'token', 't' .. text .. '/' .. ARGV[5])
  redis.call('PEXPIRE', KEYS[1], ARGV[5])
  return token
end
