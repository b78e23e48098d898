-- watch: has an owner told when others want what its half excludes, and says whether somebody waits already.
-- Safe to repeat, as lock/watch.lua.
--
-- Keys  as in rwlock/state.lua
-- ARGV and reply: as in lock/watch.lua
-- keys RELEASED
-- include rwlock/state.lua
-- include shared/listeners.lua

local holds = redis.call('HMGET', NAME, ARGV[1], ARGV[1] .. ':write')
if not (holds[1] or holds[2]) then return REPLY_GONE end
if others_wait() then return 1 end
if holds[2] then -- readers are told in any case
  if moving then moving.need(STATE) end
  redis.call('HSET', STATE, 'watched', ARGV[1])
end
return 0
