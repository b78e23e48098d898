-- inspect: who leads. Reads only.
--
-- Keys  as in leader/record.lua
-- ARGV  1 unused
-- Reply {token, since, who, ms until the lease of the lock ends (-1: never)}
--       {'0', '0', '', 0}  nobody leads, or who does has not said so yet
-- include leader/record.lua
-- include lock/holder.lua

local time = redis.call('TIME')
local held = fields()
local token, _, longest, _, granted = parse_token(held[2])
if held[1] and not is_lock(held) then return not_a_lock() end
local left = held[1] and lease_left(time[1] * 1000000 + time[2], longest, granted)
if left and said[1] and tonumber(token or 0) == tonumber(said[1]) then
  return {said[1], said[3], said[2], left}
end
return {'0', '0', '', 0}
