-- inspect: the state of a latch, and who has counted. Safe to repeat.
--
-- Keys  as in latch/state.lua
-- ARGV  1 how many participants to list
-- Reply {state: see round in latch/state.lua, {participant, ...}}
-- include latch/state.lua

local listed, most = {}, tonumber(ARGV[1])
local cursor = most > 0 and (latch.phase == 's' or latch.phase == 'o') and '0'
while cursor do
  local page = redis.call('HSCAN', RECORD, cursor, 'MATCH', 'p:*', 'COUNT', '500')
  for i = 1, #page[2], 2 do
    if #listed < most then listed[#listed + 1] = string.sub(page[2][i], 3) end
  end
  cursor = page[1] ~= '0' and #listed < most and page[1]
end
return {round(), listed}
