--!df flags=allow-undeclared-keys
local NAME, VERB, NUMSUB, SLOTS, moving = KEYS[1], 'PUBLISH', 'NUMSUB'
local PAUSE = 'latchkey_pause:{' .. NAME .. '}'
if moving then moving.need(PAUSE) end
if redis.call('HGET', PAUSE, 'paused') == ARGV[1] then return 1 end
local now
local time = redis.call('TIME')
now = time[2]
if #now < 6 then now = string.sub('00000' .. now, -6) end
now = time[1] .. now
local lasts = tonumber(ARGV[2])
redis.call('HSET', PAUSE, 'since', now, 'until', lasts > 0 and string.format('%.0f', now + lasts * 1000) or '0',
  'by', ARGV[3], 'why', ARGV[4], 'paused', ARGV[1])
redis.call('PEXPIRE', PAUSE, string.format('%.0f', (lasts > 0 and lasts or 315360000000) + 600000)) -- where it has no end: ten years
return 1
