-- force: take the lock away from its holder, and give it to the next waiter. A message tells the holder's
-- client which token was taken away. It needs the token, because the same id may be granted the lock again
-- before the message arrives.
--
-- Keys  as in lock/acquire.lua
-- ARGV  1 unused, 2 floor: as in lock/acquire.lua
--       3 unused
--       4 token            it is taken from the holder whose token lock/inspect.lua says is this one, and else
--                          nothing is done; missing: from any holder
-- Reply 1 it was taken away, 0 it was free, or has another holder
-- include lock/owner.lua

local held = fields()
if held[1] and not is_lock(held) then return not_a_lock() end
local token = parse_token(held[2])
if ARGV[4] and tonumber(token or 0) ~= tonumber(ARGV[4]) then return 0 end
former = {held[1]}
-- redisson ended = held[1]
hand_over()
if token then tell_owner(held[1], 'f', token) end
return held[1] and 1 or 0
