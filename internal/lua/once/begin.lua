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
--       {'w', ms}                 nothing has begun: the last run failed, and the next may begin after that
--       {'s', token}              nothing has begun: a run with this token has, which is greater, or is that
--                                 of the asker and over, or of somebody else
-- include once/state.lua

local mine, most = tonumber(ARGV[1]), tonumber(ARGV[3])
-- First: a waiter may have the outcome, whatever became of its lock.
if phase == 'o' and over > tonumber(ARGV[2]) then return {'o', f[5], f[6], decimal(over)} end
if token > mine then return {'s', decimal(token)} end
if token == mine then return phase == 'r' and ARGV[5] == '1' and {'r', attempt, decimal(micros)} or {'s', decimal(token)} end
if phase == 'o' then attempt = 0 end
local edition = tonumber(ARGV[6])
is_of(edition)
if most > 0 and attempt >= most then return {'x', decimal(attempt)} end
local wait = paused()
if wait > 0 then return {'w', wait} end

-- What was recorded by now is of no use to those who wait: the run that begins ends after they came.
if over == 0 then over = next_over(micros) - 1 end
redis.call('HSET', RUN, 'token', ARGV[1], 'attempt', decimal(attempt + 1), 'phase', 'r',
  'over', decimal(over), 'first', decimal(first > 0 and first or mine))
if edition > 0 then redis.call('HSET', RUN, 'edition', ARGV[6]) end
redis.call('HDEL', RUN, 'kind', 'value', 'until', 'pause')
redis.call('PEXPIRE', RUN, ARGV[4])
return {'r', attempt + 1, decimal(micros)}
