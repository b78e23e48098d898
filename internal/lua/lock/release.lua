-- release: end a tenure: unlock a hold, or cancel a wait. In one step it ends what the id owns, removes the
-- id from the queue if it may be there, and gives the lock to the next waiter. Safe to repeat: the second
-- time finds nothing.
--
-- KEYS  1 lock, 2 queue, 3 token: as in lock/acquire.lua
-- ARGV  1 owner id, 2 inbox prefix, 3 publish verb, 4 floor: as in lock/acquire.lua
--       5 entry            the id's queue entry when it may be queued, else the empty string
--       6 rest             ms that the lock stays taken, as a lease that nobody renews; 0: it is free at once
--       7 channel          where to announce it, for those who wait without being queued; may be missing
-- Reply 1 the id owned the lock, 0 it did not

-- Foreign data under the queue's name is left alone, and must not keep the lock from being released.
if ARGV[5] ~= '' then redis.pcall('LREM', KEYS[2], 0, ARGV[5]) end

local head
local owned = redis.call('HEXISTS', KEYS[1], ARGV[1])
-- A hint, which nobody can act on before this script has ended. 0 is what Redisson publishes there.
if owned == 1 and ARGV[7] then redis.pcall(ARGV[3], ARGV[7], '0') end
if owned == 1 and ARGV[6] == '0' then
  -- Without the token's key there is no token for a grant: then the lock is free, and the waiters will ask.
  head = not (moving and moving.lacks(KEYS[3])) and redis.pcall('LPOP', KEYS[2])
  if not head or head.err then
    redis.call('DEL', KEYS[1])
    return 1
  end
elseif owned == 0 and redis.call('EXISTS', KEYS[1]) == 1 then
  return 0
end

-- include shared/token.lua
-- include lock/grant.lua

if owned == 1 and not head then
  -- The rest has a field of its own, so that a late renewal or cancel of the owner does not find it.
  local token = 't' .. decimal(parse_token(redis.call('HGET', KEYS[1], 'token')) or 0)
  redis.call('HDEL', KEYS[1], 'short') -- first: Redis never refuses it for lack of memory, nor what follows
  redis.call('HSET', KEYS[1], ARGV[1] .. ':rest', 1, 'token', token .. '/' .. ARGV[6])
  redis.call('HDEL', KEYS[1], ARGV[1])
  redis.call('PEXPIRE', KEYS[1], ARGV[6])
  tell_waiting(ARGV[6])
  return 1
end
if owned == 1 then former = {ARGV[1]} end
hand_over(head)
return owned
