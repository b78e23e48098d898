-- pause: whether a name is paused. Then no run of package once begins, and no term of package leader. What has
-- begun goes on to its end.
--
-- PAUSE  HASH  since    the server's clock in microseconds when the pause began; absent when it is over
--              until    and when it ends; 0: it has no end
--              by, why  texts
--              paused   id of the command that paused the name last
--              resumed  id of the command that resumed it last
--        It is kept for ten minutes after its end, for copies of those commands that come late.
-- keys PAUSE

local PAUSE_ASKED = 10000 -- ms after which to look again at most: somebody may have resumed the name

local never_paused = moving and moving.gone(PAUSE)

-- Ms after which to look again, where the name is paused; else 0. moment: the server's clock in microseconds.
local function paused_for(moment)
  local ends = not never_paused and redis.call('HGET', PAUSE, 'until')
  if not ends then return 0 end
  if #ends > 16 or not string.find(ends, '^%d+$') then error('WRONGTYPE ' .. PAUSE .. ' holds data that is not of a pause') end
  if ends == '0' then return PAUSE_ASKED end
  return math.max(0, math.min(PAUSE_ASKED, math.ceil((ends - moment) / 1000)))
end
