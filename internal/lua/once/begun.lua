-- begun: how a run begins, by whoever has the lock. It defines begin for once/begin.lua, which says what the
-- arguments and the replies are, and for once/acquire.lua. Safe to repeat.
--
--   copy   whether a run with this token may be the asker's
--   asker  its owner id, in an acquire
-- include once/state.lua

-- How many runs there were since the last outcome, if none may follow; else nil.
local function exhausted(most)
  local began = phase == 'o' and 0 or attempt
  if most > 0 and began >= most then return {'x', decimal(began)} end
end

local function begin(mine, since, most, kept, copy, edition, asker)
  -- First: a waiter may have the outcome, whatever became of its lock.
  if phase == 'o' and over > since then return {'o', f[5], f[6], decimal(over)} end
  if token > mine then return {'s', decimal(token)} end
  if token == mine then return phase == 'r' and copy and {'r', attempt, decimal(micros)} or {'s', decimal(token)} end
  is_of(edition)
  local none = exhausted(most)
  if none then return none end
  local wait = math.max(paused(), paused_for(micros))
  if wait > 0 then return {'w', wait} end

  -- What was recorded by now is of no use to those who wait: the run that begins ends after they came.
  if phase == 'o' then attempt = 0 end
  if over == 0 then over = next_over(micros) - 1 end
  redis.call('HSET', RUN, 'token', decimal(mine), 'attempt', decimal(attempt + 1), 'phase', 'r',
    'over', decimal(over), 'first', decimal(first > 0 and first or mine))
  if edition > 0 then redis.call('HSET', RUN, 'edition', decimal(edition)) end
  redis.call('HDEL', RUN, 'kind', 'value', 'until', 'pause', 'asker')
  if asker then redis.call('HSET', RUN, 'asker', asker) end
  redis.call('PEXPIRE', RUN, kept)
  return {'r', attempt + 1, decimal(micros)}
end
