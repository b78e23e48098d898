-- leave: leaves a lock to Redisson, where it is its turn: see shared/turns.lua. It is part of lock/grant.lua.

-- Whether this script ends what somebody has owned.
local ended

-- Reports whether the lock is left free. Then it is Redisson's turn, either with this script, or because an
-- earlier one has left it. head: as in grant.
local function leave_free(head)
  if not ended then
    if redis.call('EXISTS', NAME) == 1 then return false end
    -- inline shared/theirturn.lua
    return their_turn ~= nil
  end
  if not is_redissons() then return false end
  if head then redis.call('LPUSH', QUEUE, head) end
  redis.pcall('PEXPIRE', QUEUE, QUEUE_KEPT)
  redis.call('DEL', NAME)
  announce('00')
  return true
end
