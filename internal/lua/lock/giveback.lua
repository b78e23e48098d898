-- giveback: ends what ids own, for shared/leave.lua.
-- include lock/grant.lua

-- Ends what these ids own. When the lock is free then, it goes to the next waiter.
local function give_back(ids)
  local free = redis.call('EXISTS', NAME) == 0
  if not free then
    local held = redis.pcall('HMGET', NAME, unpack(ids))
    for i = 1, #ids do
      if held[i] then free, former = true, {ids[i]} end
      -- redisson ended = ended or held[i]
    end
  end
  if free then hand_over() end
end
