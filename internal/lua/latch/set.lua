-- set: shut a latch with a count. That begins a generation. Takes effect once.
--
-- Keys  as in latch/state.lua
-- ARGV  1 id of this command, 2 answered commands: see shared/once.lua
--       3 count
--       4 time to live in ms, 0 for none
--       5 mode: try, unless the latch is shut or open; again, unless it is shut
-- Reply 1 done, 0 not
-- include shared/once.lua

local before = recorded('^[01]$')
if before then return forget_answered(tonumber(before)) end
-- include latch/state.lua

local may = latch.phase ~= 's' and (ARGV[5] == 'again' or latch.phase ~= 'o')
record(may and '1' or '0') -- when memory is short, Redis refuses this, and nothing is done
if may then
  local ttl = tonumber(ARGV[4])
  shut(ttl)
  if ttl > 0 then
    redis.call('SET', NAME, ARGV[3], 'PX', decimal(ttl + MARGIN))
  else
    redis.call('SET', NAME, ARGV[3])
  end
  publish(NEW_COUNT)
end
return forget_answered(may and 1 or 0)
