-- release: end a tenure: unlock a hold, or cancel a wait. In one step it ends what the id owns, removes the
-- id from the queue if it may be there, and gives the lock to the next waiter. Safe to repeat: the second
-- time finds nothing.
--
-- Keys  as in lock/acquire.lua
-- ARGV  1 owner id, 2 floor: as in lock/acquire.lua
--       3 entry            the id's queue entry when it may be queued, else the empty string; may be missing
--       4 rest             ms that the lock stays taken, as a lease that nobody renews; 0 or missing: it is
--                          free at once
--       5 channel          where to announce it, for those who wait without being queued; may be missing
-- Reply 1 the id owned the lock, 0 it did not
-- keys QUEUE INBOX

-- The short way where there are slots: the queue is empty, as one of both keys is missing. That says too that the
-- slot is at rest: see shared/moves.lua.
-- redisson -- inline lock/quiet.lua
-- redisson if quiet then
if SLOTS and not moving and not ARGV[3]
  and redis.pcall('EXISTS', NAME, QUEUE) == 1 and redis.call('HDEL', NAME, ARGV[1]) == 1 then
  return 1
end
-- redisson end
-- moves

-- Foreign data under the queue's name is left alone, and must not keep the lock from being released.
if ARGV[3] and ARGV[3] ~= '' then redis.pcall('LREM', QUEUE, 0, ARGV[3]) end

-- While a slot moves, nobody can make the lock's key again once it is gone. That all keys are here does not
-- say that it does not move. So where there are slots, the owner goes last.
local rests = ARGV[4] and ARGV[4] ~= '0'
local owned = redis.call((SLOTS or rests) and 'HEXISTS' or 'HDEL', NAME, ARGV[1])
-- A hint, which nobody can act on before this script has ended. 0 is what Redisson publishes there.
if owned == 1 and ARGV[5] then redis.pcall(VERB, ARGV[5], '0') end
local head
local former = SLOTS and {ARGV[1]} -- of lock/hand.lua
if owned == 0 then
  if redis.call('EXISTS', NAME) == 1 then return 0 end
elseif not rests then
  head = not (moving and moving.lacks(QUEUE)) and redis.pcall('LPOP', QUEUE)
  if not head or head.err then
    -- redisson if quiet then
    if SLOTS then redis.call('HDEL', NAME, ARGV[1]) end
    return 1
    -- redisson end
    -- redisson head = nil
  end
  -- The short way of a grant, which makes no functions: somebody has a lease of which the key needs no more
  -- than that (SHORT and OUTLIVES of shared/inbox.lua), and wants no tokens for others.
  -- redisson if quiet then
  local client, number, lease = string.match(head, '^1:([^:]+):(%d+):([1-9]%d%d%d+):0$')
  if client and #lease <= 10 and (#lease > 4 or lease >= '3000') and not moving then
    local inbox = INBOX .. client
    local listening = redis.pcall('PUBSUB', NUMSUB, inbox)
    if listening.err or listening[2] > 0 then
      -- inline keys TOKEN
      -- inline shared/number.lua
      if fits then
        local token, reserved, others, mark, ms, short = now, '0', '0', '', lease, '2000'
        -- inline lock/hand.lua
        return 1
      end
    end
  end
  -- redisson end
end

-- include lock/grant.lua
-- redisson ended = owned == 1

if rests and owned == 1 then
  -- include shared/value.lua
  -- include shared/pace.lua
  -- The rest has a field of its own, so that a late renewal or cancel of the owner does not find it. The
  -- first write is one that Redis never refuses for lack of memory, nor what follows.
  local token = parse_token(redis.call('HGET', NAME, ARGV[1])) or 0
  redis.call('PEXPIRE', NAME, ARGV[4])
  redis.call('HSET', NAME, ARGV[1] .. ':rest', 't' .. token .. '/' .. ARGV[4])
  redis.call('HDEL', NAME, ARGV[1])
  -- Once more. If the rest was over, the first has deleted the key, and this one has no end yet. Servers up to
  -- Redis 7.0 look at the clock twice in one PEXPIRE. So a millisecond may be over in it.
  redis.call('PEXPIRE', NAME, ARGV[4])
  tell_waiting('l', ' ' .. ARGV[4])
  -- redisson announce('00') -- they read when it ends
  return 1
end
if SLOTS and owned == 1 then former = {ARGV[1]} end
hand_over(head)
return owned
