-- acquire: take the lock of the name, or join its queue, and begin the run of a tick with it if it is had at
-- once. Safe to repeat, as lock/acquire.lua and every/begin.lua are.
--
-- Keys  as in lock/acquire.lua and every/state.lua
-- ARGV  as in lock/acquire.lua; then
--       1, 2, 3: see every/state.lua
--       4, 5, 6 as arguments 5, 6 and 7 of every/begin.lua
--       7 as the last one of once/acquire.lua
--       8 who runs it, in a text
-- Reply {how the acquire ended, how the run began}
--       the first as in lock/acquire.lua, the second as in every/begin.lua; 0 if the lock was not had, or it
--       is not told whether the run may begin

local SENT, split = ARGV, #ARGV - 8
local ARGV = {unpack(SENT, split + 1)} -- as every/state.lua reads them
-- include every/begun.lua

need_listed(ARGV[4] == 'all') -- before anything is done
local function acquire()
  local ARGV = {unpack(SENT, 1, split)}
  -- include lock/acquire.lua
end
local reply = acquire()
if type(reply) == 'table' and reply.err then return reply end
local mine = type(reply) == 'string' and reply or type(reply) == 'table' and reply[1] == 0 and reply[2]
local latest = tonumber(ARGV[7])
if not mine or gone == SENT[1] or latest > 0 and micros > latest then return {reply, 0} end
return {
  reply, begin(tonumber(mine), ARGV[4], tonumber(ARGV[5]), tonumber(ARGV[6]), asker == SENT[1], ARGV[8], SENT[1]),
}
