-- finish: record how a run ended. Whoever asks may be stale: only the run that has begun last is believed,
-- and only as long as there is its record. Safe to repeat: a copy gets the same reply.
--
-- Keys  as in once/state.lua
-- ARGV  1 fencing token of the run
--       2 o: it has an outcome, f: it has failed
--       3 ms that the record is kept from now on
--       4 of an outcome its kind: v or e; of a failure ms until the next run may begin
--       5 of an outcome: it
-- Reply number of the outcome as text; '1' for a failure. '0': the run is stale, and nothing has changed
-- include once/state.lua

if token ~= tonumber(ARGV[1]) then return '0' end
if phase == 'r' then
  phase = ARGV[2]
  redis.call('PEXPIRE', RUN, ARGV[3]) -- first: Redis never refuses it for lack of memory, nor what follows
  if phase == 'o' then
    over = tonumber(next_over())
    redis.call('HSET', RUN, 'phase', 'o', 'over', decimal(over), 'kind', ARGV[4], 'value', ARGV[5])
  else
    redis.call('HSET', RUN, 'phase', 'f', 'until', decimal(now + ARGV[4]), 'pause', ARGV[4])
  end
end
return phase == 'o' and decimal(over) or '1'
