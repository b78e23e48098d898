-- inspect: who holds the lock, and who waits for it. Reads only.
--
-- Keys  as in lock/acquire.lua
-- ARGV  1 how many entries of the queue to list
-- Reply {owner ("" when the lock is free), token ("0" when the holder has none of ours),
--        ms until the lease ends (-1: never), length of the queue,
--        how many hold it together (0: one holder, or none), entries...}
-- keys QUEUE
-- include shared/token.lua
-- include lock/lease.lua
-- include lock/foreign.lua

local owner, left = '', lease_left(micros())
local token = parse_token(redis.call('HGET', NAME, 'token'))
if left then
  if not token and not is_lock() then return not_a_lock() end
  for _, field in ipairs(redis.call('HKEYS', NAME)) do
    if field ~= 'token' and field ~= 'short' then owner = field end
  end
end
local queued = not (moving and moving.lacks(QUEUE))
local reply = {owner, decimal(token or 0), left or 0, queued and redis.call('LLEN', QUEUE) or 0, 0}
if queued and tonumber(ARGV[1]) > 0 then
  for _, entry in ipairs(redis.call('LRANGE', QUEUE, 0, ARGV[1] - 1)) do reply[#reply + 1] = entry end
end
return reply
