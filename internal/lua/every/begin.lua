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
-- Reply {'r', tick, attempt, dropped, missed}    the run of this tick has begun
--       {'n', ms to the next, 0, dropped, 0}     nothing is due
--       {'s', token, 0, 0, 0}                    as in once/begin.lua
--       dropped: a tick that is over because so many runs of it have died; 0: none is
--       missed: how many ticks are left out, because there are too many to make up for
-- include every/state.lua

local MADE_UP = 1000 -- ticks at most, when more were missed
-- No tick begins for so many ms after one was dropped, twice as long after each further one.
local HELD = 60000

local mine, most, dropped, missed = tonumber(ARGV[4]), tonumber(ARGV[7]), 0, 0
if token > mine or token == mine and (back == mine or not (tick and ARGV[8] == '1')) then return {'s', decimal(token), 0, 0, 0} end
if token == mine then return {'r', decimal(tick), attempt, 0, 0} end

redis.call('HDEL', RUN, 'told', 'by') -- first: Redis never refuses it for lack of memory, nor what follows
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
    if ARGV[5] == 'all' then
      tick = following(last)
      missed = math.max(0, math.floor((newest - tick) / period + 0.5) + 1 - MADE_UP)
      tick = tick + missed * period
      last = math.max(last, tick - period)
    elseif ARGV[5] == 'once' or now - due(newest) <= tonumber(ARGV[6]) then
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
  redis.call('HSET', RUN, 'last', decimal(last), 'token', decimal(token))
  return {'n', rest(), 0, decimal(dropped), 0}
end
redis.call('HSET', RUN, 'last', decimal(last), 'token', ARGV[4], 'tick', decimal(tick),
  'attempt', decimal(attempt + 1), 'gave', decimal(gave), 'first', decimal(first > 0 and first or mine))
return {'r', decimal(tick), attempt + 1, decimal(dropped), missed}
