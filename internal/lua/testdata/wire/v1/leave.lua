-- leave: end many waits in one step: remove where these ids queue and what they own, and give what this makes free to the next
-- waiters. Safe to repeat: the second time finds nothing. For all that grants.
--
-- KEYS  as in acquire.lua or trade.lua
-- ARGV  1 unused, 2 inbox prefix, 3 publish verb, 4 floor: as in acquire.lua
--       then for each id, the oldest first: owner id, its queue entry, how often that is removed (0: wherever it stands)
-- Reply the numbers, from 1, of the ids that were not handled, because the queue is long: send those again. The first two are
--       always handled (a wait and what was offered for it)
-- include grants.lua

-- What one script looks at is bounded: other clients wait for it. BUDGET counts the entries that Redis compares by itself; one
-- that is read into the script costs READ times as much. A sweep reads WINDOW entries at most, unless all that there is.
local BUDGET, READ, WINDOW = 200000, 16, 4000
local GONE = '' -- stands for an entry that is removed, until all of them go in one pass

local n = (#ARGV - 4) / 3
local length = redis.pcall('LLEN', KEYS[2])
local wanted = {} -- by entry: how many copies are still to be removed
local spent = 0

-- Removes all that is wanted of a part of the queue. Its time does not grow with how much that is. LSET could be refused for lack
-- of memory as the first write of a script; LTRIM cannot, which removes nothing here.
local function sweep(from, count)
  local entries, kept, found = redis.call('LRANGE', KEYS[2], from, from + count - 1), {}, {}
  for i, entry in ipairs(entries) do
    local copies = wanted[entry]
    if copies and copies > 0 then
      wanted[entry] = copies - 1
      found[#found + 1] = from + i - 1
    else
      kept[#kept + 1] = entry
    end
  end
  local gone = #found
  spent = spent + 2 * from + READ * #entries
  length = length - gone
  if gone == 0 then return end
  local moves = found[gone] + 1 - gone -- of what is kept, behind what is not
  redis.call('LTRIM', KEYS[2], 0, -1)
  if from == 0 and moves < gone then
    for i = moves, 1, -1 do redis.call('LSET', KEYS[2], gone + i - 1, kept[i]) end
    redis.call('LTRIM', KEYS[2], gone, -1)
  else
    for _, at in ipairs(found) do redis.call('LSET', KEYS[2], at, GONE) end
    redis.call('LREM', KEYS[2], gone, GONE)
  end
end

-- Removes an entry. Others that are still to be removed very likely stand near it.
local function remove(entry, others)
  if others > 0 then
    local at = redis.call('LPOS', KEYS[2], entry)
    local count = math.min(2 * others + 2, WINDOW)
    if at then
      sweep(at < count and 0 or at, count)
    else
      wanted[entry] = 0
      spent = spent + length
    end
  end
  local copies = wanted[entry]
  if copies > 0 and length > 0 then
    spent = spent + length
    length = length - redis.call('LREM', KEYS[2], copies == math.huge and 0 or copies, entry)
    wanted[entry] = 0
  end
end

local ids, left = {}, {}
if type(length) == 'number' and length > 0 then -- another type under a companion's name is left alone
  for i = 1, n do
    local entry, copies = ARGV[3 * i + 3], tonumber(ARGV[3 * i + 4])
    wanted[entry] = copies == 0 and math.huge or (wanted[entry] or 0) + copies
  end
  if READ < n and READ * length < BUDGET then -- then all are found soonest in one sweep, and what it does not find is not there
    sweep(0, length)
    wanted = {}
  end
end
for i = 1, n do
  local entry = ARGV[3 * i + 3]
  local sought = (wanted[entry] or 0) > 0 and length > 0
  if sought and spent >= BUDGET and #ids >= 2 then
    left[#left + 1] = i
  else
    if sought then remove(entry, n - i) end
    ids[#ids + 1] = ARGV[3 * i + 2]
  end
end
give_back(ids)
return left
