-- leave: end a membership of a barrier; a late copy cannot begin it again. Those who have arrived would wait
-- for the party in vain: so this breaks the generation, unless all parties had arrived. Takes effect once.
--
-- Keys  as in barrier/state.lua
-- ARGV  1 id of the membership, 2 answered commands: see shared/once.lua
--       3 1 if the client knows that the membership had begun; otherwise it had if Redis knows of it. A dead
--         membership counts as not begun: it has broken the barrier by its death, and those who wait now do
--         not wait for it
-- Reply 1
-- include shared/once.lua

exempt_from_memory_limit()
local before = recorded('^left$', '^dead$')
if before and before ~= 'dead' then return forget_answered(1) end
-- include barrier/state.lua

local own = arrived(string.match(ARGV[1], '^[^:]+'))
record('left')
local begun = redis.call('ZREM', MEMBERS, ARGV[1]) == 1 or ARGV[3] == '1' and before ~= DEAD
if begun and barrier.phase == 'w' and barrier.waiting > own then
  break_generation('c')
  over = true
end
tell_what_changed()
return forget_answered(1)
