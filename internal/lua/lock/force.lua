-- force: take the lock away from its holder, and give it to the next waiter. A message tells the holder's
-- client which token was taken away. It needs the token, because the same id may be granted the lock again
-- before the message arrives.
--
-- Keys  as in lock/acquire.lua
-- ARGV  1 unused, 2 floor: as in lock/acquire.lua
-- Reply 1 somebody held it, 0 nobody did
-- include lock/owner.lua

local held = fields()
if held[1] and not is_lock(held) then return not_a_lock() end
former = {held[1]}
-- redisson ended = held[1]
hand_over()
local token = parse_token(held[2])
if token then tell_owner(held[1], 'f', token) end
return held[1] and 1 or 0
