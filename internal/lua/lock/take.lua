-- take: the first half of an acquire: takes the lock when nobody owns it and nobody waits. It defines mode
-- for lock/contend.lua. Keys, ARGV and replies: as in lock/acquire.lua.
-- keys QUEUE TOKEN
-- include shared/token.lua
-- include shared/attempt.lua

local mode, late = parse_mode(ARGV[4])
if late then return {-6, 0, micros()} end

if not moving and redis.call('EXISTS', NAME, QUEUE) == 0 then
  local token, text = next_token(micros())
  redis.call('HSET', NAME, ARGV[1], '1', 'token', 't' .. text .. '/' .. ARGV[3])
  redis.call('PEXPIRE', NAME, ARGV[3])
  return token
end
