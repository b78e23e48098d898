-- barrier_settle: what becomes of the generation of an arrival: the action is done and the next generation begins, or it is broken.
-- When the arrival is not known it never will: a late copy of it does nothing. Safe to repeat.
--
-- KEYS  as in barrier.lua
-- ARGV  1 id of the arrival, 2 answered commands: see once.lua
--       3 channel, 4 publish verb
--       5 p the action is done; else why it is broken: c the party gives up, a the action failed
-- Reply {generation and index of the arrival, 0, state as of barrier.lua}; {-2, 0, 0, state} when it is not known
-- include once.lua

local before = recorded()
-- include barrier.lua

local generation, index = string.match(before or '', '^(%d+):(%d+)$')
generation, index = tonumber(generation or '-2'), tonumber(index or '0')
local told = expired
forget_answered() -- and from here on nothing is refused for lack of memory
if generation == -2 then
  record('given up')
elseif generation == barrier.generation and is_waiting() then
  if ARGV[5] ~= 'p' then
    break_generation(ARGV[5])
    told, ends = true, -1
  elseif barrier.phase == 'a' and barrier.leader == ARGV[1] then
    advance()
    told, ends = true, -1
  end
end
if told then tell() end
return {generation, index, 0, round()}
