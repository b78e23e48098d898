-- finish: record that a run is over, and its tick with it. Whoever asks may be stale: only the run that has
-- begun last is believed. Safe to repeat: a copy gets the same reply.
--
-- Keys  as in every/state.lua
-- ARGV  1, 2, 3: see every/state.lua
--       4 fencing token of the run
--       5 as in every/begin.lua
-- Reply {1, ms until the next tick}  it is over; 0 ms: a tick is due
--       {0, 0}                       the run is stale, and nothing has changed
-- include every/state.lua

if token ~= tonumber(ARGV[4]) then return {0, 0} end
if tick then
  pass(tick)
  if ARGV[5] == 'skip' then last = math.max(last, latest()) end -- what became due meanwhile was missed
  redis.call('HDEL', RUN, 'tick', 'attempt', 'told', 'by') -- first, as in every/begin.lua
  redis.call('HSET', RUN, 'last', decimal(last))
  keep()
end
return {1, rest()}
