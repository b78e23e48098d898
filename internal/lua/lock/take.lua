-- take: the first half of an acquire: takes the lock when nobody owns it and nobody waits. Keys, ARGV and
-- replies: as in lock/acquire.lua. It makes no functions, as each costs as much as a command.
-- keys QUEUE TOKEN

if not moving and redis.call('EXISTS', NAME, QUEUE) == 0 and (ARGV[5] or '0') == '0' then
  local now, floor = ARGV[2], ''
  if ARGV[4] ~= 'first now' then
    -- inline shared/now.lua
    floor = ARGV[2]
    if #ARGV[4] > 5 and now > string.sub(ARGV[4], 5) then return {-6, 0, now} end
  end
  local last = redis.call('SET', TOKEN, now, 'KEEPTTL', 'GET')
  -- inline shared/newest.lua
  local token = now
  if not newest then
    -- inline shared/behind.lua
    token = token_after(now, last, floor, 0)
  end
  redis.call('HSET', NAME, ARGV[1], 't' .. token .. '/' .. ARGV[3])
  redis.call('PEXPIRE', NAME, ARGV[3])
  return token
end
