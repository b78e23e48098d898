-- release: end a tenure, as the unlock of a hold or the cancellation of a wait: remove what this id owns and, when asked
-- to, where it queues, in one step, and give the lock to the next waiter. Safe to repeat: the second time finds nothing.
--
-- KEYS  1 lock, 2 queue, 3 token: as in acquire.lua
-- ARGV  1 owner id, 2 inbox prefix, 3 publish verb, 4 floor: as in acquire.lua
--       5 entry            the id's queue entry when it may be queued, else the empty string
--       6 rest             ms the lock shall stay taken, as a lease that nobody renews; 0: release now
-- Reply 1 the id owned the lock, 0 it did not

-- Another type under a companion's name is left alone, and must not keep the lock from being released.
if ARGV[5] ~= '' then redis.pcall('LREM', KEYS[2], 0, ARGV[5]) end

local head
local owned = redis.call('HEXISTS', KEYS[1], ARGV[1])
if owned == 1 and ARGV[6] == '0' then
  -- No token is to be had without its key: then the lock is free, and who waits will ask.
  head = not (moving and moving.lacks(KEYS[3])) and redis.pcall('LPOP', KEYS[2])
  if not head or head.err then
    redis.call('DEL', KEYS[1])
    return 1
  end
elseif owned == 0 and redis.call('EXISTS', KEYS[1]) == 1 then
  return 0
end

-- include token.lua
-- include grant.lua

if owned == 1 and not head then
  -- Under another field than the owner's, so that neither a renewal nor a cancel that comes late finds it.
  local token = 't' .. decimal(parse_token(redis.call('HGET', KEYS[1], 'token')) or 0)
  redis.call('HDEL', KEYS[1], 'short') -- first, because it is not refused when memory is short, nor is what follows
  redis.call('HSET', KEYS[1], ARGV[1] .. ':rest', 1, 'token', token .. '/' .. ARGV[6])
  redis.call('HDEL', KEYS[1], ARGV[1])
  redis.call('PEXPIRE', KEYS[1], ARGV[6])
  tell_waiting(ARGV[6])
  return 1
end
if owned == 1 then former = {ARGV[1]} end
hand_over(head)
return owned
