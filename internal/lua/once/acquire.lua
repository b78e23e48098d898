-- acquire: take the lock of the name, or join its queue, and begin a run with it if it is had at once. Where
-- there is an outcome, or no run may follow, the lock is left alone. Safe to repeat, as lock/acquire.lua and
-- once/begin.lua are.
--
-- Keys  as in lock/acquire.lua and once/state.lua
-- ARGV  as in lock/acquire.lua; then
--       1 number of an outcome that is too old, 0 for none. Or empty: all that there is by now
--       2 how many runs there may be, 0 for any number
--       3 ms that the record is kept while the run lasts
--       4 ms that it is kept at least, where 1 is empty
--       5 edition, 0 where there are none
--       6 moment of the server's clock in microseconds after which no run begins; 0: none. A copy that comes
--         later than its sender waits may still take the lock, which is cancelled
-- Reply {how the acquire ended, how the run began, number, clock}
--       the first as in lock/acquire.lua; 0 if it was left alone
--       the second as in once/begin.lua; 0 if the lock was not had, or it is not told whether the run may begin
--       the third: only outcomes with greater numbers are for this caller
--       the fourth: the server's clock in microseconds
-- include once/quick.lua
-- moves
-- include once/begun.lua
-- include once/arrival.lua

local split = #ARGV - 6
local since, most, edition = ARGV[split + 1], tonumber(ARGV[split + 2]), tonumber(ARGV[split + 5])
since = since == '' and arrive(ARGV[split + 4]) or tonumber(since)
if phase == 'o' and over > since then return {0, {'o', f[5], f[6], decimal(over)}, decimal(since), decimal(micros)} end
is_of(edition)
local none = phase == 'f' and exhausted(most) -- else the last run may still have an outcome
if none then return {0, none, decimal(since), decimal(micros)} end

local function acquire()
  local ARGV = {unpack(ARGV, 1, split)}
  -- include lock/acquire.lua
end
local reply = acquire()
if type(reply) == 'table' and reply.err then return reply end
local mine = type(reply) == 'string' and reply or type(reply) == 'table' and reply[1] == 0 and reply[2]
local latest = tonumber(ARGV[split + 6])
if not mine or gone == ARGV[1] or latest > 0 and micros > latest then return {reply, 0, decimal(since), decimal(micros)} end
return {
  reply, begin(tonumber(mine), since, most, ARGV[split + 3], asker == ARGV[1], edition, ARGV[1]), decimal(since),
  decimal(micros),
}
