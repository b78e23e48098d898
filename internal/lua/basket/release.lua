-- release: end the tenures of several locks in one step, and give each lock to the next who waits for it.
-- Safe to repeat: the second time finds nothing.
--
-- KEYS, ARGV  as in basket/keys.lua; ARGV 2 and 3, and the leases, are unused
-- Reply for each lock: 1 the id owned it, 0 it did not
-- include basket/keys.lua
-- include lock/grant.lua

local queues, reply = {}, {}
for i = 1, count do queues[i] = all[3 * i - 1] end
local waited = redis.call('EXISTS', unpack(queues)) > 0
for i = 1, count do
  local lock = all[3 * i - 2]
  reply[i] = redis.pcall(waited and 'HEXISTS' or 'HDEL', lock, given[3 * i + 1]) == 1 and 1 or 0
end
for i = 1, waited and count or 0 do
  turn_to(i)
  counted = {} -- in a cluster, each name has inboxes of its own
  former[1] = reply[i] == 1 and ARGV[1] or nil
  -- Foreign data under the queue's name must not keep the lock from being released.
  if reply[i] == 1 or redis.call('EXISTS', NAME) == 0 then hand_over() end
end
return reply
