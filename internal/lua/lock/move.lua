-- move: give what an owner has to another owner id, with its token. Nobody has it in between. Safe to repeat:
-- the second time finds the other id. A late copy does nothing once neither of both owns the lock.
--
-- Keys  as in lock/acquire.lua
-- ARGV  1 the other owner id
--       2 unused
--       3 lease            ms, which begins now
--       4 mode             try, which may have a deadline: see shared/attempt.lua
--       5 owner id         that has the lock
--       6 token            of the hold, which may be one of those that were reserved for its process;
--                          missing: the one that Redis knows
-- Reply token              the other id owns the lock
--       {GONE, 0, now}     neither id does
--       {LATE, 0, now}     the deadline was over: nothing was done
-- include shared/attempt.lua
-- include shared/value.lua
-- include shared/inbox.lua
-- include shared/pace.lua

local _, late = parse_mode(ARGV[4])
if late then return {REPLY_LATE, 0, clock()} end
local held = redis.call('HMGET', NAME, ARGV[1], ARGV[5])
local token = parse_token(held[1])
if not token and parse_token(held[2]) then token = ARGV[6] or parse_token(held[2]) end
if not token then return {REPLY_GONE, 0, clock()} end
redis.call('PEXPIRE', NAME, ARGV[3]) -- first: Redis never refuses it for lack of memory, nor what follows
redis.call('HSET', NAME, ARGV[1], 't' .. token .. '/' .. ARGV[3])
redis.call('HDEL', NAME, ARGV[5])
note_lease(ARGV[3]) -- also those of its own client, which gets no answer as a waiter
return token
