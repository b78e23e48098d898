-- set: pause a name, in place of a pause that there is. Safe to repeat: a copy changes nothing.
--
-- Keys  as in shared/pause.lua
-- ARGV  1 id of this command
--       2 ms until the pause ends, 0: it has no end
--       3 by whom, 4 why
-- Reply 1
-- keys PAUSE

if moving then moving.need(PAUSE) end
if redis.call('HGET', PAUSE, 'paused') == ARGV[1] then return 1 end
local now
-- inline shared/now.lua
local lasts = tonumber(ARGV[2])
redis.call('HSET', PAUSE, 'since', now, 'until', lasts > 0 and string.format('%.0f', now + lasts * 1000) or '0',
  'by', ARGV[3], 'why', ARGV[4], 'paused', ARGV[1])
redis.call('PEXPIRE', PAUSE, string.format('%.0f', (lasts > 0 and lasts or 315360000000) + 600000)) -- where it has no end: ten years
return 1
