-- back: a run that was asked for does not begin, since its function was not entered. So it is no attempt. Safe
-- to repeat. What asks for it later begins nothing.
--
-- Keys  as in once/state.lua
-- ARGV  1 fencing token of the run; 0: its acquire was not answered, and may come later
--       2 ms that the record is kept at least
--       3 owner id of the acquire, if the token is 0
-- Reply 1
-- include once/state.lua

local mine = tonumber(ARGV[1])
if mine == 0 and asker == ARGV[3] then mine = token end
if token < mine or mine == 0 then
  if over == 0 then over = next_over(micros) - 1 end
  redis.call('HSET', RUN, 'over', decimal(over))
  if mine == 0 then
    redis.call('HSET', RUN, 'gone', ARGV[3])
  else
    redis.call('HSET', RUN, 'token', ARGV[1], 'first', decimal(first > 0 and first or mine))
  end
  if redis.call('PTTL', RUN) < 0 then redis.call('PEXPIRE', RUN, ARGV[2]) end
elseif token == mine and phase == 'r' then
  -- What failed before has failed still: its pause was over when this run began.
  if attempt > 1 then
    redis.call('HSET', RUN, 'attempt', decimal(attempt - 1), 'phase', 'f', 'until', '0', 'pause', '0')
  else
    redis.call('HDEL', RUN, 'phase', 'attempt')
  end
end
return 1
