-- raise: tell a server of a token that others gave out. It is for a lock that is held on several servers: its
-- fencing token is the greatest that one of them gave. While its owner still has the lock here, whoever has
-- it next gets a greater token. Safe to repeat.
--
-- KEYS  1 lock, 2 queue, 3 token: as in lock/acquire.lua
-- ARGV  1 owner id
--       2, 3, 4 unused
--       5 the token
-- Reply 1 the id owns the lock, 0 it does not: nothing was done
-- include shared/token.lua

local held = redis.call('HMGET', KEYS[1], ARGV[1], 'token')
if not (held[1] and held[2]) then return 0 end
if moving then moving.need(KEYS[3]) end
local last = redis.call('GET', KEYS[3])
if not last or (tonumber(last) or 0) < tonumber(ARGV[5]) then
  redis.call('SET', KEYS[3], ARGV[5], 'PX', DAY)
end
local _, _, longest = parse_token(held[2])
redis.call('HSET', KEYS[1], 'token', 't' .. ARGV[5] .. '/' .. (longest or 0))
return 1
