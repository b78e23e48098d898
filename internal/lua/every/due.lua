-- due: what is to be done now? Of all processes that ask at a tick one is told to take the lock, the others
-- when to look again. That is a hint, which saves the others commands. The lock decides. Safe to repeat: who
-- was told to take a free lock is told so again.
--
-- Keys  as in every/state.lua
-- ARGV  1, 2, 3: see every/state.lua
--       4 lease of the lock in ms
--       5 who asks
-- Reply {'n', ms until the next tick}  nothing is due, or the name is paused: then ask again by then
--       {'g', 0}                       take the lock
--       {'b', ms, ms}                  somebody runs, or was told to. If that dies, the lock is free after
--                                      the first time. The second one is that until the next tick
-- include every/state.lua

if fresh then keep() end
local paused = paused_for(micros)
if paused > 0 then return {'n', math.max(paused, tick and 0 or rest())} end
if not tick and rest() > 0 then return {'n', rest()} end

local lease = tonumber(ARGV[4])
local at = latest()
local later = due(following(at)) - now
local held = redis.call('PTTL', NAME) -- -2: free, -1: for ever
if held == -1 then held = lease end
local recently = told and now >= told and now < told + lease and told + lease - now
if held >= 0 and held <= lease then return {'b', held + 1, later} end
-- A lock that is held for longer than a lease may be of a process that died before the clock was set back. An
-- attempt cuts what is left of it to a lease (lock/holder.lua). So one process is told to make one, in each
-- lease: where leases differ, that is all it costs.
if held > lease and recently then return {'b', recently, later} end
if recently and f[6] ~= ARGV[5] then return {'b', recently, later} end
redis.call('HSET', RUN, 'told', decimal(now), 'by', ARGV[5])
return {'g', 0}
