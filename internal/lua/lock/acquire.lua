-- acquire: take the lock, or join its queue. A waiter also uses it to ask again ("re-check"), and to confirm
-- a grant. Safe to repeat: an owner id is for one tenure, and an owner that asks again gets the token that it
-- has, with its whole lease.
--
-- NAME   HASH   <owner id> -> t<token>+<numbers reserved>l/<longest lease in ms>!<clock>
--               +<numbers>  reserved for further holds of the same process. They say too that it hands on
--                           inside, and so it must hear that others wait. Missing: none
--               l           the owner may linger, which is to own the lock while nobody uses it
--               !<clock>    when a message granted it, in microseconds, until its first renewal
--               A lock of Redisson has one field too, with a count
-- QUEUE  LIST   of 1:<client id>:<number>:<lease in ms>:<block>; the head is next
-- TOKEN  STRING last number handed out or reserved
-- INBOX  a client's inbox is this prefix followed by the client id
-- VERB   PUBLISH or SPUBLISH
-- ARGV  1 owner id         <client id>:<number unique within the client>
--       2 floor            highest token of this name that this client has seen, in 16 digits, and a space.
--                          Or 16 digits alone: what the clock shows now, as this client reckons, above
--                          all tokens that it has seen
--       3 lease            ms
--       4 mode             try (with or without a deadline), first, again: see
--                          shared/attempt.lua; missing: first
--       5 block            how many tokens to reserve when the lock is granted from the queue, for further
--                          holds of the same process; missing or 0: none. With l behind it the owner may
--                          linger: then they are reserved in any case
--       6 longest queue    entries; missing: LONGEST
-- Or    1 entry, 2 floor   mode first, from a client that was queued the last time. It very likely will be
--                          again, so the lock's owner is looked at first
-- Reply token                         the caller owns the lock
--       {0, token, reserved, others}  the same, with reserved tokens; others: 1 when somebody waits, else 0
--       {sequence, ends, now}         queued; sequence: the number of its place, greater than all numbers
--                                     before. When the id was queued before, it is the last number,
--                                     negated; or 0
--                                     ends: ms until the caller must ask again, because the holder's lease or
--                                     another one may end then (shared/pace.lua); -1: no lease ends
--                                     now: the server's clock in microseconds
--       ends, as a number             queued, and the number of its place is the clock as the caller reckons
--       {BUSY, ends, now}             somebody else holds it (mode try); now may be 0: not told
--       {FULL, length, now}           the queue is full
--       {LATE, 0, now}                the deadline was over: nothing was done
--       {LINGERS, ends, now}          somebody else holds it (mode try), who may linger, and was told that
--                                     this id wants it: ask again when he answers
--
-- A lock with another order of its queue replaces this file by one with another enqueue.
-- keys QUEUE TOKEN

-- redisson -- include shared/keptback.lua
local ARGV, entry = ARGV, nil -- some servers refuse changes of the globals
if ARGV[3] then
  -- inline lock/take.lua
else
  entry = ARGV[1]
end
-- include lock/join.lua
if entry then
  local id, lease = string.match(entry, '^1:(.+):(%d+):0$')
  ARGV = {id, ARGV[2], lease}
  -- inline lock/take.lua
end

local function enqueue(entry) return redis.call('RPUSH', QUEUE, entry) end

-- include lock/contend.lua
