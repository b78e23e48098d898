-- look: what became of a name, for a client that does not run it. Changes nothing. Safe to repeat.
--
-- Keys  as in once/state.lua
-- ARGV  1 how many runs there may be, 0 for any number
--       2 1: the outcome is wanted, 0: only whether there is one
--       3 number of an outcome that is too old, 0 for none
--       4 edition, 0 where there are none
-- Reply {'o', kind, value}  there is an outcome; the value is empty unless it is wanted
--       {'x', attempts}     there is none, and there have been so many runs that there will be none
--       {'n', attempts}     there is none yet. attempts: as many have begun since the last outcome
-- include once/state.lua

if phase == 'o' and over > tonumber(ARGV[3]) then return {'o', f[5], ARGV[2] == '1' and f[6] or ''} end
if phase == 'o' then attempt = 0 end
is_of(tonumber(ARGV[4]))
local most = tonumber(ARGV[1])
return {phase == 'f' and most > 0 and attempt >= most and 'x' or 'n', decimal(attempt)}
