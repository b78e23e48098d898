-- watch: has an owner told when others want its lock from now on, and says whether somebody waits already.
-- Safe to repeat. Whoever wants to hear repeats it, as a message may be lost.
--
-- Keys  as in lock/acquire.lua
-- ARGV  1 owner id
--       2 listeners        1: those count who listen for a release, as a waiter of Redisson does; 0: they do
--                          not
-- Reply 1 somebody waits: nothing is changed
--       0 nobody does, as far as that leaves a trace
--       GONE the id does not own the lock
-- keys QUEUE RELEASED
-- redisson -- include lock/fair.lua
-- redisson -- include shared/turns.lua
-- include shared/value.lua
-- include shared/listeners.lua

local value = redis.call('HGET', NAME, ARGV[1])
local number, _, _, may_linger = parse_token(value)
if not number then return REPLY_GONE end
if others_wait() then return 1 end
-- The mark of an owner that may linger: others tell it that they want the lock.
if not may_linger then
  redis.call('HSET', NAME, ARGV[1], (string.gsub(value, '^(t%d+)%+?(%d*)', function(token, reserved)
    return token .. '+' .. (reserved == '' and '0' or reserved) .. 'l'
  end)))
end
return 0
