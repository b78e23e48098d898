-- latch_set: shut a latch with a count, which begins a generation. Takes effect once.
--
-- KEYS  as in latch.lua
-- ARGV  1 id of this command, 2 answered commands: see once.lua
--       3 channel, 4 publish verb (PUBLISH or SPUBLISH)
--       5 count
--       6 time to live in ms, 0 for none
--       7 mode: try, unless it is shut, or open; again, unless it is shut
-- Reply {1 done or 0 not, state as of latch.lua}
-- include once.lua

local before = recorded()
-- include latch.lua

if before then return {tonumber(before), round()} end
local may = latch.phase ~= 's' and (ARGV[7] == 'again' or latch.phase ~= 'o')
record(may and '1' or '0') -- refused when memory is short, and then nothing is done
if may then
  local ttl = tonumber(ARGV[6])
  shut(ttl)
  count = ARGV[5]
  if ttl > 0 then
    redis.call('SET', KEYS[1], count, 'PX', decimal(ttl + MARGIN))
  else
    redis.call('SET', KEYS[1], count)
  end
end
forget_answered()
if may then redis.call(ARGV[4], ARGV[3], NEW_COUNT) end
return {may and 1 or 0, round()}
