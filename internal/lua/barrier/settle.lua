-- settle: end the generation of an arrival. The action is done and the next generation begins, or the
-- generation is broken. When the client does not know whether its party has arrived, this makes sure that it
-- never does: a late copy of the arrival does nothing. Safe to repeat.
--
-- Keys  as in barrier/state.lua
-- ARGV  1 id of the arrival, 2 answered commands: see shared/once.lua
--       3 p the action is done; any other letter says why the generation is broken: c the party gives up,
--         a the action failed, s Redis has lost the arrival
--       4 generation and 5 index of the arrival; 0 if its client does not know them
-- Reply {generation and index of the arrival, 0, state: see round in barrier/state.lua}
--       {GIVENUP, 0, 0, state}  there is no such arrival
-- include barrier/known.lua

exempt_from_memory_limit()
local before = known()
-- include barrier/state.lua

local generation, index = string.match(before or '', '^(%d+):(%d+)$')
generation, index = tonumber(generation or ARGV[4]), tonumber(index or ARGV[5])
if generation == 0 then
  generation = REPLY_GIVENUP
  record('given up')
elseif generation == barrier.generation and is_waiting() then
  if ARGV[3] ~= 'p' then
    break_generation(ARGV[3])
    over = true
  elseif barrier.phase == 'a' and barrier.leader == ARGV[1] then
    advance()
    over = true
  end
end
tell_what_changed()
return forget_answered({generation, index, 0, round()})
