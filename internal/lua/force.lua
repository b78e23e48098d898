-- force: take the lock away from whoever holds it and give it to the next waiter. The holder's inbox is told, with the token
-- that was taken away: the same id may be granted the lock again before it hears that.
--
-- KEYS  1 lock, 2 queue, 3 token: as in acquire.lua
-- ARGV  1 unused, 2 inbox prefix, 3 publish verb, 4 floor: as in acquire.lua
-- Reply 1 somebody held it, 0 nobody did
-- include token.lua
-- include grant.lua
-- include foreign.lua

local fields = redis.call('HKEYS', KEYS[1])
local token = parse_token(redis.call('HGET', KEYS[1], 'token'))
if #fields > 0 and (not token or #fields > 1000) and not is_lock() then return not_a_lock() end
former = {unpack(fields)}
hand_over()
if token then tell_owner('f', fields, token) end
return #fields > 0 and 1 or 0
