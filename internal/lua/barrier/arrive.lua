-- arrive: arrive at a barrier. The last party begins the next generation; if there is an action, the reply
-- says to run it first. Takes effect once.
--
-- Keys  as in barrier/state.lua
-- ARGV  1 id of this command, 2 answered commands: see shared/once.lua
--       3 parties
--       4 lease of all arrivals of this client, in ms
--       5 1 if there is an action
--       6 id of the membership that the client has, or has from now on; empty: it need not be a member
-- Reply {generation, index, 1 to run the action, state}  arrived, by this or an earlier copy
--       {0, 0, 0, state}   not arrived: the generation is broken
--       {PARTIES, 0, 0, state}  not arrived: others wait for another number of parties
--       {GIVENUP, 0, 0, state}  not arrived: barrier/settle.lua came before
--       {ACTING, 0, 0, state}  not arrived: all parties of this generation are there, and it is not over yet
--       state: see round in barrier/state.lua
-- include barrier/quick.lua
-- moves
-- include barrier/known.lua

if moving and ARGV[6] ~= '' then moving.need(DONE .. ':' .. ARGV[6]) end
local before = known()
-- include barrier/state.lua
-- include barrier/one.lua

local generation, index, leads = arrive(before)
tell_what_changed()
return forget_answered({generation, index, leads, round()})
