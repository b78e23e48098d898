-- barrier_settle: what becomes of the generation of an arrival: the action is done and the next generation
-- begins, or it is broken. When it is not known whether the party has arrived, it never will: a late copy of
-- the arrival does nothing. Safe to repeat.
--
-- KEYS  as in barrier.lua
-- ARGV  1 id of the arrival, 2 answered commands: see once.lua
--       3 channel, 4 publish verb
--       5 p the action is done; else why it is broken: c the party gives up, a the action failed,
--         s the arrival was lost
--       6 generation and 7 index of the arrival as its client knows them, 0 if it does not
-- Reply {generation and index of the arrival, 0, state as of barrier.lua}
--       {-2, 0, 0, state}  there is none
-- include once.lua

exempt_from_memory_limit()
local before = recorded('^%d+:%d+$', '^%-?[01]$', '^given up$')
-- include barrier.lua

local generation, index = string.match(before or '', '^(%d+):(%d+)$')
generation, index = tonumber(generation or ARGV[6]), tonumber(index or ARGV[7])
if generation == 0 then
  generation = -2
  record('given up')
elseif generation == barrier.generation and is_waiting() then
  if ARGV[5] ~= 'p' then
    break_generation(ARGV[5])
    over = true
  elseif barrier.phase == 'a' and barrier.leader == ARGV[1] then
    advance()
    over = true
  end
end
tell_what_changed()
return forget_answered({generation, index, 0, round()})
