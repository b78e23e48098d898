-- finish: record that a run is over, and its tick with it. The caller may be stale: only the run that has begun
-- last is believed. Safe to repeat: a copy gets the same reply, also when another run has begun since.
--
-- Keys  as in every/state.lua
-- ARGV  1, 2, 3: see every/state.lua
--       4 fencing token of the run
--       5 as in every/begin.lua
--       6 o: it is done, f: its function has failed
--       7 what the error said
-- Reply {1, ms until the next tick}  it is over; 0 ms: a tick is due
--       {0, 0}                       the run is stale, and nothing has changed
--       {2, 0}                       the record does not say any more whether this run was finished
-- include every/state.lua
-- include every/runs.lua

local mine = tonumber(ARGV[4])
if token ~= mine then
  if won == mine then return {1, rest()} end
  return {first > 0 and mine >= first and won < mine and 0 or 2, 0}
end
if tick then
  pass(tick)
  if ARGV[5] == 'skip' then last = math.max(last, latest()) end -- what became due meanwhile was missed
  redis.call('HDEL', RUN, 'tick', 'attempt', 'told', 'by', 'gave', 'row', 'held', 'holds', 'asker') -- first, as in every/begin.lua
  told_ended(ARGV[6], ARGV[7])
  held, tick = 0, nil
  redis.call('HSET', RUN, 'won', ARGV[4])
  keep()
end
return {1, rest()}
