-- take: the first half of an acquire: takes the lock when nobody owns it and nobody waits. Keys, ARGV and
-- replies: as in lock/acquire.lua.
-- keys QUEUE
-- include shared/token.lua

if redis.call('EXISTS', NAME, QUEUE) == 0 and not ARGV[5] and not moving then
  local now, mode = clock(), ARGV[4]
  if #mode > 5 and now > string.sub(mode, 5) then return {-6, 0, now} end
  local token = next_token(now)
  redis.call('HSET', NAME, ARGV[1], 't' .. token .. '/' .. ARGV[3])
  redis.call('PEXPIRE', NAME, ARGV[3])
  return token
end
