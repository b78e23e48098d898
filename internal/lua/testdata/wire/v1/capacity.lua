-- capacity: initialise a semaphore, or change how many permits it has. Growing grants to those who wait. Of leased permits the
-- number is that of all, held or free; of plain ones that of the free. Safe to repeat: both numbers are recorded under the
-- command's id, and a copy answers with them as they were.
--
-- KEYS  as in trade.lua
-- ARGV  1 id of this command, like an owner's, 2 inbox prefix, 3 publish verb, 4 floor: as in trade.lua
--       5 mode     try: unless it is initialised; set; add: to what it has; state: as set, unless a client that began later
--                  has stated something; drain: take all that are free (plain permits)
--       6 number
--       7 greatest number
--       8 mode state: when the client began, in microseconds since the epoch
-- Reply {1, number, free} done, with the number there is, and the free permits (drain: those that were taken)
--       {0, number, free} nothing changed: it was initialised, or stated by somebody who began later
--       {-4, 0, 0}        not initialised (add, drain)
--       {-6, number, 0}   the number would be out of range; nothing changed
-- include permits.lua

local STATED_KEPT, ONCE_KEPT = '2592000000', '600000' -- ms: thirty days, ten minutes
local mode, n = ARGV[5], tonumber(ARGV[6])
local once, stated = KEYS[5] .. ':' .. ARGV[1], KEYS[5] .. ':stated'
ready()
if moving then moving.need(mode == 'state' and stated or once) end
local function total() return COUNTS_HELD and capacity() or free or 0 end

local before = mode ~= 'state' and redis.call('GET', once)
if before then -- an earlier copy did it, and this is what it answered
  local number, rest = string.match(before, '^(-?%d+):(-?%d+)$')
  if not number or #before > 24 then error('WRONGTYPE ' .. once .. ' does not say what was changed') end
  return {1, tonumber(number), tonumber(rest)}
end
local statement = ARGV[8] .. ':' .. ARGV[6]
if (mode == 'add' or mode == 'drain') and not free then
  return {-4, 0, 0}
elseif mode == 'try' and free then
  return {0, total(), free}
elseif mode == 'state' and free then
  local last = redis.call('GET', stated) or ''
  if last == statement or #last <= 32 and (tonumber(string.match(last, '^%d+:') and string.match(last, '^%d+')) or 0) > tonumber(ARGV[8]) then return {0, total(), free} end
end

open_queue().reclaim()
local goal = n
if mode == 'add' then goal = total() + n end
if mode == 'drain' then goal = math.min(free, 0) end
if goal < 0 and COUNTS_HELD or math.abs(goal) > tonumber(ARGV[7]) then return {-6, total(), 0} end
bonus = goal - total() -- permits may be out that were taken before the semaphore was deleted
free = (free or 0) + bonus
given = given or bonus > 0
queue.grant() -- which writes nothing
local number, rest = total(), mode == 'drain' and math.abs(bonus) or free
if mode == 'state' then
  redis.call('SET', stated, statement, 'PX', STATED_KEPT)
else
  redis.call('SET', once, decimal(number) .. ':' .. decimal(rest), 'PX', ONCE_KEPT)
end
commit()
return {1, number, rest}
