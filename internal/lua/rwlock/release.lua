-- release: end a tenure: unlock a hold of either half, or cancel a wait. As lock/release.lua.
--
-- Keys  as in rwlock/state.lua
-- ARGV and reply: as in lock/release.lua
-- keys QUEUE STATE LEASES

-- Foreign data under the queue's name is left alone, and must not keep the lock from being released.
if ARGV[3] and ARGV[3] ~= '' then redis.pcall('LREM', QUEUE, 0, ARGV[3]) end
local id, rests = ARGV[1], ARGV[4] and ARGV[4] ~= '0'

-- The short way, which makes no functions: nobody waits, and the id holds one half alone, or reads with
-- others. Where there is more to it, nothing is done, and the script goes on. Where there are slots, that one
-- of both keys is missing says that the slot is at rest: see shared/moves.lua.
-- redisson -- keys RELEASED EAR
-- redisson -- inline shared/theirs.lua
-- redisson if not theirs then
if not rests and not moving
  and (SLOTS and redis.pcall('EXISTS', NAME, QUEUE) == 1 or not SLOTS and redis.pcall('EXISTS', QUEUE) == 0) then
  local how = redis.call('HGET', NAME, 'mode')
  local writes = how == 'write'
  local fields = (writes or how == 'read') and redis.call('HLEN', NAME) or 0
  if (fields == 2 or fields > 2 and not writes)
    and redis.call('HDEL', NAME, writes and id .. ':write' or id) == 1 then
    local timeout = LEASES .. id .. ':rwlock_timeout:1'
    if writes then
      redis.call('DEL', NAME)
      redis.pcall('HDEL', STATE, 'writer', 'short') -- it has given the lock back
    elseif fields == 2 then
      redis.call('DEL', NAME, timeout)
    else
      redis.call('DEL', timeout)
    end
    return 1
  end
end
-- redisson end
-- moves

-- include rwlock/grant.lua
local holds = redis.call('HMGET', NAME, id, id .. ':write')
local owned = (holds[1] or holds[2]) and 1 or 0
if owned == 0 then
  give_back({}) -- without this entry, those behind it may fit
  return 0
end
if rests then
  -- The rest has a field of its own, so that a late renewal or cancel of the owner does not find it. The
  -- first write is one that Redis never refuses for lack of memory, nor what follows.
  local rest = id .. ':rest'
  if moving and not holds[2] then moving.need(timeout_of(rest)) end
  if holds[2] then
    redis.call('PEXPIRE', NAME, ARGV[4])
    redis.call('HSET', NAME, rest .. ':write', '1')
    redis.call('HDEL', NAME, id .. ':write')
    redis.call('PEXPIRE', NAME, ARGV[4]) -- once more, as in lock/release.lua
    redis.pcall('HSET', STATE, 'short', '', 'writer', rest)
  else
    keep(ARGV[4])
    redis.call('PEXPIRE', timeout_of(id), ARGV[4])
    redis.call('SET', timeout_of(rest), ARGV[4], 'PX', ARGV[4])
    redis.call('HSET', NAME, rest, '1')
    redis.call('HDEL', NAME, id)
    redis.call('DEL', timeout_of(id))
  end
  -- It may be longer than the lease: nobody must cut it to that.
  local done, number, reserved, longest = pcall(state_token)
  if done and number and (not longest or longest < tonumber(ARGV[4])) then
    redis.pcall('HSET', STATE, 'token', token_field(number, reserved, ARGV[4]))
  end
  tell_waiting('l', ' ' .. ARGV[4])
  -- redisson announce_release() -- they read when it ends
  return 1
end
give_back({id})
return 1
