-- release: end a tenure: unlock a hold, or cancel a wait. In one step it ends what the id owns, removes the
-- id from the queue if it may be there, and gives the lock to the next waiter. Safe to repeat: the second
-- time finds nothing.
--
-- Keys  as in lock/acquire.lua
-- ARGV  1 owner id, 2 floor: as in lock/acquire.lua
--       3 entry            the id's queue entry when it may be queued, else the empty string
--       4 rest             ms that the lock stays taken, as a lease that nobody renews; 0: it is free at once
--       5 channel          where to announce it, for those who wait without being queued; may be missing
-- Reply 1 the id owned the lock, 0 it did not
-- keys QUEUE

-- Foreign data under the queue's name is left alone, and must not keep the lock from being released.
if ARGV[3] ~= '' then redis.pcall('LREM', QUEUE, 0, ARGV[3]) end

local head
local owned = redis.call('HEXISTS', NAME, ARGV[1])
-- A hint, which nobody can act on before this script has ended. 0 is what Redisson publishes there.
if owned == 1 and ARGV[5] then redis.pcall(VERB, ARGV[5], '0') end
if owned == 1 and ARGV[4] == '0' then
  -- Without the token's key there is no token for a grant: then the lock is free, and the waiters will ask.
  head = not (moving and moving.lacks(TOKEN)) and redis.pcall('LPOP', QUEUE)
  if not head or head.err then
    redis.call('DEL', NAME)
    return 1
  end
elseif owned == 0 and redis.call('EXISTS', NAME) == 1 then
  return 0
end

-- include shared/token.lua
-- include lock/grant.lua

if owned == 1 and not head then
  -- The rest has a field of its own, so that a late renewal or cancel of the owner does not find it.
  local token = 't' .. decimal(parse_token(redis.call('HGET', NAME, 'token')) or 0)
  redis.call('HDEL', NAME, 'short') -- first: Redis never refuses it for lack of memory, nor what follows
  redis.call('HSET', NAME, ARGV[1] .. ':rest', 1, 'token', token .. '/' .. ARGV[4])
  redis.call('HDEL', NAME, ARGV[1])
  redis.call('PEXPIRE', NAME, ARGV[4])
  tell_waiting(ARGV[4])
  return 1
end
if owned == 1 then former = {ARGV[1]} end
hand_over(head)
return owned
