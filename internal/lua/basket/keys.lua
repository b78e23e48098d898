-- keys: a script for several locks of one slot begins with this file. It turns
-- to one lock after the other, so that what works on one lock works here.
--
-- KEYS  of each lock: NAME, QUEUE, TOKEN, as in lock/acquire.lua; then others that a server wants to hear of
-- ARGV  1 publish verb
--       2 and 3: of the script
--       then of each lock: owner id, floor, lease in ms, as in lock/acquire.lua
--
-- All keys are named. So while the slot moves, the server refuses the call when some are not here (TRYAGAIN),
-- and the caller asks for one lock after the other.

local all, given = KEYS, ARGV
local ARGV, NAME, QUEUE, TOKEN, PACE, INBOX = {}
local VERB, NUMSUB = given[1], given[1] == 'SPUBLISH' and 'SHARDNUMSUB' or 'NUMSUB'
local moving -- as in shared/moving.lua, and never set
local SLOTS = VERB == 'SPUBLISH' or nil
local count = (#given - 3) / 3

-- From here on, the keys and ARGV are those of the lock with this number, as in lock/acquire.lua. In a
-- cluster, each name has inboxes of its own, which share its slot as the queue does.
local function turn_to(i)
  NAME, QUEUE, TOKEN = all[3 * i - 2], all[3 * i - 1], all[3 * i]
  ARGV[1], ARGV[2], ARGV[3] = given[3 * i + 1], given[3 * i + 2], given[3 * i + 3]
  PACE = 'latchkey_pace' .. string.sub(QUEUE, 15) -- after 'latchkey_queue'
  INBOX = 'latchkey_inbox' .. (VERB == 'SPUBLISH' and string.sub(QUEUE, 15) or '') .. ':'
end
