-- inspect: who holds the lock, and who waits for it. Reads only.
--
-- Keys  as in lock/acquire.lua
-- ARGV  1 how many entries of the queue to list
-- Reply {owner ("" when the lock is free), token ("0" when the holder has none of ours),
--        ms until the lease ends (-1: never), length of the queue,
--        how many hold it together (0: one holder, or none; -1: an owner that may linger), entries...}
-- keys QUEUE
-- include lock/holder.lua

local time = redis.call('TIME')
local held = fields()
local token, _, longest, may_linger, granted = parse_token(held[2])
if held[1] and not is_lock(held) then return not_a_lock() end
local left = held[1] and lease_left(time[1] * 1000000 + time[2], longest, granted)
local queued = not (moving and moving.lacks(QUEUE))
local reply = {
  left and held[1] or '', left and token or '0', left or 0, queued and redis.call('LLEN', QUEUE) or 0,
  left and may_linger and -1 or 0,
}
if queued and tonumber(ARGV[1]) > 0 then
  for _, entry in ipairs(redis.call('LRANGE', QUEUE, 0, ARGV[1] - 1)) do reply[#reply + 1] = entry end
end
return reply
