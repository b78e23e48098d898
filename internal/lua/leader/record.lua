-- record: who leads, beside the lock that the leader holds.
--
-- NAME    HASH   the lock: see lock/acquire.lua
-- QUEUE   LIST   its waiters
-- RECORD  HASH   token  of the term, in 16 digits; missing: the last one is over
--                who    text of the leader's process
--                since  the server's clock in microseconds when the term began
--                p:<client id>  a candidate of that client is preferred: ms since the epoch when it said so
--                It lives a day from its last use. What it says of a term is true only while the lock has the
--                same token: who reads it compares
-- NEWS    channel: a message says that it may have changed
-- keys QUEUE RECORD NEWS

local RECORD_KEPT = '86400000' -- ms

if moving then moving.need(RECORD) end
local said = redis.call('HMGET', RECORD, 'token', 'who', 'since')
if said[1] and not (#said[1] == 16 and string.find(said[1], '^%d+$') and said[1] <= '9007199254740990'
    and said[2] and said[3] and #said[3] == 16 and string.find(said[3], '^%d+$')) then
  error('WRONGTYPE ' .. RECORD .. ' holds data that is not of a leader')
end

-- Publishes that it has changed. It is a hint: who may not publish has written all the same.
local function publish() redis.pcall(VERB, NEWS, '1') end
