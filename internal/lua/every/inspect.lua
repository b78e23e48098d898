-- inspect: where a job has come to, for one who does not know when its ticks are. Changes nothing.
--
-- Keys  as in every/state.lua and every/runs.lua
-- ARGV  1 unused
-- Reply {next, held, run, ...}  when the next tick is due, as in every/state.lua, or 0; 1 if the lock is held, else 0: then the
--                               run that has begun last has died; and the runs, as in every/runs.lua
-- keys RUN RUNS

if moving then
  moving.need(RUN)
  moving.need(RUNS)
end
local reply = {redis.call('HGET', RUN, 'next') or '0', tostring(redis.call('EXISTS', NAME))}
for _, run in ipairs(redis.call('LRANGE', RUNS, 0, 10)) do
  if #run < 8192 then reply[#reply + 1] = run end -- none of ours is so long
end
return reply
