-- begun: how the run of a tick begins, by whoever has the lock. It defines begin for every/begin.lua, which says
-- what the arguments and the replies are, and for every/acquire.lua. Safe to repeat.
--
--   way     what becomes of ticks that were missed
--   copy    whether a run with this token may be the asker's
--   who     runs it, in a text
--   asking  its owner id, in an acquire
-- include every/state.lua
-- include every/runs.lua

-- No tick begins for so many ms after one was dropped, twice as long after each further one.
local HELD = 60000

-- The first of the ticks that are made up for, and how many are left out before it. Where ticks are listed it counts no others.
local function first_of_all(newest)
  local tick, missed = following(last), 0
  if listed then
    local all = {}
    for i = 1, #listed do
      if listed[i] > last and listed[i] <= newest then all[#all + 1] = listed[i] end
    end
    missed = math.max(0, #all - MADE_UP)
    tick = all[missed + 1]
    if missed > 0 then last = tick - 1 end
    return tick, missed
  end
  missed = math.max(0, math.floor((newest - tick) / period + 0.5) + 1 - MADE_UP)
  tick = tick + missed * period
  last = math.max(last, tick - period)
  return tick, missed
end

local function begin(mine, way, grace, most, copy, who, asking)
  local dropped, missed = 0, 0
  if token > mine or token == mine and (back == mine or not (tick and copy)) then return {'s', decimal(token), 0, 0, 0} end
  if token == mine then return {'r', decimal(tick), attempt, 0, 0} end

  redis.call('HDEL', RUN, 'told', 'by') -- first: Redis never refuses it for lack of memory, nor what follows
  local paused = paused_for(micros)
  if paused > 0 then
    keep()
    return {'n', paused, 0, 0, 0}
  end
  told_ended('d', '')
  -- Once ticks were dropped, one death is enough to see that their function still ends its process.
  if tick and most > 0 and attempt - gave >= (row > 0 and 1 or most) then
    pass(tick)
    dropped, tick, row = tick, nil, row + 1
    holds = math.min(HELD * 2 ^ math.min(row - 1, 10), LONGEST)
    held = now + holds
    redis.call('HSET', RUN, 'row', decimal(row), 'held', decimal(held), 'holds', decimal(holds))
  end
  if not tick then
    attempt, gave = 0, 0
    local newest = latest()
    if held_off() == 0 and newest > last then
      if way == 'all' then
        tick, missed = first_of_all(newest)
      elseif way == 'once' or now - due(newest) <= grace then
        tick = newest
      else
        last = newest
      end
    end
  end
  keep()
  if not tick then
    redis.call('HDEL', RUN, 'tick', 'attempt', 'gave')
    if dropped > 0 then token = mine end -- the run that is given up is stale now
    redis.call('HSET', RUN, 'token', decimal(token))
    return {'n', rest(), 0, decimal(dropped), 0}
  end
  redis.call('HSET', RUN, 'token', decimal(mine), 'tick', decimal(tick), 'attempt', decimal(attempt + 1),
    'gave', decimal(gave), 'first', decimal(first > 0 and first or mine))
  told_begun(tick, attempt + 1, who)
  if asking then redis.call('HSET', RUN, 'asker', asking) else redis.call('HDEL', RUN, 'asker') end
  return {'r', decimal(tick), attempt + 1, decimal(dropped), missed}
end
