-- downgrade: make the writer a reader, without letting another writer in between, and grant the readers that
-- are next. Safe to repeat: the second time finds a reader. A late copy does nothing once that has gone.
--
-- Keys  as in rwlock/state.lua
-- ARGV  1 owner id, 2 floor: as in lock/acquire.lua
--       3 lease            ms
--       4 token            the one that the writer has; its process uses no greater one any more
-- Reply {1 the id reads now, 0 it holds nothing; 1 when somebody waits, else 0}
-- include rwlock/grant.lua

local id = ARGV[1]
local holds = redis.call('HMGET', NAME, id, id .. ':write')
if not (holds[1] or holds[2]) then return {0, 0} end
if holds[2] then
  if moving then
    moving.need(timeout_of(id))
    moving.need(STATE)
  end
  -- First: Redis never refuses it for lack of memory, nor what follows.
  redis.call('PEXPIRE', NAME, ARGV[3])
  redis.call('SET', timeout_of(id), ARGV[3], 'PX', ARGV[3])
  redis.call('HSET', NAME, 'mode', 'read', id, '1')
  redis.call('HDEL', NAME, id .. ':write')
  -- Those who read beside it have its token. Foreign data in place of the state does not keep it from
  -- reading.
  redis.pcall('HSET', STATE, 'token', token_field(ARGV[4], 0, ARGV[3]), 'writer', '', 'short', '')
  mode = 'read'
end
-- redisson if redisson_waits() then announce_release() end -- its readers may read now
pcall(serve) -- what was done stays done: otherwise those who wait will ask
return {1, others_wait()}
