-- reset: begin a generation in which nobody has arrived. The one before is broken for those who wait in it.
-- Takes effect once.
--
-- Keys  as in barrier/state.lua
-- ARGV  1 id of this command, 2 answered commands: see shared/once.lua
-- Reply 1
-- include shared/once.lua

exempt_from_memory_limit()
local before = recorded('^reset$')
if before then return forget_answered(1) end
-- include barrier/state.lua

record('reset')
if barrier.waiting > 0 then spoil(barrier, 'r') end
if barrier.phase ~= 'n' then
  advance()
  tell()
end
return forget_answered(1)
