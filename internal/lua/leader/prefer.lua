-- prefer: a candidate of a client is preferred while it is queued for the lock. Safe to repeat.
--
-- Keys  as in leader/record.lua
-- ARGV  1 client id
-- Reply 1
-- include leader/record.lua

local now
-- inline shared/now.lua

redis.call('HSET', RECORD, 'p:' .. ARGV[1], string.sub(now, 1, 13))
redis.call('PEXPIRE', RECORD, RECORD_KEPT)
return 1
