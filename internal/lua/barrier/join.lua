-- join: make a client a member of a barrier. The death of a member breaks the barrier, also while the member
-- does not wait. Safe to repeat. Does nothing once barrier/leave.lua came for the membership.
--
-- Keys  as in barrier/state.lua
-- ARGV  1 id of the membership, 2 answered commands: see shared/once.lua
--       3 lease in ms
-- Reply {1 it is a member, or 0 it is not because the barrier is broken; state}
--       state: see round in barrier/state.lua
-- include shared/once.lua
-- include barrier/state.lua

local whole = barrier.phase ~= 'b'
-- When memory is short, Redis refuses this, and nothing is done.
if whole then belong(ARGV[1], ARGV[3], true) end
if barrier.phase == 'n' then advance() end
tell_what_changed()
return forget_answered({whole and 1 or 0, round()})
