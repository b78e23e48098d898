--!df flags=allow-undeclared-keys
local NAME, VERB, NUMSUB, SLOTS, moving = KEYS[1], 'PUBLISH', 'NUMSUB'
local PAUSE = 'latchkey_pause:{' .. NAME .. '}'
local PAUSE_ASKED = 10000 -- ms after which to look again at most: somebody may have resumed the name
local never_paused = moving and moving.gone(PAUSE)
local function paused_for(moment)
  local ends = not never_paused and redis.call('HGET', PAUSE, 'until')
  if not ends then return 0 end
  if #ends > 16 or not string.find(ends, '^%d+$') then error('WRONGTYPE ' .. PAUSE .. ' holds data that is not of a pause') end
  if ends == '0' then return PAUSE_ASKED end
  return math.max(0, math.min(PAUSE_ASKED, math.ceil((ends - moment) / 1000)))
end
local now
local time = redis.call('TIME')
now = time[2]
if #now < 6 then now = string.sub('00000' .. now, -6) end
now = time[1] .. now
local again = paused_for(tonumber(now))
if again == 0 then return {'0', '0', '', '', 0} end
local said = redis.call('HMGET', PAUSE, 'since', 'until', 'by', 'why')
return {said[1] or '0', said[2], said[3] or '', said[4] or '', again}
