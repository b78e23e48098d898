-- barrier_leave: end a membership of a barrier, also one that a late copy would begin. Whoever has arrived
-- waits in vain for a party that leaves: then the generation is broken, unless all had arrived. Takes effect
-- once.
--
-- KEYS  as in barrier.lua
-- ARGV  1 id of the membership, 2 answered commands: see once.lua
--       3 channel, 4 publish verb
--       5 1 if its client knows that it had begun; else that is so if Redis knows of it. One that is dead has
--         broken the barrier by that: those who wait now do not wait for it
-- Reply 1
-- include once.lua

exempt_from_memory_limit()
local before = recorded('^left$', '^dead$')
if before and before ~= 'dead' then return forget_answered(1) end
-- include barrier.lua

local own = arrived(string.match(ARGV[1], '^[^:]+'))
record('left')
local begun = redis.call('ZREM', KEYS[4], ARGV[1]) == 1 or ARGV[5] == '1' and before ~= DEAD
if begun and barrier.phase == 'w' and barrier.waiting > own then
  break_generation('c')
  over = true
end
tell_what_changed()
return forget_answered(1)
