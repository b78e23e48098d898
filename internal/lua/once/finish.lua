-- finish: record how a run ended. The caller may be stale: only the run that has begun last is believed, and
-- only as long as there is its record. Safe to repeat: a copy gets the same reply, also when another run has
-- begun since. When that has had an outcome of its own, a copy is told that nothing is known.
--
-- Keys  as in once/state.lua
-- ARGV  1 fencing token of the run
--       2 o: it has an outcome, f: it has failed
--       3 ms that the record is kept from now on
--       4 of an outcome its kind: v or e; of a failure ms until the next run may begin
--       5 of an outcome: it
--       6 of an outcome: the server's clock in microseconds when the function returned, or less; 0: now
--       7 of an outcome: its number, which is not the clock then; 0: none
-- Reply {'o', number}  the outcome is recorded, under this number, as text
--       {'f'}          the failure is
--       {'s'}          the run is stale, and nothing has changed
--       {'u'}          the record does not say any more whether this run had an outcome
-- include once/state.lua

local mine = tonumber(ARGV[1])
if token ~= mine then
  if won == mine then return {'o', decimal(over)} end
  return {first > 0 and mine >= first and won < mine and 's' or 'u'}
end
if phase == 'r' then
  phase = ARGV[2]
  redis.call('PEXPIRE', RUN, ARGV[3]) -- first: Redis never refuses it for lack of memory, nor what follows
  if asker then redis.call('HDEL', RUN, 'asker') end
  if phase == 'o' then
    local at, edition = tonumber(ARGV[6]), tonumber(ARGV[7])
    if edition > 0 then
      over = edition
    else
      over = next_over(at > 0 and math.min(at, micros) or micros)
    end
    redis.call('HSET', RUN, 'phase', 'o', 'over', decimal(over), 'kind', ARGV[4], 'value', ARGV[5], 'won', ARGV[1])
  else
    redis.call('HSET', RUN, 'phase', 'f', 'until', decimal(now + ARGV[4]), 'pause', ARGV[4])
  end
end
if phase == 'o' then return {'o', decimal(over)} end
return {phase == 'f' and 'f' or 's'}
