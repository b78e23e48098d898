-- force: take the lock away from its holder, and give it to the next waiter. A message tells the holder's
-- client which token was taken away. It needs the token, because the same id may be granted the lock again
-- before the message arrives.
--
-- Keys  as in lock/acquire.lua
-- ARGV  1 unused, 2 floor: as in lock/acquire.lua
-- Reply 1 somebody held it, 0 nobody did
-- include shared/token.lua
-- include lock/grant.lua
-- include lock/foreign.lua

local fields = redis.call('HKEYS', NAME)
local token = parse_token(redis.call('HGET', NAME, 'token'))
if #fields > 0 and (not token or #fields > 1000) and not is_lock() then return not_a_lock() end
former = {unpack(fields)}
hand_over()
if token then tell_owner('f', fields, token) end
return #fields > 0 and 1 or 0
