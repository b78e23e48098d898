-- begin: begin the run of a tick, by whoever has the lock. The run of a tick that has begun, and is not over,
-- is repeated: its process has died, or has given up. Safe to repeat: a token is for one run, and a copy gets
-- the same reply. A copy that comes late, after the end of the run, changes nothing.
--
-- Keys  as in every/state.lua
-- ARGV  1, 2, 3: see every/state.lua
--       4 fencing token of the lock
--       5 of ticks that were missed run: all; once: one for all; skip: none
--       6 skip: ms after which a tick that has not begun is missed
--       7 how many runs of a tick may die, 0 for any number
--       8 as argument 5 of once/begin.lua
--       9 who runs it, in a text
-- Reply {'r', tick, attempt, dropped, missed}    the run of this tick has begun
--       {'n', ms to the next, 0, dropped, 0}     nothing is due, or the name is paused: then ask again by then
--       {'s', token, 0, 0, 0}                    as in once/begin.lua
--       dropped: a tick that is over because so many runs of it have died; 0: none is
--       missed: how many ticks are left out, because there are too many to make up for
-- include every/begun.lua

need_listed(ARGV[5] == 'all')
return begin(tonumber(ARGV[4]), ARGV[5], tonumber(ARGV[6]), tonumber(ARGV[7]), ARGV[8] == '1', ARGV[9])
