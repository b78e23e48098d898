-- leave: end many waits in one step: remove where these ids queue and what they own, and give what this makes free to the next
-- waiters. Safe to repeat: the second time finds nothing. For all that grants.
--
-- KEYS  as in acquire.lua or trade.lua
-- ARGV  1 unused, 2 inbox prefix, 3 publish verb, 4 floor: as in acquire.lua
--       then for each id, the oldest first: owner id, its queue entry, how often that is removed (0: wherever it stands)
-- Reply how many ids were handled: at least the first two (a wait and what was offered for it), not all of them when the queue
--       is long
-- include grants.lua

-- Each removal may have to look at the whole queue, so what one script looks at is bounded: other clients wait for it. The
-- oldest ids stand near the head, and take far less.
local LOOKS = 500000

local n = (#ARGV - 4) / 3
local length = redis.pcall('LLEN', KEYS[2])
if type(length) == 'number' then -- another type under a companion's name is left alone
  n = math.min(n, math.max(2, math.floor(LOOKS / (length + 1))))
  for i = 1, n do redis.call('LREM', KEYS[2], ARGV[3 * i + 4], ARGV[3 * i + 3]) end
end
local ids = {}
for i = 1, n do ids[i] = ARGV[3 * i + 2] end
give_back(ids)
return n
