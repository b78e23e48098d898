-- arrival: a caller comes that wants the outcome of a run which ends from now on. It defines arrive, for
-- once/enter.lua and once/acquire.lua. kept: ms that the record is kept at least.
-- include once/state.lua

-- Where nothing is known the number is recorded. So any later outcome has a greater one, also when the clock
-- is set back in between. Else it is the clock: a function that has returned by now is of no use, also when
-- that is not recorded yet.
local function arrive(kept)
  if over == 0 then
    over = next_over(micros)
    redis.call('HSET', RUN, 'over', decimal(over))
    redis.call('PEXPIRE', RUN, kept)
  end
  return math.max(over, micros)
end
