-- count: count a latch down. At zero it opens. Takes effect once, and once for each participant and
-- generation. Counts are text here, because they have 64 bits, and Lua's numbers 53.
--
-- Keys  as in latch/state.lua
-- ARGV  1 id of this command, 2 answered commands: see shared/once.lua
--       3 how much to count down
--       4 participant; may be missing
-- Reply {'1', what remains}  counted, by this command or an earlier copy
--       {'2', what remains}  nothing changed: the participant had counted before
--       {'0', what remains}  nothing changed: more than remains
--       {phase, '0'}         nothing changed: the latch is not shut
-- The reply is what is recorded: a copy gets the same reply as the first one.
-- include latch/quick.lua
-- moves
-- include shared/once.lua

exempt_from_memory_limit()
local before = recorded('^%w %d+$')
if before then return forget_answered({string.match(before, '^(%S+) (%d+)$')}) end
-- include latch/state.lua

local participant = ARGV[4] and 'p:' .. ARGV[4]
local status, rest = '1', latch.phase == 's' and count or '0'
if participant and (latch.phase == 's' or latch.phase == 'o')
  and redis.call('HEXISTS', RECORD, participant) == 1 then
  status = '2'
elseif latch.phase ~= 's' then
  status = latch.phase
elseif #ARGV[3] > #count or #ARGV[3] == #count and ARGV[3] > count then
  status = '0'
else
  redis.call('DECRBY', NAME, ARGV[3])
  rest = redis.call('GET', NAME)
  if participant then redis.call('HSET', RECORD, participant, '1') end
  if rest == '0' then
    redis.call('DEL', NAME)
    open()
    publish(ZERO_COUNT)
  end
end
record(status .. ' ' .. rest)
return forget_answered({status, rest})
