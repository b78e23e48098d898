-- clear: resume a name. Safe to repeat: a copy changes nothing, also when the name was paused again since.
--
-- Keys  as in shared/pause.lua
-- ARGV  1 id of this command
-- Reply 1
-- keys PAUSE

if moving then moving.need(PAUSE) end
if redis.call('HGET', PAUSE, 'resumed') == ARGV[1] then return 1 end
redis.call('HDEL', PAUSE, 'since', 'until', 'by', 'why') -- first: Redis never refuses it for lack of memory, nor what follows
redis.call('HSET', PAUSE, 'resumed', ARGV[1])
redis.call('PEXPIRE', PAUSE, '600000')
return 1
