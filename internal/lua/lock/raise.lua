-- raise: tell a server of a token that others gave out. It is for a lock that is held on several servers: its
-- fencing token is the greatest that one of them gave. While its owner still has the lock here, whoever has
-- it next gets a greater token. Safe to repeat.
--
-- Keys  as in lock/acquire.lua
-- ARGV  1 owner id
--       2 unused
--       3 the token
-- Reply 1 the id owns the lock, 0 it does not: nothing was done
-- include shared/token.lua
-- include shared/value.lua

local value = redis.call('HGET', NAME, ARGV[1])
if not parse_token(value) then return 0 end
if moving then moving.need(TOKEN) end
local last = redis.call('GET', TOKEN)
if not last or (tonumber(last) or 0) < tonumber(ARGV[3]) then
  redis.call('SET', TOKEN, ARGV[3], 'PX', last and DAY or HOUR)
end
-- What else the value says still holds.
redis.call('HSET', NAME, ARGV[1], (string.gsub(value, '^t%d+', 't' .. ARGV[3])))
return 1
