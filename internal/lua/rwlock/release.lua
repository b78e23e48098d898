-- release: end a tenure: unlock a hold of either half, or cancel a wait. As lock/release.lua.
--
-- Keys  as in rwlock/state.lua
-- ARGV and reply: as in lock/release.lua
-- include rwlock/grant.lua

-- Foreign data under the queue's name is left alone, and must not keep the lock from being released.
if ARGV[3] ~= '' then redis.pcall('LREM', QUEUE, 0, ARGV[3]) end
local id = ARGV[1]
local holds = redis.call('HMGET', NAME, id, id .. ':write')
local owned = (holds[1] or holds[2]) and 1 or 0
if owned == 0 then
  give_back({}) -- without this entry, those behind it may fit
  return 0
end
if ARGV[4] ~= '0' then
  -- The rest has a field of its own, so that a late renewal or cancel of the owner does not find it. The
  -- first write is one that Redis never refuses for lack of memory, nor what follows.
  local rest = id .. ':rest'
  if moving and not holds[2] then moving.need(timeout_of(rest)) end
  if holds[2] then
    redis.call('PEXPIRE', NAME, ARGV[4])
    redis.call('HSET', NAME, rest .. ':write', '1')
    redis.call('HDEL', NAME, id .. ':write')
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
    redis.pcall('HSET', STATE, 'token', token_field(decimal(number), reserved, ARGV[4]))
  end
  tell_waiting(ARGV[4])
  return 1
end
give_back({id})
return 1
