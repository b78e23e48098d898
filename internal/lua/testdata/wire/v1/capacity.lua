-- capacity: initialise a semaphore, or change how many permits it has. Growing grants to those who wait. Of leased permits the
-- number is that of all, held or free; of plain ones that of the free. Safe to repeat.
--
-- KEYS  as in take.lua
-- ARGV  1 owner id of this command, 2 inbox prefix, 3 publish verb, 4 floor: as in take.lua
--       5 mode     try: unless it is initialised; set; add: to what it has; state: as set, unless a client that began later
--                  has stated something; drain: take all that are free (plain permits)
--       6 number
--       7 greatest number
--       8 mode state: when the client began, in microseconds since the epoch
-- Reply {1, number, free} done, with the number there is, and the free permits (drain: those that were taken)
--       {0, number, free} nothing changed: it was initialised, or stated by somebody who began later
--       {-4, 0, 0}        not initialised (add, drain)
--       {-6, number, 0}   the number would be out of range; nothing changed
-- include token.lua
-- include permits.lua

local DAY_AND_MORE = '172800000' -- ms
local mode, n = ARGV[5], tonumber(ARGV[6])
local once = KEYS[5] .. ':' .. ARGV[1]
local now, free = micros(), available()
local known = capacity(0) < math.huge -- of plain permits nobody knows how many are out

local function total() return known and capacity(free) or free end

if mode == 'add' or mode == 'drain' then
  local before = redis.call('GET', once)
  if not free then return {-4, 0, 0} end
  if before then return {1, total(), tonumber(before)} end
elseif mode == 'state' then
  local stated = KEYS[5] .. ':stated'
  local began = tonumber(redis.call('GET', stated) or '0')
  if free and began and began > tonumber(ARGV[8]) then return {0, total(), free} end
  redis.call('SET', stated, ARGV[8], 'PX', DAY_AND_MORE)
elseif mode == 'try' and free then
  return {0, total(), free}
end

free = add(free, reclaim(now, drop_unresponsive))
local goal
if mode == 'add' then
  goal = total() + n
elseif mode == 'drain' then
  goal = 0
else
  goal = n
end
if goal < 0 and known or goal > tonumber(ARGV[7]) then return {-6, total(), 0} end
local change
if not free then
  change = known and goal - capacity(0) or goal -- permits may be out that were taken before the semaphore was deleted
  redis.call('SET', KEYS[1], decimal(change))
  free = change
else
  change = goal - total()
  if mode == 'drain' then change = -math.max(free, 0) end
  free = add(free, change)
end
if mode == 'add' then redis.call('SET', once, free, 'PX', '600000') end
if mode == 'drain' then
  redis.call('SET', once, decimal(-change), 'PX', '600000')
  return {1, 0, -change}
end
local number = total()
free = grant(free, nil, now)
if change > 0 then announce(free) end
return {1, number, free}
