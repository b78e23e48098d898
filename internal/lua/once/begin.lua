-- begin: begin a run, by whoever has the lock. Safe to repeat: a token is for one run, and a copy gets the
-- same reply. A copy that comes late, after the end of the run, changes nothing.
--
-- Keys  as in once/state.lua
-- ARGV  1 fencing token of the lock
--       2 number of an outcome that is too old, 0 for none: see once/enter.lua
--       3 how many runs there may be, 0 for any number
--       4 ms that the record is kept while the run lasts
--       5 '1' for a copy. Else no run with this token can be the asker's: the lock has given the token
--         twice, as it may when its last token was lost while the clock was behind
--       6 edition, 0 where there are none
-- Reply {'r', attempt, now}       the run has begun, or had; the server's clock in microseconds as text
--       {'o', kind, value, over}  nothing has begun: there is an outcome with a greater number
--       {'x', attempts}           nothing has begun: there have been so many runs
--       {'w', ms}                 nothing has begun: the last run failed, or the name is paused. Ask again then
--       {'s', token}              nothing has begun: a run with this token has, which is greater, or is that
--                                 of the asker and over, or of somebody else
-- include once/begun.lua

return begin(tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3]), ARGV[4], ARGV[5] == '1', tonumber(ARGV[6]))
