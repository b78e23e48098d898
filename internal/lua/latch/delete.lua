-- delete: delete a latch. A message tells its waiters. A record says for a while that there was a latch.
-- Takes effect once.
--
-- Keys  as in latch/state.lua
-- ARGV  1 id of this command, 2 answered commands: see shared/once.lua
-- Reply 1 there was one, shut or remembered, 0 there was none
-- include shared/once.lua

exempt_from_memory_limit()
local before = recorded('^[01]$')
if before then return forget_answered(tonumber(before)) end
-- include latch/state.lua

local existed = latch.phase ~= 'n' and latch.phase ~= 'd'
record(existed and '1' or '0')
if existed then
  if latch.phase == 's' then spoil(latch, 'd') end
  if latch.phase == 'x' then spoil(latch, 'x') end
  redis.call('DEL', NAME)
  redis.call('HSET', RECORD, 'generation', decimal(latch.generation), 'first', decimal(latch.first),
    'bad', latch.bad, 'phase', 'd', 'ttl', '0', 'until', '0')
  forget_participants()
  redis.call('PEXPIRE', RECORD, decimal(KEPT))
  publish(NEW_COUNT)
end
return forget_answered(existed and 1 or 0)
