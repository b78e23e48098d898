-- force: take one half of the lock away from whoever holds it, and grant it to the next. A message tells each
-- holder up to which token was taken away. Those who are granted it next have a greater one.
--
-- Keys  as in rwlock/state.lua
-- ARGV  1 unused, 2 floor: as in lock/acquire.lua
--       3 which half       read or write
--       4 token            as in lock/force.lua
-- Reply as there
-- include rwlock/grant.lua
-- include rwlock/holders.lua

local ours = mode == ARGV[3]
if ours and ARGV[4] then
  local number, reserved = state_token()
  if (number or 0) + (mode == 'read' and reserved or 0) ~= tonumber(ARGV[4]) then return 0 end
end
local left = ours and holder_left()
if mode == ARGV[3] and ours then
  local fields, token, reserved = redis.call('HKEYS', NAME), state_token()
  for _, field in ipairs(fields) do
    if field ~= 'mode' then former[#former + 1] = field end
  end
  local taken = token and decimal(token + reserved)
  redis.call('HDEL', NAME, '') -- first: Redis never refuses it for lack of memory, nor what follows
  if token then
    redis.call('HSET', STATE, 'token', 't' .. next_token(clock())) -- for readers that come next
  end
  hand_over()
  if taken then tell_holders('f', fields, taken) end
  return left and 1 or 0
end
if not mode then hand_over() end
return 0
