-- leave: end many waits in one step. It removes the queue entries of the given ids, ends what the ids own,
-- and grants to the next waiters what that makes free. Safe to repeat: the second time finds nothing.
--
-- The script in front of this file defines give_back(ids): lock/grant.lua, or permit/transaction.lua.
--
-- Keys  as in lock/acquire.lua or permit/trade.lua
-- ARGV  1 unused, 2 floor: as in lock/acquire.lua
--       then for each id, the oldest first: owner id; its queue entry; how many copies of the entry to remove
--       (0: all)
-- Reply the numbers, from 1, of ids that were not handled because the queue is long: send those again. The
--       first two are always handled (a wait, and what was offered for it)
-- keys QUEUE

-- A script may look at so many entries only, because other clients wait for it. BUDGET counts the entries
-- that Redis compares by itself. An entry that the script reads costs READ times as much. A sweep reads
-- WINDOW entries at most, unless it reads the whole queue.
local BUDGET, READ, WINDOW = 200000, 16, 4000
local GONE = '' -- replaces each entry to remove, until one pass removes them all

local n = (#ARGV - 2) / 3
local length = redis.pcall('LLEN', QUEUE)
local wanted = {} -- by entry: how many copies are still to be removed
local spent = 0

-- Removes all wanted entries from a part of the queue. The time does not grow with their number. Redis could
-- refuse LSET for lack of memory as the first write of a script. So LTRIM comes first: Redis never refuses
-- it, and here it removes nothing.
local function sweep(from, count)
  local entries, kept, found = redis.call('LRANGE', QUEUE, from, from + count - 1), {}, {}
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
  local moves = found[gone] + 1 - gone -- how many kept entries stand before the last removed one
  redis.call('LTRIM', QUEUE, 0, -1)
  if from == 0 and moves < gone then
    for i = moves, 1, -1 do redis.call('LSET', QUEUE, gone + i - 1, kept[i]) end
    redis.call('LTRIM', QUEUE, gone, -1)
  else
    for _, at in ipairs(found) do redis.call('LSET', QUEUE, at, GONE) end
    redis.call('LREM', QUEUE, gone, GONE)
  end
end

-- Removes an entry. others: how many ids follow. Their entries very likely stand near this one.
local function remove(entry, others)
  if others > 0 then
    local at = redis.call('LPOS', QUEUE, entry)
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
    length = length - redis.call('LREM', QUEUE, copies == math.huge and 0 or copies, entry)
    wanted[entry] = 0
  end
end

local ids, left = {}, {}
if type(length) == 'number' and length > 0 then -- foreign data under the queue's name is left alone
  for i = 1, n do
    local entry, copies = ARGV[3 * i + 1], tonumber(ARGV[3 * i + 2])
    wanted[entry] = copies == 0 and math.huge or (wanted[entry] or 0) + copies
  end
  -- Here one sweep of the whole queue is fastest. What it does not find is not there.
  if READ < n and READ * length < BUDGET then
    sweep(0, length)
    wanted = {}
  end
end
for i = 1, n do
  local entry = ARGV[3 * i + 1]
  local sought = (wanted[entry] or 0) > 0 and length > 0
  if sought and spent >= BUDGET and #ids >= 2 then
    left[#left + 1] = i
  else
    if sought then remove(entry, n - i) end
    ids[#ids + 1] = ARGV[3 * i]
  end
end
give_back(ids)
return left
