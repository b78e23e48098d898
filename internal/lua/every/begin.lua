-- begin: begin the run of a tick, by whoever has the lock. The run of a tick that has begun, and is not over,
-- is repeated: its process has died, or has given up. Safe to repeat: a token is for one run, and a copy gets
-- the same reply. A copy that comes late, after the end of the run, changes nothing.
--
-- Keys  as in every/state.lua
-- ARGV  1, 2, 3: see every/state.lua
--       4 fencing token of the lock
--       5 of ticks that were missed run: all; once: one for all; skip: none
--       6 skip: ms after which a tick that has not begun is missed
--       7 how many runs of a tick there may be, 0 for any number
--       8 as argument 5 of once/begin.lua
-- Reply {'r', tick, attempt, dropped}    the run of this tick has begun
--       {'n', ms to the next, 0, dropped}  nothing is due
--       {'s', token, 0, 0}                 as in once/begin.lua
--       dropped: a tick that is over because so many runs of it have died; 0: none is
-- include every/state.lua

local mine, most, dropped = tonumber(ARGV[4]), tonumber(ARGV[7]), 0
if token > mine or token == mine and not (tick and ARGV[8] == '1') then return {'s', decimal(token), 0, 0} end
if token == mine then return {'r', decimal(tick), attempt, 0} end

redis.call('HDEL', RUN, 'told', 'by') -- first: Redis never refuses it for lack of memory, nor what follows
if tick and most > 0 and attempt >= most then
  pass(tick)
  dropped, tick = tick, nil
end
if not tick then
  attempt = 0
  local newest = latest()
  if newest > last then
    if ARGV[5] == 'all' then
      tick = following(last)
    elseif ARGV[5] == 'once' or now - due(newest) <= tonumber(ARGV[6]) then
      tick = newest
    else
      last = newest
    end
  end
end
keep()
if not tick then
  redis.call('HDEL', RUN, 'tick', 'attempt')
  if dropped > 0 then token = mine end -- the run that is given up is stale now
  redis.call('HSET', RUN, 'last', decimal(last), 'token', decimal(token))
  return {'n', rest(), 0, decimal(dropped)}
end
redis.call('HSET', RUN, 'last', decimal(last), 'token', ARGV[4], 'tick', decimal(tick),
  'attempt', decimal(attempt + 1))
return {'r', decimal(tick), attempt + 1, decimal(dropped)}
