-- listeners: who waits for a lock, as far as its owner can see. Uses QUEUE, RELEASED and ARGV[2] of
-- lock/watch.lua.

-- Whether somebody is queued, or listens for a release as a waiter of Redisson does. Clients of ours that
-- wait for a lock over several servers listen as well, and go on when they wait no more: so they do not
-- count for such a lock. Where the caller may not ask who listens, nobody is taken to.
local function others_wait()
  if not (moving and moving.lacks(QUEUE)) and redis.call('EXISTS', QUEUE) == 1 then return true end
  if ARGV[2] ~= '1' then return false end
  -- redisson if true then return redisson_waits() end
  local reply = redis.pcall('PUBSUB', NUMSUB, RELEASED)
  return not reply.err and reply[2] > 0
end
