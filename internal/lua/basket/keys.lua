-- keys: a script for several locks of one slot begins with this file, in place of shared/keys.lua. It turns
-- to one lock after the other, so that what works on one lock works here.
--
-- KEYS  of each lock: lock, queue, token, as in lock/acquire.lua
-- ARGV  1 publish verb
--       2 and 3: of the script
--       then of each lock: owner id, floor, lease in ms, as in lock/acquire.lua
--
-- All keys are named. So while the slot moves, the server refuses the call when some are not here (TRYAGAIN),
-- and the caller asks for one lock after the other.

local all, given = KEYS, ARGV
local KEYS, ARGV = {}, {nil, nil, given[1]}
local moving -- as in shared/keys.lua, and never set
local count = #all / 3

-- From here on, KEYS and ARGV are those of the lock with this number, as in lock/acquire.lua. In a cluster,
-- each name has inboxes of its own, which share its slot as the queue does.
local function turn_to(i)
  KEYS[1], KEYS[2], KEYS[3] = all[3 * i - 2], all[3 * i - 1], all[3 * i]
  ARGV[1], ARGV[4], ARGV[5] = given[3 * i + 1], given[3 * i + 2], given[3 * i + 3]
  ARGV[2] = 'latchkey_inbox' .. (given[1] == 'SPUBLISH' and string.sub(KEYS[2], 15) or '') .. ':'
end
