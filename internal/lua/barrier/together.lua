-- together: several parties of a client arrive at a barrier, one after the other. Each takes effect once, also when its command
-- is sent by itself as well.
--
-- Keys  as in barrier/state.lua
-- ARGV  1 to 6 as in barrier/arrive.lua, of the first party. All have the same but the id
--       ids of the commands of the others
-- Reply {generation, index, 1 to run the action, ..., state}  as in barrier/arrive.lua: three for each party

local ARGV = {unpack(ARGV)} -- some servers refuse changes of the globals
-- include barrier/known.lua

if moving and ARGV[6] ~= '' then moving.need(DONE .. ':' .. ARGV[6]) end
local ids, before = {ARGV[1], unpack(ARGV, 7)}, {}
for i, id in ipairs(ids) do
  ARGV[1] = id
  before[i] = known() or false
end
-- include barrier/state.lua
-- include barrier/one.lua

local reply = {}
for i, id in ipairs(ids) do
  ARGV[1] = id
  local generation, index, leads = arrive(before[i])
  reply[#reply + 1], reply[#reply + 2], reply[#reply + 3] = generation, index, leads
end
tell_what_changed()
reply[#reply + 1] = round()
return forget_answered(reply)
