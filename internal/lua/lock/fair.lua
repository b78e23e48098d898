-- fair: who waits for a lock as Redisson's RFairLock, which has a queue of its own, and a channel for each
-- waiter. Only the first of that queue may take the lock. Those in front of it who are gone leave with the
-- next script of Redisson's. It is for shared/turns.lua.
-- keys FAIR RELEASED

local LOOKS = 16
local function next_fair()
  local waiters = not moving and redis.pcall('LRANGE', FAIR, 0, LOOKS - 1) or {}
  for i = 1, #waiters do
    local channel = RELEASED .. ':' .. waiters[i]
    local listens = redis.pcall('PUBSUB', NUMSUB, channel)
    if not listens.err and listens[2] > 0 then return channel end
  end
end
