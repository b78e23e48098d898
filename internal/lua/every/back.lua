-- back: a run has not died, although its tick is not over: its process lives, and says so. Safe to repeat. A
-- begin of this token that comes later begins nothing.
--
-- Keys  as in every/state.lua
-- ARGV  1, 2, 3: see every/state.lua
--       4 fencing token of the run; 0: its acquire was not answered, and may come later
--       5 1: its function was entered, and gave up; 0: it was not entered, so that it is no attempt
--       6 owner id of the acquire, if the token is 0
-- Reply 1
-- include every/state.lua
-- include every/runs.lua

local mine = tonumber(ARGV[4])
if mine == 0 and asker == ARGV[6] then mine = token end
if mine == 0 then
  redis.call('HSET', RUN, 'gone', ARGV[6])
  keep()
elseif token < mine and ARGV[5] == '0' then
  redis.call('HSET', RUN, 'token', ARGV[4], 'back', ARGV[4], 'first', decimal(first > 0 and first or mine))
  keep()
elseif token == mine and tick and back ~= mine then
  redis.call('HSET', RUN, 'back', decimal(mine))
  if ARGV[5] == '1' then
    told_ended('g', '')
    redis.call('HSET', RUN, 'gave', decimal(gave + 1))
    return 1
  end
  told_ended()
  if attempt > 1 then
    redis.call('HSET', RUN, 'attempt', decimal(attempt - 1))
  else
    redis.call('HDEL', RUN, 'tick', 'attempt', 'gave')
  end
end
return 1
