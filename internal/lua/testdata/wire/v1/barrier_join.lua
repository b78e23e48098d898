-- barrier_join: make a client a member of a barrier, whose death breaks it also while it does not wait. Safe
-- to repeat; does nothing once barrier_leave.lua came.
--
-- KEYS  as in barrier.lua
-- ARGV  1 id of the membership, 2 answered commands: see once.lua
--       3 channel, 4 publish verb
--       5 lease in ms
-- Reply {1 it is a member, 0 it is not: the barrier is broken, state as of barrier.lua}
-- include once.lua
-- include barrier.lua

local whole = barrier.phase ~= 'b'
if whole then belong(ARGV[1], ARGV[5], true) end -- refused when memory is short, and then nothing is done
if barrier.phase == 'n' then advance() end
tell_what_changed()
return forget_answered({whole and 1 or 0, round()})
