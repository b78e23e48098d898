-- capacity: initialise a semaphore, or change how many permits it has. What becomes free is granted to those
-- who wait. The number is that of all leased permits, held or free; of plain permits, that of the free ones.
-- Safe to repeat: the reply is recorded under the command's id, and a copy gets the same.
--
-- Keys  as in permit/trade.lua
-- ARGV  1 id of this command, like an owner's
--       2 floor: as in permit/trade.lua
--       3 mode     try     set the number, unless the semaphore is initialised
--                  set     set the number
--                  add     add the number
--                  state   set the number, unless a client that began later has stated one. A number of plain
--                          permits that there is stays: how many are held is not known. 0: the client
--                          states none, and says that it uses the semaphore
--                  drain   take all free permits (plain permits)
--       4 number
--       5 greatest number
--       6 when the client began, in microseconds since the epoch (mode state)
-- Reply {1, number, free} done; free: how many permits are free, or were taken (drain)
--       {0, number, free} nothing changed: it was initialised, or a later client has stated a number
--       {UNSET, 0, 0}      not initialised (add, drain)
--       {RANGE, number, 0} the number would be out of range; nothing changed
--
-- A semaphore whose number was stated goes when no client has used it for UNUSED. Each says every hour, or
-- more often, that it does. Of leased permits it is known what is out, also when the number of free ones has
-- gone.
--
-- A store stands in front of this file.
-- include permit/transaction.lua

local ONCE_KEPT = '600000' -- ms
local UNUSED = COUNTS_HELD and 86400000 or 2592000000 -- a day, or thirty
-- redisson UNUSED = 7776000000 -- ninety: what Redisson's clients use is not seen
local mode, n = ARGV[3], tonumber(ARGV[4])
local once, stated = DONE .. ':' .. ARGV[1], DONE .. ':stated'
ready()
if moving then moving.need(mode == 'state' and stated or once) end

-- The statement outlives the number. So it is known that the time to live is ours.
local function stay()
  redis.call('PEXPIRE', stated, decimal(UNUSED + 60000))
  redis.call('PEXPIRE', NAME, decimal(UNUSED))
  if TIMEOUTS then redis.call('PERSIST', TIMEOUTS) end
end
local function total() return COUNTS_HELD and capacity() or free or 0 end

local before = mode ~= 'state' and redis.call('GET', once)
if before then -- an earlier copy did it, and replied this
  local number, rest = string.match(before, '^(-?%d+):(-?%d+)$')
  if not number or #before > 24 then error('WRONGTYPE ' .. once .. ' does not say what was changed') end
  return {1, tonumber(number), tonumber(rest)}
end
local statement = ARGV[6] .. ':' .. ARGV[4]
if (mode == 'add' or mode == 'drain') and not free then
  return {REPLY_UNSET, 0, 0}
elseif mode == 'try' and free then
  return {0, total(), free}
elseif mode == 'state' and (free or n == 0) then
  local last = redis.call('GET', stated) or ''
  local began = #last <= 32 and string.match(last, '^(%d+):')
  if last == statement or began and tonumber(began) > tonumber(ARGV[6]) or n == 0 or not COUNTS_HELD then
    if last ~= '' then stay() end
    return {0, total(), free or 0}
  end
end

open_queue().reclaim()
local goal = n
if mode == 'add' then goal = total() + n end
if mode == 'drain' then goal = math.min(free, 0) end
if goal < 0 and COUNTS_HELD or math.abs(goal) > tonumber(ARGV[5]) then return {REPLY_RANGE, total(), 0} end
bonus = goal - total() -- permits may be out that were taken before the semaphore was deleted
free = (free or 0) + bonus
given = given or bonus > 0
queue.grant() -- this writes nothing
local number, rest = total(), mode == 'drain' and math.abs(bonus) or free
if mode == 'state' then
  redis.call('SET', stated, statement, 'PX', decimal(UNUSED + 60000))
else
  redis.call('SET', once, decimal(number) .. ':' .. decimal(rest), 'PX', ONCE_KEPT)
end
commit()
if mode == 'state' then stay() end
return {1, number, rest}
