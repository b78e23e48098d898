-- look: whether a name is paused, and why. Changes nothing.
--
-- Keys  as in shared/pause.lua
-- ARGV  1 unused
-- Reply {since, until, by, why, ms}  the first four as in shared/pause.lua, the last after which to look again
--       {'0', '0', '', '', 0}        it is not paused
-- include shared/pause.lua

local now
-- inline shared/now.lua
local again = paused_for(tonumber(now))
if again == 0 then return {'0', '0', '', '', 0} end
local said = redis.call('HMGET', PAUSE, 'since', 'until', 'by', 'why')
return {said[1] or '0', said[2], said[3] or '', said[4] or '', again}
